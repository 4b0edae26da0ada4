#include "lib/ir/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace fusec {
namespace {

/// A binary format narrower than f32: sign, exponent, mantissa.
struct Format {
  int exponent_bits, mantissa_bits;
  bool infinity;  // false: the top exponent holds numbers too, only all ones is NaN (FN)

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t magnitude_mask() const { return (1u << (exponent_bits + mantissa_bits)) - 1; }
  /// Bits of infinity, or of the only NaN in an FN format: what overflow gives.
  constexpr uint32_t overflow() const {
    return infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : magnitude_mask();
  }
  constexpr uint32_t quiet_nan() const { return infinity ? overflow() | 1u << (mantissa_bits - 1) : magnitude_mask(); }
};

constexpr Format kF16{5, 10, true}, kBf16{8, 7, true}, kE4m3{4, 3, false}, kE5m2{5, 2, true};

/// Rounds to nearest even in one step.
template <Format F>
uint32_t encode(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint32_t>(bits >> 63) << (F.exponent_bits + F.mantissa_bits);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > uint64_t{0x7ff} << 52) {
    // The payload's leading bits stay, as hardware conversions keep them; quiet, so that it cannot become an infinity.
    const auto payload = static_cast<uint32_t>(bits >> (52 - F.mantissa_bits)) & ((1u << F.mantissa_bits) - 1);
    return sign | F.quiet_nan() | (F.infinity ? payload : 0);
  }
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > F.bias() + 1) return sign | F.overflow();
  constexpr int kSmallest = 1 - F.bias();  // exponent of the least normal number, and of all subnormal ones
  if (exponent < kSmallest - F.mantissa_bits - 1) return sign;
  // significand * 2^-shift is the value in units of the result's last place.
  uint64_t significand = (magnitude & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
  const int below = exponent < kSmallest ? kSmallest - exponent : 0;
  const int shift = 52 - F.mantissa_bits + below;
  const uint64_t half = uint64_t{1} << (shift - 1), rest = significand & ((half << 1) - 1);
  uint64_t units = significand >> shift;
  units += rest > half || (rest == half && (units & 1));
  // A carry out of the mantissa moves into the exponent by itself; a subnormal result has exponent field 0.
  const uint64_t field = below ? 0 : static_cast<uint64_t>(exponent - kSmallest);
  const uint64_t result = (field << F.mantissa_bits) + units;
  return sign | static_cast<uint32_t>(result > F.overflow() ? F.overflow() : result);
}

template <Format F>
float decode(uint32_t bits) {
  const uint32_t sign = bits >> (F.exponent_bits + F.mantissa_bits) << 31;
  const uint32_t magnitude = bits & F.magnitude_mask(), exponent = magnitude >> F.mantissa_bits;
  const uint32_t mantissa = magnitude & ((1u << F.mantissa_bits) - 1);
  constexpr uint32_t kTop = (1u << F.exponent_bits) - 1;
  if (F.infinity ? exponent == kTop : magnitude == F.magnitude_mask())
    return std::bit_cast<float>(sign | 0x7f800000u | (F.infinity ? mantissa << (23 - F.mantissa_bits) : 0x400000u));
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), 1 - F.bias() - F.mantissa_bits);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | (exponent - F.bias() + 127) << 23 | mantissa << (23 - F.mantissa_bits));
}

template <class T>
T load(const std::byte* from, size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, size_t i, T value) {
  std::memcpy(to + i * sizeof(T), &value, sizeof(T));
}

/// Wide integers keep a sticky bit below the double's last place, so that the rounding that follows is the only one.
template <class I>
double wide(I x) {
  if constexpr (sizeof(I) == 8) {
    constexpr I kLow = 0x7ff;
    const bool negative = x < 0;
    auto m = static_cast<uint64_t>(x);
    if (negative) m = 0 - m;
    if (m >> 53) m = (m & ~uint64_t{kLow}) | ((m & kLow) ? uint64_t{kLow} + 1 : 0);
    return negative ? -static_cast<double>(m) : static_cast<double>(m);
  } else {
    return static_cast<double>(x);
  }
}

template <class I, class F>
I saturate(F x) {
  if (std::isnan(x)) return 0;
  // The bounds as F: the lower one is exact, the upper one rounds up to a power of two, which is already too large.
  if (x <= static_cast<F>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  if (x >= static_cast<F>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
  return static_cast<I>(x);
}

/// One element type as C++ sees it: how it is read, and how a value of any other type is written.
template <DType D> struct Cell;
template <class T> struct IntegerCell {
  using Type = T;
  static T read(const std::byte* p, size_t i) { return load<T>(p, i); }
  template <class V> static void write(std::byte* p, size_t i, V value) {
    if constexpr (std::is_floating_point_v<V>)
      store<T>(p, i, saturate<T>(value));
    else
      store<T>(p, i, static_cast<T>(value));
  }
};
template <> struct Cell<DType::i8> : IntegerCell<int8_t> {};
template <> struct Cell<DType::i16> : IntegerCell<int16_t> {};
template <> struct Cell<DType::i32> : IntegerCell<int32_t> {};
template <> struct Cell<DType::i64> : IntegerCell<int64_t> {};
template <> struct Cell<DType::u8> : IntegerCell<uint8_t> {};
template <> struct Cell<DType::u16> : IntegerCell<uint16_t> {};
template <> struct Cell<DType::u32> : IntegerCell<uint32_t> {};
template <> struct Cell<DType::u64> : IntegerCell<uint64_t> {};
template <> struct Cell<DType::boolean> {
  static bool read(const std::byte* p, size_t i) { return p[i] != std::byte{0}; }
  template <class V> static void write(std::byte* p, size_t i, V value) { p[i] = std::byte{value != V(0)}; }
};
template <> struct Cell<DType::f32> {
  static float read(const std::byte* p, size_t i) { return load<float>(p, i); }
  template <class V> static void write(std::byte* p, size_t i, V value) { store<float>(p, i, static_cast<float>(value)); }
};
template <> struct Cell<DType::f64> {
  static double read(const std::byte* p, size_t i) { return load<double>(p, i); }
  template <class V> static void write(std::byte* p, size_t i, V value) { store<double>(p, i, static_cast<double>(value)); }
};
template <class Bits, Format F> struct NarrowCell {
  static float read(const std::byte* p, size_t i) { return decode<F>(load<Bits>(p, i)); }
  template <class V> static void write(std::byte* p, size_t i, V value) {
    double x;
    if constexpr (std::is_integral_v<V> && !std::is_same_v<V, bool>)
      x = wide(value);
    else
      x = static_cast<double>(value);
    store<Bits>(p, i, static_cast<Bits>(encode<F>(x)));
  }
};
template <> struct Cell<DType::f16> : NarrowCell<uint16_t, kF16> {};
template <> struct Cell<DType::bf16> : NarrowCell<uint16_t, kBf16> {};
template <> struct Cell<DType::f8e4m3> : NarrowCell<uint8_t, kE4m3> {};
template <> struct Cell<DType::f8e5m2> : NarrowCell<uint8_t, kE5m2> {};

/// Calls f with std::integral_constant<DType, type>.
template <class F>
void with(DType type, F f) {
  switch (type) {
#define CASE(d) \
  case DType::d: return f(std::integral_constant<DType, DType::d>());
    CASE(boolean) CASE(i8) CASE(i16) CASE(i32) CASE(i64) CASE(u8) CASE(u16) CASE(u32) CASE(u64)
    CASE(f16) CASE(bf16) CASE(f32) CASE(f64) CASE(f8e4m3) CASE(f8e5m2)
#undef CASE
  }
}

template <class F>
void narrow_from(DType storage, const F* from, std::byte* to, size_t n) {
  with(storage, [&](auto d) {
    for (size_t i = 0; i < n; ++i) Cell<d()>::write(to, i, from[i]);
  });
}

}  // namespace

float f16_to_f32(uint16_t bits) { return decode<kF16>(bits); }
float bf16_to_f32(uint16_t bits) { return decode<kBf16>(bits); }
float f8e4m3_to_f32(uint8_t bits) { return decode<kE4m3>(bits); }
float f8e5m2_to_f32(uint8_t bits) { return decode<kE5m2>(bits); }
uint16_t f64_to_f16(double value) { return static_cast<uint16_t>(encode<kF16>(value)); }
uint16_t f64_to_bf16(double value) { return static_cast<uint16_t>(encode<kBf16>(value)); }
uint8_t f64_to_f8e4m3(double value) { return static_cast<uint8_t>(encode<kE4m3>(value)); }
uint8_t f64_to_f8e5m2(double value) { return static_cast<uint8_t>(encode<kE5m2>(value)); }

void widen(DType storage, const std::byte* from, float* to, size_t n) {
  with(storage, [&](auto d) {
    for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(Cell<d()>::read(from, i));
  });
}
void narrow(DType storage, const float* from, std::byte* to, size_t n) { narrow_from(storage, from, to, n); }
void narrow(DType storage, const double* from, std::byte* to, size_t n) { narrow_from(storage, from, to, n); }

void convert(DType from_type, const std::byte* from, DType to_type, std::byte* to, size_t n) {
  with(from_type, [&](auto a) {
    with(to_type, [&](auto b) {
      for (size_t i = 0; i < n; ++i) Cell<b()>::write(to, i, Cell<a()>::read(from, i));
    });
  });
}

std::optional<Tensor> scalar_tensor(DType type, double number) {
  Tensor t{type, {}, std::vector<std::byte>(bytes(type))};
  convert(DType::f64, reinterpret_cast<const std::byte*>(&number), type, t.data.data(), 1);
  if (!is_float(type)) {
    // 2^63 and 2^64 saturate to a neighbour that rounds back to them: compare below the bound, not only the way back.
    const double bound = type == DType::u64 ? 0x1p64 : type == DType::i64 ? 0x1p63 : 0x1p62;
    if (!(number < bound) || element(t, 0) != number) return std::nullopt;
  }
  return t;
}

double element(const Tensor& tensor, int64_t index) {
  double value = 0;
  const size_t size = bytes(tensor.dtype);
  convert(tensor.dtype, tensor.data.data() + static_cast<size_t>(index) * size, DType::f64,
          reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

}  // namespace fusec
