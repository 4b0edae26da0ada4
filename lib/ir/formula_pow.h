#pragma once
// x^y: 2^(y log2 |x|), the sign from an odd y. f32 does it in doubles; f64 carries the logarithm as a sum of two
// doubles, since y log2 |x| reaches 1074 and its absolute error becomes a relative one. Integers multiply and square,
// wrapping. Exponents 1 and 2 round correctly. Special cases as C's pow (ISO C, annex F.10.4.4).

#include "lib/ir/formula_log.h"

namespace fusec::formulas {

/// 2^(y log2 |x|) in f64 for f32 operands: an error of 2^-33, then one rounding.
template <class F>
F power_magnitude_f32(F a, F y, decltype(F(0) < F(0)) is_one) {
  using D = typename F::template Of<double>;
  using K = Format<double>;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const D d = cast<double>(a);
  const Exponent<D> e = exponent(d);
  const D f = from_bits<D>(bits(d) - e.shifted) - 1;
  D log = fma(f, horner(f, Terms<double>::short_log2), e.biased - K::round);
  log = select(d == 0, D(-infinity), select(d < infinity, log, d));
  const D t = at_most(at_least(select(is_one, D(0), cast<double>(y) * log), D(-300)), D(300));
  const D sum = t + (K::round + K::bias);
  const D r = t - (sum - (K::round + K::bias));
  return cast<float>(horner(r, Terms<double>::short_exp2) * from_bits<D>(bits(sum) << K::mantissa));
}

/// A value hi + lo, |lo| below an ulp of hi.
template <class F>
struct Pair {
  F hi, lo;
};
template <class F>
Pair<F> add(F large, F small) {
  const F sum = large + small;
  return {sum, large - sum + small};
}
template <class F>
Pair<F> multiply(Pair<F> x, Pair<F> y) {
  const F high = x.hi * y.hi;
  return {high, fma(x.hi, y.hi, -high) + fma(x.hi, y.lo, x.lo * y.hi)};
}

/// log2 a by atanh: log(1 + f) = 2 atanh s, s = f / (2 + f); about 2^-65 relative.
template <class F>
Pair<F> log2_pair(F a) {
  const auto [e, f] = split(a);
  const Pair<F> d = add(F(2), f);
  const F inverse = 1 / d.hi;
  const F q = f * inverse;
  const Pair<F> s{q, inverse * fma(-q, d.lo, fma(-q, d.hi, f))};
  const Pair<F> z = multiply(s, s);
  const Pair<F> third = add(F(0x1.5555555555555p-2), z.hi * horner(z.hi, TermsOf<F>::atanh));
  const Pair<F> tail = multiply(s, multiply(z, Pair<F>{third.hi, third.lo + 0x1.5555555555555p-56}));
  const Pair<F> sum = add(s.hi, tail.hi);
  const Pair<F> two_over_ln2{0x1.71547652b82fep1, 0x1.777d0ffda0d24p-55};
  const Pair<F> log = multiply(Pair<F>{sum.hi, sum.lo + (tail.lo + s.lo)}, two_over_ln2);
  const Pair<F> total = add(e, log.hi);
  return {total.hi, total.lo + log.lo};
}

template <class F>
F power_magnitude_f64(F a, F y, decltype(F(0) < F(0)) is_one) {
  using K = FormatOf<F>;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Pair<F> log = log2_pair(a);
  const F high = select(a == 0, F(-infinity), select(a < infinity, log.hi, a));
  const F product = y * high;
  const F low = select(abs(product) < 1100, fma(y, log.lo, fma(y, high, -product)), F(0));
  const F t = at_most(at_least(select(is_one, F(0), product), F(-1140)), F(1065));
  const F sum = fma(t, 0.5, K::round + K::bias);
  const F r = fma(sum - (K::round + K::bias), -2, t) + low;
  const F s = from_bits<F>(bits(sum) << K::mantissa);
  return fma(horner(r, TermsOf<F>::exp2), r, 1) * s * s;
}

template <class F>
F pow_float(F x, F y) {
  using L = std::numeric_limits<Scalar<F>>;
  const F a = abs(x);
  const auto is_one = (a == 1) | (y == 0);
  F magnitude = a;
  if constexpr (sizeof(Scalar<F>) == 4) magnitude = power_magnitude_f32(a, y, is_one);
  else magnitude = power_magnitude_f64(a, y, is_one);
  // Correctly rounded where it is cheap, so that pow(x, 2) may become x * x (lib/passes/identities.cpp).
  magnitude = select(y == 1, a, select(y == 2, a * a, magnitude));
  const F half = y * 0.5;
  const auto fractional = trunc(y) != y;
  const auto odd = trunc(half) != half;  // for an integral y
  const F value = select((bits(x) < 0) & odd & (trunc(y) == y), -magnitude, magnitude);
  return select((x < 0) & (a < L::infinity()) & fractional, F(L::quiet_NaN()), value);
}

/// Bit by bit of y. A negative y leaves 1 / x^|y| rounded to 0.
template <class F>
F pow_integer(F x, F y) {
  using T = Scalar<F>;
  F power = 1, square = x;
  constexpr int width = 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0);
  for (int k = 0; k < width; ++k) {
    power = power * select((y & static_cast<T>(T(1) << k)) != 0, square, F(1));
    if (k + 1 < width) square = square * square;
  }
  if constexpr (std::is_signed_v<T>) {
    const F inverse = select(x == 1, F(1), select(x == -1, 1 - ((y & 1) << 1), F(0)));
    power = select(y < 0, inverse, power);
  }
  return power;
}

template <class F>
F pow(F x, F y) {
  if constexpr (std::is_floating_point_v<Scalar<F>>) return pow_float(x, y);
  else return pow_integer(x, y);
}

}  // namespace fusec::formulas
