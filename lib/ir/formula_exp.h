#pragma once
// e^x and what is made of it: exp, exp2, expm1, sinh, cosh, tanh, sigmoid.
//
// The argument is split as x = n ln 2 + r; adding a large constant rounds to n, and leaves n (plus the exponent's bias)
// in the low bits of that sum, so that a shift alone makes 2^n. Where results can overflow or be denormal, n is even:
// e^x = p(r) s s with s = 2^(n/2), so s is always a normal number and only the last product rounds or overflows.

#include "lib/ir/formula_algebra.h"
#include "lib/ir/formula_format.h"
#include "lib/ir/formula_terms.h"

namespace fusec::formulas {

template <class F>
using FormatOf = Format<Scalar<F>>;
template <class F>
using TermsOf = Terms<Scalar<F>>;

/// A number p s s, where s is a power of two and p is near 1.
template <class F>
struct Scaled {
  F p, s;
};

/// e^x for exp_low ≤ x ≤ exp_high. A NaN gives a NaN p.
template <class F>
Scaled<F> exp_scaled(F x) {
  using K = FormatOf<F>;
  const F sum = fma(x, K::log2e / 2, K::round + K::bias);
  const F half = sum - (K::round + K::bias);
  F r = fma(half, -2 * K::ln2, x);
  r = fma(half, -2 * K::ln2_tail, r);
  const F q = horner(r, TermsOf<F>::exp);
  return {fma(fma(q, r, 1), r, 1), from_bits<F>(bits(sum) << K::mantissa)};
}

template <class F>
F exp(F x) {
  using K = FormatOf<F>;
  const Scaled<F> e = exp_scaled(at_most(at_least(x, F(K::exp_low)), F(K::exp_high)));
  return e.p * e.s * e.s;
}

template <class F>
F exp2(F x) {
  using K = FormatOf<F>;
  x = at_most(at_least(x, F(K::exp_low * 1.5f)), F(K::exp_high * 1.5f));
  const F sum = fma(x, 0.5, K::round + K::bias);
  const F r = fma(sum - (K::round + K::bias), -2, x);
  const F p = fma(horner(r, TermsOf<F>::exp2), r, 1);
  const F s = from_bits<F>(bits(sum) << K::mantissa);
  return p * s * s;
}

template <class F>
F expm1_reduced(F r) { return fma(r * r, horner(r, TermsOf<F>::expm1), r); }

/// e^x = s (1 + q) 2^-shift with s = 2^(n + shift), a normal number.
template <class F>
struct Expm1 {
  F q, s;
};
template <class F>
Expm1<F> expm1_parts(F x, int shift = 0) {
  using K = FormatOf<F>;
  const Scalar<F> offset = K::round + K::bias + shift;
  const F sum = fma(x, K::log2e, offset);
  const F n = sum - offset;
  const F r = fma(n, -K::ln2_tail, fma(n, -K::ln2, x));
  return {expm1_reduced(r), from_bits<F>(bits(sum) << K::mantissa)};
}

/// e^x - 1 for expm1_low ≤ x ≤ 80 (f32), 700 (f64), with relative accuracy near 0; -0 gives +0.
template <class F>
F expm1_small(F x) {
  const Expm1<F> e = expm1_parts(x);
  return fma(e.s, e.q, e.s - 1);
}

/// Half of it is computed, because 2^n may overflow where the result does not; near 0 that would cost denormals a bit.
template <class F>
F expm1(F x) {
  using K = FormatOf<F>;
  const Expm1<F> e = expm1_parts(at_most(at_least(x, F(K::expm1_low)), F(K::expm1_high)), -1);
  return select(abs(x) < K::linear, x, fma(e.s, e.q, e.s - 0.5) * 2);
}

/// (u + u / (u + 1)) / 2 with u = e^a - 1, of which a quarter is kept
template <class F>
F sinh(F x) {
  using K = FormatOf<F>;
  const F a = abs(x);
  const Expm1<F> e = expm1_parts(at_most(a, F(K::sinh_high)), -2);
  const F u = fma(e.s, e.q, e.s - 0.25);
  return select(a < K::linear, x, copysign((u + u / fma(u, 4, 1)) * 2, x));
}

/// (e^a + e^-a) / 2
template <class F>
F cosh(F x) {
  const Expm1<F> e = expm1_parts(at_most(abs(x), F(FormatOf<F>::sinh_high)), -2);
  const F quarter = fma(e.s, e.q, e.s);
  return fma(quarter, 2, 0.125 / quarter);
}

/// tanh a = -e / (e + 2) with e = e^-2a - 1. The sum e + 2 rounds: what the quotient misses by that is put back.
template <class F>
F tanh(F x) {
  const F a = at_most(abs(x), F(FormatOf<F>::tanh_high));
  const F e = expm1_small(a * -2);
  const F sum = e + 2;
  const F lost = 2 - sum + e;
  const F q = e / sum;
  return copysign(fma(lost * q, fma(q, 0.5, -0.5), q), x);  // 1 / (e + 2) is (1 - q) / 2
}

/// e^x as (1 + q) s times the constant `tiny`, for exp_low ≤ x ≤ 0: 2^n leaves the normal numbers on one side only, so
/// n is shifted into them, and a denormal result is rounded once, by the product with `tiny`.
template <class F>
struct Negative {
  F q, s;
  F times_tiny(F factor) const { return fma(factor, q, factor) * s; }  // factor e^x / tiny
};

/// e^-|x|
template <class F>
Negative<F> exp_of_negative(F x) {
  using K = FormatOf<F>;
  constexpr auto offset = K::round + K::bias + K::tiny_exponent;
  x = at_least(-abs(x), F(K::exp_low));
  const F sum = fma(x, K::log2e, offset);
  const F n = sum - offset;
  const F r = fma(n, -K::ln2_tail, fma(n, -K::ln2, x));
  return {expm1_reduced(r), from_bits<F>(bits(sum) << K::mantissa)};
}

/// e^(-c a²) for 0 ≤ a ≤ mills_high, c = 1/2 or 1. The product n ln 2 is exact, so the square enters r unrounded: no
/// rounding of a² is blown up by the exponential.
template <class F>
Negative<F> gauss(F a, Scalar<F> c) {
  using K = FormatOf<F>;
  constexpr auto offset = K::round + K::bias + K::tiny_exponent;
  const F sum = fma(a * (-c * K::log2e), a, offset);
  const F n = sum - offset;
  const F r = fma(n, -K::ln2_short_tail, fma(a * -c, a, n * -K::ln2_short));
  return {expm1_reduced(r), from_bits<F>(bits(sum) << K::mantissa)};
}

/// With t = e^-|x| and q = t / (1 + t): 1 - q, or t - t q, which is q with the error of the division scaled down.
template <class F>
F sigmoid(F x) {
  const Negative<F> e = exp_of_negative(x);
  const F t = fma(e.s, e.q, e.s) * FormatOf<F>::tiny;
  const F q = t / (t + 1);
  return select(x < 0, fma(-t, q, t), 1 - q);
}

/// x times the sigmoid of u, given t = e^-|u|; x and u have one sign. x / (1 + t), or x t / (1 + t) with the factor
/// `tiny` last.
template <class F>
F times_sigmoid(F x, Negative<F> e) {
  using K = FormatOf<F>;
  const F part = fma(e.s, e.q, e.s);
  const F t = part * K::tiny;
  const auto left = x < 0;
  const F v = x * select(left, part, F(1));
  const F q = v / (t + 1);
  return select(left, fma(-t, q, v) * K::tiny, q);
}

template <class F>
F silu(F x) {
  // -inf would be -inf * 0; one below exp_low gives the same -0.
  return times_sigmoid(at_least(x, F(FormatOf<F>::exp_low)), exp_of_negative(x));
}

}  // namespace fusec::formulas
