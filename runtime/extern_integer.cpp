// Quantised products and convolutions: (a - zero of a) * (b - zero of b), summed in i32.
//
// What is left of 8-bit numbers after that has 9 bits, so 256 of their products sum to less than 2^24 and are exact in f32 in any
// order: the library's f32 product in slices of 256 along k, each added to the i32 sums, has every bit right.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "runtime/extern.h"

namespace fusec {
namespace {

constexpr int64_t kExact = 256;  // 256 * 255 * 255 < 2^24

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

float number(const ExternValue& v, int64_t i) {
  return v.dtype == DType::u8 ? float(static_cast<const uint8_t*>(v.data)[i]) : float(static_cast<const int8_t*>(v.data)[i]);
}

/// Wraps around.
int32_t sum(int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }

using Shifted = Result<std::shared_ptr<const std::vector<float>>>;

Result<std::vector<float>> shift(const ExternCall& call, size_t operand, size_t zero, size_t axis) {
  const ExternValue& x = call.in(operand);
  const std::string named = "input " + std::to_string(operand);
  if (!is_byte(x.dtype)) return input_error(named + " is " + std::string(name(x.dtype)) + ", not u8 or i8");
  int64_t zeros = 1, inner = 1;
  if (call.has(zero)) {
    zeros = call.in(zero).elements();
    if (call.in(zero).dtype != x.dtype || (zeros != 1 && (axis >= x.rank() || zeros != x.extents[axis])))
      return input_error(named + ": its zero point is neither one number of its type nor one an index of axis " + std::to_string(axis));
    if (zeros != 1) inner = x.elements(axis + 1, x.rank());
  }
  std::vector<float> out(static_cast<size_t>(x.elements()));
  if (zeros == 1) inner = x.elements();
  const auto all = [&](const auto* from) {
    for (int64_t first = 0, run = 0; first < x.elements(); first += inner, ++run) {
      const float z = call.has(zero) ? number(call.in(zero), run % zeros) : 0;
      for (int64_t i = first; i < first + inner; ++i) out[size_t(i)] = float(from[i]) - z;
    }
  };
  if (x.dtype == DType::u8) all(static_cast<const uint8_t*>(x.data));
  else all(static_cast<const int8_t*>(x.data));
  return out;
}

/// An operand less its zero point, which is one number, or one for each index of `axis`.
Shifted shifted(const ExternCall& call, size_t operand, size_t zero, size_t axis) {
  return call.prepared(operand, {zero}, [&] { return shift(call, operand, zero, axis); });
}

Status multiply(const ExternCall& call, size_t a, size_t zero_a, size_t b, size_t zero_b, int32_t* sums) {
  const ExternValue &left = call.in(a), &right = call.in(b);
  const Shifted x = shifted(call, a, zero_a, left.rank() < 2 ? 0 : left.rank() - 2),
                w = shifted(call, b, zero_b, right.rank() < 2 ? 1 : right.rank() - 1);
  if (!x || !w) return x ? w.error() : x.error();
  if ((*x)->empty() || (*w)->empty()) return Done{};
  return each_product(left, right, call.out(), [&](const Product& p, int64_t at_a, int64_t at_b, int64_t at) {
    return exact_product(p, (*x)->data() + at_a, (*w)->data() + at_b, sums + at);
  });
}

Status convolve(const ExternCall& call, size_t a, size_t zero_a, size_t b, size_t zero_b, int32_t* sums) {
  const Result<Convolution> c = convolution_of(call, call.in(a), call.in(b), call.out());
  if (!c) return c.error();
  const Shifted x = shifted(call, a, zero_a, ~size_t{0}), w = shifted(call, b, zero_b, 0);
  if (!x || !w) return x ? w.error() : x.error();
  if (is_depthwise(*c) && c->taps <= kExact) {
    std::vector<float> y(static_cast<size_t>(call.out().elements()));
    depthwise(*c, (*x)->data(), (*w)->data(), y.data());
    std::transform(y.begin(), y.end(), sums, [](float v) { return static_cast<int32_t>(v); });
    return Done{};
  }
  return by_columns(*c, (*x)->data(), (*w)->data(), [&](const Product& p, const float* left, const float* right, int64_t at) {
    return exact_product(p, left, right, sums + at);
  });
}

/// Sums as u8 or i8 again: round(sum * scale of x * scale of w / scale of y) + zero of y. Scales of w run along `axis` of y. Operands
/// of QLinear operators are x, its scale and zero, w, its scale and zero, the result's scale and zero.
Status requantize(const ExternCall& call, const int32_t* sums, size_t axis) {
  const ExternValue &y = call.out(), &scales = call.in(4), &zero = call.in(7);
  for (size_t k : {1, 4, 6})
    if (call.in(k).dtype != DType::f32) return input_error("scales are f32");
  const int64_t count = scales.elements(), inner = y.elements(axis + 1, y.rank());
  if (call.in(1).elements() != 1 || call.in(6).elements() != 1 || zero.elements() != 1 || (count != 1 && count != y.extents[axis]))
    return input_error("one scale is taken, and of the weights one a channel");
  if (!is_byte(y.dtype) || zero.dtype != y.dtype) return input_error("the result and its zero point are u8 or i8");
  const float low = y.dtype == DType::u8 ? 0 : -128, high = y.dtype == DType::u8 ? 255 : 127, add = number(zero, 0);
  for (int64_t i = 0, all = y.elements(); i < all; ++i) {
    const float scale = call.in(1).f32()[0] * scales.f32()[count == 1 ? 0 : i / inner % count] / call.in(6).f32()[0];
    const float value = std::nearbyint(static_cast<float>(sums[i]) * scale) + add;
    const float within = value > low ? std::min(value, high) : low;  // NaN too
    if (y.dtype == DType::u8) static_cast<uint8_t*>(y.data)[i] = static_cast<uint8_t>(within);
    else static_cast<int8_t*>(y.data)[i] = static_cast<int8_t>(within);
  }
  return Done{};
}

Result<int32_t*> cleared(const ExternCall& call) {
  const ExternValue& y = call.out();
  if (y.dtype != DType::i32) return input_error("the result is i32");
  std::fill_n(static_cast<int32_t*>(y.data), y.elements(), 0);
  return static_cast<int32_t*>(y.data);
}

}  // namespace

Status exact_product(const Product& p, const float* a, const float* b, int32_t* c) {
  const auto part = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(p.m * p.n));
  for (int64_t k = 0; k < p.k; k += kExact) {
    Product slice = p;
    slice.k = std::min(kExact, p.k - k), slice.beta = 0, slice.ldc = p.n;
    if (Status s = product(slice, a + k, b + k * p.ldb, part.get()); !s) return s;
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) c[i * p.ldc + j] = sum(c[i * p.ldc + j], static_cast<int32_t>(part[i * p.n + j]));
  }
  return Done{};
}

Status extern_matmul_integer(const ExternCall& call) {
  Result<int32_t*> sums = cleared(call);
  return sums ? multiply(call, 0, 2, 1, 3, *sums) : Status(sums.error());
}

Status extern_conv_integer(const ExternCall& call) {
  Result<int32_t*> sums = cleared(call);
  return sums ? convolve(call, 0, 2, 1, 3, *sums) : Status(sums.error());
}

Status extern_qlinear_matmul(const ExternCall& call) {
  if (call.out().rank() == 0) return input_error("a product of two vectors is not taken");
  const auto sums = std::make_unique<int32_t[]>(static_cast<size_t>(call.out().elements()));
  if (Status s = multiply(call, 0, 2, 3, 5, sums.get()); !s) return s;
  return requantize(call, sums.get(), call.out().rank() - 1);
}

Status extern_qlinear_conv(const ExternCall& call) {
  const ExternValue& y = call.out();
  const auto sums = std::make_unique<int32_t[]>(static_cast<size_t>(y.elements()));
  if (Status s = convolve(call, 0, 2, 3, 5, sums.get()); !s) return s;
  if (call.has(8)) {
    const ExternValue& bias = call.in(8);
    if (bias.dtype != DType::i32 || bias.elements() != y.extents[1]) return input_error("the bias is one i32 a channel");
    const int64_t inner = y.elements(2, y.rank());
    for (int64_t i = 0, all = y.elements(); i < all; ++i)
      sums[i] = sum(sums[i], static_cast<const int32_t*>(bias.data)[i / inner % y.extents[1]]);
  }
  return requantize(call, sums.get(), 1);
}

}  // namespace fusec
