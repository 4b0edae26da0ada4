#pragma once
// erf, erfc and gelu.
//
// erf a = 1 - e^-u(a), where u = -log(erfc a) is nearly a parabola: one polynomial over the whole range, and the
// relative accuracy of e^-u - 1 near 0. Tails come from Φ(-a) = e^(-a²/2) M(a): M (a + k), M the Mills ratio, is smooth
// in a / (a + k).

#include "lib/ir/formula_exp.h"

namespace fusec::formulas {

template <class F>
F erf(F x) {
  const F b = at_least(-abs(x), F(-FormatOf<F>::erf_high));
  const F minus_u = fma(b, horner(b, TermsOf<F>::erf), b);
  return copysign(expm1_small(minus_u), x);
}

/// e^-x² times a tail over x + k; for x < 0 it is 2 - erfc -x. 1 / (x + k) has two roundings, which a Newton step takes
/// back.
template <class F>
F erfc(F x) {
  using K = FormatOf<F>;
  const F a = at_most(abs(x), F(K::erfc_high));
  const F quotient = 1 / (a + K::erfc_center);
  const F missing = fma(quotient, -K::erfc_center, fma(-quotient, a, 1));
  const F s = fma(quotient, missing, quotient);
  const F part = gauss(a, 1).times_tiny(s * horner(fma(a * s, 2, -1), TermsOf<F>::erfc));
  return select(x < 0, fma(part, -K::tiny, 2), part * K::tiny);
}

/// Φ(-a) e^(a²/2) (a + k) of v = a / (a + k). In f64 the many terms need a variable centred in its interval.
template <class F>
F mills(F v) {
  if constexpr (sizeof(Scalar<F>) == 4) return horner(v, TermsOf<F>::mills);
  else return horner(fma(v, 2, -1), TermsOf<F>::mills);
}

template <class F>
F gelu(F x) {
  using K = FormatOf<F>;
  const F a = at_most(abs(x), F(K::mills_high));
  const F sum = a + K::mills_center;
  F v = a / sum;
  if constexpr (sizeof(Scalar<F>) == 4) {
    // The same quotient, by steps that no device has to guard: a reciprocal of 1.75 to 16.25, and what the product misses put back.
    const F r = 1 / sum, q = a * r;
    v = fma(fma(-sum, q, a), r, q);
  }
  // max(x, 0) - a Φ(-a); the bound keeps -0
  return fma(gauss(a, 0.5).times_tiny(v * mills(v)), -K::tiny, at_least(x, F(-0.0)));
}

}  // namespace fusec::formulas
