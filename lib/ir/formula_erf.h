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

/// gelu of f32: max(x, 0) + 2^r 2^n q M(q), where 2^(n + r) = 2^(-c a²) and q = a / (slope a + center). q is a product with a reciprocal, which
/// no device has to guard; c has one part, since M makes good what it lacks; the square enters r unrounded. 2^n is shifted into the normal
/// numbers and M out of them, by 26 binades, so that nothing underflows before the result does. (M has the sign: of a negated fma g++ makes one
/// whose zeros have the other.)
template <class F>
F short_gelu(F x) {
  using K = FormatOf<F>;
  constexpr auto offset = K::round + K::bias + K::mills_exponent;
  const F a = at_most(abs(x), F(K::mills_high));
  const F q = 1 / fma(a, K::mills_slope, K::mills_center) * a;
  const F square = a * a, rest = fma(a, a, -square), c = -K::log2e / 2;
  const F sum = fma(square, c, offset);
  const F n = sum - offset;
  const F r = fma(rest, c, fma(square, c, -n));
  const F scaled = from_bits<F>(bits(sum) << K::mantissa) * q;
  const F part = fma(r * horner(r, TermsOf<F>::exp2_half), scaled, scaled);
  return fma(part, horner(q, TermsOf<F>::mills), at_least(x, F(-0.0)));  // the bound keeps -0
}

template <class F>
F gelu(F x) {
  using K = FormatOf<F>;
  if constexpr (sizeof(Scalar<F>) == 4) {
    return short_gelu(x);
  } else {
    // max(x, 0) - a Φ(-a); Φ(-a) e^(a²/2) (a + k) is a polynomial of v = a / (a + k), centred in its interval
    const F a = at_most(abs(x), F(K::mills_high));
    const F v = a / (a + K::mills_center);
    return fma(gauss(a, 0.5).times_tiny(v * horner(fma(v, 2, -1), TermsOf<F>::mills)), -K::tiny, at_least(x, F(-0.0)));
  }
}

}  // namespace fusec::formulas
