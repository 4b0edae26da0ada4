// An elementwise op on ranges: the op itself on every choice of its operands' ends (and values, the zeros between them, and where the op turns),
// and the hull of what comes out. That is exact where the op is monotone between these, in each operand. Ops that jump are named below: there a
// range makes anything possible.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "lib/fuzz/range_parts.h"
#include "lib/ir/eval.h"
#include "lib/ir/strided.h"

namespace fusec::fuzz {
namespace {

/// What a back end may do beyond the op's definition, on a float result.
struct Slack {
  uint64_t ulps = 0;
  double relative = 0, absolute = 0;
  double of_operands = 0;       // times the largest operand's magnitude
  bool flushes = false;         // a denormal result may be 0
  bool normal_only = false;     // promised for normal operands and results below 2^126
  bool finite_only = false;     // where finite operands overflow, an unrounded result need not
};

Slack slack(const Node& node, DType operand, Numerics numerics) {
  Slack out;
  const DType type = node.type.dtype;
  if (!is_float(type) || node.op == Op::bitcast || node.op == Op::select) return out;
  const uint8_t relax = node.attrs->relax;
  const bool narrow = bytes(type) < 4, fast = numerics == Numerics::fast && compute_type(operand) == DType::f32;
  if (node.op == Op::mul && (relax & kContract || numerics != Numerics::strict)) out.ulps += 1, out.finite_only = true;
  if (numerics != Numerics::strict && narrow && node.op != Op::cast) out.ulps += 2, out.finite_only = true;
  const bool shorter = node.op == Op::exp || node.op == Op::sigmoid || node.op == Op::silu || node.op == Op::div || node.op == Op::reciprocal;
  if (relax & kFewerTerms) {
    out.relative += 0x1p-17, out.flushes = true;
    if (node.op == Op::log) out.absolute += 0x1p-18;
  }
  if (relax & kNear) out.ulps += 4, out.flushes = true;
  if (relax & kReciprocal) out.ulps += 4, out.flushes = out.normal_only = true;
  if (numerics == Numerics::fast) {
    // Rules of `fast` reorder and cancel: a few roundings of the operands, and no promise where anything overflows.
    out.ulps += 4, out.flushes = out.finite_only = true;
    if (fast && shorter) out.relative += 0x1p-17, out.absolute += 0x1p-126, out.normal_only = true;  // results below normal numbers: either way
    if (node.op == Op::add || node.op == Op::sub || node.op == Op::fma) out.of_operands += type == DType::f64 ? 0x1p-50 : 0x1p-21;
  }
  return out;
}

bool is_nothing(const Slack& s) { return s.ulps == 0 && s.relative == 0 && s.absolute == 0 && !s.finite_only; }

/// Any change of the operand may change the result by any amount.
bool jumps(const Node& node, DType operand) {
  switch (node.op) {
    case Op::bitcast: case Op::floor_mod: case Op::trunc_mod: return true;
    case Op::eq: case Op::ne: case Op::lt: case Op::le: case Op::gt: case Op::ge: case Op::select: case Op::min: case Op::max: case Op::clamp:
    case Op::relu: case Op::sign: return false;
    case Op::cast:
      return !is_float(operand) && operand != DType::boolean && !is_float(node.type.dtype) && node.type.dtype != DType::boolean;
    default: return is_integer(operand);  // wraps, shifts, bits
  }
}

/// Places of an operand's elements as the result reads them; empty: each its own.
std::vector<int64_t> places(const std::vector<int64_t>& from, const std::vector<int64_t>& to, int64_t count) {
  if (from == to) return {};
  int64_t elements = 1;
  for (int64_t e : from) elements *= e;
  std::vector<int64_t> own(size_t(elements), 0), out(size_t(count), 0);
  for (int64_t k = 0; k < elements; ++k) own[size_t(k)] = k;
  Reader(reinterpret_cast<const std::byte*>(own.data()), sizeof(int64_t), {to, broadcast_strides(from, to), 0})
      .read(reinterpret_cast<std::byte*>(out.data()), size_t(count));
  return out;
}

struct Operand {
  const Ranges* ranges;
  Order order;
  std::vector<int64_t> place;
  size_t same_as;                // the first operand that is the same value
  std::vector<Tensor> choices;   // what it may be; one when it is exact

  Keys keys(int64_t k) const { return keys_at(*ranges, order, place.empty() ? k : place[size_t(k)]); }
};

/// The first operand from `low` on at which the op turns elsewhere than at 0, where there is one. Sources: zeros of the derivatives.
std::optional<double> turn(Op op, double low) {
  switch (op) {
    case Op::sin: return (std::ceil(low / std::numbers::pi - 0.5) + 0.5) * std::numbers::pi;
    case Op::cos: return std::ceil(low / std::numbers::pi) * std::numbers::pi;
    case Op::gelu: return -0.7517915247;
    case Op::gelu_tanh: return -0.7524614220;
    case Op::silu: return -1.2784645428;
    case Op::mish: return -1.1924312145;
    case Op::hardswish: return -1.5;
    default: return std::nullopt;
  }
}

/// The value, both ends, the zeros of both signs between them or the end next to them, and in the same way where `op` turns. Where anything
/// goes: the value.
std::vector<Tensor> choices(const Ranges& r, const Order& order, Op op) {
  if (r.exact()) return {r.value};
  std::vector<Tensor> out(turn(op, 0) ? 6 : 5, r.value);
  for (int64_t k = 0; k < r.value.elements(); ++k) {
    const Keys keys = keys_at(r, order, k);
    if (keys.anything() || keys.exact() || keys.nan) continue;
    auto put = [&](size_t choice, uint64_t key) {
      order.put(std::clamp(key, keys.low, keys.high), out[choice].data.data() + size_t(k) * bytes(r.value.dtype));
    };
    put(1, keys.low), put(2, keys.high), put(3, order.zero_above()), put(4, order.zero_below());
    if (const double low = order.number(keys.low); out.size() == 6) put(5, std::isfinite(low) ? order.nearest(*turn(op, low)) : keys.low);
  }
  return out;
}

/// Does tan go to infinity between the two? Where a double no longer says, it may.
bool meets_pole(double low, double high) {
  auto branch = [](double x) { return std::floor(x / std::numbers::pi + 0.5); };
  return low != high && (std::max(std::abs(low), std::abs(high)) > 1e6 || branch(low) != branch(high));
}

bool meets_zero(const Keys& keys, const Order& order) {
  return keys.nan || (keys.low <= order.zero_above() && keys.high >= order.zero_below());
}

/// The hull with all that the node's slack allows. `operands`: their largest magnitude, infinite when one is a NaN.
Keys widened(Keys keys, const Order& order, const Slack& s, double operands, DType type) {
  if (s.finite_only && std::isfinite(operands) && (keys.nan || keys.low == order.lowest() || keys.high == order.highest())) return Keys::free(order);
  if (keys.nan || keys.anything()) return keys;
  const double low = order.number(keys.low), high = order.number(keys.high);
  const double smallest = type == DType::f64 ? 0x1p-1022 : 0x1p-126;
  const double by = s.relative * std::max(std::abs(low), std::abs(high)) + s.absolute + s.of_operands * operands;
  if (s.flushes && std::min(std::abs(low), std::abs(high)) < 2 * smallest) {
    keys.low = std::min(keys.low, order.zero_below());
    keys.high = std::max(keys.high, order.zero_above());
  }
  if (by > 0 && std::isfinite(by)) keys.low = std::min(keys.low, order.nearest(low - by)), keys.high = std::max(keys.high, order.nearest(high + by));
  if (s.ulps && std::isfinite(low)) keys.low = order.below(keys.low, s.ulps);
  if (s.ulps && std::isfinite(high)) keys.high = order.above(keys.high, s.ulps);
  return keys;
}

bool is_normal(double x) { return x == 0 || (std::abs(x) >= 0x1p-126 && std::abs(x) < 0x1p126); }

struct Elementwise {
  const Node& node;
  std::vector<Operand> args;
  Slack allowed;
  std::vector<Tensor> results;  // of every choice
  Order order;
  DType type;                   // of the data operands

  /// Sets of results: first all operands' values, then the rest.
  Status compute(const Sizes& sizes) {
    std::vector<size_t> pick(args.size(), 0);
    for (;;) {
      std::vector<const Tensor*> tensors;
      for (size_t a = 0; a < args.size(); ++a) tensors.push_back(&args[args[a].same_as].choices[pick[args[a].same_as]]);
      Result<Tensor> result = evaluate_node(node, tensors, sizes);
      if (!result) return result.error();
      results.push_back(std::move(*result));
      size_t a = 0;
      while (a < args.size() && (args[a].same_as != a || ++pick[a] == args[a].choices.size())) pick[a++] = 0;
      if (a == args.size()) return Done{};
    }
  }

  Keys hull(int64_t k) const {
    Keys out{order.highest(), order.lowest()};
    size_t nans = 0;
    for (const Tensor& t : results) {
      const std::byte* at = t.data.data() + size_t(k) * bytes(t.dtype);
      if (order.is_nan(at)) {
        ++nans;
        continue;
      }
      out.low = std::min(out.low, order.key(at)), out.high = std::max(out.high, order.key(at));
    }
    if (nans == results.size()) return {0, 0, true};
    return nans ? Keys::free(order) : out;
  }

  Keys selected(int64_t k) const {
    const Keys condition = args[0].keys(k);
    if (condition.exact()) return args[condition.low ? 1 : 2].keys(k);
    const Keys a = args[1].keys(k), b = args[2].keys(k);
    if (condition.anything() || a.anything() || b.anything() || a.nan != b.nan) return Keys::free(order);
    return {std::min(a.low, b.low), std::max(a.high, b.high), a.nan};
  }

  Keys at(int64_t k) const {
    if (node.op == Op::select) return selected(k);
    if (node.op == Op::bitcast && args[0].keys(k).nan) return Keys::free(order);
    if (node.op == Op::copysign && args[1].keys(k).nan && !args[0].keys(k).nan) {
      const Keys x = args[0].keys(k);
      if (x.anything()) return x;
      const double most = std::max(std::abs(order.number(x.low)), std::abs(order.number(x.high)));
      return {order.nearest(-most), order.nearest(most)};
    }
    bool exact = true;
    double operands = 0;
    for (const Operand& arg : args) {
      const Keys keys = arg.keys(k);
      if (keys.anything()) return Keys::free(order);
      exact &= keys.exact();
      if (keys.nan) operands = INFINITY;
      if (keys.nan || !is_float(type)) continue;
      const double low = std::abs(arg.order.number(keys.low)), high = std::abs(arg.order.number(keys.high));
      if (allowed.normal_only && !(is_normal(low) && is_normal(high))) return Keys::free(order);
      operands = std::max({operands, low, high});
    }
    if (exact) return widened(hull(k), order, allowed, operands, type);
    if (jumps(node, type)) return Keys::free(order);
    Slack all = allowed;
    if (info(node.op).form == Form::formula) all.ulps += bytes(node.type.dtype) < 4 ? 1 : 4;  // formulas are not quite monotone
    const Keys x = args[0].keys(k);
    const double width = is_float(type) && !x.nan ? args[0].order.number(x.high) - args[0].order.number(x.low) : 0;
    switch (node.op) {
      case Op::div: case Op::floor_div: case Op::trunc_div:
        if (!args[1].keys(k).exact() && meets_zero(args[1].keys(k), args[1].order)) return Keys::free(order);
        break;
      case Op::reciprocal:
        if (meets_zero(x, args[0].order)) return Keys::free(order);
        break;
      case Op::pow:
        if (meets_zero(x, args[0].order) || args[0].order.number(x.low) < 0) return Keys::free(order);
        break;
      case Op::sin: case Op::cos:
        if (!std::isfinite(width)) return Keys::free(order);
        if (width > 0.5) return {order.nearest(-1), order.nearest(1)};
        break;
      case Op::tan: {
        const Keys y = hull(k);
        if (!(width < 0.5) || y.anything() || order.number(y.high) - order.number(y.low) > 1e3) return Keys::free(order);
        if (meets_pole(args[0].order.number(x.low), args[0].order.number(x.high))) return Keys::free(order);
        break;
      }
      case Op::eq: case Op::ne:
        if (const Keys y = args[1].keys(k); !x.nan && !y.nan) {
          const Order& of = args[0].order;
          if (of.number(x.low) <= of.number(y.high) && of.number(y.low) <= of.number(x.high)) return {0, 1};
        }
        break;
      default: break;
    }
    return widened(hull(k), order, all, operands, type);
  }
};

}  // namespace

Status elementwise_ranges(const Node& node, std::span<const Ranges* const> args, const Sizes& sizes, Numerics numerics, Ranges& out) {
  const DType type = args[node.op == Op::select ? 1 : 0]->value.dtype;
  const bool reads_sign = node.op == Op::bitcast || node.op == Op::copysign;  // of a NaN, which is open
  Elementwise e{node, {}, slack(node, type, numerics), {}, Order(node.type.dtype), type};
  if (!reads_sign && is_nothing(e.allowed) && std::all_of(args.begin(), args.end(), [](const Ranges* r) { return r->exact(); })) return Done{};
  const int64_t count = out.value.elements();
  for (size_t a = 0; a < args.size(); ++a) {
    Operand operand{args[a], Order(args[a]->value.dtype), places(args[a]->value.extents, out.value.extents, count), a, {}};
    for (size_t b = 0; b < a; ++b)
      if (node.args[b] == node.args[a]) operand.same_as = e.args[b].same_as;
    if (operand.same_as == a && node.op != Op::select) operand.choices = choices(*args[a], operand.order, node.op);
    e.args.push_back(std::move(operand));
  }
  if (node.op != Op::select)
    if (Status s = e.compute(sizes); !s) return s;
  RangeWriter write(out);
  for (int64_t k = 0; k < count; ++k) write.put(k, e.at(k));
  return Done{};
}

}  // namespace fusec::fuzz
