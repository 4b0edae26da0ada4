// fusec test: runs the .fus tests (fus_file.h) and the folders of ONNX node tests below the given paths.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/fus_file.h"
#include "tools/fusec/onnx_test.h"
#include "tools/fusec/text_commands.h"
#include "tools/fusec/variants.h"

namespace fusec::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> paths, devices;
  bool bless = false, verbose = false;
};

struct Tally {
  int passed = 0, failed = 0, blessed = 0;
  int unchecked = 0;  // graphs that parse, of which nothing is expected
};

/// The first line of an error, as an expectation states it: "file.fus:7:12: message".
std::string headline(const Error& error) {
  const std::string text = error.text();
  return text.substr(0, text.find('\n'));
}

/// The graph of a case, with the line numbers of its file.
Result<Graph> parse_case(const FusFile& file, const Case& c) {
  return parse(std::string(c.line - 1, '\n') + c.graph, file.name);
}

/// What the case's command prints, or its error.
Result<std::string> output_of(const FusFile& file, const Case& c) {
  Result<Graph> graph = parse_case(file, c);
  if (!graph) return graph.error();
  return c.run.empty() ? Result<std::string>(print(*graph)) : run_text_command(c.run, *graph);
}

struct Outcome {
  Case::Expect expect;
  std::string text;
};

Outcome outcome_of(const FusFile& file, const Case& c) {
  Result<std::string> output = output_of(file, c);
  if (!output) return {Case::error, headline(output.error())};
  Result<Graph> graph = parse_case(file, c);
  if (graph && *output == print(*graph)) return {Case::unchanged, *output};
  return {Case::text, *output};
}

/// Does what came out meet the expectation? `unchanged` may also be written out in full.
bool meets(const Case& c, const Outcome& got) {
  if (c.expect == Case::nothing) return got.expect != Case::error;
  if (c.expect == Case::unchanged) return got.expect == Case::unchanged;
  if (c.expect == Case::error) return got.expect == Case::error && got.text == c.expected;
  return got.expect != Case::error && got.text == c.expected;
}

void report(const FusFile& file, const Case& c, const Outcome& got) {
  std::cout << "FAILED " << file.name << ":" << (c.expect_line ? c.expect_line : c.line) << "\n";
  auto show = [](const char* what, const std::string& text) {
    std::cout << "  " << what << ":\n";
    for (const std::string& line : expectation_lines(Case::text, text))
      if (line.size() > 1 && line[1] == ' ' && line != "; expect:") std::cout << "    " << line.substr(4) << "\n";
  };
  if (c.expect == Case::unchanged) std::cout << "  expected: unchanged\n";
  if (c.expect == Case::text || c.expect == Case::error) show("expected", c.expected);
  show(got.expect == Case::error ? "got an error" : "got", got.text);
}

Status check_eval(const Graph& graph, const Eval& eval, const std::string& device, std::map<std::string, Program>& programs) {
  std::vector<Type> inputs, outputs;
  for (const Port& port : graph.inputs()) inputs.push_back(graph.node(port.node).type);
  for (const Port& port : graph.outputs()) outputs.push_back(graph.node(port.node).type);
  Result<std::vector<Tensor>> arguments = parse_values(eval.arguments, inputs);
  if (!arguments) return arguments.error().note("in the arguments of eval");
  Result<std::vector<Tensor>> wanted = parse_values(eval.results, outputs);
  if (!wanted) return wanted.error().note("in the results of eval");
  if (eval.variants) {  // one program for all of a graph's lines: its later calls find what the earlier ones compiled
    const std::string key = device + " " + print(graph);
    auto known = programs.find(key);
    if (known == programs.end()) {
      Result<Program> program = compile(graph, {.device = device});
      if (!program) return program.error();
      known = programs.emplace(key, std::move(*program)).first;
    }
    return check_variants(known->second, *arguments, *eval.variants, {*wanted, eval.exact, eval.tolerance, difference});
  }
  Result<std::vector<Tensor>> got = execute({.device = device}, graph, *arguments);
  if (!got) return got.error();
  for (size_t i = 0; i < got->size(); ++i)
    if (std::string d = difference((*got)[i], (*wanted)[i], eval.exact, eval.tolerance); !d.empty())
      return input_error("output " + graph.outputs()[i].name + " " + d);
  return Done{};
}

void run_evals(const FusFile& file, const std::vector<std::string>& devices, Tally& tally) {
  std::map<std::string, Program> programs;
  for (const Eval& eval : file.evals) {
    // The graph as written, and, when its command prints a graph, that one too.
    std::vector<std::pair<std::string, Graph>> graphs;
    for (const Case& c : file.cases) {
      Result<Graph> graph = parse_case(file, c);
      if (!graph || graph->name() != eval.graph) continue;
      graphs.emplace_back("", *graph);
      if (!c.run.empty() && c.run.front() == "opt")
        if (Result<std::string> output = run_text_command(c.run, *graph))
          if (Result<Graph> after = parse(*output)) graphs.emplace_back(" after fusec opt", *after);
      break;
    }
    if (graphs.empty()) {
      ++tally.failed;
      std::cout << "FAILED " << file.name << ":" << eval.line << ": eval: no graph @" << eval.graph << " that parses\n";
      continue;
    }
    for (const auto& [when, graph] : graphs)
      for (const std::string& device : devices) {
        if (Status good = check_eval(graph, eval, device, programs); good) ++tally.passed;
        else {
          ++tally.failed;
          std::cout << "FAILED " << file.name << ":" << eval.line << ": eval on " << device << when << ": " << good.error().text() << "\n";
        }
      }
  }
}

Status run_file(const fs::path& path, const Options& options, Tally& tally) {
  Result<std::string> text = read_input(path.string());
  if (!text) return text.error();
  Result<FusFile> file = parse_fus(*text, path.filename().string());
  if (!file) return file.error();
  std::vector<std::pair<Case, Outcome>> changed;
  for (const Case& c : file->cases) {
    Outcome got = outcome_of(*file, c);
    if (meets(c, got)) {
      Result<Graph> graph = parse_case(*file, c);
      const bool asked = c.expect != Case::nothing || !c.run.empty() ||
                         std::any_of(file->evals.begin(), file->evals.end(), [&](const Eval& e) { return graph && e.graph == graph->name(); });
      ++(asked ? tally.passed : tally.unchecked);
    }
    else if (options.bless && c.expect != Case::nothing) changed.emplace_back(c, std::move(got));
    else ++tally.failed, report(*file, c, got);
  }
  run_evals(*file, options.devices, tally);
  if (changed.empty()) return Done{};
  // From the end, so that the line numbers of the earlier ones stay.
  std::vector<std::string> lines = file->lines;
  for (auto it = changed.rbegin(); it != changed.rend(); ++it) {
    const auto& [c, got] = *it;
    const std::vector<std::string> now = expectation_lines(got.expect, got.text);
    const auto at = lines.erase(lines.begin() + c.expect_line - 1, lines.begin() + c.expect_line - 1 + c.expect_lines);
    lines.insert(at, now.begin(), now.end());
    ++tally.blessed;
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return write_output(path.string(), out);
}

/// .fus files and ONNX test folders below a path, sorted.
Result<std::vector<fs::path>> find(const std::string& path) {
  std::vector<fs::path> out;
  std::error_code error;
  if (!fs::exists(path, error)) return input_error("there is no " + path);
  if (!fs::is_directory(path, error)) return std::vector<fs::path>{path};
  std::error_code unknown;  // of what may not be looked at: it is no test then
  if (fs::exists(fs::path(path) / "model.onnx", unknown)) return std::vector<fs::path>{path};
  for (fs::recursive_directory_iterator it(path, error), end; it != end && !error; it.increment(error)) {
    if (it->is_directory(unknown) && fs::exists(it->path() / "model.onnx", unknown)) out.push_back(it->path()), it.disable_recursion_pending();
    else if (it->path().extension() == ".fus") out.push_back(it->path());
  }
  if (error) return input_error("cannot read what is below " + path + ": " + error.message());
  std::sort(out.begin(), out.end());
  return out;
}

int run(Options options) {
  if (options.devices.empty()) options.devices = test_devices();
  for (const std::string& device : options.devices)
    if (Status there = available(device); !there) return fail(there.error());
  Tally tally;
  OnnxTally onnx;
  int status = 0;
  for (const std::string& path : options.paths) {
    Result<std::vector<fs::path>> files = find(path);
    if (!files) return fail(files.error());
    for (const fs::path& file : *files) {
      if (options.verbose) std::cout << file.string() << std::endl;
      std::error_code unknown;  // a link to nothing, or to itself: reading it says so
      if (fs::is_directory(file, unknown)) {
        run_onnx_test(file.string(), options.devices, onnx);
      } else if (Status done = run_file(file, options, tally); !done) {
        status = std::max(status, fail(done.error()));
        ++tally.failed;
      }
    }
  }
  print_onnx_tally(onnx, options.verbose);
  tally.passed += onnx.passed, tally.failed += onnx.failed;
  std::cout << tally.passed << " passed, " << tally.failed << " failed";
  if (onnx.unsupported) std::cout << ", " << onnx.unsupported << " unsupported";
  if (tally.unchecked) std::cout << ", " << tally.unchecked << " of which nothing is expected";
  if (tally.blessed) std::cout << ", " << tally.blessed << " blessed";
  std::cout << std::endl;
  if (tally.passed + tally.failed + onnx.unsupported + tally.unchecked + tally.blessed == 0) {
    std::cerr << "error: no test was found\n";
    return 2;
  }
  return status ? status : tally.failed ? 1 : 0;
}

}  // namespace

Action add_test(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->paths, ".fus files, or folders of them and of ONNX tests (model.onnx, test_data_set_*)")->required();
  add_list(app, "--device", options->devices, "device of eval lines and ONNX tests; may repeat (default: reference, the CPU and all GPUs; simt only when named)");
  app.add_flag("--bless", options->bless, "rewrite expectations that are not met; the diff is the review");
  app.add_flag("-v,--verbose", options->verbose, "name each file, and each ONNX test that was not run");
  return [options] { return run(*options); };
}

}  // namespace fusec::cli
