// Numbers of a few bits. All floats of this kind decode alike: exponent and mantissa, moved to the top of an f32, are a
// number that is wrong by a power of two only, denormals included; f32 has room for all of them.
//
//   FLOAT8E4M3FNUZ 0 0011 010  →  bits 0 00000011 010…  = 1.25 · 2^-124  · 2^(127-8)  = 1.25 · 2^-5

#include "lib/import/onnx_narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lib/import/onnx_call.h"
#include "lib/ir/convert.h"

namespace fusec::onnx {
namespace {

constexpr int kE4M3Fnuz = 18, kE5M2Fnuz = 20, kE2M1 = 23, kE8M0 = 24;

constexpr NarrowType kTypes[] = {
    //  type     held           bits  mantissa  lowest   top
    {kE4M3Fnuz,  DType::f16,     8,      3,      -7,     240},
    {kE5M2Fnuz,  DType::f16,     8,      2,     -15,     57344},
    {21,         DType::u8,      4,     -1,       0,     15},
    {22,         DType::i8,      4,     -1,      -8,     7},
    {kE2M1,      DType::f8e4m3,  4,      1,       0,     6},
    {kE8M0,      DType::bf16,    8,      0,    -127,     0x1p127},
    {25,         DType::u8,      2,     -1,       0,     3},
    {26,         DType::i8,      2,     -1,      -2,     1},
};

bool is_fnuz(const NarrowType& type) { return type.data_type == kE4M3Fnuz || type.data_type == kE5M2Fnuz; }

/// By what the moved bits have to be multiplied: 2^(127 - bias), and the smallest normal exponent is 1 - bias.
double scale(const NarrowType& type) { return std::ldexp(1.0, 126 + static_cast<int>(type.lowest)); }

double number(const NarrowType& type, uint32_t code) {
  const uint32_t sign = 1u << (type.bits - 1);
  if (type.is_integer()) return type.lowest < 0 && (code & sign) ? double(code) - 2.0 * sign : code;
  if (type.data_type == kE8M0) return code == 255 ? NAN : std::ldexp(1.0, static_cast<int>(code) - 127);
  if (is_fnuz(type) && code == sign) return NAN;
  const double magnitude = std::bit_cast<float>((code & (sign - 1)) << (23 - type.mantissa)) * scale(type);
  return code & sign ? -magnitude : magnitude;
}

/// Ops on values that are all of one shape or scalars, in one line each.
struct Ops {
  GraphBuilder& b;

  Value operator()(Op op, std::vector<Value> args, Attrs attrs = {}) const { return b.add(op, std::move(args), std::move(attrs)); }
  Value cast(Value x, DType to) const { return b.type(x).dtype == to ? x : b.cast(x, to); }
  Value bits(Value x, DType to) const { return b.add(Op::bitcast, {x}, {.to = to}); }
  Value like(Value x, double number) const { return b.scalar(b.type(x).dtype, number); }
  Value with(Op op, Value x, double number) const { return b.add(op, {x, like(x, number)}); }
};

/// Codes, one a byte, as numbers of the held type.
Value decoded(const Ops& op, const NarrowType& type, Value code) {
  const double sign = 1 << (type.bits - 1);
  if (type.is_integer()) {
    if (type.lowest == 0) return code;
    // Flipping the sign bit adds half the range; taking it away again extends the sign.
    return op.with(Op::sub, op.bits(op.with(Op::xor_, code, sign), DType::i8), sign);
  }
  const Value wide = op.cast(code, DType::u32);
  if (type.data_type == kE8M0) {
    Value f = op.bits(op.with(Op::shl, wide, 23), DType::f32);
    f = op(Op::select, {op.with(Op::eq, wide, 0), op.like(f, 0x1p-127), f});
    return op.cast(op(Op::select, {op.with(Op::eq, wide, 255), op.like(f, NAN), f}), type.held);
  }
  Value f = op.bits(op.with(Op::shl, op.with(Op::and_, wide, sign - 1), 23 - type.mantissa), DType::f32);
  f = op.with(Op::mul, f, scale(type));
  f = op(Op::select, {op.with(Op::ge, wide, sign), op(Op::neg, {f}), f});
  if (is_fnuz(type)) f = op(Op::select, {op.with(Op::eq, wide, sign), op.like(f, NAN), f});
  return op.cast(f, type.held);
}

/// Magnitudes to powers of two. The exponent field of an f32 plus 0, 1, or the upper half of the mantissa.
Value power_of_two(const Ops& op, Value x, bool saturate, std::string_view mode) {
  x = op(Op::abs, {op.cast(x, DType::f32)});
  const double add = mode == "up" ? 0x7fffff : mode == "nearest" ? 0x400000 : 0;
  const Value raw = op.bits(x, DType::u32);
  Value exponent = op.with(Op::shr, op.with(Op::add, raw, add), 23);
  exponent = op(Op::select, {op.with(Op::le, raw, 0x00400000), op.like(raw, 0), exponent});  // 2^-127 and below
  if (saturate) exponent = op.with(Op::min, exponent, 254);
  Value y = op.bits(op.with(Op::shl, exponent, 23), DType::f32);
  y = op(Op::select, {op.with(Op::eq, exponent, 0), op.like(y, 0x1p-127), y});
  // Overflow without saturation, and NaN.
  const Value none = op(Op::or_, {op(Op::is_nan, {x}), op.with(Op::gt, exponent, 254)});
  return op(Op::select, {none, op.like(y, NAN), y});
}

}  // namespace

const NarrowType* narrow_type(int32_t data_type) {
  for (const NarrowType& type : kTypes)
    if (type.data_type == data_type) return &type;
  return nullptr;
}

uint64_t packed_bytes(const NarrowType& type, uint64_t elements) {
  const auto each = static_cast<uint64_t>(8 / type.bits);
  return elements / each + (elements % each != 0);
}

std::vector<std::byte> widened(const NarrowType& type, std::span<const std::byte> packed, uint64_t elements) {
  const auto each = static_cast<uint64_t>(8 / type.bits);
  const size_t size = bytes(type.held);
  std::vector<std::byte> codes(256 * size), out(elements * size);  // every code's number, once
  for (uint32_t code = 0; code < 1u << type.bits; ++code) {
    const Tensor one = *scalar_tensor(type.held, number(type, code));
    std::copy(one.data.begin(), one.data.end(), codes.begin() + static_cast<std::ptrdiff_t>(code * size));
  }
  for (uint64_t i = 0; i < elements; ++i) {
    const auto shift = static_cast<uint32_t>(i % each) * static_cast<uint32_t>(type.bits);
    const uint32_t code = (static_cast<uint32_t>(packed[i / each]) >> shift) & ((1u << type.bits) - 1);
    std::copy_n(codes.begin() + static_cast<std::ptrdiff_t>(code * size), size, out.begin() + static_cast<std::ptrdiff_t>(i * size));
  }
  return out;
}

Value unpacked(GraphBuilder& b, const NarrowType& type, Value packed, const Shape& shape) {
  const Ops op{b};
  const int64_t each = 8 / type.bits;
  if (each > 1) {
    // [bytes] → [bytes, each], each column shifted to its element.
    const Dim bytes = b.type(packed).shape[0], all = elements(shape);
    packed = op(Op::broadcast, {op(Op::reshape, {packed}, {.shape = {bytes, 1}})}, {.shape = {bytes, each}});
    const Value place = op(Op::iota, {}, {.shape = {1, each}, .axis = 1, .to = DType::u8});
    packed = op(Op::shr, {packed, op.with(Op::mul, place, type.bits)});
    packed = op.with(Op::and_, packed, (1 << type.bits) - 1);
    packed = op(Op::reshape, {packed}, {.shape = {bytes * each}});
    if (b.type(packed).shape[0] != all) packed = op(Op::slice, {packed}, {.start = {0}, .stop = {all}, .step = {1}});
  }
  return op(Op::reshape, {decoded(op, type, packed)}, {.shape = shape});
}

Value narrowed(GraphBuilder& b, const NarrowType& type, Value x, bool saturate, std::string_view round_mode) {
  if (!x.valid()) return x;
  const Ops op{b};
  if (type.is_integer()) {
    Value i = op.cast(x, DType::i32);
    if (type.lowest == 0) return op.cast(op.with(Op::and_, i, type.top), type.held);
    return op.cast(op.with(Op::shr, op.with(Op::shl, i, 32 - type.bits), 32 - type.bits), type.held);
  }
  if (type.data_type == kE8M0) return op.cast(power_of_two(op, x, saturate, round_mode), type.held);
  // To multiples of the last mantissa bit: the power of two at or below x, at least the smallest normal, over 2^mantissa.
  const bool wide = b.type(x).dtype == DType::f64;
  x = op.cast(x, wide ? DType::f64 : DType::f32);
  const Value exponent = op.with(Op::shr, op.bits(op(Op::abs, {x}), wide ? DType::u64 : DType::u32), wide ? 52 : 23);
  const Value power = op.bits(op.with(Op::shl, exponent, wide ? 52 : 23), wide ? DType::f64 : DType::f32);
  const Value step = op.with(Op::mul, op.with(Op::max, power, std::ldexp(1.0, static_cast<int>(type.lowest))), std::ldexp(1.0, -type.mantissa));
  Value y = op(Op::mul, {op(Op::round_even, {op(Op::div, {x, step})}), step});
  if (saturate || type.data_type == kE2M1) {
    // An infinity divided by its step, also infinite, is NaN: clamp x too.
    y = op(Op::select, {op.with(Op::gt, op(Op::abs, {x}), type.top), op(Op::copysign, {op.like(x, type.top), x}), y});
  } else {
    const Value fits = op.with(Op::le, op(Op::abs, {y}), type.top);
    y = op(Op::select, {fits, y, op.like(y, NAN)});
  }
  if (is_fnuz(type)) y = op.with(Op::add, y, 0.0);  // no -0.0
  if (type.data_type == kE2M1) y = op(Op::select, {op(Op::is_nan, {x}), op.like(y, -0.0), y});
  return op.cast(y, type.held);
}

}  // namespace fusec::onnx
