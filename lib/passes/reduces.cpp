//   reduce_max (reduce_max %x, axes=[2]), axes=[0]              →  reduce_max %x, axes=[0,2]
//   sum (transpose %x, perm=[1,0]), axes=[0]                    →  sum %x, axes=[1]
//   any %b, axes=[1]   where %b: bool[8,1]                      →  reshape %b, shape=[8]
//
// A float sum keeps its operand's order of axes: transposing it away changes which element comes first, and so the rounding.

#include "lib/passes/reduces.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/ir/rebuild.h"

namespace fusec {
namespace {

/// The order of the elements does not matter, not even to the last bit. (max over zeros of both signs: the sign is unspecified.)
bool order_is_free(Op op, DType type) {
  switch (op) {
    case Op::reduce_min:
    case Op::reduce_max:
    case Op::any:
    case Op::all: return true;
    case Op::sum:
    case Op::prod: return !is_float(type);
    default: return false;
  }
}
/// Reading an element twice is as good as once.
bool is_idempotent(Op op) { return op == Op::reduce_min || op == Op::reduce_max || op == Op::any || op == Op::all; }

bool contains(const std::vector<int64_t>& axes, size_t axis) {
  return std::binary_search(axes.begin(), axes.end(), int64_t(axis));
}

class Sweep {
 public:
  Sweep(const Graph& graph, RuleControl& rules) : graph_(graph), b_(graph.name()), rules_(rules) {}

  Result<Graph> run() {
    for (const Node& node : graph_.nodes())
      if (is_reduce(node.op) && !node.attrs->keep) dropping_.insert(key(node));
    return rebuild(graph_, b_, [&](NodeId id, std::vector<Value> args) {
      const Node& node = graph_.node(id);
      if (is_reduce(node.op)) {
        if (const std::optional<Value> better = rewritten(node, args[0])) return *better;
        // The same reduction with and without its axes kept is one, and a reshape.
        if (node.attrs->keep && !node.attrs->axes.empty() && dropping_.contains(key(node)) && fires())
          return reshape(reduce(node, args[0], node.attrs->axes, false), node.type.shape);
      }
      return b_.add(node.op, std::move(args), *node.attrs);
    });
  }

 private:
  using Key = std::tuple<Op, NodeId, std::vector<int64_t>, std::optional<DType>, bool, uint8_t>;
  static Key key(const Node& n) {
    return {n.op, n.args[0], n.attrs->axes, n.attrs->to, n.attrs->last, n.attrs->relax};
  }

  bool fires() {
    if (!rules_.may_fire("reduces")) return false;
    rules_.count("reduces");
    return true;
  }

  Value reduce(const Node& node, Value x, std::vector<int64_t> axes, bool keep) {
    Attrs a = *node.attrs;
    a.axes = std::move(axes);
    a.keep = keep;
    return b_.add(node.op, {x}, std::move(a));
  }
  Value reshape(Value x, const Shape& shape) {
    if (b_.type(x).shape == shape) return x;
    Attrs a;
    a.shape = shape;
    return b_.add(Op::reshape, {x}, std::move(a));
  }

  std::optional<Value> rewritten(const Node& node, Value x) {
    if (node.op == Op::argmax || node.op == Op::argmin) return std::nullopt;
    if (std::optional<Value> v = of_ones(node, x)) return v;
    if (!order_is_free(node.op, node.type.dtype)) return std::nullopt;
    if (std::optional<Value> v = of_reduce(node, x)) return v;
    if (std::optional<Value> v = of_transpose(node, x)) return v;
    if (is_idempotent(node.op)) return of_broadcast(node, x);
    return std::nullopt;
  }

  /// Axes of extent one are not reduced but dropped.
  std::optional<Value> of_ones(const Node& node, Value x) {
    const Shape& shape = b_.type(x).shape;
    for (int64_t axis : node.attrs->axes)
      if (!shape[size_t(axis)].is(1)) return std::nullopt;
    if (!fires()) return std::nullopt;
    const Value value = reshape(x, node.type.shape);
    // A float sum starts at 0.0, and -0.0 + 0.0 is 0.0.
    if (node.op != Op::sum || !is_float(node.type.dtype)) return value;
    return b_.add(Op::add, {value, b_.scalar(node.type.dtype, 0)});
  }

  /// The outer one's axes, counted in the inner one's operand, and both together.
  std::optional<Value> of_reduce(const Node& node, Value x) {
    const Node& inner = b_.node(x);
    if (inner.op != node.op || inner.attrs->relax != node.attrs->relax) return std::nullopt;
    const Value source{inner.args[0]};
    const size_t rank = b_.type(source).shape.size();
    std::vector<int64_t> axes;
    size_t outer_axis = 0;  // axis of the inner result
    for (size_t k = 0; k < rank; k++) {
      const bool by_inner = contains(inner.attrs->axes, k);
      const bool is_there = !by_inner || inner.attrs->keep;
      if (by_inner || contains(node.attrs->axes, outer_axis)) axes.push_back(int64_t(k));
      if (is_there) outer_axis++;
    }
    if (!fires()) return std::nullopt;
    const Shape shape = node.type.shape;
    return reshape(reduce(node, source, std::move(axes), false), shape);
  }

  std::optional<Value> of_transpose(const Node& node, Value x) {
    const Node& view = b_.node(x);
    if (view.op != Op::transpose) return std::nullopt;
    const std::vector<int64_t> perm = view.attrs->perm;
    const Value source{view.args[0]};
    std::vector<int64_t> axes, kept_order;
    for (size_t k = 0; k < perm.size(); k++)
      (contains(node.attrs->axes, k) ? axes : kept_order).push_back(perm[k]);
    std::sort(axes.begin(), axes.end());
    if (!fires()) return std::nullopt;
    // Axes that stay keep the transpose's order: the k-th of them stands at its rank among those of the source.
    std::vector<int64_t> sorted = kept_order;
    std::sort(sorted.begin(), sorted.end());
    Attrs outer;
    for (int64_t axis : kept_order)
      outer.perm.push_back(std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin());
    Value value = reduce(node, source, std::move(axes), false);
    if (!std::is_sorted(outer.perm.begin(), outer.perm.end())) value = b_.add(Op::transpose, {value}, std::move(outer));
    return reshape(value, node.type.shape);
  }

  /// Axes that only repeat need not be read, where there is at least one element along them.
  std::optional<Value> of_broadcast(const Node& node, Value x) {
    const Node& view = b_.node(x);
    if (view.op != Op::broadcast) return std::nullopt;
    const Value source{view.args[0]};
    const Shape from = b_.type(source).shape;
    const Shape to = view.type.shape;
    const size_t missing = to.size() - from.size();
    Shape read = to;  // `to` without the repetition along reduced axes
    bool changed = false;
    for (size_t k = 0; k < to.size(); k++) {
      const bool repeated = k < missing || !(from[k - missing] == to[k]);
      const bool never_empty = to[k].is_constant() && to[k].constant() > 0;
      if (!repeated || !never_empty || to[k].is(1) || !contains(node.attrs->axes, k)) continue;
      read[k] = 1;
      changed = true;
    }
    if (!changed || !fires()) return std::nullopt;
    Attrs a;
    a.shape = read;
    const Value smaller = read == from ? source : b_.add(Op::broadcast, {source}, std::move(a));
    return reduce(node, smaller, node.attrs->axes, node.attrs->keep);
  }

  const Graph& graph_;
  GraphBuilder b_;
  RuleControl& rules_;
  std::set<Key> dropping_;  // reductions of the old graph that drop their axes
};

}  // namespace

Result<Graph> reduces(const Graph& graph, PassContext& context) {
  return until_quiet(graph, context, [&](const Graph& current) { return Sweep(current, context.rules).run(); });
}

}  // namespace fusec
