// The cost model's facts: what memory traffic and arithmetic a piece of graph stands for.

#include "lib/fusion/cost.h"

#include <algorithm>

#include "lib/ir/formula.h"

namespace fusec {
namespace {

double size_of(const Dim& dim, const Sizes& sizes) {
  if (dim.is_constant()) return double(dim.constant());
  Sizes known = sizes;
  for (const std::string& symbol : dim.symbols()) known.emplace(symbol, 4096);
  return double(dim.value(known).value_or(INT64_MAX));
}

double elements(const Graph& graph, NodeId id, const Sizes& sizes) {
  double product = 1;
  for (const Dim& dim : graph.node(id).type.shape) product *= size_of(dim, sizes);
  return product;
}

bool only_renames(Op op) { return op == Op::reshape || op == Op::broadcast; }

}  // namespace

int op_cost(Op op, DType result) {
  const Formula* steps = info(op).form == Form::formula ? formula(op, result) : nullptr;
  if (!steps) return info(op).cost;
  int sum = 0;
  for (const Step& step : steps->steps)
    if (step.kind == Step::compute) sum += info(step.op).cost;
  return sum;
}

double value_bytes(const Graph& graph, NodeId id, const Sizes& sizes) {
  return elements(graph, id, sizes) * double(bytes(graph.node(id).type.dtype));
}

double node_work(const Graph& graph, NodeId id, const Sizes& sizes) {
  const Node& node = graph.node(id);
  return info(node.op).cost * elements(graph, is_reduce(node.op) ? node.args[0] : id, sizes);
}

namespace {

/// Of a table that only gathers read, no more than they take.
double read_bytes(const Graph& graph, NodeId id, const std::vector<NodeId>& readers, const Sizes& sizes) {
  const double whole = value_bytes(graph, id, sizes);
  double taken = 0;
  for (NodeId reader : readers) {
    const Node& node = graph.node(reader);
    for (size_t k = 0; k < node.args.size(); k++)
      if (node.args[k] == id) taken += node.op == Op::gather && k == 0 ? value_bytes(graph, reader, sizes) : whole;
  }
  return taken > 0 ? std::min(whole, taken) : whole;
}

}  // namespace

double traffic(const Graph& graph, const Group& group, const Sizes& sizes) {
  double sum = 0;
  for (NodeId id : group.inputs) sum += read_bytes(graph, id, group.nodes, sizes);
  for (NodeId id : group.outputs) sum += value_bytes(graph, id, sizes);
  return sum;
}

double unfused_traffic(const Graph& graph, const Sizes& sizes) {
  double sum = 0;
  for (NodeId id = 0; id < graph.size(); id++) {
    const Node& node = graph.node(id);
    if (is_leaf(node.op) || only_renames(node.op)) continue;
    for (NodeId arg : node.args) sum += read_bytes(graph, arg, {id}, sizes);
    sum += value_bytes(graph, id, sizes);
  }
  return sum;
}

size_t unfused_kernels(const Graph& graph) {
  size_t count = 0;
  for (const Node& node : graph.nodes()) count += !is_leaf(node.op) && !only_renames(node.op);
  return count;
}

}  // namespace fusec
