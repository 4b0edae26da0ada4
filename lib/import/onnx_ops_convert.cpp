// Conversions between element types: casts and linear quantisation.

#include <utility>

#include "lib/import/onnx_ops.h"
#include "lib/import/onnx_tensor.h"

namespace fusec::onnx {
namespace {

/// Largest finite f8 values.
double largest(DType f8) { return f8 == DType::f8e4m3 ? 448 : 57344; }
bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

/// fusec's cast with ONNX's saturation: beyond the largest f8 value comes that value, infinities too, where fusec has
/// NaN or infinity. Clamping first is exact: the bounds are representable in every type that reaches them.
Value cast_to(Call& c, Value x, DType to, bool saturate) {
  if (!x.valid() || c.dtype(x) == to) return x;
  const bool narrow = c.dtype(x) == DType::boolean || c.dtype(x) == DType::i8 || c.dtype(x) == DType::u8;
  if (is_f8(to) && saturate && !narrow) {
    if (is_integer(c.dtype(x))) x = c.cast(x, DType::f32);
    const double top = largest(to);
    if (c.dtype(x) != DType::f8e4m3) x = c.add(Op::clamp, {x, c.like(x, -top), c.like(x, top)});
  }
  return c.cast(x, to);
}

std::optional<DType> target(Call& c, int64_t data_type) {
  Result<DType> to = dtype_of(static_cast<int32_t>(data_type));
  if (to) return *to;
  c.fail(to.error().message);
  return std::nullopt;
}

void cast(Call& c) {
  if (const auto to = target(c, c.required("to"))) c.out(cast_to(c, c.in(0), *to, c.i("saturate", 1) != 0));
}

void cast_like(Call& c) {
  const Value x = c.in(0), like = c.in(1);
  if (like.valid()) c.out(cast_to(c, x, c.dtype(like), c.i("saturate", 1) != 0));
}

void bit_cast(Call& c) {
  const Value x = c.in(0);
  if (const auto to = target(c, c.required("to"))) c.out(c.dtype(x) == *to ? x : c.add(Op::bitcast, {x}, {.to = *to}));
}

/// A scale or zero point, laid along `axis` of x: a scalar stays one.
Value along(Call& c, Value scale, Value x) {
  const Shape& s = c.shape(scale);
  if (s.empty() || s == Shape{1}) return c.reshape(scale, {});
  if (s.size() != 1) c.fail("blocked quantisation is not supported: the scale is " + text(c.type(scale)));
  Shape laid(c.shape(x).size(), Dim(1));
  if (c.rank(x) > 0) laid[static_cast<size_t>(c.axis(c.row.since < 13 ? 1 : c.i("axis", 1), c.rank(x)))] = s[0];
  return c.reshape(scale, laid);
}

std::pair<double, double> integer_range(DType dtype) {
  const double values = dtype == DType::i8 || dtype == DType::u8 ? 256 : 65536;
  return is_signed(dtype) ? std::pair(-values / 2, values / 2 - 1) : std::pair(0.0, values - 1);
}

/// y = saturate(round_even(x / scale) + zero_point)
void quantize(Call& c) {
  if (c.i("block_size", 0) != 0) c.fail("blocked quantisation is not supported");
  if (c.i("precision", 0) != 0) c.fail("precision other than that of the operands is not supported");
  const Value x = c.in(0), scale = c.in(1);
  Value zero = c.has(2) ? c.in(2) : Value{};
  DType to = zero.valid() ? c.dtype(zero) : DType::u8;
  if (const int64_t given = c.i("output_dtype", 0); given != 0) {
    const auto wanted = target(c, given);
    if (!wanted) return;
    if (zero.valid() && *wanted != to) c.fail("output_dtype differs from the type of the zero point");
    to = *wanted;
  }
  const DType wide = c.dtype(x) == DType::f64 ? DType::f64 : DType::f32;
  Value y = c.add(Op::div, {c.cast(x, wide), c.cast(along(c, scale, x), wide)});
  if (is_f8(to)) return c.out(cast_to(c, y, to, c.i("saturate", 1) != 0));
  if (bytes(to) > 2 || is_float(to) || to == DType::boolean)
    return c.fail("quantisation to " + std::string(name(to)) + " is not supported");
  y = c.add(Op::round_even, {y});
  if (zero.valid()) y = c.add(Op::add, {y, c.cast(along(c, zero, x), wide)});
  const auto [low, high] = integer_range(to);
  c.out(c.cast(c.add(Op::clamp, {y, c.like(y, low), c.like(y, high)}), to));
}

/// y = (x - zero_point) * scale, in the type of the scale; i32 has no zero point and differences of 16-bit numbers
/// are exact in f32.
void dequantize(Call& c) {
  if (c.i("block_size", 0) != 0) c.fail("blocked quantisation is not supported");
  const Value x = c.in(0), scale = c.in(1);
  DType to = c.dtype(scale);
  if (const int64_t given = c.i("output_dtype", 0); given != 0) {
    const auto wanted = target(c, given);
    if (!wanted) return;
    to = *wanted;
  }
  Value y = c.cast(x, DType::f32);
  if (c.has(2)) {
    const Value zero = c.in(2);
    const bool wide = c.dtype(x) == DType::i32;  // differences beyond 2^24 are not exact in f32
    y = wide ? c.cast(c.add(Op::sub, {x, along(c, zero, x)}), DType::f32)
             : c.add(Op::sub, {y, c.cast(along(c, zero, x), DType::f32)});
  }
  c.out(c.cast(c.add(Op::mul, {y, c.cast(along(c, scale, x), DType::f32)}), to));
}

/// u8 over the range of x, which is widened to hold 0. A range of nothing but 0 gives scale 0, and 0 / 0 is read as 0.
void dynamic_quantize(Call& c) {
  const Value x = c.in(0), zero = c.like(x, 0), top = c.like(x, 255);
  std::vector<int64_t> all;
  for (int64_t a = 0; a < c.rank(x); ++a) all.push_back(a);
  const Value low = c.add(Op::min, {c.rank(x) ? c.reduce(Op::reduce_min, x, all, false) : x, zero});
  const Value high = c.add(Op::max, {c.rank(x) ? c.reduce(Op::reduce_max, x, all, false) : x, zero});
  const Value scale = c.add(Op::div, {c.add(Op::sub, {high, low}), top});
  const Value point =
      c.add(Op::round_even, {c.add(Op::clamp, {c.add(Op::div, {c.add(Op::neg, {low}), scale}), zero, top})});
  const Value y = c.add(Op::add, {c.add(Op::round_even, {c.add(Op::div, {x, scale})}), point});
  c.out(c.cast(c.add(Op::clamp, {y, zero, top}), DType::u8));
  c.out(scale, 1);
  c.out(c.cast(point, DType::u8), 2);
}

const OpRow kRows[] = {
    //  operator          since  inputs  out  attributes                                   import
    {"Cast",                 6,  1, 1,    1,  "to",                                        cast},
    {"Cast",                19,  1, 1,    1,  "saturate to",                               cast},
    {"Cast",                24,  1, 1,    1,  "round_mode saturate to",                    cast},  // round_mode: f8e8m0 only
    {"CastLike",            15,  2, 2,    1,  "",                                          cast_like},
    {"CastLike",            19,  2, 2,    1,  "saturate",                                  cast_like},
    {"CastLike",            24,  2, 2,    1,  "round_mode saturate",                       cast_like},
    {"BitCast",             26,  1, 1,    1,  "to",                                        bit_cast},
    {"QuantizeLinear",      10,  2, 3,    1,  "",                                          quantize},
    {"QuantizeLinear",      13,  2, 3,    1,  "axis",                                      quantize},
    {"QuantizeLinear",      19,  2, 3,    1,  "axis saturate",                             quantize},
    {"QuantizeLinear",      21,  2, 3,    1,  "axis block_size output_dtype saturate",     quantize},
    {"QuantizeLinear",      23,  2, 3,    1,  "axis block_size output_dtype precision saturate", quantize},
    {"DequantizeLinear",    10,  2, 3,    1,  "",                                          dequantize},
    {"DequantizeLinear",    13,  2, 3,    1,  "axis",                                      dequantize},
    {"DequantizeLinear",    21,  2, 3,    1,  "axis block_size",                           dequantize},
    {"DequantizeLinear",    23,  2, 3,    1,  "axis block_size output_dtype",              dequantize},
    {"DynamicQuantizeLinear", 11, 1, 1,   3,  "",                                          dynamic_quantize},
};

}  // namespace

std::span<const OpRow> conversion_rows() { return kRows; }

}  // namespace fusec::onnx
