#pragma once
// Strided memory: which bytes it covers, whether two pieces of it meet, and copies between it and dense tensors.

#include <cstdint>
#include <span>
#include <vector>

#include "fusec/graph.h"

namespace fusec {

/// A piece of memory of a call: extents and strides in elements, all of one rank.
struct Strided {
  const void* data;
  std::span<const int64_t> extents, strides;
  size_t element;  // bytes
  bool empty() const;
};

/// Lowest address and one past the highest.
struct Range {
  uintptr_t begin, end;
};
Range range(const Strided& s);

/// Do two indices share an element? Decided exactly for what can be told apart by sorting strides; what cannot counts as sharing.
bool overlaps_itself(const Strided& s);
/// Do the two share a byte? Exact for up to a few thousand steps of search; beyond that, yes.
bool overlaps(const Strided& a, const Strided& b);
/// The same elements in the same order.
bool same(const Strided& a, const Strided& b);

/// Between host memory and a dense tensor's data.
void gather(const Strided& from, std::byte* dense);
void scatter(const std::byte* dense, const Strided& to);

}  // namespace fusec
