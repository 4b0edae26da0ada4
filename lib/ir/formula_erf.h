#pragma once
// erf, erfc and gelu.
//
// erf a = 1 - e^-u(a), where u = -log(erfc a) is nearly a parabola: one polynomial over the whole range, and the relative
// accuracy of e^-u - 1 near 0. Tails come from Φ(-a) = e^(-a²/2) M(a): M (a + k), M the Mills ratio, is
// smooth in a / (a + k).

#include "lib/ir/formula_exp.h"

namespace fusec::formulas {

template <class F>
F erf(F x) {
  const F b = at_least(-abs(x), F(-FormatOf<F>::erf_high));
  const F minus_u = fma(b, horner(b, TermsOf<F>::erf), b);
  return copysign(expm1_small(minus_u), x);
}

/// a Φ(-a) e^(a²/2) for 0 ≤ a ≤ mills_high. In f64 the many terms need a variable centred in its interval.
template <class F>
F mills_times(F a) {
  const F v = a / (a + FormatOf<F>::mills_center);
  if constexpr (sizeof(Scalar<F>) == 4) return v * horner(v, TermsOf<F>::mills);
  else return v * horner(fma(v, 2, -1), TermsOf<F>::mills);
}

template <class F>
F gelu(F x) {
  using K = FormatOf<F>;
  const F a = at_most(abs(x), F(K::mills_high));
  // max(x, 0) - a Φ(-a); the select keeps -0
  return fma(gauss(a).times_tiny(mills_times(a)), -K::tiny, select(x < 0, F(-0.0), x));
}

}  // namespace fusec::formulas
