#pragma once
// Parts of evaluate_ranges: ranges of single nodes.

#include <span>

#include "fusec/graph.h"
#include "lib/fuzz/order.h"
#include "lib/fuzz/ranges.h"

namespace fusec::fuzz {

/// Keys of one value's ranges. low > high: anything. A NaN has `nan` set and may be nothing else.
struct Keys {
  uint64_t low, high;
  bool nan = false;
  bool anything() const { return low > high; }
  bool exact() const { return low == high || nan; }
  static Keys free(const Order& order) { return {order.highest(), order.lowest()}; }
};

inline Keys keys_at(const Ranges& r, const Order& order, int64_t k) {
  const size_t at = size_t(k) * bytes(r.value.dtype);
  if (r.exact()) {
    const std::byte* p = r.value.data.data() + at;
    return {order.key(p), order.key(p), order.is_nan(p)};
  }
  const std::byte *l = r.low.data.data() + at, *h = r.high.data.data() + at;
  return {order.key(l), order.key(h), order.is_nan(l)};
}

/// Ranges being written: they stay without data until an element is not exactly its value.
class RangeWriter {
 public:
  RangeWriter(Ranges& out) : out_(out), order(out.value.dtype) {}
  void put(int64_t k, const Keys& keys) {
    const size_t size = bytes(out_.value.dtype), at = size_t(k) * size;
    if (keys.nan) return;  // the value is one, and so are both ends
    if (out_.exact()) {
      if (keys.low == keys.high && order.key(out_.value.data.data() + at) == keys.low) return;
      out_.low = out_.high = out_.value;
    }
    order.put(keys.low, out_.low.data.data() + at);
    order.put(keys.high, out_.high.data.data() + at);
  }

 private:
  Ranges& out_;

 public:
  const Order order;
};

/// `out.value` is the reference's; the rest is filled in.
Status elementwise_ranges(const Node& node, std::span<const Ranges* const> args, const Sizes& sizes, Numerics numerics, Ranges& out);
/// `graph` is looked at for the pairs that one sweep may carry; `ranges` has every earlier node.
Status reduce_ranges(const Graph& graph, const Node& node, std::span<const Ranges> ranges, const Sizes& sizes, Numerics numerics, Ranges& out);

Status scan_ranges(const Node& node, const Ranges& x, Numerics numerics, Ranges& out);

}  // namespace fusec::fuzz
