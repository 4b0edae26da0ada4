// Resampling, nearest or linear, axis by axis: each position of the result reads one or two of the axis.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/extern.h"

namespace fusec {
namespace {

struct Source {
  int64_t low, high;
  float weight;  // of high
};

struct Mode {
  std::string_view coordinates, nearest;
  bool linear;
};

double coordinate(const Mode& mode, double at, double scale, double in, double out) {
  if (mode.coordinates == "asymmetric") return at / scale;
  if (mode.coordinates == "align_corners")
    return out <= 1 ? 0 : at * (in - 1) / (scale * in - 1);  // not of the rounded extent
  if (mode.coordinates == "pytorch_half_pixel" && out <= 1) return 0;
  const double centre = mode.coordinates == "half_pixel_symmetric" ? in / 2 * (1 - out / (scale * in)) : 0;
  return centre + (at + 0.5) / scale - 0.5;
}

int64_t nearest(std::string_view mode, double x) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
}

std::vector<Source> sources(const Mode& mode, int64_t in, int64_t out, double scale) {
  std::vector<Source> table;
  for (int64_t p = 0; p < out; ++p) {
    const double x = coordinate(mode, static_cast<double>(p), scale, static_cast<double>(in), static_cast<double>(out));
    if (!mode.linear) {
      const int64_t at = std::clamp<int64_t>(nearest(mode.nearest, x), 0, in - 1);
      table.push_back({at, at, 0});
      continue;
    }
    const double inside = std::clamp(x, 0.0, static_cast<double>(in - 1));
    const auto low = static_cast<int64_t>(std::floor(inside));
    table.push_back({low, std::min(low + 1, in - 1), static_cast<float>(inside - static_cast<double>(low))});
  }
  return table;
}

/// [before, in, behind] to [before, out, behind].
std::vector<float> resample(const std::vector<float>& x, int64_t before, int64_t in, int64_t behind,
                            const std::vector<Source>& table) {
  const auto out = static_cast<int64_t>(table.size());
  std::vector<float> y(static_cast<size_t>(before * out * behind));
  extern_parallel(before * out, behind, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Source& s = table[static_cast<size_t>(row % out)];
      const float *low = x.data() + (row / out * in + s.low) * behind,
                  *high = x.data() + (row / out * in + s.high) * behind;
      float* to = y.data() + row * behind;
      for (int64_t k = 0; k < behind; ++k) to[k] = s.weight == 0 ? low[k] : low[k] + s.weight * (high[k] - low[k]);
    }
  });
  return y;
}

}  // namespace

Status extern_resize(const ExternCall& call) {
  const ExternValue &x = call.in(0), &y = call.out();
  if (y.rank() != x.rank()) return input_error("x and the result differ in rank");
  const std::string_view kind = call.s("mode", "nearest");
  const bool old = call.operator_set < 11;
  Mode mode{call.s("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
            call.s("nearest_mode", old ? "floor" : "round_prefer_floor"), kind == "linear" || kind == "bilinear"};
  if (kind != "nearest" && !mode.linear)
    return input_error("mode " + onnx::quote(kind) + ": nearest and linear are taken");
  if (mode.coordinates == "tf_crop_and_resize" || mode.coordinates == "tf_half_pixel_for_nn")
    return input_error("coordinate_transformation_mode " + onnx::quote(mode.coordinates) + " is not taken");
  if (call.i("exclude_outside", 0)) return input_error("exclude_outside is not taken");
  const size_t at = old ? 1 : 2;
  const float* scales =
      call.has(at) && call.in(at).dtype == DType::f32 && call.in(at).elements() == static_cast<int64_t>(x.rank())
          ? call.in(at).f32()
          : nullptr;
  std::vector<float> values(x.f32(), x.f32() + x.elements());
  int64_t before = 1, behind = x.elements();
  for (size_t a = 0; a < x.rank(); ++a) {
    const int64_t in = x.extents[a], out = y.extents[a];
    if (in == 0 || out == 0) return Done{};
    behind /= in;
    const double scale = scales ? static_cast<double>(scales[a]) : static_cast<double>(out) / static_cast<double>(in);
    if (in != out || scale != 1) values = resample(values, before, in, behind, sources(mode, in, out, scale));
    before *= out;
  }
  std::memcpy(y.f32(), values.data(), values.size() * sizeof(float));
  return Done{};
}

}  // namespace fusec
