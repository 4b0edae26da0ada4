#pragma once
// Reading and writing tensors by strides: what all views and broadcasts are for the reference evaluator.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusec {

/// A box of elements inside a buffer: element (i0, i1, …) lies at offset + i0*stride0 + i1*stride1 + …, in elements. Strides
/// may be 0 (repeat) or negative (reverse).
struct StridedView {
  std::vector<int64_t> extents, strides;
  int64_t offset = 0;
};

/// Reads a view in row-major order, in pieces.
class Reader {
 public:
  Reader(const std::byte* data, size_t element_bytes, StridedView view);
  /// The next `n` elements, densely.
  void read(std::byte* to, size_t n);

 private:
  const std::byte* data_;
  size_t size_;
  StridedView view_;
  std::vector<int64_t> index_;
  int64_t at_;
};

/// Writes dense elements, row-major, into a view that repeats nothing.
void scatter(const std::byte* from, std::byte* to, size_t element_bytes, const StridedView& view);

/// Strides with which a tensor of `extents` is read as its broadcast to `shape`, aligned right.
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& extents, const std::vector<int64_t>& shape);

}  // namespace fusec
