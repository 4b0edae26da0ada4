// Pooling over windows of any number of axes, one channel after the other.

#include <algorithm>
#include <limits>

#include "runtime/extern.h"

namespace fusec {
namespace {

/// Walks a channel's windows: `begin()` and `tap(x)` of each tap inside, then `end(taps inside, taps inside the padded extent)`.
template <class Fold>
void pool_channel(const Window& w, const std::vector<int64_t>& high, const float* x, float* y, const Fold& fold) {
  const size_t n = w.kernel.size();
  const int64_t positions = w.positions(), taps = w.taps();
  std::vector<int64_t> at(n, 0), tap(n, 0);
  for (int64_t p = 0; p < positions; ++p) {
    typename Fold::State state;
    int64_t inside = 0, padded = 0;
    std::fill(tap.begin(), tap.end(), 0);
    for (int64_t k = 0; k < taps; ++k) {
      int64_t in = 0;
      bool real = true, counted = true;
      for (size_t a = 0; a < n; ++a) {
        const int64_t i = at[a] * w.stride[a] - w.low[a] + tap[a] * w.dilation[a];
        real &= i >= 0 && i < w.in[a];
        counted &= i < w.in[a] + high[a];
        in = in * w.in[a] + i;
      }
      padded += counted;
      if (real) state.add(x[in]), ++inside;
      for (size_t a = n; a-- > 0;) {
        if (++tap[a] < w.kernel[a]) break;
        tap[a] = 0;
      }
    }
    y[p] = fold.end(state, inside, padded);
    for (size_t a = n; a-- > 0;) {
      if (++at[a] < w.out[a]) break;
      at[a] = 0;
    }
  }
}

template <class Fold>
Status pool(const ExternCall& call, const Fold& fold) {
  const ExternValue &x = call.in(0), &y = call.out();
  if (call.outputs.size() > 1 && call.outputs[1]) return input_error("indices of maxima are not computed");
  if (x.rank() < 3 || y.rank() != x.rank() || y.elements(0, 2) != x.elements(0, 2))
    return input_error("x and the result do not have the same channels");
  const std::vector<int64_t> in(x.extents.begin() + 2, x.extents.end()), out(y.extents.begin() + 2, y.extents.end());
  Result<Window> made = window_of(call, in, out, call.ints("kernel_shape", {}));
  if (!made) return made.error();
  const size_t n = in.size();
  std::vector<int64_t> high(n, 0);  // padding behind; ceil_mode's windows reach beyond it, and those taps never count
  const std::vector<int64_t> pads = call.ints("pads", std::vector<int64_t>(2 * n, 0));
  for (size_t a = 0; a < n; ++a)
    high[a] = call.s("auto_pad", "NOTSET").starts_with("SAME")
                  ? std::max<int64_t>(
                        0, (out[a] - 1) * made->stride[a] + (made->kernel[a] - 1) * made->dilation[a] + 1 - in[a]) -
                        made->low[a]
                  : pads[a + n];
  const int64_t from = x.elements(2, x.rank()), to = made->positions();
  extern_parallel(x.extents[0] * x.extents[1], to * made->taps(), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) pool_channel(*made, high, x.f32() + c * from, y.f32() + c * to, fold);
  });
  return Done{};
}

struct Maximum {
  struct State {
    float most = -std::numeric_limits<float>::infinity();
    void add(float x) { most = x > most || x != x ? x : most; }
  };
  float end(const State& state, int64_t, int64_t) const { return state.most; }
};

struct Average {
  bool with_padding;
  struct State {
    float sum = 0;
    void add(float x) { sum += x; }
  };
  float end(const State& state, int64_t inside, int64_t padded) const {
    return state.sum / static_cast<float>(with_padding ? padded : inside);
  }
};

}  // namespace

Status extern_max_pool(const ExternCall& call) { return pool(call, Maximum{}); }
Status extern_average_pool(const ExternCall& call) { return pool(call, Average{call.i("count_include_pad", 0) != 0}); }

}  // namespace fusec
