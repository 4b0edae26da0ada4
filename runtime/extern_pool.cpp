// Pooling over windows of any number of axes: one channel after the other, one tap after the other.

#include <limits>

#include "runtime/extern_windows.h"

namespace fusec {
namespace {

/// Folds what each tap reads into the positions that read it.
template <class Fold>
void pool_channel(const Window& w, const float* x, float* y, const Fold& fold) {
  for (int64_t k = 0, taps = w.taps(); k < taps; ++k) fold_tap(w, k, x, y, fold);
}

/// How many taps of each position read an element; with `padding`, or the padding in front and `high` behind.
std::vector<float> counts(const Window& w, const std::vector<int64_t>& high, bool padding) {
  std::vector<float> out{1};
  for (size_t a = 0; a < w.kernel.size(); ++a) {
    std::vector<float> longer;
    for (const float before : out)
      for (int64_t p = 0; p < w.out[a]; ++p) {
        int64_t n = 0;
        for (int64_t k = 0; k < w.kernel[a]; ++k) {
          const int64_t i = p * w.stride[a] - w.low[a] + k * w.dilation[a];
          n += padding ? i < w.in[a] + high[a] : i >= 0 && i < w.in[a];
        }
        longer.push_back(before * static_cast<float>(n));
      }
    out = std::move(longer);
  }
  return out;
}

struct Pooling {
  Window window;
  std::vector<int64_t> high;  // padding behind; ceil_mode's windows reach beyond it, and those taps never count
  int64_t channels, from, to;  // elements of a channel of x and of the result
};

Result<Pooling> pooling_of(const ExternCall& call) {
  const ExternValue &x = call.in(0), &y = call.out();
  if (call.outputs.size() > 1 && call.outputs[1]) return input_error("indices of maxima are not computed");
  if (x.rank() < 3 || y.rank() != x.rank() || y.elements(0, 2) != x.elements(0, 2))
    return input_error("x and the result do not have the same channels");
  const std::vector<int64_t> in(x.extents.begin() + 2, x.extents.end()), out(y.extents.begin() + 2, y.extents.end());
  Result<Window> made = window_of(call, in, out, call.ints("kernel_shape", {}));
  if (!made) return made.error();
  const size_t n = in.size();
  std::vector<int64_t> high(n, 0);
  const std::vector<int64_t> pads = call.ints("pads", std::vector<int64_t>(2 * n, 0));
  for (size_t a = 0; a < n; ++a)
    high[a] = call.s("auto_pad", "NOTSET").starts_with("SAME")
                  ? std::max<int64_t>(
                        0, (out[a] - 1) * made->stride[a] + (made->kernel[a] - 1) * made->dilation[a] + 1 - in[a]) -
                        made->low[a]
                  : pads[a + n];
  const int64_t to = made->positions();
  return Pooling{std::move(*made), std::move(high), x.extents[0] * x.extents[1], x.elements(2, x.rank()), to};
}

/// `fold` from `first` on, then `end` of each channel of the result.
template <class Fold, class End>
Status pool(const ExternCall& call, const Pooling& n, float first, const Fold& fold, const End& end) {
  extern_parallel(n.channels, n.to * n.window.taps() / 4, [&](int64_t begin, int64_t stop) {
    for (int64_t c = begin; c < stop; ++c) {
      float* y = call.out().f32() + c * n.to;
      std::fill_n(y, n.to, first);
      pool_channel(n.window, call.in(0).f32() + c * n.from, y, fold);
      end(y);
    }
  });
  return Done{};
}

}  // namespace

Status extern_max_pool(const ExternCall& call) {
  const Result<Pooling> n = pooling_of(call);
  if (!n) return n.error();
  return pool(call, *n, -std::numeric_limits<float>::infinity(), [](float most, float x) { return x > most || x != x ? x : most; }, [](float*) {});
}

Status extern_average_pool(const ExternCall& call) {
  const Result<Pooling> n = pooling_of(call);
  if (!n) return n.error();
  const std::vector<float> read = counts(n->window, n->high, call.i("count_include_pad", 0) != 0);
  return pool(call, *n, 0, [](float sum, float x) { return sum + x; }, [&](float* y) {
    for (size_t p = 0; p < read.size(); ++p) y[p] /= read[p];
  });
}

}  // namespace fusec
