//   %a = add 1.0, 2.0      %b = broadcast %a, shape=[4]      %c = exp %b      →      %c = broadcast 20.085537, shape=[4]
//
// A broadcast of something known is known too, but is written as a broadcast: only what is computed becomes a constant.

#include "lib/passes/fold_constants.h"

#include "lib/ir/rebuild.h"
#include "lib/rewrite/canonical.h"
#include "lib/rewrite/match.h"

namespace fusec {
namespace {

int64_t size_bytes(const Type& type) {  // -1: symbolic, or beyond int64
  int64_t total = int64_t(bytes(type.dtype));
  for (const Dim& d : type.shape)
    if (!d.is_constant() || __builtin_mul_overflow(total, d.constant(), &total)) return -1;
  return total;
}

bool fits(const Type& type, int64_t limit) {
  const int64_t size = size_bytes(type);
  return size >= 0 && size <= limit;
}

bool is_known(const GraphBuilder& b, Value v) {
  const Node& n = b.node(v);
  if (n.op == Op::constant) return true;
  return n.op == Op::broadcast && b.node({n.args[0]}).op == Op::constant && fits(n.type, kLargestFold);
}

/// The elements of a constant, or of a broadcast of one.
std::optional<Tensor> known(const GraphBuilder& b, Value v) {
  const Node& n = b.node(v);
  if (n.op == Op::constant) return *n.attrs->value;
  const Tensor inner[] = {*b.node({n.args[0]}).attrs->value};
  return evaluate_op(Op::broadcast, inner, *n.attrs);
}

bool worth_evaluating(const Node& n) {
  return !n.args.empty() && n.op != Op::broadcast && info(n.op).form != Form::reserved && fits(n.type, kLargestFold);
}

std::optional<Tensor> folded(const GraphBuilder& b, const Node& node, const std::vector<Value>& args) {
  if (!worth_evaluating(node)) return std::nullopt;
  std::vector<Tensor> operands;
  int64_t total = 0;
  for (Value v : args)
    if (!is_known(b, v)) return std::nullopt;
  for (Value v : args) {
    if (!fits(b.type(v), kLargestOperand) || (total += size_bytes(b.type(v))) > kLargestOperand) return std::nullopt;
    std::optional<Tensor> operand = known(b, v);
    if (!operand) return std::nullopt;
    operands.push_back(std::move(*operand));
  }
  return evaluate_op(node.op, operands, *node.attrs);
}

}  // namespace

Result<Graph> fold_constants(const Graph& graph, PassContext& context) {
  GraphBuilder b(graph.name());
  return rebuild(graph, b, [&](NodeId id, std::vector<Value> args) {
    const Node& node = graph.node(id);
    if (!context.rules.may_fire("fold-constants")) return b.add(node.op, std::move(args), *node.attrs);
    std::optional<Tensor> value = folded(b, node, args);
    if (!value) return b.add(node.op, std::move(args), *node.attrs);
    context.rules.count("fold-constants");
    Attrs a;
    a.value = std::make_shared<const Tensor>(std::move(*value));
    return add_canonical(b, Op::constant, {}, std::move(a));
  });
}

}  // namespace fusec
