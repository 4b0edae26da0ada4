// Reductions on ranges. What a sum may be off by is measured on its addends: an order of n of them rounds n - 1 partial sums, none of which
// is larger than S, the sum of all magnitudes, so it is off by at most n S roundings; where S leaves the type, some order may overflow.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lib/fuzz/range_parts.h"
#include "lib/ir/eval.h"
#include "lib/ir/strided.h"

namespace fusec::fuzz {
namespace {

/// For each element of the operand, which result it goes to.
std::vector<int64_t> groups(const std::vector<int64_t>& extents, const std::vector<int64_t>& axes) {
  std::vector<int64_t> kept = extents;
  int64_t count = 1, results = 1;
  for (int64_t axis : axes) kept[size_t(axis)] = 1;
  for (int64_t e : extents) count *= e;
  for (int64_t e : kept) results *= e;
  std::vector<int64_t> own(size_t(results), 0), out(size_t(count), 0);
  for (int64_t k = 0; k < results; ++k) own[size_t(k)] = k;
  if (count)
    Reader(reinterpret_cast<const std::byte*>(own.data()), sizeof(int64_t), {extents, broadcast_strides(kept, extents), 0})
        .read(reinterpret_cast<std::byte*>(out.data()), size_t(count));
  return out;
}

/// What is known of the addends (factors) of one result.
struct Gathered {
  double low = 0, high = 0, magnitude = 0;              // sums
  double product = 1, large = 1, small = 1, relative = 0;  // products: of all, of those above 1, of those below 1
  double least = INFINITY, most = -INFINITY;
  int64_t count = 0, nans = 0, free = 0, open = 0, up = 0, down = 0, zeros = 0;  // open: a range up to an infinity
};

/// One more of them: element k of x.
void add(Gathered& g, const Ranges& x, const Order& order, int64_t k) {
  const Keys keys = keys_at(x, order, k);
  ++g.count;
  if (keys.anything() || keys.nan) {
    ++(keys.anything() ? g.free : g.nans);
    return;
  }
  const double low = order.number(keys.low), high = order.number(keys.high), most = std::max(std::abs(low), std::abs(high));
  g.least = std::min(g.least, low), g.most = std::max(g.most, high);
  if (std::isinf(most)) {
    ++(low != high ? g.open : low > 0 ? g.up : g.down);
    g.product *= low < 0 ? -1 : 1;
    return;
  }
  g.low += low, g.high += high, g.magnitude += most;
  const double value = element(x.value, k);
  g.zeros += value == 0;
  g.product *= value;
  if (high != low) g.relative += value == 0 || (low <= 0) != (high <= 0) ? INFINITY : (high - low) / std::min(std::abs(low), std::abs(high));
  g.large *= std::max(most, 1.0);
  g.small *= value == 0 ? 1.0 : std::min(std::min(std::abs(low), std::abs(high)), 1.0);
}

std::vector<Gathered> gather(const Ranges& x, const std::vector<int64_t>& group, int64_t results) {
  std::vector<Gathered> out(size_t(results), Gathered{});
  const Order order(x.value.dtype);
  for (size_t k = 0; k < group.size(); ++k) add(out[size_t(group[k])], x, order, int64_t(k));
  return out;
}

struct Machine {
  double unit, most, least_normal, denormal;
};
Machine machine(DType accumulator) {
  if (accumulator == DType::f64) return {0x1p-53, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074};
  return {0x1p-24, double(std::numeric_limits<float>::max()), 0x1p-126, 0x1p-149};
}

Keys from_numbers(const Order& order, double low, double high) {
  if (!std::isinf(order.number(order.highest()))) {  // f8e4m3 has no infinity: half a step beyond the largest is a NaN
    if (low > 464 || high < -464) return {0, 0, true};
    if (high > 464 || low < -464) return Keys::free(order);
  }
  Keys out{order.nearest(low), order.nearest(high)};
  // A sum of zeros of both signs, or of what cancels, has either sign.
  if (out.low == order.zero_above()) out.low = order.zero_below();
  if (out.high == order.zero_below()) out.high = order.zero_above();
  return out;
}

/// `more`: what is added to the bound besides, for pairs that one sweep carries.
Keys sum_keys(const Gathered& g, const Order& order, const Machine& m, double more, double more_relative) {
  if (g.nans || (g.up && g.down)) return {0, 0, true};
  const double steps = g.count > 1 ? double(g.count) + 4 : 0, bound = (2 * m.unit * steps + more_relative) * g.magnitude + more;
  if (g.free || g.open || !(g.magnitude + bound < m.most)) return Keys::free(order);
  if (g.up || g.down) return g.up ? Keys{order.highest(), order.highest()} : Keys{order.lowest(), order.lowest()};
  return from_numbers(order, g.low - bound, g.high + bound);
}

Keys product_keys(const Gathered& g, const Order& order, const Machine& m, double value) {
  if (g.nans) return {0, 0, true};
  const double steps = double(g.count) + 4;
  if (g.free || g.open || !(g.large < m.most / 2)) return Keys::free(order);
  const bool vanishes = !(g.small > 2 * m.least_normal);
  if (g.up || g.down) {
    if (g.zeros) return {0, 0, true};
    if (vanishes || g.relative == INFINITY) return Keys::free(order);
    return g.product < 0 ? Keys{order.lowest(), order.lowest()} : Keys{order.highest(), order.highest()};
  }
  // Partial products that vanish are off by a part of a denormal, which what follows multiplies by at most `large`.
  const double bound = (2 * m.unit * steps + 2 * g.relative) * std::abs(value) + (vanishes ? 2 * steps * m.denormal * g.large : 0);
  if (!std::isfinite(bound)) return Keys::free(order);
  return from_numbers(order, value - bound, value + bound);
}

/// A narrow result that may stay f32.
Keys maybe_unrounded(const Keys& keys, const Order& order, const Node& node, Numerics numerics) {
  if (bytes(node.type.dtype) >= 4 || numerics == Numerics::strict || keys.nan || keys.anything()) return keys;
  if (keys.low == order.lowest() || keys.high == order.highest()) return Keys::free(order);
  return {order.below(keys.low, 2), order.above(keys.high, 2)};
}

/// sum of d * d with d = x - m: where one sweep takes it about a pivot, some element or a mean of a few, it is the difference of
/// larger sums. The operand x, or null.
const Ranges* pivoted(const Graph& graph, const Node& node, std::span<const Ranges> ranges) {
  const Node& square = graph.node(node.args[0]);
  if (square.op != Op::mul || square.args[0] != square.args[1]) return nullptr;
  const Node& deviation = graph.node(square.args[0]);
  if (deviation.op != Op::sub || deviation.type != square.type) return nullptr;
  const Ranges& x = ranges[deviation.args[0]];
  return x.value.extents == ranges[node.args[0]].value.extents ? &x : nullptr;
}

/// sum of exp(x - max): each time that a running maximum rises, the sum so far is multiplied by an exp.
double rescaled(const Graph& graph, const Node& node, const Machine& m, Numerics numerics, int64_t count) {
  const Node& e = graph.node(node.args[0]);
  if (e.op != Op::exp || count <= 1) return 0;
  const bool few = e.attrs->relax & kFewerTerms || numerics == Numerics::fast;
  return double(std::min<int64_t>(count, 1024)) * (few ? 0x1p-18 : 8 * m.unit);
}

}  // namespace

Status reduce_ranges(const Graph& graph, const Node& node, std::span<const Ranges> ranges, const Sizes& sizes, Numerics numerics, Ranges& out) {
  const Ranges& x = ranges[node.args[0]];
  const DType type = x.value.dtype;
  const bool adds = (node.op == Op::sum || node.op == Op::prod) && is_float(type);
  const bool least = node.op == Op::reduce_min || node.op == Op::reduce_max;
  if (x.exact() && !adds && !(least && is_float(type))) return Done{};
  const int64_t results = out.value.elements();
  const std::vector<int64_t> group = groups(x.value.extents, node.attrs->axes);
  RangeWriter write(out);
  const Order& order = write.order;
  const std::vector<Gathered> all = gather(x, group, results);

  if (adds) {
    const Machine m = machine(compute_type(type));
    const Ranges* about = pivoted(graph, node, ranges);
    const std::vector<Gathered> spread = about ? gather(*about, group, results) : std::vector<Gathered>{};
    for (int64_t k = 0; k < results; ++k) {
      const Gathered& g = all[size_t(k)];
      Keys keys;
      if (node.op == Op::prod) {
        keys = product_keys(g, order, m, g.product);
      } else {
        double more = 0;
        if (about && !spread[size_t(k)].free && g.count > 1) {
          const double range = spread[size_t(k)].most - spread[size_t(k)].least;
          more = 4 * m.unit * (double(g.count) + 16) * double(g.count) * range * range;
        }
        keys = sum_keys(g, order, m, std::isnan(more) ? INFINITY : more, rescaled(graph, node, m, numerics, g.count));
      }
      write.put(k, maybe_unrounded(keys, order, node, numerics));
    }
    return Done{};
  }
  if (least || node.op == Op::any || node.op == Op::all) {
    Result<Tensor> low = evaluate_node(node, std::array<const Tensor*, 1>{x.exact() ? &x.value : &x.low}, sizes);
    Result<Tensor> high = evaluate_node(node, std::array<const Tensor*, 1>{x.exact() ? &x.value : &x.high}, sizes);
    if (!low || !high) return low ? high.error() : low.error();
    const size_t size = bytes(node.type.dtype);
    for (int64_t k = 0; k < results; ++k) {
      const std::byte *l = low->data.data() + size_t(k) * size, *h = high->data.data() + size_t(k) * size;
      Keys keys{order.key(l), order.key(h)};
      if (all[size_t(k)].nans) keys = {0, 0, true};
      else if (all[size_t(k)].free) keys = Keys::free(order);
      else if (is_float(type) && keys.low <= order.zero_above() && keys.high >= order.zero_below())  // the sign of a zero is open
        keys = {std::min(keys.low, order.zero_below()), std::max(keys.high, order.zero_above())};
      write.put(k, keys);
    }
    return Done{};
  }
  // Indices, and sums of integers that may wrap.
  std::vector<char> unsure(size_t(results), 0);
  const Order from(type);
  for (size_t k = 0; k < group.size(); ++k) unsure[size_t(group[k])] |= !keys_at(x, from, int64_t(k)).exact();
  const Ranges value{out.value, {}, {}};
  for (int64_t k = 0; k < results; ++k) write.put(k, unsure[size_t(k)] ? Keys::free(order) : keys_at(value, order, k));
  return Done{};
}

/// A running fold is, at each element, that of the elements before it.
Status scan_ranges(const Node& node, const Ranges& x, Numerics numerics, Ranges& out) {
  const DType type = x.value.dtype;
  if (x.exact() && !is_float(type)) return Done{};
  RangeWriter write(out);
  const Order& order = write.order;
  const Order from(type);
  const Machine m = machine(compute_type(type));
  const std::vector<int64_t>& extents = x.value.extents;
  const auto axis = size_t(node.attrs->axis);
  const int64_t step = dense_strides(extents)[axis], length = extents[axis], count = x.value.elements();
  for (int64_t first = 0; first < count; ++first) {
    if (first / step % length) continue;
    Gathered g;
    bool unsure = false;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = first + (node.attrs->reverse ? length - 1 - i : i) * step;
      if (!node.attrs->exclusive) add(g, x, from, at), unsure |= !keys_at(x, from, at).exact();
      Keys keys = keys_at({out.value, {}, {}}, order, at);
      if (!is_float(type)) keys = unsure ? Keys::free(order) : keys;
      else if (node.op == Op::cumsum) keys = sum_keys(g, order, m, 0, 0);
      else if (node.op == Op::cumprod) keys = product_keys(g, order, m, g.product);
      else if (g.nans) keys = {0, 0, true};
      else if (unsure) keys = Keys::free(order);
      else if (!keys.nan && keys.low <= order.zero_above() && keys.high >= order.zero_below())  // the sign of a zero is open
        keys = {std::min(keys.low, order.zero_below()), std::max(keys.high, order.zero_above())};
      write.put(at, maybe_unrounded(keys, order, node, numerics));
      if (node.attrs->exclusive) add(g, x, from, at), unsure |= !keys_at(x, from, at).exact();
    }
  }
  return Done{};
}

}  // namespace fusec::fuzz
