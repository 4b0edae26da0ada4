#pragma once
// The loop that every Graph → Graph pass shares: inputs, then nodes in order, then outputs, names kept.

#include <string>
#include <utility>
#include <vector>

#include "fusec/graph.h"

namespace fusec {

/// Rebuilds `graph` in `b` node by node. `make(id, args)` adds the successor of node `id` (never an input) whose operands `args`
/// are in `b` already, and returns it. Nodes that are no longer read are left out at the end. `values` holds, from the inputs on,
/// the successor of each node met so far.
template <class Make>
Result<Graph> rebuild(const Graph& graph, GraphBuilder& b, std::vector<Value>& values, Make&& make) {
  values.assign(graph.size(), Value{});
  for (const Port& port : graph.inputs()) values[port.node] = b.input(port.name, graph.node(port.node).type);
  for (NodeId id = 0; id < graph.size(); id++) {
    const Node& node = graph.node(id);
    if (node.op == Op::input) continue;
    std::vector<Value> args;
    args.reserve(node.args.size());
    for (NodeId arg : node.args) args.push_back(values[arg]);
    values[id] = make(id, std::move(args));
    if (b.error()) return *b.error();
    if (!graph.label(id).empty()) b.label(values[id], graph.label(id));
  }
  std::vector<Value> outputs;
  std::vector<std::string> names;
  for (const Port& port : graph.outputs()) {
    outputs.push_back(values[port.node]);
    names.push_back(port.name);
  }
  return std::move(b).finish(std::move(outputs), std::move(names));
}

template <class Make>
Result<Graph> rebuild(const Graph& graph, GraphBuilder& b, Make&& make) {
  std::vector<Value> values;
  return rebuild(graph, b, values, std::forward<Make>(make));
}

}  // namespace fusec
