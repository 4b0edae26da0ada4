#include "lib/passes/row_value.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/convert.h"

namespace fusec {
namespace {

Dim count_of(const Shape& shape, const std::vector<int64_t>& axes) {
  Dim count = 1;
  for (int64_t axis : axes) count = count * shape[size_t(axis)];
  return count;
}

/// x's shape with ones along `axes`, without ones in front.
Shape row_shape(Shape shape, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes) shape[size_t(axis)] = 1;
  return shape;
}
Shape without_leading_ones(const Shape& shape) {
  return {std::find_if(shape.begin(), shape.end(), [](const Dim& d) { return !d.is(1); }), shape.end()};
}

/// The one element of a scalar constant, or NaN.
double scalar(const Node& n) {
  return n.op == Op::constant && n.type.shape.empty() ? element(*n.attrs->value, 0) : NAN;
}

}  // namespace

const Node* row_value(const Graph& graph, NodeId id, const Shape& x, const std::vector<int64_t>& axes) {
  while (graph.node(id).op == Op::broadcast) id = graph.node(id).args[0];
  if (without_leading_ones(graph.node(id).type.shape) != without_leading_ones(row_shape(x, axes))) return nullptr;
  // A reshape keeps the order of the elements, and the kept axes have theirs on both sides of it.
  while (graph.node(id).op == Op::reshape) id = graph.node(id).args[0];
  return &graph.node(id);
}

bool is_count(const Graph& graph, NodeId id, const Shape& shape, const std::vector<int64_t>& axes) {
  const Dim count = count_of(shape, axes);
  const Node& n = graph.node(id);
  if (count.is_constant()) return scalar(n) == double(count.constant());
  if (n.op != Op::cast) return false;
  const Node& size = graph.node(n.args[0]);
  return size.op == Op::size && size.attrs->shape[0] == count;
}

bool is_mean(const Graph& graph, const Node& node, NodeId x, const std::vector<int64_t>& axes) {
  if (node.op == Op::mean) return node.args[0] == x && node.attrs->axes == axes;
  if (node.op != Op::div && node.op != Op::mul) return false;
  const Node& sum = graph.node(node.args[0]);
  if (sum.op != Op::sum || sum.args[0] != x || sum.attrs->axes != axes) return false;
  const Shape& shape = graph.node(x).type.shape;
  if (node.op == Op::div) return is_count(graph, node.args[1], shape, axes);
  const Dim count = count_of(shape, axes);
  return count.is_constant() && std::fabs(scalar(graph.node(node.args[1])) * double(count.constant()) - 1) < 1e-6;
}

}  // namespace fusec
