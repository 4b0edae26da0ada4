#pragma once
// Logarithms and what is made of them: log, log2, log10, log1p, softplus.
//
// x = 2^e (1 + f) with 2/3 ≤ 1 + f < 4/3, so that e = 0 around 1 and log(1 + f) = f + f² p(f) keeps its relative
// accuracy. The pivot 2/3 is subtracted from the bits of x: what is left above the mantissa is e, below it f.

#include "lib/ir/formula_exp.h"

namespace fusec::formulas {

/// e·2^mantissa as an integer, and e as a number plus Format::round.
template <class F>
struct Exponent {
  Bits<F> shifted;
  F biased;
};

/// The exponent of a normal positive u, counted from 2/3.
template <class F>
Exponent<F> exponent(F u) {
  using K = FormatOf<F>;
  using I = Scalar<Bits<F>>;
  const Bits<F> offset = bits(u) - std::bit_cast<I>(K::two_thirds);
  return {offset & (I(-1) << K::mantissa), from_bits<F>((offset >> I(K::mantissa)) + std::bit_cast<I>(K::round))};
}

/// x = 2^e (1 + f); x positive, denormals included.
template <class F>
struct Split {
  F e, f;
};
template <class F>
Split<F> split(F x) {
  using K = FormatOf<F>;
  const auto denormal = x < K::min_normal;
  const F scaled = select(denormal, x * K::denormal_scale, x);
  const Exponent<F> e = exponent(scaled);
  const F unscaled = select(denormal, F(K::round + K::denormal_shift), F(K::round));
  return {e.biased - unscaled, from_bits<F>(bits(scaled) - e.shifted) - 1};
}

/// y, or what a logarithm is where its argument u is not positive and finite. `x` is the op's operand.
template <class F>
F log_special(F u, F x, F y) {
  using L = std::numeric_limits<Scalar<F>>;
  y = select(u > 0, y, select(u == 0, F(-L::infinity()), F(L::quiet_NaN())));
  return select(x < L::infinity(), y, x);
}

/// e ln 2 + log(1 + f)
template <class F>
F log_of(F e, F f) {
  using K = FormatOf<F>;
  return fma(e, K::ln2, fma(f * f, horner(f, TermsOf<F>::log), fma(e, K::ln2_tail, f)));
}

template <class F>
F log(F x) {
  const Split<F> s = split(x);
  return log_special(x, x, log_of(s.e, s.f));
}

/// Base 2 and 10: log(1 + f) = f L + f² p(f) with L in two parts.
template <class F>
F log2(F x) {
  using K = FormatOf<F>;
  const auto [e, f] = split(x);
  const F y = fma(f, K::log2e, fma(f, K::log2e_tail, f * f * horner(f, TermsOf<F>::log2)));
  return log_special(x, x, e + y);
}

template <class F>
F log10(F x) {
  using K = FormatOf<F>;
  const auto [e, f] = split(x);
  const F y = fma(f, K::log10e, fma(f, K::log10e_tail, f * f * horner(f, TermsOf<F>::log10)));
  return log_special(x, x, fma(e, K::log10_2, fma(e, K::log10_2_tail, y)));
}

/// log(1 + x) for x > -1: the exponent comes from the rounded sum, f from one rounding of x 2^-e + (2^-e - 1).
template <class F>
F log1p_positive(F x) {
  using K = FormatOf<F>;
  using I = Scalar<Bits<F>>;
  const Exponent<F> e = exponent(x + 1);
  const F scale = from_bits<F>(std::bit_cast<I>(Scalar<F>(4)) - e.shifted) * 0.25;  // 2^-e may be denormal
  return log_of(e.biased - K::round, fma(x, scale, scale - 1));
}

template <class F>
F log1p(F x) {
  return log_special(x + 1, x, copysign(log1p_positive(x), x));
}

/// max(x, 0) + log(1 + t) with t = e^-|x| ≤ 1: 1 + t is 1 + f or 2 (1 + f).
template <class F>
F softplus(F x) {
  using K = FormatOf<F>;
  const Negative<F> e = exp_of_negative(x);
  const F t = fma(e.s, e.q, e.s) * K::tiny;
  const auto halved = t > 2 * K::two_thirds - 1;
  const F f = select(halved, fma(t, 0.5, -0.5), t);
  return select(x > 0, x, F(0)) + log_of(select(halved, F(1), F(0)), f);
}

// --- inverse hyperbolic functions: log1p of what the definition leaves beside 1
// -----------------------------------------

/// log1p(y), plus ln 2 where `far`: the log of 2 y.
template <class F, class B>
F log1p_or_double(F y, B far) { return log1p_positive(y) + select(far, F(FormatOf<F>::ln2), F(0)); }

template <class F>
F asinh(F x) {
  const F a = abs(x);
  const auto far = a > FormatOf<F>::quadratic;
  const F square = a * a;
  const F y = log1p_or_double(select(far, a, a + square / (sqrt(square + 1) + 1)), far);
  return copysign(select(a < std::numeric_limits<Scalar<F>>::infinity(), y, a), x);
}

template <class F>
F acosh(F x) {
  using L = std::numeric_limits<Scalar<F>>;
  const auto far = x > FormatOf<F>::quadratic;
  const F t = x - 1;
  const F y = log1p_or_double(select(far, t, t + sqrt(fma(t, t, t * 2))), far);
  return select(x < L::infinity(), select(x >= 1, y, F(L::quiet_NaN())), x);
}

template <class F>
F atanh(F x) {
  const F a = abs(x);
  const F y = a * 2 / (1 - a);
  return copysign(log_special(y + 1, y, log1p_positive(y)) * 0.5, x);
}

}  // namespace fusec::formulas
