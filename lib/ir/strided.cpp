#include "lib/ir/strided.h"

#include <algorithm>
#include <cstring>

#include "fusec/type.h"

namespace fusec {
namespace {

/// Axes of size 1 go away, and axes that lie as one in memory become one: inner runs get as long as they can.
StridedView coalesced(StridedView v) {
  StridedView r;
  r.offset = v.offset;
  for (size_t k = 0; k < v.extents.size(); ++k) {
    if (v.extents[k] == 1) continue;
    if (!r.extents.empty() && r.strides.back() == v.strides[k] * v.extents[k]) {
      r.extents.back() *= v.extents[k];
      r.strides.back() = v.strides[k];
    } else {
      r.extents.push_back(v.extents[k]);
      r.strides.push_back(v.strides[k]);
    }
  }
  if (r.extents.empty()) r = {{1}, {0}, v.offset};
  return r;
}

/// One step along a row-major walk of all axes but the last; false at the end.
bool advance(const StridedView& v, std::vector<int64_t>& index, int64_t& at) {
  for (size_t k = v.extents.size() - 1; k-- > 0;) {
    at += v.strides[k];
    if (++index[k] < v.extents[k]) return true;
    at -= v.strides[k] * v.extents[k];
    index[k] = 0;
  }
  return false;
}

template <class T>
void copy_from(const std::byte* from, int64_t stride, std::byte* to, size_t n) {
  for (size_t i = 0; i < n; ++i, from += stride * static_cast<int64_t>(sizeof(T)), to += sizeof(T)) std::memcpy(to, from, sizeof(T));
}

template <class T>
void copy_to(const std::byte* from, std::byte* to, int64_t stride, size_t n) {
  for (size_t i = 0; i < n; ++i, from += sizeof(T), to += stride * static_cast<int64_t>(sizeof(T))) std::memcpy(to, from, sizeof(T));
}

void run_from(const std::byte* from, int64_t stride, std::byte* to, size_t n, size_t size) {
  if (stride == 1) {
    std::memcpy(to, from, n * size);
    return;
  }
  switch (size) {
    case 1: return copy_from<uint8_t>(from, stride, to, n);
    case 2: return copy_from<uint16_t>(from, stride, to, n);
    case 4: return copy_from<uint32_t>(from, stride, to, n);
    default: return copy_from<uint64_t>(from, stride, to, n);
  }
}

void run_to(const std::byte* from, std::byte* to, int64_t stride, size_t n, size_t size) {
  if (stride == 1) {
    std::memcpy(to, from, n * size);
    return;
  }
  switch (size) {
    case 1: return copy_to<uint8_t>(from, to, stride, n);
    case 2: return copy_to<uint16_t>(from, to, stride, n);
    case 4: return copy_to<uint32_t>(from, to, stride, n);
    default: return copy_to<uint64_t>(from, to, stride, n);
  }
}

}  // namespace

Reader::Reader(const std::byte* data, size_t element_bytes, StridedView view)
    : data_(data), size_(element_bytes), view_(coalesced(std::move(view))), index_(view_.extents.size()), at_(view_.offset) {}

void Reader::read(std::byte* to, size_t n) {
  const size_t last = view_.extents.size() - 1;
  int64_t& column = index_[last];
  while (n > 0) {
    const size_t run = std::min(n, static_cast<size_t>(view_.extents[last] - column));
    const int64_t first = at_ + column * view_.strides[last];
    run_from(data_ + first * static_cast<int64_t>(size_), view_.strides[last], to, run, size_);
    to += run * size_;
    n -= run;
    column += static_cast<int64_t>(run);
    if (column < view_.extents[last]) continue;
    column = 0;
    if (!advance(view_, index_, at_)) at_ = view_.offset;
  }
}

void scatter(const std::byte* from, std::byte* to, size_t element_bytes, const StridedView& view) {
  for (int64_t e : view.extents)
    if (e == 0) return;
  const StridedView v = coalesced(view);
  const size_t last = v.extents.size() - 1, run = static_cast<size_t>(v.extents[last]);
  std::vector<int64_t> index(v.extents.size());
  int64_t at = v.offset;
  do {
    run_to(from, to + at * static_cast<int64_t>(element_bytes), v.strides[last], run, element_bytes);
    from += run * element_bytes;
  } while (advance(v, index, at));
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& extents, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> dense = dense_strides(extents);
  std::vector<int64_t> strides(shape.size());
  for (size_t k = 0; k < extents.size(); ++k)
    if (extents[k] != 1) strides[shape.size() - extents.size() + k] = dense[k];
  return strides;
}

}  // namespace fusec
