// Convolutions over any number of axes: windows laid out as the columns of a matrix, one product a group.
//
// Some rows of the output are done at a time, so that their columns stay in a cache; such parts go to threads.
//
//   columns[c * taps + k, p] = x[c, p * stride - low + k * dilation]        y[m, p] = sum w[m, ·] columns[·, p]
//
// A 1x1 kernel's columns are x itself; a depthwise one is a loop, since its product would have one row.

#include <algorithm>
#include <memory>
#include <string>

#include "runtime/extern_windows.h"

namespace fusec {
namespace {

constexpr int64_t kColumns = 64 * 1024;  // elements that one part's columns have: 256 KB
constexpr int64_t kLeastColumns = 96;    // positions

/// Rows [begin, end) of one channel of x under one tap, as a row of columns.
void gather(const Window& w, int64_t k, int64_t begin, int64_t end, const float* x, float* column) {
  const Tap tap(w, k);
  const int64_t width = w.out.back();
  each_row(w, tap.at, begin, end, [&](int64_t at, int64_t in) {
    float* out = column + at - begin * width;
    if (in < 0 || tap.begin == tap.end) return std::fill(out, out + width, 0.0f);
    const float* row = x + in * w.in.back() + tap.first;
    std::fill(out, out + tap.begin, 0.0f);
    if (tap.stride == 1) std::copy(row + tap.begin, row + tap.end, out + tap.begin);
    else
      for (int64_t p = tap.begin; p < tap.end; ++p) out[p] = row[p * tap.stride];
    std::fill(out + tap.end, out + width, 0.0f);
  });
}

/// The other way: adds a row of columns into a channel.
void scatter(const Window& w, int64_t k, const float* column, float* x) {
  const Tap tap(w, k);
  each_row(w, tap.at, 0, rows_of(w), [&](int64_t at, int64_t in) {
    if (in < 0 || tap.begin == tap.end) return;
    float* row = x + in * w.in.back() + tap.first;
    for (int64_t p = tap.begin; p < tap.end; ++p) row[p * tap.stride] += column[at + p];
  });
}

/// Adds what one tap of weight `f` contributes to a channel.
void add_tap(const Window& w, int64_t k, const float* x, float f, float* y) {
  fold_tap(w, k, x, y, [f](float sum, float element) { return sum + f * element; });
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
Result<int64_t> groups_of(const ExternCall& call, const ExternValue& x, const ExternValue& w, const ExternValue& y) {
  if (x.rank() < 3 || w.rank() != x.rank() || y.rank() != x.rank())
    return input_error("x, the weights and the result differ in rank, or have no spatial axis");
  const int64_t group = call.i("group", 1);
  if (group < 1 || group > x.extents[1])
    return input_error(std::to_string(group) + " groups of " + std::to_string(x.extents[1]) + " channels");
  return group;
}

/// `results`: channels that the weights give.
Status check_operands(const ExternValue& x, const ExternValue& y, int64_t group, int64_t per_group, int64_t results) {
  if (y.extents[0] != x.extents[0] || y.extents[1] != results)
    return input_error("the result does not have " + std::to_string(results) + " channels");
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

Result<Convolution> convolution_of(const ExternCall& call, const ExternValue& x, const ExternValue& w, const ExternValue& y) {
  const Result<int64_t> group = groups_of(call, x, w, y);
  if (!group) return group.error();
  if (w.extents[0] % *group) return input_error(std::to_string(w.extents[0]) + " filters in " + std::to_string(*group) + " groups");
  if (Status s = check_operands(x, y, *group, w.extents[1], w.extents[0]); !s) return s.error();
  Result<Window> window = window_of(call, spatial(x), spatial(y), spatial(w));
  if (!window) return window.error();
  const int64_t taps = window->taps(), positions = window->positions();
  return Convolution{std::move(*window), x.extents[0], *group, w.extents[1], w.extents[0] / *group, taps, positions, x.elements(2, x.rank())};
}

void depthwise(const Convolution& c, const float* x, const float* w, float* y) {
  const int64_t all = c.group * c.filters;
  extern_parallel(c.batch * all, c.taps * c.positions / 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t batch = row / all, filter = row % all;
      for (int64_t k = 0; k < c.taps; ++k)
        add_tap(c.window, k, x + (batch * c.group + filter / c.filters) * c.x_size, w[filter * c.taps + k], y + row * c.positions);
    }
  });
}

Status by_columns(const Convolution& c, const float* x, const float* w,
                  const std::function<Status(const Product&, const float*, const float*, int64_t)>& multiply) {
  const bool direct = is_pointwise(c.window);
  const int64_t depth = c.channels * c.taps, rows = rows_of(c.window), width = rows ? c.positions / rows : 0;
  if (Status s = check_columns(depth, c.positions); !direct && !s) return s;
  // Some rows of the output at a time: columns that stay in a cache, but enough of them for a product to be worth its call.
  const int64_t wanted = std::max(kColumns / std::max<int64_t>(depth, 1), kLeastColumns) / std::max<int64_t>(width, 1) + 1;
  const int64_t block = std::min(wanted, std::max<int64_t>(rows, 1)), blocks = (rows + block - 1) / block;
  const double work = std::min(1e15, double(c.filters) * double(depth) * double(block * width) / 16);
  return extern_each(c.batch * c.group * blocks, static_cast<int64_t>(work), [&](int64_t begin, int64_t end) -> Status {
    const auto columns = std::make_unique_for_overwrite<float[]>(direct ? 0 : static_cast<size_t>(depth * block * width));
    for (int64_t item = begin; item < end; ++item) {  // batch by batch, group by group
      const int64_t part = item / blocks, from_row = item % blocks * block, to_row = std::min(rows, from_row + block), n = (to_row - from_row) * width;
      const float* from = x + part * c.channels * c.x_size;
      for (int64_t row = 0; row < depth && !direct; ++row)
        gather(c.window, row % c.taps, from_row, to_row, from + row / c.taps * c.x_size, columns.get() + row * n);
      const Product p{.m = c.filters, .n = n, .k = depth, .beta = 1, .lda = depth, .ldb = direct ? c.positions : n, .ldc = c.positions};
      const float* weights = w + part % c.group * c.filters * depth;
      if (Status s = multiply(p, weights, direct ? from + from_row * width : columns.get(), part * c.filters * c.positions + from_row * width); !s)
        return s;
    }
    return Done{};
  });
}

bool is_depthwise(const Convolution& c) { return c.channels == 1 && c.filters < 8; }

Status extern_conv(const ExternCall& call) {
  const ExternValue &x = call.in(0), &w = call.in(1), &y = call.out();
  const Result<Convolution> c = convolution_of(call, x, w, y);
  if (!c) return c.error();
  if (Status s = expects(call.inputs, 2, w.extents[0]); !s) return s;
  fill_bias(call, y, c->positions);
  if (is_depthwise(*c)) {
    depthwise(*c, x.f32(), w.f32(), y.f32());
    return Done{};
  }
  return by_columns(*c, x.f32(), w.f32(), [&](const Product& p, const float* a, const float* b, int64_t at) {
    return product(p, a, b, y.f32() + at);
  });
}

Status extern_conv_transpose(const ExternCall& call) {
  const ExternValue &x = call.in(0), &w = call.in(1), &y = call.out();
  const Result<int64_t> groups = groups_of(call, x, w, y);
  if (!groups) return groups.error();
  const int64_t group = *groups;
  if (Status s = check_operands(x, y, group, w.extents[0] / group, w.extents[1] * group); !s) return s;
  if (Status s = expects(call.inputs, 2, w.extents[1] * group); !s) return s;
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
