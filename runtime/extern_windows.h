#pragma once
// Windows tap by tap: for one tap of a kernel, which elements of a channel it reads, row after row. Loops over a row have nothing but
// neighbours in them.

#include <algorithm>
#include <array>

#include "runtime/extern.h"

namespace fusec {

using Axes = std::array<int64_t, kMaxRank>;

/// How many rows the output has: of its last axis.
inline int64_t rows_of(const Window& w) {
  int64_t rows = 1;
  for (size_t a = 0; a + 1 < w.kernel.size(); ++a) rows *= w.out[a];
  return rows;
}

/// Calls `row(at, in)` for rows [begin, end) of the output's last axis: the position of its first element, and where the tap reads
/// in the axes before the last; in < 0 where that is padding.
template <class Row>
void each_row(const Window& w, const Axes& tap, int64_t begin, int64_t end, const Row& row) {
  if (begin >= end) return;  // extents may be 0
  const size_t last = w.kernel.size() - 1;
  Axes at{};
  for (int64_t a = static_cast<int64_t>(last) - 1, left = begin; a >= 0; --a) at[a] = left % w.out[a], left /= w.out[a];
  for (int64_t r = begin; r < end; ++r) {
    int64_t in = 0;
    for (size_t a = 0; a < last && in >= 0; ++a) {
      const int64_t x = at[a] * w.stride[a] - w.low[a] + tap[a] * w.dilation[a];
      in = x < 0 || x >= w.in[a] ? -1 : in * w.in[a] + x;
    }
    row(r * w.out[last], in);
    for (size_t a = last; a-- > 0;) {
      if (++at[a] < w.out[a]) break;
      at[a] = 0;
    }
  }
}

/// One tap of a kernel: where it is, and which positions of the last axis read inside: begin to end, from first + p * stride.
struct Tap {
  Axes at{};
  int64_t first, stride, begin, end;

  Tap(const Window& w, int64_t k) {
    const size_t last = w.kernel.size() - 1;
    for (size_t a = last + 1; a-- > 0; k /= w.kernel[a]) at[a] = k % w.kernel[a];
    first = at[last] * w.dilation[last] - w.low[last], stride = w.stride[last];
    const int64_t extent = w.in[last], positions = w.out[last];
    begin = std::min(first >= 0 ? 0 : (-first + stride - 1) / stride, positions);
    end = std::clamp(first >= extent ? 0 : (extent - 1 - first) / stride + 1, begin, positions);
  }
};

/// Folds what tap k of a channel x reads into the positions of y that read it: y = fold(y, x).
template <class Fold>
void fold_tap(const Window& w, int64_t k, const float* x, float* y, const Fold& fold) {
  const Tap tap(w, k);
  each_row(w, tap.at, 0, rows_of(w), [&](int64_t at, int64_t in) {
    if (in < 0 || tap.begin == tap.end) return;
    const float* row = x + in * w.in.back() + tap.first;
    float* out = y + at;
    if (tap.stride == 1)
      for (int64_t p = tap.begin; p < tap.end; ++p) out[p] = fold(out[p], row[p]);
    else if (tap.stride == 2)
      for (int64_t p = tap.begin; p < tap.end; ++p) out[p] = fold(out[p], row[2 * p]);
    else
      for (int64_t p = tap.begin; p < tap.end; ++p) out[p] = fold(out[p], row[p * tap.stride]);
  });
}

}  // namespace fusec
