// fusec reduce: shrinks a failing .fus while a command keeps failing.
//
// Four moves, each tried on every place until none helps: drop an output; return an output's operand instead of it; put a node's operand
// of the same type, or a new input, in the node's place; give every dim of one size a smaller one. A move stays when the command, run on the smaller graph, ends with the same
// status as on the whole one.

#include <CLI/CLI.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph, output = "-";
  std::vector<std::string> command;
  int timeout = 60;
};

/// Runs the command with {} (or, without one, a last argument) naming the file. Its output goes nowhere. 256 + signal when it was killed.
int status_of(const std::vector<std::string>& command, const std::string& file, int timeout) {
  std::vector<std::string> words;
  bool named = false;
  for (const std::string& word : command) named |= word == "{}", words.push_back(word == "{}" ? file : word);
  if (!named) words.push_back(file);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(timeout);
    if (!::freopen("/dev/null", "w", stdout) || !::freopen("/dev/null", "w", stderr)) ::_exit(126);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/// One smaller graph: what to leave out and what to put instead.
struct Move {
  size_t drop_output = ~size_t{0};
  size_t output = ~size_t{0};  // becomes what its node reads as operand number `by`
  NodeId node = ~NodeId{0};   // replaced by its operand number `by`, or, for -1, by a new input
  int by = -1;
  int64_t from = -1, to = -1; // dims of this extent get that one
};

Shape resized(Shape shape, const Move& move) {
  for (Dim& dim : shape)
    if (move.from >= 0 && dim.is(move.from)) dim = move.to;
  return shape;
}

/// nullopt: the move leads to no graph.
std::optional<Graph> apply(const Graph& graph, const Move& move) {
  GraphBuilder b(graph.name());
  std::vector<Value> values(graph.size());
  const std::vector<uint32_t> uses = graph.use_counts();
  for (const Port& port : graph.inputs())
    if (uses[port.node]) values[port.node] = b.input(port.name, {graph.node(port.node).type.dtype, resized(graph.node(port.node).type.shape, move)});
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == Op::input) continue;
    std::vector<Value> args;
    for (NodeId arg : node.args) args.push_back(values[arg]);
    if (id == move.node && move.by >= 0) {
      values[id] = args[size_t(move.by)];
    } else if (id == move.node) {
      values[id] = b.input("r" + std::to_string(id), {node.type.dtype, resized(node.type.shape, move)});
    } else if (node.op == Op::constant) {
      values[id] = b.constant(*node.attrs->value);
    } else {
      Attrs attrs = *node.attrs;
      attrs.shape = resized(attrs.shape, move);
      for (std::vector<Dim>* dims : {&attrs.start, &attrs.stop}) *dims = resized(*dims, move);
      values[id] = b.add(node.op, std::move(args), std::move(attrs));
    }
    if (b.error()) return {};
    if (!graph.label(id).empty() && id != move.node) b.label(values[id], graph.label(id));
  }
  std::vector<Value> outputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (i != move.drop_output) {
      const NodeId id = graph.outputs()[i].node;
      outputs.push_back(values[i == move.output ? graph.node(id).args[size_t(move.by)] : id]);
      names.push_back(graph.outputs()[i].name);
    }
  Result<Graph> done = std::move(b).finish(std::move(outputs), std::move(names));
  if (!done || !verify(*done)) return {};
  return std::move(*done);
}

/// Largest savings first: outputs, then nodes from the end, then dims.
std::vector<Move> moves(const Graph& graph) {
  std::vector<Move> out;
  for (size_t i = 0; graph.outputs().size() > 1 && i < graph.outputs().size(); ++i) out.push_back({.drop_output = i});
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    for (size_t k = 0; k < graph.node(graph.outputs()[i].node).args.size(); ++k) out.push_back({.output = i, .by = int(k)});
  std::set<int64_t> extents;
  for (NodeId id = NodeId(graph.size()); id-- > 0;) {
    const Node& node = graph.node(id);
    for (const Dim& dim : node.type.shape)
      if (dim.is_constant() && dim.constant() > 1) extents.insert(dim.constant());
    if (node.op == Op::input || is_leaf(node.op)) continue;
    for (size_t k = 0; k < node.args.size(); ++k)
      if (graph.node(node.args[k]).type == node.type) out.push_back({.node = id, .by = int(k)});
    out.push_back({.node = id});
  }
  for (int64_t extent : extents)
    for (int64_t to : {int64_t{1}, int64_t{2}, extent / 2, extent - 1})
      if (to < extent) out.push_back({.from = extent, .to = to});
  return out;
}

int run(const Options& o) {
  Result<Graph> loaded = load_graph(o.file, o.graph);
  if (!loaded) return fail(loaded.error());
  Graph best = std::move(*loaded);
  const std::filesystem::path scratch = std::filesystem::temp_directory_path() / ("fusec-reduce-" + std::to_string(::getpid()) + ".fus");
  auto status = [&](const Graph& graph) -> int {
    if (Status s = write_output(scratch.string(), print(graph)); !s) return -1;
    return status_of(o.command, scratch.string(), o.timeout);
  };
  const int wanted = status(best);
  int tried = 1, result = 0;
  if (wanted <= 0 || wanted == 127) {
    result = fail(input_error(wanted == 0 ? "the command succeeds on the whole graph: there is nothing to reduce"
                                          : "the command cannot be run: " + o.command.front()));
  } else {
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const Move& move : moves(best)) {
        const std::optional<Graph> next = apply(best, move);
        // Fewer nodes, or the same with smaller dims: so it ends.
        if (!next || (next->size() >= best.size() && move.from < 0 && next->outputs().size() >= best.outputs().size())) continue;
        ++tried;
        if (status(*next) != wanted) continue;
        best = *next;
        smaller = true;
        std::cerr << best.size() << (best.size() == 1 ? " node, " : " nodes, ") << tried << " runs\n";
        break;
      }
    }
    std::string words;
    for (const std::string& word : o.command) words += " " + one_line(word);
    const Status written = write_output(o.output, "; ends with status " + std::to_string(wanted) + ":" + words + "\n" + print(best));
    result = written ? 0 : fail(written.error());
  }
  std::error_code ignored;
  std::filesystem::remove(scratch, ignored);
  return result;
}

}  // namespace

Action add_reduce(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, ".fus file")->required();
  app.add_option("--graph", options->graph, "which graph of the file");
  app.add_option("-o,--output", options->output, "where the small graph goes (default: standard output)");
  app.add_option("--timeout", options->timeout, "seconds that one run may take")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("COMMAND", options->command, "behind --: fails on the file; {} stands for it, else it comes last")->required()->expected(1, -1);
  app.footer("Example:\n  fusec reduce bad.fus -o small.fus -- fusec run {} --device cpu --check");
  return [options] { return run(*options); };
}

}  // namespace fusec::cli
