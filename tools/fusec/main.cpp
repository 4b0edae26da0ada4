// fusec: the table of subcommands. Each file beside this one is one of them.

#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/fusec/command.h"

namespace fusec::cli {

#define COMMANDS(X)                                                                    \
  X(run, "compute the outputs of a graph; --check compares them with the reference")   \
  X(opt, "rewrite a graph and print it")                                               \
  X(fuzz, "run random graphs on a device and compare them with the reference")                 \
  X(import, "turn an ONNX model into a .fus text")                                     \
  X(rules, "list the rewrite rules")                                                   \
  X(passes, "list the passes")                                                         \
  X(test, "run .fus tests and folders of ONNX node tests")                             \
  X(ops, "list the ops, from their cards")

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
  fusec test test/                                        every .fus test below a folder

A graph in the text form:
  graph @scale(%x: f32[N,4], %s: f32[4]) -> f32[N,4] {
    %y: f32[N,4] = mul %x, %s
    return %y
  }

Exit status: 0 good, 1 a check failed, 2 the input is at fault, 3 the environment is, 70 fusec itself.
Environment: FUSEC_CACHE_DIR, FUSEC_CACHE_BYTES, FUSEC_LOG=off|error|warn|info|debug.)";

int main(int argc, char** argv) {
  CLI::App app("fusec fuses tensor graphs into few kernels and runs them at the rate the memory allows.", "fusec");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "fusec 0.1.0");
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Row& row : kCommands) {
    CLI::App* sub = app.add_subcommand(row.name, row.summary);
    actions.emplace_back(sub, row.add(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int status = app.exit(e, std::cout, std::cerr);
    return status == 0 ? 0 : 2;
  }
  for (auto& [sub, action] : actions)
    if (sub->parsed()) {
      try {
        return action();
      } catch (const std::exception& e) {
        return fail(internal_error(std::string("exception: ") + e.what()));
      }
    }
  return 2;
}

}  // namespace fusec::cli

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return fusec::cli::main(argc, argv);
}
