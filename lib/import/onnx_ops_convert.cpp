// Conversions between element types: casts and linear quantisation.

#include <utility>

#include "lib/import/onnx_narrow.h"
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

/// A type to convert to: a narrow one, or a dtype.
struct Target {
  DType dtype;  // of the value, held
  const NarrowType* narrow = nullptr;

  int32_t data_type() const { return narrow ? narrow->data_type : 0; }
};

std::optional<Target> target(Call& c, int64_t data_type) {
  Result<DType> held = held_type(static_cast<int32_t>(data_type));
  if (held) return Target{*held, narrow_type(static_cast<int32_t>(data_type))};
  c.fail(held.error().message);
  return std::nullopt;
}

/// The type of an operand.
Target type_of(Call& c, size_t i) { return {c.dtype(c.in(i)), narrow_type(c.narrow(i))}; }

void convert(Call& c, const Target& to) {
  const Value x = c.in(0);
  const bool saturate = c.i("saturate", 1) != 0;
  const std::string_view round_mode = c.s("round_mode", "up");
  if (round_mode != "up" && round_mode != "down" && round_mode != "nearest") return c.fail("round_mode " + quote(round_mode) + " is not known");
  if (!to.narrow) return c.out(cast_to(c, x, to.dtype, saturate));
  c.out_narrow(c.narrow(0) == to.data_type() ? x : narrowed(c.b, *to.narrow, x, saturate, round_mode), to.data_type());
}

void cast(Call& c) {
  if (const auto to = target(c, c.required("to"))) convert(c, *to);
}

void cast_like(Call& c) {
  if (c.in(1).valid()) convert(c, type_of(c, 1));
}

/// The bits of a bool are those of 0 and 1.
void bit_cast(Call& c) {
  const Value x = c.in(0);
  const auto to = target(c, c.required("to"));
  if (!to) return;
  if (to->narrow || c.narrow(0)) return c.fail("a narrow type has no bits of its own here");
  if (c.dtype(x) == to->dtype) return c.out(x);
  if (c.dtype(x) == DType::boolean && bytes(to->dtype) == 1) {
    const Value bits = c.cast(x, DType::u8);
    return c.out(to->dtype == DType::u8 ? bits : c.add(Op::bitcast, {bits}, {.to = to->dtype}));
  }
  c.out(c.add(Op::bitcast, {x}, {.to = to->dtype}));
}

/// A scale or zero point, laid over x: one number; one for each index along `axis`; or, with a block_size, one for each
/// block of so many, the last one perhaps shorter.
Value along(Call& c, Value scale, Value x) {
  const Shape s = c.shape(scale), to = c.shape(x);
  const int64_t block = c.i("block_size", 0);
  if (block < 0) c.fail("a block_size of " + std::to_string(block));
  if (block == 0) {
    if (s.empty() || s == Shape{1}) return c.reshape(scale, {});
    if (s.size() != 1) c.fail("the scale is " + text(c.type(scale)) + ": a scalar or a vector expected, or block_size");
  }
  if (to.empty()) c.fail("a scale of " + text(c.type(scale)) + " for a scalar");
  if (c.failed()) return {};
  const auto axis = static_cast<size_t>(c.axis(c.row.since < 13 ? 1 : c.i("axis", 1), c.rank(x)));
  if (block == 0) {
    Shape laid(to.size(), Dim(1));
    laid[axis] = s[0];
    return c.reshape(scale, laid);
  }
  if (s.size() != to.size()) c.fail("the scale is " + text(c.type(scale)) + ": with block_size it has the rank of " + text(c.type(x)));
  if (c.failed()) return {};
  const int64_t n = c.number(to[axis], "a quantised axis"), blocks = c.number(s[axis], "the axis of scales");
  if (n > blocks * block || n <= (blocks - 1) * block)
    c.fail(std::to_string(blocks) + " blocks of " + std::to_string(block) + " for an axis of " + std::to_string(n));
  if (c.failed()) return {};
  // [.., blocks, ..] → [before, blocks, 1, behind] → [before, blocks, block, behind] → [.., n, ..]
  const Dim before = elements({s.begin(), s.begin() + static_cast<int64_t>(axis)});
  const Dim behind = elements({s.begin() + static_cast<int64_t>(axis) + 1, s.end()});
  Value y = c.broadcast(c.reshape(scale, {before, blocks, 1, behind}), {before, blocks, block, behind});
  y = c.reshape(y, {before, blocks * block, behind});
  if (blocks * block != n) y = c.add(Op::slice, {y}, {.start = {0, 0, 0}, .stop = {before, n, behind}, .step = {1, 1, 1}});
  return c.reshape(y, to);
}

std::pair<double, double> integer_range(const Target& to) {
  if (to.narrow) return {to.narrow->lowest, to.narrow->top};
  const double values = bytes(to.dtype) == 1 ? 256 : 65536;
  return is_signed(to.dtype) ? std::pair(-values / 2, values / 2 - 1) : std::pair(0.0, values - 1);
}

/// y = saturate(round_even(x / scale) + zero_point)
void quantize(Call& c) {
  const Value x = c.in(0), scale = c.in(1);
  Value zero = c.has(2) ? c.in(2) : Value{};
  Target to = zero.valid() ? type_of(c, 2) : Target{DType::u8};
  if (const int64_t given = c.i("output_dtype", 0); given != 0) {
    const auto wanted = target(c, given);
    if (!wanted) return;
    if (zero.valid() && (wanted->dtype != to.dtype || wanted->narrow != to.narrow)) c.fail("output_dtype differs from the type of the zero point");
    to = *wanted;
  }
  DType wide = c.dtype(x) == DType::f64 ? DType::f64 : DType::f32;
  if (const int64_t precision = c.i("precision", 0); precision != 0) {
    const auto given = target(c, precision);
    if (!given) return;
    if (given->dtype != DType::f32 && given->dtype != DType::f64) c.fail("a precision of " + dtype_name(static_cast<int32_t>(precision)) + " is not supported");
    wide = given->dtype;
  }
  Value y = c.add(Op::div, {c.cast(x, wide), c.cast(along(c, scale, x), wide)});
  const bool floats = to.narrow ? !to.narrow->is_integer() : is_f8(to.dtype);
  if (floats && to.narrow) return c.out_narrow(narrowed(c.b, *to.narrow, y, c.i("saturate", 1) != 0, "up"), to.data_type());
  if (floats) return c.out(cast_to(c, y, to.dtype, c.i("saturate", 1) != 0));
  if (bytes(to.dtype) > 2 || is_float(to.dtype) || to.dtype == DType::boolean)
    return c.fail("quantisation to " + std::string(name(to.dtype)) + " is not supported");
  y = c.add(Op::round_even, {y});
  if (zero.valid()) y = c.add(Op::add, {y, c.cast(along(c, zero, x), wide)});
  const auto [low, high] = integer_range(to);
  c.out_narrow(c.cast(c.add(Op::clamp, {y, c.like(y, low), c.like(y, high)}), to.dtype), to.data_type());
}

/// y = (x - zero_point) * scale, in the type of the scale; i32 has no zero point and differences of 16-bit numbers
/// are exact in f32.
void dequantize(Call& c) {
  const Value x = c.in(0), scale = c.in(1);
  DType to = c.dtype(scale);
  if (const int64_t given = c.i("output_dtype", 0); given != 0) {
    const auto wanted = target(c, given);
    if (!wanted) return;
    if (wanted->narrow) return c.fail("output_dtype " + dtype_name(static_cast<int32_t>(given)) + " is not supported");
    to = wanted->dtype;
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
    {"Cast",                 6,  1, 1,    1,  "to",                                        cast, Narrow::handle},
    {"Cast",                19,  1, 1,    1,  "saturate to",                               cast, Narrow::handle},
    {"Cast",                24,  1, 1,    1,  "round_mode saturate to",                    cast, Narrow::handle},
    {"CastLike",            15,  2, 2,    1,  "",                                          cast_like, Narrow::handle},
    {"CastLike",            19,  2, 2,    1,  "saturate",                                  cast_like, Narrow::handle},
    {"CastLike",            24,  2, 2,    1,  "round_mode saturate",                       cast_like, Narrow::handle},
    {"BitCast",             26,  1, 1,    1,  "to",                                        bit_cast, Narrow::handle},
    {"QuantizeLinear",      10,  2, 3,    1,  "",                                          quantize, Narrow::handle},
    {"QuantizeLinear",      13,  2, 3,    1,  "axis",                                      quantize, Narrow::handle},
    {"QuantizeLinear",      19,  2, 3,    1,  "axis saturate",                             quantize, Narrow::handle},
    {"QuantizeLinear",      21,  2, 3,    1,  "axis block_size output_dtype saturate",     quantize, Narrow::handle},
    {"QuantizeLinear",      23,  2, 3,    1,  "axis block_size output_dtype precision saturate", quantize, Narrow::handle},
    {"DequantizeLinear",    10,  2, 3,    1,  "",                                          dequantize, Narrow::handle},
    {"DequantizeLinear",    13,  2, 3,    1,  "axis",                                      dequantize, Narrow::handle},
    {"DequantizeLinear",    21,  2, 3,    1,  "axis block_size",                           dequantize, Narrow::handle},
    {"DequantizeLinear",    23,  2, 3,    1,  "axis block_size output_dtype",              dequantize, Narrow::handle},
    {"DynamicQuantizeLinear", 11, 1, 1,   3,  "",                                          dynamic_quantize},
};

}  // namespace

std::span<const OpRow> conversion_rows() { return kRows; }

}  // namespace fusec::onnx
