#include "lib/rewrite/canonical.h"

#include <algorithm>
#include <cstring>

#include "lib/ir/convert.h"

namespace fusec {
namespace {

bool is_scalar(const GraphBuilder& b, Value v) { return b.node(v).op == Op::constant && b.type(v).shape.empty(); }

/// The compare that says the same with its operands exchanged.
Op mirrored(Op op) {
  switch (op) {
    case Op::lt: return Op::gt;
    case Op::gt: return Op::lt;
    case Op::le: return Op::ge;
    case Op::ge: return Op::le;
    default: return op;
  }
}

void constant_to_the_right(const GraphBuilder& b, Op& op, std::vector<Value>& args) {
  if (args.size() != 2 || !is_scalar(b, args[0]) || is_scalar(b, args[1])) return;
  if (mirrored(op) == op && !may_swap(b, op, args[0], args[1])) return;
  op = mirrored(op);
  std::swap(args[0], args[1]);
}

/// What a broadcast, or a reshape that only puts ones in front, repeats; the value itself otherwise.
Value before_broadcast(const GraphBuilder& b, Value v) {
  for (;;) {
    const Node& n = b.node(v);
    if (n.op != Op::broadcast && n.op != Op::reshape) return v;
    const Value inner{n.args[0]};
    if (n.op == Op::reshape) {
      const Shape& from = b.type(inner).shape;
      const Shape& to = n.type.shape;
      if (to.size() < from.size() || !std::equal(from.rbegin(), from.rend(), to.rbegin())) return v;
    }
    v = inner;
  }
}

std::optional<Shape> shape_of_all(const GraphBuilder& b, const std::vector<Value>& args) {
  Shape shape;
  for (Value v : args) {
    std::optional<Shape> both = broadcast(shape, b.type(v).shape);
    if (!both) return std::nullopt;
    shape = std::move(*both);
  }
  return shape;
}

void drop_broadcasts(const GraphBuilder& b, std::vector<Value>& args) {
  if (args.size() < 2) return;
  const std::optional<Shape> whole = shape_of_all(b, args);
  for (Value& arg : args) {
    const Value inner = before_broadcast(b, arg);
    if (inner == arg) continue;
    const Value outer = std::exchange(arg, inner);
    if (shape_of_all(b, args) != whole) arg = outer;
  }
}

/// The one element of a dense constant whose elements all have the same bits.
std::optional<Tensor> splat(const Tensor& t) {
  const size_t size = bytes(t.dtype);
  if (t.extents.empty() || t.data.size() < size) return std::nullopt;
  if (std::memcmp(t.data.data(), t.data.data() + size, t.data.size() - size) != 0) return std::nullopt;
  return Tensor{t.dtype, {}, std::vector<std::byte>(t.data.begin(), t.data.begin() + size)};
}

}  // namespace

bool may_swap(const GraphBuilder& b, Op op, Value left, Value right) {
  if (!commutes(op)) return false;
  if ((op != Op::min && op != Op::max) || !is_float(b.type(left).dtype)) return true;
  const auto is_zero = [&](Value v) { return is_scalar(b, v) && element(*b.node(v).attrs->value, 0) == 0; };
  return !is_zero(left) && !is_zero(right);
}

Value add_canonical(GraphBuilder& b, Op op, std::vector<Value> args, Attrs attrs) {
  for (Value v : args)
    if (!v.valid()) return {};
  if (op == Op::constant && attrs.value) {
    std::optional<Tensor> element = splat(*attrs.value);
    if (!element) return b.add(op, {}, std::move(attrs));
    Attrs a;
    a.shape.assign(attrs.value->extents.begin(), attrs.value->extents.end());
    return b.add(Op::broadcast, {b.constant(std::move(*element))}, std::move(a));
  }
  if (!is_elementwise(op)) return b.add(op, std::move(args), std::move(attrs));
  if (op == Op::trunc_div && is_integer(b.type(args[0]).dtype)) op = Op::div;
  if (op == Op::bitwise_not && b.type(args[0]).dtype == DType::boolean) op = Op::not_;
  drop_broadcasts(b, args);
  constant_to_the_right(b, op, args);
  return b.add(op, std::move(args), std::move(attrs));
}

}  // namespace fusec
