#pragma once
// The reference cells: what every exact primitive means on one C++ scalar of compute type. Total: no trap, no undefined
// behaviour, no dependence on the rounding mode beyond the default one. Bool has and, or, xor, not, min, max and compares only.

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace fusec::scalar {

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept Float = std::floating_point<T>;
template <class T>
concept Number = Integer<T> || Float<T>;
template <class T>
concept Bits = std::integral<T>;

/// Integers wrap: arithmetic is done on unsigned 64 bits, where it is defined, and cut to the type (modular since C++20).
template <Integer T> T wrap(uint64_t x) { return static_cast<T>(x); }
template <Integer T> uint64_t wide(T x) { return static_cast<uint64_t>(x); }

template <Integer T> T add(T x, T y) { return wrap<T>(wide(x) + wide(y)); }
template <Integer T> T sub(T x, T y) { return wrap<T>(wide(x) - wide(y)); }
template <Integer T> T mul(T x, T y) { return wrap<T>(wide(x) * wide(y)); }
template <Integer T> T neg(T x) { return wrap<T>(0 - wide(x)); }
template <Float T> T add(T x, T y) { return x + y; }
template <Float T> T sub(T x, T y) { return x - y; }
template <Float T> T mul(T x, T y) { return x * y; }
template <Float T> T neg(T x) { return -x; }
template <Float T> T fma(T x, T y, T z) { return std::fma(x, y, z); }

template <Integer T> T abs(T x) { return x < 0 ? neg(x) : x; }
template <Float T> T abs(T x) { return std::fabs(x); }
template <Integer T> T sign(T x) { return static_cast<T>((x > 0) - (x < 0)); }
template <Float T> T sign(T x) { return x != x ? x : static_cast<T>((x > 0) - (x < 0)); }

template <Float T> T ceil(T x) { return std::ceil(x); }
template <Float T> T floor(T x) { return std::floor(x); }
template <Float T> T trunc(T x) { return std::trunc(x); }
template <Float T> T sqrt(T x) { return std::sqrt(x); }
template <Float T> T copysign(T x, T y) { return std::copysign(x, y); }
template <Float T> bool is_nan(T x) { return x != x; }
template <Float T> bool is_inf(T x) { return std::fabs(x) == std::numeric_limits<T>::infinity(); }
template <Float T> bool is_finite(T x) { return std::fabs(x) < std::numeric_limits<T>::infinity(); }

/// Nearest integer, ties to even: adding and taking away 1.5 * 2^(p-1)'s unit rounds at the point; large values are whole.
template <Float T> T round_even(T x) {
  constexpr T kWhole = std::is_same_v<T, float> ? T(0x1p23) : T(0x1p52);
  const T magnitude = std::fabs(x);
  if (!(magnitude < kWhole)) return x;
  return std::copysign((magnitude + kWhole) - kWhole, x);
}

/// x / 0 = 0 and MIN / -1 = MIN; x mod 0 = 0.
template <Integer T> T trunc_div(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return neg(x);
  return static_cast<T>(x / y);
}
template <Integer T> T trunc_mod(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return 0;
  return static_cast<T>(x % y);
}
template <Integer T> T floor_div(T x, T y) {
  const T q = trunc_div(x, y), r = trunc_mod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? sub(q, T(1)) : q;
}
template <Integer T> T floor_mod(T x, T y) {
  const T r = trunc_mod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? add(r, y) : r;
}
template <Integer T> T div(T x, T y) { return trunc_div(x, y); }

template <Float T> T div(T x, T y) { return x / y; }
template <Float T> T trunc_mod(T x, T y) { return std::fmod(x, y); }
/// x - fmod(x, y) is a multiple of y up to one rounding, so its quotient rounds to the integer that is meant; x / y itself can
/// round up to the next one: 1 / 0.1f is 10, the integer part of the true quotient is 9.
template <Float T> T trunc_div(T x, T y) {
  const T plain = x / y;
  if (!is_finite(plain) || plain == 0) return plain;
  return std::copysign(round_even((x - std::fmod(x, y)) / y), plain);
}
/// As Python's float floor division (floatobject.c): the remainder is exact, the quotient follows from it.
template <Float T> T floor_mod(T x, T y) {
  const T r = std::fmod(x, y);
  if (r == 0) return std::copysign(T(0), y);
  return (r < 0) != (y < 0) ? r + y : r;
}
template <Float T> T floor_div(T x, T y) {
  if (y == 0) return x / y;
  const T r = std::fmod(x, y);
  T q = (x - r) / y;
  if (r != 0 && (r < 0) != (y < 0)) q -= 1;
  if (q == 0) return std::copysign(T(0), x / y);
  const T down = std::floor(q);
  return q - down > T(0.5) ? down + 1 : down;
}

/// A NaN in either operand comes out.
template <Float T> T min(T x, T y) { return x != x ? x : y != y ? y : y < x ? y : x; }
template <Float T> T max(T x, T y) { return x != x ? x : y != y ? y : x < y ? y : x; }
template <Bits T> T min(T x, T y) { return y < x ? y : x; }
template <Bits T> T max(T x, T y) { return x < y ? y : x; }

inline bool logical_not(bool x) { return !x; }
inline bool bitwise_not(bool x) { return !x; }
template <Integer T> T bitwise_not(T x) { return static_cast<T>(~x); }
template <Bits T> T bit_and(T x, T y) { return static_cast<T>(x & y); }
template <Bits T> T bit_or(T x, T y) { return static_cast<T>(x | y); }
template <Bits T> T bit_xor(T x, T y) { return static_cast<T>(x ^ y); }

/// A count outside 0 … width-1, negative ones included, shifts everything out.
template <Integer T> T shl(T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr U kWidth = 8 * sizeof(T);
  return static_cast<U>(y) < kWidth ? wrap<T>(wide(x) << static_cast<U>(y)) : T(0);
}
template <Integer T> T shr(T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr U kWidth = 8 * sizeof(T);
  if (static_cast<U>(y) < kWidth) return static_cast<T>(x >> static_cast<U>(y));
  return x < 0 ? static_cast<T>(-1) : T(0);
}

}  // namespace fusec::scalar
