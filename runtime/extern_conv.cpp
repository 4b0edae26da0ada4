// Convolutions over any number of axes: windows laid out as the columns of a matrix, one product a group.
//
//   columns[c * taps + k, p] = x[c, p * stride - low + k * dilation]        y[m, p] = sum w[m, ·] columns[·, p]
//
// A 1x1 kernel's columns are x itself; a depthwise one is a loop, since its product would have one row.

#include <algorithm>
#include <string>

#include "runtime/extern.h"

namespace fusec {
namespace {

/// Calls `row(at, in)` for each row of the output's last axis: the position of its first element, and where the tap reads in
/// the axes before the last; in < 0 where that is padding.
template <class Row>
void each_row(const Window& w, const std::vector<int64_t>& tap, const Row& row) {
  const size_t last = w.kernel.size() - 1;
  std::vector<int64_t> at(last, 0);
  int64_t rows = 1;
  for (size_t a = 0; a < last; ++a) rows *= w.out[a];
  for (int64_t r = 0; r < rows; ++r) {
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
  std::vector<int64_t> at;
  int64_t first, stride, begin, end;

  Tap(const Window& w, int64_t k) : at(w.kernel.size()) {
    for (size_t a = at.size(); a-- > 0; k /= w.kernel[a]) at[a] = k % w.kernel[a];
    const size_t last = w.kernel.size() - 1;
    first = at[last] * w.dilation[last] - w.low[last], stride = w.stride[last];
    const int64_t extent = w.in[last], positions = w.out[last];
    begin = std::min(first >= 0 ? 0 : (-first + stride - 1) / stride, positions);
    end = std::clamp(first >= extent ? 0 : (extent - 1 - first) / stride + 1, begin, positions);
  }
};

/// One channel of x under one tap, as a row of columns.
void gather(const Window& w, int64_t k, const float* x, float* column) {
  const Tap tap(w, k);
  const int64_t width = w.out.back();
  each_row(w, tap.at, [&](int64_t at, int64_t in) {
    float* out = column + at;
    if (in < 0) return std::fill(out, out + width, 0.0f);
    const float* row = x + in * w.in.back() + tap.first;
    std::fill(out, out + tap.begin, 0.0f);
    for (int64_t p = tap.begin; p < tap.end; ++p) out[p] = row[p * tap.stride];
    std::fill(out + tap.end, out + width, 0.0f);
  });
}

/// The other way: adds a row of columns into a channel.
void scatter(const Window& w, int64_t k, const float* column, float* x) {
  const Tap tap(w, k);
  each_row(w, tap.at, [&](int64_t at, int64_t in) {
    if (in < 0) return;
    float* row = x + in * w.in.back() + tap.first;
    for (int64_t p = tap.begin; p < tap.end; ++p) row[p * tap.stride] += column[at + p];
  });
}

/// Adds what one tap of weight `f` contributes to a channel.
void add_tap(const Window& w, int64_t k, const float* x, float f, float* y) {
  const Tap tap(w, k);
  each_row(w, tap.at, [&](int64_t at, int64_t in) {
    if (in < 0) return;
    const float* row = x + in * w.in.back() + tap.first;
    float* out = y + at;
    if (tap.stride == 1)
      for (int64_t p = tap.begin; p < tap.end; ++p) out[p] += f * row[p];
    else
      for (int64_t p = tap.begin; p < tap.end; ++p) out[p] += f * row[p * tap.stride];
  });
}

bool is_pointwise(const Window& w) {
  for (size_t a = 0; a < w.kernel.size(); ++a)
    if (w.kernel[a] != 1 || w.stride[a] != 1 || w.low[a] != 0 || w.in[a] != w.out[a]) return false;
  return true;
}

std::vector<int64_t> spatial(const ExternValue& v) { return {v.extents.begin() + 2, v.extents.end()}; }

/// The bias in every position, or zero.
void fill_bias(const ExternCall& call, const ExternValue& y, int64_t positions) {
  const float* bias = call.has(2) ? call.in(2).f32() : nullptr;
  const int64_t channels = y.extents[1];
  for (int64_t row = 0; row < y.extents[0] * channels; ++row)
    std::fill_n(y.f32() + row * positions, positions, bias ? bias[row % channels] : 0.0f);
}

/// How many groups: no more than there are channels, of which there are any.
Result<int64_t> groups_of(const ExternCall& call) {
  const ExternValue &x = call.in(0), &w = call.in(1), &y = call.out();
  if (x.rank() < 3 || w.rank() != x.rank() || y.rank() != x.rank())
    return input_error("x, the weights and the result differ in rank, or have no spatial axis");
  const int64_t group = call.i("group", 1);
  if (group < 1 || group > x.extents[1])
    return input_error(std::to_string(group) + " groups of " + std::to_string(x.extents[1]) + " channels");
  return group;
}

/// `results`: channels that the weights give.
Status check_operands(const ExternCall& call, int64_t group, int64_t per_group, int64_t results) {
  const ExternValue &x = call.in(0), &y = call.out();
  if (y.extents[0] != x.extents[0] || y.extents[1] != results)
    return input_error("the result does not have " + std::to_string(results) + " channels");
  if (Status s = expects(call.inputs, 2, results); !s) return s;
  if (x.extents[1] != per_group * group)
    return input_error(std::to_string(x.extents[1]) + " channels do not fit the weights in " + std::to_string(group) +
                       " groups");
  return Done{};
}

Status check_columns(int64_t rows, int64_t positions) {
  int64_t all = 0;
  if (!__builtin_mul_overflow(rows, positions, &all) && all <= int64_t{1} << 38) return Done{};
  return environment_error("the windows of this convolution do not fit into memory");
}

}  // namespace

Status extern_conv(const ExternCall& call) {
  const ExternValue &x = call.in(0), &w = call.in(1), &y = call.out();
  const Result<int64_t> groups = groups_of(call);
  if (!groups) return groups.error();
  const int64_t group = *groups;
  if (Status s = check_operands(call, group, w.extents[1], w.extents[0]); !s) return s;
  Result<Window> made = window_of(call, spatial(x), spatial(y), spatial(w));
  if (!made) return made.error();
  const Window& window = *made;
  const int64_t channels = w.extents[1], filters = w.extents[0] / group, taps = window.taps(),
                positions = window.positions();
  const int64_t x_size = x.elements(2, x.rank());
  fill_bias(call, y, positions);
  if (channels == 1) {  // depthwise
    extern_parallel(x.extents[0] * w.extents[0], taps * positions, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t batch = row / w.extents[0], filter = row % w.extents[0];
        for (int64_t k = 0; k < taps; ++k)
          add_tap(window, k, x.f32() + (batch * group + filter / filters) * x_size, w.f32()[filter * taps + k],
                  y.f32() + row * positions);
      }
    });
    return Done{};
  }
  const bool direct = is_pointwise(window);
  if (Status s = check_columns(channels * taps, positions); !direct && !s) return s;
  std::vector<float> columns(direct ? 0 : static_cast<size_t>(channels * taps * positions));
  const Product p{.m = filters,
                  .n = positions,
                  .k = channels * taps,
                  .beta = 1,
                  .lda = channels * taps,
                  .ldb = positions,
                  .ldc = positions};
  for (int64_t part = 0; part < x.extents[0] * group; ++part) {  // batch by batch, group by group
    const float* from = x.f32() + part * channels * x_size;
    if (!direct)
      extern_parallel(channels * taps, positions, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          gather(window, row % taps, from + row / taps * x_size, columns.data() + row * positions);
      });
    const float* weights = w.f32() + part % group * filters * channels * taps;
    if (Status s = product(p, weights, direct ? from : columns.data(), y.f32() + part * filters * positions); !s)
      return s;
  }
  return Done{};
}

Status extern_conv_transpose(const ExternCall& call) {
  const ExternValue &x = call.in(0), &w = call.in(1), &y = call.out();
  const Result<int64_t> groups = groups_of(call);
  if (!groups) return groups.error();
  const int64_t group = *groups;
  if (Status s = check_operands(call, group, w.extents[0] / group, w.extents[1] * group); !s) return s;
  Result<Window> made = window_of(call, spatial(y), spatial(x), spatial(w));  // the convolution whose adjoint this is
  if (!made) return made.error();
  Window& window = *made;
  if (call.attribute("output_shape") ||
      call.s("auto_pad", "NOTSET").starts_with("SAME")) {  // the padding follows from the result
    const std::vector<int64_t> extra = call.ints("output_padding", std::vector<int64_t>(window.in.size(), 0));
    for (size_t a = 0; a < window.in.size() && a < extra.size(); ++a) {
      if (extra[a] < 0 || extra[a] > window.stride[a]) return input_error("output_padding out of range");
      const int64_t all = std::max<int64_t>(0, (window.out[a] - 1) * window.stride[a] + extra[a] +
                                                   (window.kernel[a] - 1) * window.dilation[a] + 1 - window.in[a]);
      window.low[a] = call.s("auto_pad", "NOTSET") == "SAME_UPPER" ? all / 2 : all - all / 2;
    }
  }
  const int64_t channels = w.extents[0] / group, filters = w.extents[1], taps = window.taps(),
                positions = window.positions();
  const int64_t y_size = y.elements(2, y.rank());
  fill_bias(call, y, y_size);
  if (Status s = check_columns(filters * taps, positions); !s) return s;
  std::vector<float> columns(static_cast<size_t>(filters * taps * positions));
  const Product p{.transpose_a = true,
                  .m = filters * taps,
                  .n = positions,
                  .k = channels,
                  .lda = filters * taps,
                  .ldb = positions,
                  .ldc = positions};
  for (int64_t part = 0; part < x.extents[0] * group; ++part) {
    const float* weights = w.f32() + part % group * channels * filters * taps;
    if (Status s = product(p, weights, x.f32() + part * channels * positions, columns.data()); !s) return s;
    float* to = y.f32() + part * filters * y_size;
    extern_parallel(filters, taps * positions, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * taps; row < end * taps; ++row)
        scatter(window, row % taps, columns.data() + row * positions, to + row / taps * y_size);
    });
  }
  return Done{};
}

}  // namespace fusec
