#pragma once
// Activations made of other functions: mish, gelu_tanh, the elu family; and the piecewise linear ones, as ONNX has
// them.

#include "lib/ir/formula_log.h"

namespace fusec::formulas {

/// x tanh(log(1 + e^x)) = x w / (w + 2), w = e^x (e^x + 2); for x > 0 both are divided by e^2x.
template <class F>
F mish(F x) {
  using K = FormatOf<F>;
  const Negative<F> e = exp_of_negative(x);
  const F part = fma(e.s, e.q, e.s), t = part * K::tiny;
  const auto left = x < 0;
  const F above = select(left, fma(part, t, part * 2), fma(t, 2, 1));
  const F below = select(left, fma(t, t + 2, 2), fma(t * 2, t + 1, 1));
  // -inf would be -inf * 0; one below exp_low gives the same -0.
  return at_least(x, F(K::exp_low)) * above / below * select(left, F(K::tiny), F(1));
}

/// e^-v for v = 2√(2/π) (a + 0.044715 a³) and 0 ≤ a ≤ gelu_tanh_high. v reaches 110, and e^ turns its absolute error
/// into a relative one, so v - n ln 2 is summed from exact products: a = h + l with h so short that h³ is exact.
template <class F>
Negative<F> exp_of_cubic(F a) {
  using K = FormatOf<F>;
  using I = Scalar<Bits<F>>;
  constexpr auto offset = K::round + K::bias + K::tiny_exponent;
  const F v = a * fma(a * a, K::cubic, K::linear_short + K::linear_tail);
  const F sum = fma(v, -K::log2e, offset);
  const F n = sum - offset;
  const F h = from_bits<F>((bits(a) + (I(1) << (K::cube_bits - 1))) & (I(-1) << K::cube_bits));
  const F l = a - h;
  const F square = h * h;
  const F cubes = fma(a, a + h, square);  // (a³ - h³) / l
  F r = fma(h, -K::linear_short, n * -K::ln2_short);
  r = fma(square * h, -K::cubic, r);
  r = fma(l * cubes, -K::cubic, r);
  r = fma(l, -K::linear_short, r);
  r = fma(a, -K::linear_tail, r);
  r = fma(square * h, -K::cubic_tail, r);
  r = fma(n, -K::ln2_short_tail, r);
  return {expm1_reduced(r), from_bits<F>(bits(sum) << K::mantissa)};
}

/// x / 2 (1 + tanh(v / 2)) is x times the sigmoid of v.
template <class F>
F gelu_tanh(F x) {
  const F limit = FormatOf<F>::gelu_tanh_high;
  return times_sigmoid(at_least(x, -limit), exp_of_cubic(at_most(abs(x), limit)));
}

template <class F>
F expm1_of_negative(F x) { return expm1_small(at_least(x, F(FormatOf<F>::expm1_low))); }

template <class F>
F elu(F x, F alpha) {
  const F below = alpha * expm1_of_negative(at_most(x, F(0)));
  return select(x < 0, below, x);
}

template <class F>
F selu(F x) {
  const F below = F(1.7580993408473768599) * expm1_of_negative(at_most(x, F(0)));
  return select(x < 0, below, x * 1.0507009873554804935);
}

/// x clamp(x + 3, 0, 6) / 6: the sum is exact where it nearly cancels.
template <class F>
F hardswish(F x) {
  x = at_least(x, F(-3));  // -inf gives -0, not NaN
  return at_most(x + 3, F(6)) * (Scalar<F>(1) / 6) * x;
}

template <class F>
F hardsigmoid(F x, F alpha, F beta) { return at_most(at_least(fma(alpha, x, beta), F(0)), F(1)); }

template <class F>
F leaky_relu(F x, F alpha) { return select(x < 0, alpha * x, x); }

}  // namespace fusec::formulas
