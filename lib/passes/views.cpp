//   %t = transpose %x       %r = relu %t       %u = transpose %r       return %u       →       %r = relu %x       return %r
//   %b = broadcast %v, shape=[8,4]             %e = exp %b             →       %e = exp %v       %b = broadcast %e, shape=[8,4]
//
// Nodes are remade bottom-up. A view first swallows what lies below it (view_compose.cpp), then slices move down, then elementwise ops
// move below the views that their operands share. What is not done: slices do not move through elementwise ops (a kernel computes
// only what is read), and pads not at all.

#include "lib/passes/views.h"

#include <algorithm>

#include "lib/ir/rebuild.h"
#include "lib/passes/view_compose.h"
#include "lib/rewrite/canonical.h"

namespace fusec {
namespace {

constexpr int kMaxNesting = 48;  // as in the rewriter: deeper rewrites wait for the next sweep

class Sweep {
 public:
  Sweep(const Graph& graph, RuleControl& rules) : graph_(graph), b_(graph.name()), rules_(rules) {}

  Result<Graph> run() {
    const std::vector<uint32_t> uses = graph_.use_counts();
    return rebuild(graph_, b_, [&](NodeId id, std::vector<Value> args) {
      const Node& node = graph_.node(id);
      const Value value = make({node.op, std::move(args), *node.attrs});
      if (value.valid()) {
        reads_.resize(std::max<size_t>(reads_.size(), value.id + 1));
        reads_[value.id] += uses[id];
      }
      return value;
    });
  }

 private:
  bool fires() {
    if (!rules_.may_fire("views")) return false;
    rules_.count("views");
    return true;
  }
  bool read_once(Value v) const { return v.id >= reads_.size() || reads_[v.id] <= 1; }

  Value make(Pending node) {
    for (Value v : node.args)
      if (!v.valid()) return {};
    if (nesting_ >= kMaxNesting) return b_.add(node.op, std::move(node.args), std::move(node.attrs));
    nesting_++;
    const Value value = is_view(node.op) ? make_view(std::move(node)) : make_other(std::move(node));
    nesting_--;
    return value;
  }

  Value make_view(Pending view) {
    for (;;) {
      if (is_identity_view(b_, view) && fires()) return view.args[0];
      std::optional<Pending> composed = compose_views(b_, view);
      if (!composed || !fires()) break;
      view = std::move(*composed);
    }
    if (view.op == Op::slice)
      if (std::optional<Swapped> swapped = slice_first(b_, view); swapped && fires()) {
        swapped->outer.args = {make(std::move(swapped->inner))};
        return make(std::move(swapped->outer));
      }
    return b_.add(view.op, std::move(view.args), std::move(view.attrs));
  }

  Value make_other(Pending node) {
    if (!is_elementwise(node.op)) return add_canonical(b_, node.op, std::move(node.args), std::move(node.attrs));
    const Value value = add_canonical(b_, node.op, node.args, node.attrs);
    if (!value.valid()) return value;
    const Node& n = b_.node(value);
    Pending normal{n.op, {}, *n.attrs};
    for (NodeId arg : n.args) normal.args.push_back({arg});
    if (std::optional<Value> before = before_broadcasts(normal, n.type.shape)) return *before;
    if (std::optional<Value> before = before_shared_view(normal)) return *before;
    return value;
  }

  /// exp(broadcast(v)) → broadcast(exp(v)): when every operand is smaller than the result.
  std::optional<Value> before_broadcasts(const Pending& node, Shape shape) {
    Pending smaller = node;
    Shape inner;
    bool changed = false;
    for (Value& arg : smaller.args) {
      const Node& n = b_.node(arg);
      if (n.op == Op::broadcast) {
        arg = {n.args[0]};
        changed = true;
      }
      const std::optional<Shape> both = broadcast(inner, b_.type(arg).shape);
      if (!both) return std::nullopt;
      inner = *both;
    }
    if (!changed || inner == shape || !fires()) return std::nullopt;
    Pending around{Op::broadcast, {make(std::move(smaller))}, {}};
    around.attrs.shape = shape;
    return make(std::move(around));
  }

  /// relu(transpose(x)) → transpose(relu(x)), and add(transpose(x), transpose(y)) likewise; scalars have no view to share.
  std::optional<Value> before_shared_view(const Pending& node) {
    const Node* shared = nullptr;
    size_t viewed = 0;
    for (Value arg : node.args) {
      const Node& n = b_.node(arg);
      if (n.type.shape.empty()) continue;
      if (n.op != Op::transpose && n.op != Op::reshape && n.op != Op::reverse) return std::nullopt;
      if (!shared) shared = &n;
      if (n.op != shared->op || !(*n.attrs == *shared->attrs)) return std::nullopt;
      if (b_.type({n.args[0]}).shape != b_.type({shared->args[0]}).shape) return std::nullopt;
      if (!read_once(arg)) return std::nullopt;
      viewed++;
    }
    // Below a rank-0 view everything is a scalar already; that view stays.
    if (!viewed || b_.type({shared->args[0]}).shape.empty() || !fires()) return std::nullopt;
    Pending around{shared->op, {}, *shared->attrs}, inner = node;
    for (Value& arg : inner.args)
      if (!b_.type(arg).shape.empty()) arg = {b_.node(arg).args[0]};
    around.args = {make(std::move(inner))};
    return make(std::move(around));
  }

  const Graph& graph_;
  GraphBuilder b_;
  RuleControl& rules_;
  std::vector<uint32_t> reads_;  // by new value: readers in the old graph
  int nesting_ = 0;
};

}  // namespace

Result<Graph> views(const Graph& graph, PassContext& context) {
  return until_quiet(graph, context, [&](const Graph& current) { return Sweep(current, context.rules).run(); });
}

}  // namespace fusec
