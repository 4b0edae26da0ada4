#pragma once
// e^x and what is made of it: exp, exp2, expm1, sinh, cosh, tanh, sigmoid.
//
// The argument is split as x = n ln 2 + r; adding a large constant rounds to n, and leaves n (plus the exponent's bias) in
// the low bits of that sum, so that a shift alone makes 2^n. Where results can overflow or be denormal, n is even:
// e^x = p(r) s s with s = 2^(n/2), so s is always a normal number and only the last product rounds or overflows.

#include "lib/ir/formula_algebra.h"
#include "lib/ir/formula_terms.h"

namespace fusec::formulas {

template <class T>
struct Format;

template <>
struct Format<float> {
  static constexpr int mantissa = 23;
  static constexpr float bias = 127, round = 0x1.8p23f;  // x + round - round is x to the nearest integer
  static constexpr float log2e = 0x1.715476p0f, ln2 = 0x1.62e430p-1f, ln2_tail = -0x1.05c610p-29f;
  static constexpr float exp_low = -110, exp_high = 89.5f;  // beyond: 0 and inf, also when multiplied by x
  static constexpr float tiny_exponent = 64, tiny = 0x1p-64f;
  static constexpr float expm1_low = -20, expm1_high = 88.73f, sinh_high = 89.5f, linear = 0x1p-26f, quadratic = 0x1p23f,
                          tanh_high = 10, erf_high = 3.95f;
  static constexpr float mills_high = 14.5f, mills_center = 2.5f, erfc_high = 10.25f, erfc_center = 1.75f;
  static constexpr float ln2_short = 0x1.62ep-1f, ln2_short_tail = 0x1.0bfbe8p-15f;
  static constexpr float log2e_tail = 0x1.4ae0cp-26f;
  static constexpr float log10e = 0x1.bcb7b2p-2f, log10e_tail = -0x1.5b235ep-27f;
  static constexpr float log10_2 = 0x1.344136p-2f, log10_2_tail = -0x1.ec10cp-27f;
  static constexpr float min_normal = 0x1p-126f, denormal_scale = 0x1p23f, denormal_shift = 23, two_thirds = 0x1.555556p-1f;
  static constexpr float gelu_tanh_high = 11, linear_short = 0x1.98p+0f, linear_tail = 0x1.08a67ap-9f, cubic = 0x1.2444f2p-4f, cubic_tail = 0x1.49b16ap-29f;
  static constexpr int cube_bits = 16;
};

template <>
struct Format<double> {
  static constexpr int mantissa = 52;
  static constexpr double bias = 1023, round = 0x1.8p52;
  static constexpr double log2e = 0x1.71547652b82fep0, ln2 = 0x1.62e42fefa39efp-1, ln2_tail = 0x1.abc9e3b39803fp-56;
  static constexpr double exp_low = -760, exp_high = 710;
  static constexpr double tiny_exponent = 256, tiny = 0x1p-256;
  static constexpr double expm1_low = -40, expm1_high = 709.79, sinh_high = 710.5, linear = 0x1p-55, quadratic = 0x1p50,
                           tanh_high = 20, erf_high = 5.95;
  static constexpr double mills_high = 39, mills_center = 4, erfc_high = 27.5, erfc_center = 3;
  static constexpr double ln2_short = 0x1.62e42fef8p-1, ln2_short_tail = 0x1.1cf79abc9e3b4p-36;
  static constexpr double log2e_tail = 0x1.777d0ffda0d24p-56;
  static constexpr double log10e = 0x1.bcb7b1526e50ep-2, log10e_tail = 0x1.95355baaafad3p-57;
  static constexpr double log10_2 = 0x1.34413509f79ffp-2, log10_2_tail = -0x1.9dc1da994fd21p-59;
  static constexpr double min_normal = 0x1p-1022, denormal_scale = 0x1p52, denormal_shift = 52, two_thirds = 0x1.5555555555555p-1;
  static constexpr double gelu_tanh_high = 22, linear_short = 0x1.9884p+0, linear_tail = 0x1.4cf50d942343fp-18, cubic = 0x1.2444f2a4d8b4bp-4, cubic_tail = -0x1.6c843a29d1c7p-61;
  static constexpr int cube_bits = 36;
};

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

/// e^x as (1 + q) s times the constant `tiny`, for exp_low ≤ x ≤ 0: 2^n leaves the normal numbers on one side only, so n is
/// shifted into them, and a denormal result is rounded once, by the product with `tiny`.
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

/// e^(-c a²) for 0 ≤ a ≤ mills_high, c = 1/2 or 1. The product n ln 2 is exact, so the square enters r unrounded: no rounding of
/// a² is blown up by the exponential.
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

/// x times the sigmoid of u, given t = e^-|u|; x and u have one sign. x / (1 + t), or x t / (1 + t) with the last factor last.
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
