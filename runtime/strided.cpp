// Whether two strided boxes meet is a question about one equation: base_a + Σ s·i = base_b + Σ t·j. Dims of equal stride merge
// (i - j ranges over an interval), then the strides are tried from the largest down: what is left must be reachable by the smaller
// ones, which leaves one or two candidates at each step for the layouts that occur.

#include "runtime/strided.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fusec {
namespace {

/// A multiple of `stride` between low and high times.
struct Term {
  int64_t stride, low, high;
};
using Terms = std::array<Term, 20>;

struct Search {
  const Term* terms;
  size_t count;
  int budget;

  /// Is `left` a sum of the terms from `k` on? Out of budget means yes.
  bool reaches(int64_t left, size_t k) {
    if (--budget < 0) return true;
    if (k == count) return left == 0;
    int64_t low = 0, high = 0;  // what the later terms can add
    for (size_t i = k + 1; i < count; ++i) low += terms[i].stride * terms[i].low, high += terms[i].stride * terms[i].high;
    const Term& t = terms[k];
    auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); };
    const int64_t first = std::max(t.low, -floor_div(-(left - high), t.stride)), last = std::min(t.high, floor_div(left - low, t.stride));
    for (int64_t m = first; m <= last; ++m)
      if (reaches(left - m * t.stride, k + 1)) return true;
    return false;
  }
};

}  // namespace

bool Strided::empty() const {
  for (int64_t extent : extents)
    if (extent == 0) return true;
  return false;
}

Range range(const Strided& s) {
  int64_t low = 0, high = 0;
  for (size_t k = 0; k < s.extents.size(); ++k) {
    if (s.extents[k] == 0) return {uintptr_t(s.data), uintptr_t(s.data)};
    const int64_t reach = s.strides[k] * (s.extents[k] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = int64_t(s.element);
  return {uintptr_t(s.data) + uintptr_t(low * size), uintptr_t(s.data) + uintptr_t((high + 1) * size)};
}

bool overlaps_itself(const Strided& s) {
  if (s.empty()) return false;
  std::array<std::pair<int64_t, int64_t>, 16> dims;  // |stride|, extent
  size_t count = 0;
  for (size_t k = 0; k < s.extents.size() && count < dims.size(); ++k)
    if (s.extents[k] > 1) dims[count++] = {s.strides[k] < 0 ? -s.strides[k] : s.strides[k], s.extents[k]};
  std::sort(dims.begin(), dims.begin() + count);
  int64_t reach = 0;
  for (size_t k = 0; k < count; ++k) {
    if (dims[k].first <= reach) return true;
    reach += dims[k].first * (dims[k].second - 1);
  }
  return false;
}

bool overlaps(const Strided& a, const Strided& b) {
  if (a.empty() || b.empty()) return false;
  const Range ra = range(a), rb = range(b);
  if (ra.end <= rb.begin || rb.end <= ra.begin) return false;
  // Σ terms = b.data - a.data, in bytes: a's indices count up, b's down.
  Terms terms;
  size_t count = 0;
  auto add = [&](int64_t stride, int64_t low, int64_t high) {
    if (stride == 0 || low == high) return;
    if (stride < 0) stride = -stride, std::swap(low, high), low = -low, high = -high;
    for (size_t i = 0; i < count; ++i)
      if (terms[i].stride == stride) {
        terms[i].low += low, terms[i].high += high;
        return;
      }
    if (count < terms.size()) terms[count++] = {stride, low, high};
  };
  add(1, 0, int64_t(a.element) - 1), add(1, -(int64_t(b.element) - 1), 0);
  for (size_t k = 0; k < a.extents.size(); ++k) add(a.strides[k] * int64_t(a.element), 0, a.extents[k] - 1);
  for (size_t k = 0; k < b.extents.size(); ++k) add(b.strides[k] * int64_t(b.element), -(b.extents[k] - 1), 0);
  std::sort(terms.begin(), terms.begin() + count, [](const Term& x, const Term& y) { return x.stride > y.stride; });
  Search search{terms.data(), count, 4000};
  return search.reaches(int64_t(uintptr_t(b.data) - uintptr_t(a.data)), 0);
}

bool same(const Strided& a, const Strided& b) {
  if (a.data != b.data || a.element != b.element || !std::equal(a.extents.begin(), a.extents.end(), b.extents.begin(), b.extents.end()))
    return false;
  for (size_t k = 0; k < a.extents.size(); ++k)
    if (a.extents[k] > 1 && a.strides[k] != b.strides[k]) return false;
  return true;
}

namespace {
/// Calls move(offset in elements, run of elements) for each innermost row, in row-major order.
template <class Move>
void rows(const Strided& s, Move move) {
  if (s.empty()) return;
  const size_t rank = s.extents.size();
  if (rank == 0) return move(int64_t{0}, int64_t{1}, int64_t{1});
  std::array<int64_t, 16> index{};
  for (int64_t at = 0;;) {
    move(at, s.extents[rank - 1], s.strides[rank - 1]);
    size_t k = rank - 1;
    while (k-- > 0) {
      at += s.strides[k];
      if (++index[k] < s.extents[k]) break;
      at -= s.strides[k] * s.extents[k];
      index[k] = 0;
    }
    if (k == size_t(-1)) return;
  }
}
}  // namespace

void gather(const Strided& from, std::byte* dense) {
  const std::byte* base = static_cast<const std::byte*>(from.data);
  const int64_t size = int64_t(from.element);
  rows(from, [&](int64_t at, int64_t count, int64_t stride) {
    if (stride == 1) std::memcpy(dense, base + at * size, count * size), dense += count * size;
    else
      for (int64_t i = 0; i < count; ++i, dense += size) std::memcpy(dense, base + (at + i * stride) * size, size);
  });
}

void scatter(const std::byte* dense, const Strided& to) {
  std::byte* base = static_cast<std::byte*>(const_cast<void*>(to.data));
  const int64_t size = int64_t(to.element);
  rows(to, [&](int64_t at, int64_t count, int64_t stride) {
    if (stride == 1) std::memcpy(base + at * size, dense, count * size), dense += count * size;
    else
      for (int64_t i = 0; i < count; ++i, dense += size) std::memcpy(base + (at + i * stride) * size, dense, size);
  });
}

}  // namespace fusec
