// Matching by backtracking over the two orders of commutative operands, and building what is put.
//
//   find (x + c) + d   at   %r = add 2.0, (add %a, 1.0)   →   x = %a, c = 1.0, d = 2.0
//   put  x + fold(c + d)                                  →   add %a, 3.0
//
// Patterns are a few nodes deep, so plain recursion over them is bounded; graphs are never walked here.

#include "lib/rewrite/match.h"

#include <cmath>

#include "lib/ir/convert.h"
#include "lib/ir/eval.h"
#include "lib/rewrite/canonical.h"

namespace fusec {
namespace {

bool is_literal(const Pattern& p) { return p.kind == Pattern::number || p.kind == Pattern::special; }

std::optional<Tensor> all_bits(DType type) {
  if (is_float(type)) return std::nullopt;
  return Tensor{type, {}, std::vector<std::byte>(bytes(type), type == DType::boolean ? std::byte{1} : std::byte{0xff})};
}

/// The end of a type's order: infinity where there is one.
std::optional<Tensor> extreme(DType type, bool high) {
  if (type == DType::f8e4m3) return scalar_tensor(type, high ? 448 : -448);
  if (is_float(type)) return scalar_tensor(type, high ? HUGE_VAL : -HUGE_VAL);
  if (type == DType::boolean) return scalar_tensor(type, high);
  Tensor t{type, {}, std::vector<std::byte>(bytes(type), high ? std::byte{0xff} : std::byte{0})};
  if (is_signed(type)) t.data.own().back() ^= std::byte{0x80};  // little-endian: the sign is in the last byte
  return t;
}

std::optional<Tensor> literal(const Pattern& p, DType type) {
  if (p.kind == Pattern::number) return scalar_tensor(type, p.literal);
  switch (p.which) {
    case Pattern::all_ones: return all_bits(type);
    case Pattern::lowest: return extreme(type, false);
    case Pattern::highest: return extreme(type, true);
  }
  return std::nullopt;
}

struct Goal {
  const Pattern* pattern;
  Value value;
};

/// All goals have to hold at once; `when` judges the whole.
struct Solver {
  const RewriteRule& rule;
  const GraphBuilder& b;
  Numerics numerics;
  const ReadOnce& once;

  bool allowed(const Match& m) const {
    const Value x = m.values[0].valid() ? m.values[0] : m.constants[0];
    const bool floats = x.valid() && is_float(b.type(x).dtype);
    switch (rule.holds) {
      case Holds::exact: break;
      case Holds::integers:
        if (floats) return false;
        break;
      case Holds::floats:
        if (!floats) return false;
        break;
      case Holds::fused:
        if (!floats || numerics == Numerics::strict) return false;
        break;
      case Holds::fast:
        if (!floats || numerics != Numerics::fast) return false;
        break;
    }
    return !rule.when || rule.when(m);
  }

  bool bind(Value& slot, Value value) const {
    if (slot.valid()) return slot == value;
    slot = value;
    return true;
  }

  bool solve(Match& m, std::vector<Goal> goals) const {
    if (goals.empty()) return allowed(m);
    const Goal goal = goals.back();
    goals.pop_back();
    const Pattern& p = *goal.pattern;
    const Node& n = b.node(goal.value);
    const bool scalar = n.op == Op::constant && n.type.shape.empty();
    switch (p.kind) {
      case Pattern::value: return bind(m.values[p.index], goal.value) && solve(m, std::move(goals));
      case Pattern::constant: return scalar && bind(m.constants[p.index], goal.value) && solve(m, std::move(goals));
      case Pattern::number:
      case Pattern::special: {
        if (!scalar) return false;
        const std::optional<Tensor> wanted = literal(p, n.type.dtype);
        return wanted && wanted->data == n.attrs->value->data && solve(m, std::move(goals));
      }
      case Pattern::node: return solve_node(m, goals, p, goal.value);
      case Pattern::fold:
      case Pattern::derived: return false;
    }
    return false;
  }

  bool solve_node(Match& m, const std::vector<Goal>& rest, const Pattern& p, Value value) const {
    const Node& n = b.node(value);
    const bool same_op = n.op == p.op || (p.op == Op::bitwise_not && n.op == Op::not_);
    if (!same_op || n.args.size() != p.args.size()) return false;
    if (p.once && once && !once(value)) return false;
    m.relax &= n.attrs->relax;
    if (p.index != kNoSlot) {
      std::optional<DType>& slot = m.types[p.index];
      if (slot && slot != n.attrs->to) return false;
      slot = n.attrs->to;
    }
    const bool swaps = commutes(n.op) && n.args[0] != n.args[1] && may_swap(b, n.op, {n.args[0]}, {n.args[1]});
    for (int order = 0; order < (swaps ? 2 : 1); order++) {
      std::vector<Goal> goals = rest;
      for (size_t k = p.args.size(); k-- > 0;) goals.push_back({&p.args[k], {n.args[order ? 1 - k : k]}});
      Match attempt = m;
      if (solve(attempt, std::move(goals))) {
        m = attempt;
        return true;
      }
    }
    return false;
  }
};

/// Builds one `put`; every function gives nullopt when a constant does not exist in its type.
struct Putter {
  const Match& m;
  GraphBuilder& b;
  const Make& make;

  Attrs attrs(const Pattern& p) const {
    Attrs a;
    a.relax = m.relax == 0xff ? 0 : m.relax;
    if (p.index != kNoSlot) a.to = *m.types[p.index];
    return a;
  }

  /// Type of a literal among the operands of `p`: its neighbours', else what is expected of the whole.
  template <class TypeOf>
  std::optional<DType> neighbours(const Pattern& p, std::optional<DType> expected, TypeOf type_of) const {
    for (size_t k = p.op == Op::select ? 1 : 0; k < p.args.size(); k++)
      if (!is_literal(p.args[k])) return type_of(k);
    return info(p.op).rule == Rule::compare ? std::nullopt : expected;
  }

  std::optional<Tensor> folded(const Pattern& p, std::optional<DType> expected) const {
    if (p.kind == Pattern::constant) return *b.node(m.constants[p.index]).attrs->value;
    if (is_literal(p)) return expected ? literal(p, *expected) : std::nullopt;
    if (p.kind != Pattern::node) return std::nullopt;
    std::vector<std::optional<Tensor>> parts(p.args.size());
    for (size_t k = 0; k < parts.size(); k++)
      if (!is_literal(p.args[k]) && !(parts[k] = folded(p.args[k], expected))) return std::nullopt;
    const auto type = neighbours(p, expected, [&](size_t k) { return std::optional(parts[k]->dtype); });
    std::vector<Tensor> args;
    for (size_t k = 0; k < parts.size(); k++) {
      if (is_literal(p.args[k]) && !(parts[k] = folded(p.args[k], type))) return std::nullopt;
      args.push_back(std::move(*parts[k]));
    }
    return evaluate_op(p.op, args, attrs(p));
  }

  std::optional<Value> put(const Pattern& p, std::optional<DType> expected) {
    switch (p.kind) {
      case Pattern::value: return m.values[p.index];
      case Pattern::constant: return m.constants[p.index];
      case Pattern::number:
      case Pattern::special: return constant(expected ? literal(p, *expected) : std::nullopt);
      case Pattern::fold: return constant(folded(p.args[0], expected));
      case Pattern::derived: return constant(p.derive(m));
      case Pattern::node: return put_node(p, expected);
    }
    return std::nullopt;
  }

  std::optional<Value> constant(std::optional<Tensor> tensor) {
    if (!tensor) return std::nullopt;
    return b.constant(std::move(*tensor));
  }

  /// A node that would be ill-typed is no error: the rule does not fire there.
  std::optional<Value> checked(Op op, std::vector<Value> args, Attrs a) {
    std::vector<Type> types;
    for (Value v : args) types.push_back(b.type(v));
    if (!infer(op, types, a)) return std::nullopt;
    const Value made = make(op, std::move(args), std::move(a));
    return made.valid() ? std::optional(made) : std::nullopt;
  }

  std::optional<Value> put_node(const Pattern& p, std::optional<DType> expected) {
    const bool passes_down = info(p.op).rule == Rule::same;
    std::vector<std::optional<Value>> parts(p.args.size());
    for (size_t k = 0; k < parts.size(); k++)
      if (!is_literal(p.args[k]) && !(parts[k] = put(p.args[k], passes_down ? expected : std::nullopt))) return std::nullopt;
    const auto type = neighbours(p, expected, [&](size_t k) { return std::optional(b.type(*parts[k]).dtype); });
    std::vector<Value> args;
    for (size_t k = 0; k < parts.size(); k++) {
      if (is_literal(p.args[k]) && !(parts[k] = put(p.args[k], type))) return std::nullopt;
      if (!parts[k]->valid()) return std::nullopt;
      args.push_back(*parts[k]);
    }
    const bool logical = p.op == Op::bitwise_not && b.type(args[0]).dtype == DType::boolean;
    return checked(logical ? Op::not_ : p.op, std::move(args), attrs(p));
  }
};

}  // namespace

std::optional<Match> match(const RewriteRule& rule, const GraphBuilder& b, Value root, Numerics numerics, const ReadOnce& once) {
  Match m;
  m.graph = &b;
  const Solver solver{rule, b, numerics, once};
  if (solver.solve(m, {Goal{&rule.find, root}})) return m;
  return std::nullopt;
}

std::optional<Value> build(const Pattern& put, const Match& m, GraphBuilder& b, Type root, const Make& make) {
  Putter putter{m, b, make};
  const std::optional<Value> value = putter.put(put, root.dtype);
  if (!value || b.type(*value).dtype != root.dtype) return std::nullopt;
  if (b.type(*value).shape == root.shape) return value;
  Attrs a;
  a.shape = root.shape;
  return make(Op::broadcast, {*value}, std::move(a));
}

std::optional<Tensor> evaluate_op(Op op, std::span<const Tensor> args, Attrs attrs) {
  std::vector<Type> types;
  std::vector<const Tensor*> operands;
  for (const Tensor& t : args) {
    types.push_back({t.dtype, {t.extents.begin(), t.extents.end()}});
    operands.push_back(&t);
  }
  Result<Type> type = infer(op, types, attrs);
  if (!type) return std::nullopt;
  const Node node{op, std::move(*type), {}, std::make_shared<const Attrs>(std::move(attrs))};
  Result<Tensor> value = evaluate_node(node, operands, {});
  if (!value) return std::nullopt;
  return std::move(*value);
}

bool widens(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  if (to == DType::boolean) return false;
  // Bits of magnitude that `to` keeps exactly: mantissa with its leading one for floats.
  const auto digits = [](DType type) {
    switch (type) {
      case DType::f8e4m3: return 4;
      case DType::f8e5m2: return 3;
      case DType::f16: return 11;
      case DType::bf16: return 8;
      case DType::f32: return 24;
      case DType::f64: return 53;
      default: return int(8 * bytes(type)) - (is_signed(type) ? 1 : 0);
    }
  };
  if (is_integer(from)) {
    if (is_integer(to)) return digits(from) <= digits(to) && (is_signed(to) || !is_signed(from));
    // MIN = -2^(n-1) needs one digit only; the range of f16, bf16 and wider covers what their digits can hold, f8's does not.
    return bytes(to) > 1 && digits(from) <= digits(to);
  }
  if (is_integer(to)) return false;
  switch (from) {
    case DType::f8e4m3: return bytes(to) > 1;
    case DType::f8e5m2: return bytes(to) > 1;
    case DType::f16: return bytes(to) > 2;
    case DType::bf16: return bytes(to) > 2;
    case DType::f32: return to == DType::f64;
    default: return false;
  }
}

}  // namespace fusec
