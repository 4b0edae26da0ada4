#pragma once
// Formulas whose result is bf16 or f16 (R): the same kind of steps in f32, only as many as the result's 8 or 11 bits need.
//
//   f32 gelu: 35 steps, a reciprocal, relative error 2^-22      bf16 gelu: 18 steps, no division, relative error 2^-13
//
// No step divides, looks at a table or branches. Everything relative to f32 is generous: r = x log2 e - n needs no second
// part of log2 e, a reciprocal starts from a subtraction of bits. Scales are powers of two that coefficients carry, so that
// a denormal result is rounded by the last product only. Errors: docs/numerics.md, over all 65536 operands.

#include "lib/ir/formula_log.h"
#include "lib/ir/formula_narrow_terms.h"

namespace fusec::formulas::narrow {

/// Ends beyond which a result in R no longer changes.
template <DType R>
struct Ends;
template <>
struct Ends<DType::bf16> {
  static constexpr float exp_low = -94, exp_high = 90;  // e^x is 0 and inf
  static constexpr float vanish = -98;                  // x e^x is -0
  static constexpr float gelu = 13.7f, gelu_tanh = -10.45f;
  static constexpr float erf = 2.25f, expm1 = -6.5f;
};
template <>
struct Ends<DType::f16> {
  static constexpr float exp_low = -18, exp_high = 12;
  static constexpr float vanish = -21;
  static constexpr float gelu = 5.8f, gelu_tanh = -5.75f;
  static constexpr float erf = 2.75f, expm1 = -8.5f;
};

constexpr float power_of_two(int n) { return n < 0 ? 0.5f * power_of_two(n + 1) : n > 0 ? 2 * power_of_two(n - 1) : 1.0f; }

/// (c[0] + c[1] x + …) 2^scale
template <class F, size_t n>
F scaled_horner(F x, const float (&c)[n], int scale) {
  const float by = power_of_two(scale);
  F sum = c[n - 1] * by;
  for (size_t k = n - 1; k-- > 0;) sum = fma(sum, x, F(c[k] * by));
  return sum;
}

/// 2^(x factor) = p s 2^-(shift + scale) with s = 2^(n + shift), which must be a normal number. A NaN gives a NaN p.
template <class F>
struct Power {
  F p, s;
};
template <class F, size_t n>
Power<F> power(F x, F factor, int shift, int scale, const float (&terms)[n]) {
  using K = FormatOf<F>;
  const float offset = K::round + K::bias + float(shift);
  const F sum = fma(x, factor, offset);
  const F r = fma(x, factor, -(sum - offset));
  return {scaled_horner(r, terms, scale), from_bits<F>(bits(sum) << K::mantissa)};
}
template <DType R, class F>
Power<F> power(F x, F factor, int shift, int scale) {
  return power(x, factor, shift, scale, NarrowTerms<R>::exp2);
}

/// 2^scale / x is guess · correction, for x and 1 / x normal. `guess` is a straight line in each binade, chosen so that its
/// product with x stays between √½ and (1 + √2)² / 8; the correction is a polynomial of that product.
template <class F>
struct Inverse {
  F guess, correction;
};
template <class F, size_t n>
Inverse<F> inverse(F x, int scale, const float (&terms)[n]) {
  const F guess = from_bits<F>(Bits<F>(0x7eb504f3) - bits(x));
  return {guess, scaled_horner(x * guess, terms, scale)};
}
template <DType R, class F>
Inverse<F> inverse(F x, int scale = 0) {
  return inverse(x, scale, NarrowTerms<R>::inverse);
}

/// bf16 spans more binades than s alone can: e^x = (e^(x/2))².
template <DType R, class F>
F power_of(F x, float factor) {
  if constexpr (R == DType::bf16) {
    const Power<F> root = power<R>(x, F(factor / 2), 0, 0);
    const F y = root.p * root.s;
    return y * y;
  } else {
    const Power<F> e = power<R>(x, F(factor), 0, 0);
    return e.p * e.s;
  }
}
template <DType R, class F>
F exp(F x) {
  x = at_most(at_least(x, F(Ends<R>::exp_low)), F(Ends<R>::exp_high));
  return power_of<R>(x, FormatOf<F>::log2e);
}
template <DType R, class F>
F exp2(F x) {
  x = at_most(at_least(x, F(Ends<R>::exp_low * 1.5f)), F(Ends<R>::exp_high * 1.5f));
  return power_of<R>(x, 1);
}

/// 2^-16 + 2^(u - 16), u = -x factor between -44 and 142; its inverse is a normal number too.
template <class F, size_t n>
F one_and_power(F x, F factor, const float (&terms)[n]) {
  const Power<F> e = power(x, factor, -32, 16, terms);
  return fma(e.p, e.s, power_of_two(-16));
}
template <DType R, class F>
F one_and_power(F x, F factor) {
  return one_and_power(x, factor, NarrowTerms<R>::exp2);
}

/// 1 / (1 + e^-x)
template <DType R, class F>
F sigmoid(F x) {
  x = at_most(at_least(x, F(Ends<R>::exp_low)), F(30));
  const Inverse<F> inv = inverse<R>(one_and_power<R>(x, F(-FormatOf<F>::log2e)), -16);
  return inv.guess * inv.correction;
}

/// x / (1 + e^-x). -inf would be -inf · 0; one below the end gives the same -0. (x · guess would overflow before x does.)
/// A bf16 of a bf16 has the bits of
///
///   (x 2^-16 (1 + 17 2^-23)) · rcp(2^-16 + ex2(-16 - x log2 e))
///
/// on all 65536 operands, for any ex2 within 2^-21 of 2^x and any rcp within 2^-22 of 1 / x that are exact on integers and powers of two:
/// twice what PTX says of its approximations, which CUDA takes here (silu_of_bf16 in cells.cuh). The bias moves results away from what
/// they would be rounded at; SiluTerms were drawn about the minimax polynomials until all operands agreed (tools/minimax/silu.py,
/// formula_hardware_test). Both give 1/2 of a denormal operand exactly.
struct SiluTerms {
  static constexpr float exp2[] = {1, 0x1.62e11ap-1f, 0x1.ec0746p-3f, 0x1.c9ef6ap-5f, 0x1.39fb3cp-7f};
  static constexpr float inverse[] = {0x1.0bcb66p+2f, -0x1.757c4ep+2f, 0x1.5b3cc0p+1f};
  static constexpr float bias = 0x1.000022p-16f;
};
template <DType R, class F>
F silu(F x) {
  x = at_least(x, F(Ends<R>::vanish));
  const F from = at_most(x, F(30)), factor = F(-FormatOf<F>::log2e);
  if constexpr (R == DType::bf16) {
    const Inverse<F> inv = inverse(one_and_power(from, factor, SiluTerms::exp2), 0, SiluTerms::inverse);
    return x * F(SiluTerms::bias) * (inv.guess * inv.correction);
  } else {
    const Inverse<F> inv = inverse<R>(one_and_power<R>(from, factor), -16);
    return x * (inv.guess * inv.correction);
  }
}

/// x times the sigmoid of 2 √(2/π) (x + 0.044715 x³)
template <DType R, class F>
F gelu_tanh(F x) {
  x = at_least(x, F(Ends<R>::gelu_tanh));
  const F inner = at_most(x, F(5.5f));
  const F factor = fma(inner * inner, -0.102943240f, -2.30220820f);  // of log2 e
  const Inverse<F> inv = inverse<R>(one_and_power<R>(inner, factor), -16);
  return x * (inv.guess * inv.correction);
}

/// max(x, 0) + b Φ(b), b = -|x|: the 32nd root of Φ is a polynomial, and five squarings cost less than an exponential. The
/// last of them, with b and the sum, is one fma.
template <DType R, class F>
F gelu(F x) {
  const F b = at_least(-abs(x), F(-Ends<R>::gelu));
  F q = horner(b, NarrowTerms<R>::gelu);
  for (int k = 0; k < 4; ++k) q = q * q;
  return fma(b * q, q, at_least(x, F(-0.0f)));
}

template <DType R, class F>
F erf(F x) {
  x = at_most(at_least(x, F(-Ends<R>::erf)), F(Ends<R>::erf));
  return x * horner(x * x, NarrowTerms<R>::erf);
}

/// bf16: an odd polynomial. f16: -e / (e + 2), e = e^-2a - 1 = s - 1 + s (2^r - 1).
template <DType R, class F>
F tanh(F x) {
  if constexpr (R == DType::bf16) {
    x = at_most(at_least(x, F(-3.6f)), F(3.6f));
    return x * horner(x * x, NarrowTerms<R>::tanh);
  } else {
    using K = FormatOf<F>;
    const F a = at_most(abs(x), F(5)), factor = F(-2 * K::log2e);
    const F offset = F(K::round + K::bias);
    const F sum = fma(a, factor, offset);
    const F r = fma(a, factor, -(sum - offset)), s = from_bits<F>(bits(sum) << K::mantissa);
    const F minus_e = fma(s * r, -horner(r, NarrowTerms<R>::exp2m1), 1 - s);
    const Inverse<F> inv = inverse<R>(2 - minus_e);
    return copysign(minus_e * inv.guess * inv.correction, x);
  }
}

/// max(x, 0) + log(1 + t), t = e^-|x|
template <DType R, class F>
F softplus(F x) {
  const Power<F> e = power<R>(at_most(abs(x), F(-Ends<R>::exp_low)), F(-FormatOf<F>::log2e), 24, -24);
  const F t = e.p * e.s;
  return fma(t, horner(t, NarrowTerms<R>::log1p), at_least(x, F(-0.0f)));
}

/// x w / (w + 2), w = e^x (e^x + 2); from 20 on w / (w + 2) is 1.
template <DType R, class F>
F mish(F x) {
  x = at_least(x, F(Ends<R>::vanish));
  const Power<F> e = power<R>(at_most(x, F(20)), F(FormatOf<F>::log2e), 24, -24);
  const F t = e.p * e.s;
  const F w = t * (t + 2);
  const Inverse<F> inv = inverse<R>(w + 2);
  return x * inv.guess * inv.correction * w;
}

template <DType R, class F>
F expm1_of_negative(F x) {
  x = at_most(at_least(x, F(Ends<R>::expm1)), F(0));
  return x * horner(x, NarrowTerms<R>::expm1);
}
template <DType R, class F>
F elu(F x, F alpha) { return select(x < 0, alpha * expm1_of_negative<R>(x), x); }
template <DType R, class F>
F selu(F x) {
  return select(x < 0, F(1.7580993408473768599f) * expm1_of_negative<R>(x), x * 1.0507009873554804935f);
}

/// (e + log2(1 + f)) / log2 b
template <DType R, class F>
F log_base(F x, float ln2, float ln) {
  const Split<F> s = split(x);
  const float by = ln;
  F q = NarrowTerms<R>::log[std::size(NarrowTerms<R>::log) - 1] * by;
  for (size_t k = std::size(NarrowTerms<R>::log) - 1; k-- > 0;) q = fma(q, s.f, F(NarrowTerms<R>::log[k] * by));
  return log_special(x, x, fma(s.f, q, s.e * ln2));
}
template <DType R, class F>
F log(F x) { return log_base<R>(x, FormatOf<F>::ln2, 1); }
template <DType R, class F>
F log2(F x) { return log_base<R>(x, 1, FormatOf<F>::log2e); }
template <DType R, class F>
F log10(F x) { return log_base<R>(x, FormatOf<F>::log10_2, FormatOf<F>::log10e); }

}  // namespace fusec::formulas::narrow
