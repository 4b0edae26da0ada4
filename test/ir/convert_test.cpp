// Casts between all 15 x 15 pairs of types against an oracle that shares no code with them: values as long double (which holds
// every element of every type exactly), narrow floats by search among all their values.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lib/ir/convert.h"

namespace fusec {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "the oracle needs 64 bits of precision");
using Wide = long double;

template <class T>
Wide as(uint64_t bits) {
  T v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

struct NarrowFormat {
  DType type;
  int exponent, mantissa;
  bool infinity;
};
constexpr NarrowFormat kNarrow[] = {
    {DType::f16, 5, 10, true}, {DType::bf16, 8, 7, true}, {DType::f8e4m3, 4, 3, false}, {DType::f8e5m2, 5, 2, true}};

/// By the definition of a binary format, with ldexp.
Wide narrow_value(const NarrowFormat& f, uint32_t bits) {
  const uint32_t mask = (1u << f.mantissa) - 1, e = bits >> f.mantissa & ((1u << f.exponent) - 1), m = bits & mask;
  const Wide sign = bits >> (f.exponent + f.mantissa) ? -1 : 1;
  const int bias = (1 << (f.exponent - 1)) - 1;
  const bool top = e == (1u << f.exponent) - 1;
  if (top && (f.infinity || m == mask)) return f.infinity && m == 0 ? sign * INFINITY : std::numeric_limits<Wide>::quiet_NaN();
  return sign * (e ? std::ldexp(1 + std::ldexp(Wide(m), -f.mantissa), int(e) - bias) : std::ldexp(Wide(m), 1 - bias - f.mantissa));
}

Wide value(DType type, uint64_t bits) {
  switch (type) {
    case DType::boolean: return bits != 0;
    case DType::i8: return as<int8_t>(bits);
    case DType::i16: return as<int16_t>(bits);
    case DType::i32: return as<int32_t>(bits);
    case DType::i64: return as<int64_t>(bits);
    case DType::u8: return as<uint8_t>(bits);
    case DType::u16: return as<uint16_t>(bits);
    case DType::u32: return as<uint32_t>(bits);
    case DType::u64: return as<uint64_t>(bits);
    case DType::f32: return as<float>(bits);
    case DType::f64: return as<double>(bits);
    default:
      for (const NarrowFormat& f : kNarrow)
        if (f.type == type) return narrow_value(f, static_cast<uint32_t>(bits));
  }
  return 0;
}

Wide nearest(const NarrowFormat& f, Wide v) {
  if (std::isnan(v) || std::isinf(v)) return std::isinf(v) && !f.infinity ? std::numeric_limits<Wide>::quiet_NaN() : v;
  // All finite magnitudes, then what would come next: the first value that overflows.
  static std::vector<Wide> tables[4];
  std::vector<Wide>& all = tables[&f - kNarrow];
  if (all.empty()) {
    for (uint32_t bits = 0; std::isfinite(narrow_value(f, bits)) && bits < 1u << (f.exponent + f.mantissa); ++bits) all.push_back(narrow_value(f, bits));
    all.push_back(2 * all.back() - all[all.size() - 2]);
  }
  const Wide m = std::fabs(v);
  size_t i = static_cast<size_t>(std::upper_bound(all.begin(), all.end(), m) - all.begin());
  size_t best = all.size() - 1;
  if (i < all.size()) {
    const Wide low = m - all[i - 1], high = all[i] - m;
    best = low < high || (low == high && (i - 1) % 2 == 0) ? i - 1 : i;
  }
  const Wide r = best == all.size() - 1 ? (f.infinity ? Wide(INFINITY) : std::numeric_limits<Wide>::quiet_NaN()) : all[best];
  return std::copysign(r, v);
}

Wide expected(DType from, uint64_t bits, DType to) {
  const Wide v = value(from, bits);
  if (to == DType::boolean) return std::isnan(v) || v != 0;
  if (is_integer(to)) {
    const int width = 8 * static_cast<int>(bytes(to));
    const Wide low = is_signed(to) ? -std::ldexp(Wide(1), width - 1) : 0, high = std::ldexp(Wide(1), width - is_signed(to)) - 1;
    if (is_float(from)) return std::isnan(v) ? 0 : std::clamp(std::trunc(v), low, high) + Wide(0);
    const Wide modulus = std::ldexp(Wide(1), width);
    const Wide wrapped = std::fmod(v, modulus);
    return wrapped < low ? wrapped + modulus : wrapped > high ? wrapped - modulus : wrapped;
  }
  if (to == DType::f32) return static_cast<float>(v);
  if (to == DType::f64) return static_cast<double>(v);
  for (const NarrowFormat& f : kNarrow)
    if (f.type == to) return nearest(f, v);
  return 0;
}

TEST(Convert, AllPairsAgreeWithTheOracle) {
  for (int a = 0; a < kDTypes; ++a) {
    const auto from = static_cast<DType>(a);
    std::vector<uint64_t> inputs;
    const size_t width = 8 * bytes(from);
    if (width <= 16) {
      for (uint64_t bits = 0; bits < (from == DType::boolean ? 2u : uint64_t{1} << width); ++bits) inputs.push_back(bits);
    } else {
      const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
      uint64_t state = 99;
      for (int i = 0; i < 20000; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        // Uniform bits, sparse bits (near ties), and values around zero and the ends.
        const uint64_t x = state ^ state >> 29;
        inputs.push_back(x & mask);
        inputs.push_back(x & x << 13 & x << 27 & mask);
        inputs.push_back((i % 2 ? uint64_t(i) : 0 - uint64_t(i)) & mask);
        inputs.push_back(((uint64_t{1} << (x % 64)) + (x >> 60) - 8) & mask);
      }
      // Halves, ties and their neighbours of every narrower format.
      for (const NarrowFormat& f : kNarrow)
        for (uint32_t bits = 0; bits < 1u << (f.exponent + f.mantissa); bits += 7) {
          const Wide tie = (narrow_value(f, bits) + narrow_value(f, bits + 1)) / 2;
          for (int d = -1; d <= 1; ++d) {
            const double v = d ? std::nextafter(double(tie), d * INFINITY) : double(tie);
            const float s = d ? std::nextafter(float(tie), d * INFINITY) : float(tie);
            uint64_t x = 0;
            if (from == DType::f64) std::memcpy(&x, &v, 8);
            if (from == DType::f32) std::memcpy(&x, &s, 4);
            inputs.push_back(x);
          }
        }
    }
    for (int b = 0; b < kDTypes; ++b) {
      const auto to = static_cast<DType>(b);
      for (const uint64_t bits : inputs) {
        uint64_t got = 0;
        convert(from, reinterpret_cast<const std::byte*>(&bits), to, reinterpret_cast<std::byte*>(&got), 1);
        const Wide is = value(to, got), should = expected(from, bits, to);
        if (std::isnan(should) && std::isnan(is)) continue;
        ASSERT_TRUE(is == should && (!is_float(to) || std::signbit(is) == std::signbit(should)))
            << name(from) << " bits " << bits << " to " << name(to) << ": " << double(is) << ", not " << double(should);
      }
    }
  }
}

TEST(Convert, NaNStaysQuietNaNWithItsSign) {
  for (const NarrowFormat& f : kNarrow) {
    const float nans[] = {NAN, -NAN, std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)};
    for (float nan : nans) {
      uint32_t bits = 0;
      narrow(f.type, &nan, reinterpret_cast<std::byte*>(&bits), 1);
      EXPECT_TRUE(std::isnan(narrow_value(f, bits))) << name(f.type);
      EXPECT_EQ(bits >> (f.exponent + f.mantissa), std::bit_cast<uint32_t>(nan) >> 31);
      float wide;
      widen(f.type, reinterpret_cast<const std::byte*>(&bits), &wide, 1);
      EXPECT_TRUE(std::isnan(wide) && (std::bit_cast<uint32_t>(wide) & 0x400000)) << name(f.type);
    }
  }
}

TEST(Convert, ScalarsAreExactOrRefused) {
  EXPECT_EQ(element(*scalar_tensor(DType::i64, -0x1p63), 0), -0x1p63);
  EXPECT_FALSE(scalar_tensor(DType::i64, 0x1p63));
  EXPECT_FALSE(scalar_tensor(DType::u8, -1));
  EXPECT_FALSE(scalar_tensor(DType::i32, 0.5));
  EXPECT_FALSE(scalar_tensor(DType::i32, NAN));
  EXPECT_FALSE(scalar_tensor(DType::boolean, -1));
  EXPECT_EQ(element(*scalar_tensor(DType::f16, 0.1), 0), 0.0999755859375);
}

}  // namespace

// What narrow.cuh rests on: a product of two bf16 through f32 rounds as it does at once, also where f32 is subnormal. Every pair of
// significands, at every exponent at which a product is subnormal in bf16 or next to it; a double holds each product exactly.
TEST(Convert, ProductsOfBf16RoundOnceThroughF32) {
  for (int exponent = -160; exponent <= -110; ++exponent)
    for (int x = 128; x < 256; ++x)
      for (int y = x; y < 256; ++y) {
        const double exact = std::ldexp(double(x * y), exponent);
        ASSERT_EQ(f64_to_bf16(double(float(exact))), f64_to_bf16(exact)) << x << " * " << y << " * 2^" << exponent;
      }
}

// The same for sums and differences of f16 and bf16: both signs, every distance of exponents.
TEST(Convert, SumsOfNarrowTypesRoundOnceThroughF32) {
  for (int distance = 0; distance <= 40; ++distance)
    for (int x = 1024; x < 2048; x += 3)
      for (int y = 1024; y < 2048; y += 1)
        for (int sign : {-1, 1}) {
          const double f16 = x + sign * std::ldexp(y, -distance), bf16 = (x >> 3) + sign * std::ldexp(y >> 3, -distance);
          ASSERT_EQ(f64_to_f16(double(float(f16))), f64_to_f16(f16)) << x << " + " << sign * y << " * 2^-" << distance;
          ASSERT_EQ(f64_to_bf16(double(float(bf16))), f64_to_bf16(bf16)) << x << " + " << sign * y << " * 2^-" << distance;
        }
}

}  // namespace fusec
