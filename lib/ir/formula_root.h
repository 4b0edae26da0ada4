#pragma once
// Roots: rsqrt, cbrt, hypot.

#include "lib/ir/formula_log.h"

namespace fusec::formulas {

template <class F>
F rsqrt(F x) { return 1 / sqrt(x); }

/// |x| = 2^(3k) z with 1/3 ≤ z < 8/3. A polynomial guesses z^(-1/3), one step of third order refines it to y; c = z y²
/// gets back what it misses of z = c³.
template <class F>
F cbrt(F x) {
  using K = FormatOf<F>;
  const F a = abs(x);
  const auto [e, f] = split(a);
  const F sum = fma(e, Scalar<F>(1) / 3, K::round);
  const F rest = fma(sum - K::round, -3, e);
  const auto low = rest < 0, high = rest > 0;
  const F z = (f + 1) * select(low, F(0.5), select(high, F(2), F(1)));
  const F guess = horner(f, TermsOf<F>::rcbrt) *
                  select(low, F(0x1.428a2f98d728bp0), select(high, F(0x1.965fea53d6e3dp-1), F(1)));  // 2^±(1/3)
  const F miss = fma(-(z * guess), guess * guess, 1);
  const F y = fma(guess * miss, fma(miss, Scalar<F>(2) / 9, Scalar<F>(1) / 3), guess);
  const F square = y * y;
  const F c = z * square;
  const F c2 = c * c;
  const F left = fma(-fma(c, c, -c2), c, fma(-c2, c, z));
  const F root = fma(left, square * (Scalar<F>(1) / 3), c);
  const F scaled = copysign(from_bits<F>(bits(root) + (bits(sum) << K::mantissa)), x);
  return select(a == 0, x, select(a < std::numeric_limits<Scalar<F>>::infinity(), scaled, x));
}

/// √(x² + y²), infinite when either is, even beside a NaN. Squares of floats fit doubles; doubles are scaled.
template <class F>
F hypot(F x, F y) {
  using L = std::numeric_limits<Scalar<F>>;
  const F a = abs(x), b = abs(y);
  F root = a;
  if constexpr (sizeof(Scalar<F>) == 4) {
    const auto p = cast<double>(a), q = cast<double>(b);
    root = cast<float>(sqrt(fma(p, p, q * q)));
  } else {
    const F large = select(a > b, a, b);
    const auto huge = large > 0x1p500, small = large < 0x1p-459;
    const F scale = select(huge, F(0x1p-600), select(small, F(0x1p560), F(1)));
    const F back = select(huge, F(0x1p600), select(small, F(0x1p-560), F(1)));
    const F p = a * scale, q = b * scale;
    root = sqrt(fma(p, p, q * q)) * back;
  }
  return select(a == L::infinity(), a, select(b == L::infinity(), b, root));
}

}  // namespace fusec::formulas
