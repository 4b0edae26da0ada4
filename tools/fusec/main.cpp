// fusec: the table of subcommands. Each file beside this one is one of them.

#include <CLI/CLI.hpp>
#include <csignal>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "runtime/log.h"
#include "tools/fusec/command.h"
#include "tools/fusec/progress.h"

namespace fusec::cli {

#define COMMANDS(X)                                                                         \
  X(run, "compute the outputs of a graph; --check compares them with the reference")        \
  X(bench, "time graphs against the rate at which the device copies memory")                \
  X(tune, "measure ways to run the kernels of a graph, and keep the fastest in a file")       \
  X(explain, "show the kernels of a graph, what they move, and why they are not fewer")     \
  X(emit, "print the kernels of a graph as plan, CUDA, PTX, LLVM IR or assembly")           \
  X(opt, "rewrite a graph and print it")                                                    \
  X(test, "run .fus tests and folders of ONNX node tests")                                  \
  X(fuzz, "run random graphs on a device and compare them with the reference")              \
  X(reduce, "shrink a failing graph while a command keeps failing")                         \
  X(import, "turn an ONNX model into a .fus text")                                          \
  X(split, "write the fused regions of an ONNX model as .fus files, with a manifest for a host")  \
  X(ops, "list the ops, from their cards")                                                  \
  X(rules, "list the rewrite rules")                                                        \
  X(passes, "list the passes")                                                              \
  X(schedules, "list the ways in which a kernel may run, and which one a graph's kernels take") \
  X(cache, "look at the directory of compiled kernels, or empty it")                        \
  X(devices, "list what this build and this machine can run on")

#define X(name, summary) Action add_##name(CLI::App&);
COMMANDS(X)
#undef X

struct Row {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App&);
};
#define X(name, summary) {#name, summary, add_##name},
const Row kCommands[] = {COMMANDS(X)};
#undef X

const char kFooter[] = R"(Examples:
  fusec run docs/examples/softmax.fus --check --time      compute, compare with the reference evaluator, time it
  fusec run model.onnx -i x=x.npy -o y=y.npy              files: .npy, .npz, .safetensors, ONNX .pb
  fusec opt softmax.fus --print-changed                   what each pass does
  fusec explain softmax.fus --target sm_90                which kernels, what they move, why not fewer
  fusec emit softmax.fus --target sm_90 --as cuda         the generated text; no GPU is needed
  fusec bench docs/examples/*.fus                         against the rate at which the machine copies memory
  fusec test test/                                        every .fus test below a folder

A graph in the text form:
  graph @scale(%x: f32[N,4], %s: f32[4]) -> f32[N,4] {
    %y: f32[N,4] = mul %x, %s
    return %y
  }

Exit status: 0 good, 1 a check failed, 2 the input is at fault, 3 the environment is, 70 fusec itself.
Environment: FUSEC_CACHE_DIR, FUSEC_CACHE_BYTES, FUSEC_TUNING, FUSEC_LOG=off|error|warn|info|debug, FUSEC_OPTIONS (docs/debugging.md).)";

/// CLI11 takes a number beyond 64 bits for the largest one. What is no number at all is its own to refuse.
std::string not_64_bits(const std::string& text) {
  const bool negative = text.starts_with("-");
  const char *begin = text.data() + (text.starts_with("-") || text.starts_with("+")), *end = text.data() + text.size();
  uint64_t magnitude = 0;
  const auto [stop, error] = std::from_chars(begin, end, magnitude);
  const bool fits = error != std::errc::result_out_of_range && (!negative || magnitude <= uint64_t{1} << 63);
  return fits ? "" : "'" + text + "' does not fit 64 bits";
}

/// No file, device, graph or field has an empty name; taken, it would pass for one that was not given.
std::string empty(const std::string& text) { return text.empty() ? "a word is expected, and this one is empty" : ""; }

/// Checks that every subcommand has in common.
void check_words(CLI::App& sub) {
  for (CLI::Option* option : sub.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "INT" || type == "UINT") option->check(CLI::Validator(not_64_bits, ""));
    const bool may_be_empty = option->get_items_expected_min() == 0 || option->get_name() == "COMMAND";  // words of another program
    if (type.starts_with("TEXT") && !may_be_empty) option->check(CLI::Validator(empty, ""));
  }
}

/// What CLI11 says, and which word is no subcommand: it only says that one is missing.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> rest = app->remaining();
  const bool unknown = app->get_parent() == nullptr && app->get_subcommands().empty() && !rest.empty();
  const std::string what = !unknown                       ? error.what()
                           : rest.front().starts_with("-") ? "unknown option '" + rest.front() + "'"
                                                           : "unknown subcommand '" + rest.front() + "'";
  return "error: " + what + "\nRun with --help for more information.\n";
}

/// Descriptions in lines that fit 120 columns: CLI11 keeps them as one, and terminals break those within words.
class Wrapped : public CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    if (const size_t off = name.find("{false}"); off != std::string::npos) name.erase(off, 7);  // how CLI11 marks --no-…
    return name;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const size_t width = 120 - get_column_width();
    std::istringstream words(option->get_description());
    std::string text, word;
    size_t line = 0;
    while (words >> word) {
      const size_t columns = std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xc0) != 0x80; });  // UTF-8
      const bool fits = line + 1 + columns <= width;
      if (!text.empty()) text += fits ? ' ' : '\n';
      line = (fits && !text.empty() ? line + 1 : 0) + columns;
      text += word;
    }
    return text;
  }
};

int perform(const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return fail(environment_error("out of memory"));
  } catch (const std::length_error&) {  // a vector beyond its largest size
    return fail(environment_error("out of memory"));
  } catch (const std::exception& e) {
    return fail(internal_error(std::string("exception: ") + e.what()));
  }
}

/// The status, or 3 when what was said on standard output did not get there.
int finished(int status) {
  std::cout.flush();
  if (std::cout || status > 1) return status;
  return fail(environment_error("cannot write to standard output"));
}

int main(int argc, char** argv) {
  set_command(argc, argv);
  log_debug("fusec " FUSEC_VERSION);  // a FUSEC_LOG that means nothing is said at once
  CLI::App app("fusec fuses tensor graphs into few kernels and runs them at the rate the memory allows.", "fusec");
  app.formatter(std::make_shared<Wrapped>());  // before the subcommands, which take it over
  app.require_subcommand(1);
  app.set_version_flag("--version", "fusec " FUSEC_VERSION);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Row& row : kCommands) {
    CLI::App* sub = app.add_subcommand(row.name, row.summary);
    actions.emplace_back(sub, row.add(*sub));
    check_words(*sub);
  }
  app.failure_message(usage_error);
  app.footer(kFooter);  // after the subcommands, which would take it over
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {  // fusec help run
    words.erase(words.begin());
    words.push_back("--help");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    const int status = app.exit(e, std::cout, std::cerr);
    return finished(status == 0 ? 0 : 2);
  }
  for (auto& [sub, action] : actions)
    if (sub->parsed()) return finished(perform(action));
  return 2;
}

}  // namespace fusec::cli

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error, as on a full disk
  return fusec::cli::main(argc, argv);
}
