//   %m = reduce_max %x, axes=[1], keep     %e = exp (sub %x, %m)     %s = sum %e, axes=[1]      →      %s gets kOnline
//
// Sources: Milakov & Gimelshein, "Online normalizer calculation for softmax" (2018); Welford (1962), merged as Chan, Golub & LeVeque.

#include "lib/passes/pair_reductions.h"

#include "lib/ir/rebuild.h"
#include "lib/passes/row_value.h"

namespace fusec {
namespace {

bool is_wide_float(DType type) { return type == DType::f32 || type == DType::f64; }

/// The reduction `op` of `x` over `axes` that `id` sets beside x.
bool is_reduction(const Graph& g, NodeId id, Op op, NodeId x, const std::vector<int64_t>& axes) {
  const Node* row = row_value(g, id, g.node(x).type.shape, axes);
  return row && row->op == op && row->args[0] == x && row->attrs->axes == axes;
}

bool is_online_pair(const Graph& g, const Node& addend, const std::vector<int64_t>& axes) {
  if (addend.op != Op::exp) return false;
  const Node& shifted = g.node(addend.args[0]);
  if (shifted.op != Op::sub || !(g.node(shifted.args[0]).type == addend.type)) return false;
  return is_reduction(g, shifted.args[1], Op::reduce_max, shifted.args[0], axes);
}

bool is_welford_pair(const Graph& g, const Node& addend, const std::vector<int64_t>& axes) {
  if (addend.op != Op::mul || addend.args[0] != addend.args[1]) return false;
  const Node& deviation = g.node(addend.args[0]);
  if (deviation.op != Op::sub || !(g.node(deviation.args[0]).type == addend.type)) return false;
  const NodeId x = deviation.args[0];
  const Node* mean = row_value(g, deviation.args[1], addend.type.shape, axes);
  return mean && mean->op == Op::div && is_mean(g, *mean, x, axes);
}

bool is_pair(const Graph& g, const Node& node, const std::vector<bool>& is_output) {
  if (node.op != Op::sum || (node.attrs->relax & kOnline) || !is_wide_float(node.type.dtype)) return false;
  if (is_output[node.args[0]]) return false;
  const Node& addend = g.node(node.args[0]);
  return is_online_pair(g, addend, node.attrs->axes) || is_welford_pair(g, addend, node.attrs->axes);
}

}  // namespace

Result<Graph> pair_reductions(const Graph& graph, PassContext& context) {
  std::vector<bool> is_output(graph.size());
  for (const Port& port : graph.outputs()) is_output[port.node] = true;
  GraphBuilder b(graph.name());
  return rebuild(graph, b, [&](NodeId id, std::vector<Value> args) {
    const Node& node = graph.node(id);
    Attrs attrs = *node.attrs;
    if (context.rules.may_fire("pair_reductions") && is_pair(graph, node, is_output)) {
      context.rules.count("pair_reductions");
      attrs.relax |= kOnline;
    }
    return b.add(node.op, std::move(args), std::move(attrs));
  });
}

}  // namespace fusec
