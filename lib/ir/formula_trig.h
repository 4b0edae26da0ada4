#pragma once
// Circular functions and their inverses.
//
// f32 reduces its argument as Payne and Hanek do, for every x alike: |x| = M 2^E times the right 96 bits of 1/(2π), in
// 64-bit arithmetic that wraps, so whole turns fall away by themselves. What is left is the angle as a fraction of a
// turn: two bits of quadrant, the rest a signed number. f64 subtracts multiples of π/2 in three parts (Cody and Waite),
// exact enough up to 2^45; a larger x counts as 0: sin gives 0 and cos 1. Sources: Payne and Hanek, "Radian reduction
// for trigonometric functions" (SIGNUM 1983); Cody and Waite (1980).

#include "lib/ir/formula_exp.h"

namespace fusec::formulas {

/// |x| = quadrant π/2 + r + tail with |r| ≤ π/4, or |x| < 1 as it is. Only the two low bits of the quadrant count.
template <class F>
struct Angle {
  F r, tail;
  Bits<F> quadrant;
};

template <class F>
Angle<F> reduce_turns(F a) {
  using I32 = typename F::template Of<int32_t>;
  using U64 = typename F::template Of<uint64_t>;
  using I64 = typename F::template Of<int64_t>;
  // 1/(2π) behind 23 zero bits: a = M 2^(e - 23) with 1 ≤ M 2^-23 < 2 reads 96 bits from bit e on.
  constexpr uint64_t w0 = 0x517cc1b727, w1 = 0x220a94fe13abe8fa;
  constexpr uint64_t w2 = 0x9a6ee06db14acc9e, w3 = 0x21c820ff28b1d5ef;
  const I32 u = bits(a);
  const U64 mantissa = cast<uint64_t>((u & 0x7fffff) | 0x800000);
  const U64 shift = cast<uint64_t>(((u >> 23) + 1) & 63);
  const U64 rest = 64 - shift;
  const auto far = a >= Scalar<F>(0x1p64);
  const U64 x = select(far, U64(w1), U64(w0)), y = select(far, U64(w2), U64(w1)), z = select(far, U64(w3), U64(w2));
  const U64 high = (x << shift) | (y >> rest);
  const U64 low = ((y << shift) | (z >> rest)) >> 32;
  const U64 turns = mantissa * high + ((mantissa * low) >> 32);  // of 2^64
  // The signed fraction of a quarter turn, times 2^63: its upper bits, to nearest, convert exactly; a small rest is
  // left. (Cut instead of rounded, a small negative fraction would be the difference of two large numbers.)
  const I64 fraction = bitcast<int64_t>(turns << 2) >> 1;
  const I64 upper = (fraction + (int64_t{1} << 39)) & (int64_t{-1} << 40);
  const F most = cast<float>(upper), least = cast<float>(fraction - upper);
  const F r = fma(most, 0x1.921fb6p-63f, fma(most, -0x1.777a5cp-88f, least * 0x1.921fb6p-63f));
  const auto small = a < 1;
  return {select(small, a, r), F(0), select(small, I32(0), cast<int32_t>((turns + (uint64_t{1} << 61)) >> 62))};
}

template <class F>
Angle<F> reduce_quarters(F a) {
  constexpr double p1 = 0x1.921fb54442d18p0, p2 = 0x1.1a62633145c07p-54, p3 = -0x1.f1976b7ed8fbcp-110;  // π/2
  a = select(a <= 0x1p45, a, 0.0);
  const F sum = fma(a, 0x1.45f306dc9c883p-1, FormatOf<F>::round);
  const F n = sum - FormatOf<F>::round;
  const F first = fma(n, -p1, a);  // exact
  const F second = n * p2;
  const F r = first - second;
  const F lost = (first - r) - second - fma(n, p2, -second);
  const F tail = fma(n, -p3, lost);
  const F sum2 = r + tail;
  return {sum2, (r - sum2) + tail, bits(sum)};
}

template <class F>
Angle<F> reduce(F a) {
  if constexpr (sizeof(Scalar<F>) == 4) return reduce_turns(a);
  else return reduce_quarters(a);
}

/// sin r and cos r of a reduced angle.
template <class F>
F sine(const Angle<F>& w, F z) {
  const F cubic = w.r * z * horner(z, TermsOf<F>::sin);
  if constexpr (sizeof(Scalar<F>) == 4) return w.r + cubic;
  else return w.r + (cubic + w.tail);
}
template <class F>
F cosine(const Angle<F>& w, F z) {
  if constexpr (sizeof(Scalar<F>) == 4) return fma(z, fma(z, horner(z, TermsOf<F>::cos), -0.5), 1);
  // 1 - z/2 rounds, and gets back what it lost.
  const F half = z * 0.5, first = 1 - half;
  const F lost = (1 - first) - half;
  return first + fma(z * z, horner(z, TermsOf<F>::cos), fma(-w.r, w.tail, lost));
}

/// Flips the sign of y where the top bit of `sign` is set.
template <class F>
F flip(F y, Bits<F> sign) { return from_bits<F>(bits(y) ^ (sign & std::numeric_limits<Scalar<Bits<F>>>::min())); }

/// Bit 1 of a quadrant as a sign.
template <class F>
Bits<F> lower_half(Bits<F> quadrant) { return quadrant << static_cast<Scalar<Bits<F>>>(8 * sizeof(Scalar<F>) - 2); }

/// NaN for infinities and NaN.
template <class F>
F unless_infinite(F x, F y) { return select(abs(x) < std::numeric_limits<Scalar<F>>::infinity(), y, x - x); }

template <class F>
F sin(F x) {
  const Angle<F> w = reduce(abs(x));
  const F z = w.r * w.r;
  const F y = select((w.quadrant & 1) == 0, sine(w, z), cosine(w, z));
  return unless_infinite(x, flip(y, lower_half<F>(w.quadrant) ^ bits(x)));
}

template <class F>
F cos(F x) {
  const Angle<F> w = reduce(abs(x));
  const F z = w.r * w.r;
  const F y = select((w.quadrant & 1) == 0, cosine(w, z), sine(w, z));
  return unless_infinite(x, flip(y, lower_half<F>(w.quadrant + 1)));
}

template <class F>
F tan(F x) {
  const Angle<F> w = reduce(abs(x));
  const F z = w.r * w.r;
  const F s = sine(w, z), c = cosine(w, z);
  const auto even = (w.quadrant & 1) == 0;
  const F y = select(even, s, c) / select(even, c, -s);
  return unless_infinite(x, flip(y, bits(x)));
}

// --- inverses
// ----------------------------------------------------------------------------------------------------------

/// π/2 in two parts
template <class T>
inline constexpr T kQuarterTurn[2] = {T(0x1.921fb54442d18p0), T(0x1.1a62633145c07p-54)};
template <>
inline constexpr float kQuarterTurn<float>[2] = {0x1.921fb6p0f, -0x1.777a5cp-25f};

/// asin of |x| in pieces: up to 1/2 itself, else asin a = π/2 - 2 asin(√((1 - a) / 2)); NaN beyond 1.
template <class F>
struct ArcSine {
  decltype(F(0) < F(0)) far;
  F value;
};
template <class F>
ArcSine<F> arc_sine(F a) {
  const auto far = a > 0.5;
  const F half = fma(a, -0.5, 0.5);
  const F z = select(far, half, a * a);
  const F s = select(far, sqrt(half), a);
  return {far, fma(s * z, horner(z, TermsOf<F>::asin), s)};
}

template <class F>
F asin(F x) {
  constexpr const auto& quarter = kQuarterTurn<Scalar<F>>;
  const auto [far, s] = arc_sine(abs(x));
  return copysign(select(far, fma(s, -2, quarter[0]) + quarter[1], s), x);
}

template <class F>
F acos(F x) {
  constexpr const auto& quarter = kQuarterTurn<Scalar<F>>;
  const auto [far, s] = arc_sine(abs(x));
  const auto left = x < 0;
  const F from_end = select(left, fma(s, -2, 2 * quarter[0]) + 2 * quarter[1], s * 2);
  return select(far, from_end, quarter[0] - (copysign(s, x) - quarter[1]));
}

/// atan w for 0 ≤ w ≤ 1
template <class F>
F atan_unit(F w) {
  const F z = w * w;
  return fma(w * z, horner(z, TermsOf<F>::atan), w);
}

template <class F>
F atan(F x) {
  constexpr const auto& quarter = kQuarterTurn<Scalar<F>>;
  const F a = abs(x);
  const auto far = a > 1;
  const F p = atan_unit(select(far, 1 / a, a));
  return copysign(select(far, quarter[0] - (p - quarter[1]), p), x);
}

/// Angle of the point (y, x), as C's atan2(x = first, y = second).
template <class F>
F atan2(F first, F second) {
  constexpr const auto& quarter = kQuarterTurn<Scalar<F>>;
  const F y = abs(first), x = abs(second);
  const auto steep = y > x;
  const F low = select(steep, x, y), high = select(steep, y, x);
  const F w = select(low == high, select(high == 0, F(0), F(1)), low / high);  // 0/0 and inf/inf
  const F p = atan_unit(w);
  const F octant = select(steep, quarter[0] - (p - quarter[1]), p);
  const F half = select(bits(second) < 0, 2 * quarter[0] - (octant - 2 * quarter[1]), octant);
  return copysign(half, first);
}

}  // namespace fusec::formulas
