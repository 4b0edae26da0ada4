#pragma once
// What each formula should give, from the C library in a wider type (double for float, long double for double), and how
// far a value is from it. formula_accuracy_test checks this against MPFR.

#include <algorithm>
#include <cmath>
#include <limits>

#include "fusec/op.h"

namespace fusec {

template <class R>
R reference(Op op, R x, R y = 0, R alpha = 0, R beta = 0) {
  constexpr R infinity = std::numeric_limits<R>::infinity();
  const R pi = std::acos(R(-1)), root_half = std::sqrt(R(0.5));
  const auto sigmoid = [](R u) { return u < 0 ? std::exp(u) / (1 + std::exp(u)) : 1 / (1 + std::exp(-u)); };
  const bool vanishes = x == -infinity;  // x e^x → -0
  switch (op) {
    case Op::rsqrt: return 1 / std::sqrt(x);
    case Op::cbrt: return std::cbrt(x);
    case Op::exp: return std::exp(x);
    case Op::exp2: return std::exp2(x);
    case Op::expm1: return std::expm1(x);
    case Op::log: return std::log(x);
    case Op::log2: return std::log2(x);
    case Op::log10: return std::log10(x);
    case Op::log1p: return std::log1p(x);
    case Op::sin: return std::sin(x);
    case Op::cos: return std::cos(x);
    case Op::tan: return std::tan(x);
    case Op::asin: return std::asin(x);
    case Op::acos: return std::acos(x);
    case Op::atan: return std::atan(x);
    case Op::sinh: return std::sinh(x);
    case Op::cosh: return std::cosh(x);
    case Op::tanh: return std::tanh(x);
    case Op::asinh: return std::asinh(x);
    case Op::acosh: return std::acosh(x);
    case Op::atanh: return std::atanh(x);
    case Op::erf: return std::erf(x);
    case Op::erfc: return std::erfc(x);
    case Op::sigmoid: return sigmoid(x);
    case Op::gelu: return vanishes ? R(-0.0) : x * (std::erfc(-x * root_half) / 2);
    case Op::gelu_tanh:
      return vanishes ? R(-0.0) : x * sigmoid(2 * std::sqrt(2 / pi) * (x + R(0.044715L) * x * x * x));
    case Op::silu: return vanishes ? R(-0.0) : x * sigmoid(x);
    case Op::softplus: return std::max(x, R(0)) + std::log1p(std::exp(-std::fabs(x)));
    case Op::mish: return vanishes ? R(-0.0) : x * std::tanh(std::max(x, R(0)) + std::log1p(std::exp(-std::fabs(x))));
    case Op::elu: return x > 0 ? x : alpha * std::expm1(x);
    case Op::selu:
      return R(1.0507009873554804934193349852946L) *
             (x > 0 ? x : R(1.6732632423543772848170429916717L) * std::expm1(x));
    case Op::hardswish: return x <= -3 ? R(-0.0) : x >= 3 ? x : x * ((x + 3) / 6);
    case Op::hardsigmoid: return std::isnan(x) ? x : std::min(std::max(alpha * x + beta, R(0)), R(1));
    case Op::leaky_relu: return x < 0 ? alpha * x : x;
    case Op::pow: return std::pow(x, y);
    case Op::atan2: return std::atan2(x, y);
    case Op::hypot: return std::hypot(x, y);
    default: return std::numeric_limits<R>::quiet_NaN();
  }
}

/// |y - exact| in units in the last place of T at `exact`; infinity for a wrong NaN, infinity or sign of zero.
/// Overflow is judged as if inf were 2^128 (2^1024).
template <class T, class R>
double ulps(T y, R exact) {
  using L = std::numeric_limits<T>;
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(y) || std::isnan(exact)) return std::isnan(y) == std::isnan(exact) ? 0 : wrong;
  if (exact == 0) return y == 0 && std::signbit(y) == std::signbit(exact) ? 0 : wrong;
  const R end = std::ldexp(R(1), L::max_exponent);
  exact = std::clamp(exact, -end, end);
  if (y == 0 && std::signbit(y) != std::signbit(exact)) return wrong;
  int exponent;
  std::frexp(exact, &exponent);
  exponent = std::clamp(exponent, L::min_exponent, L::max_exponent);
  const R value = std::isinf(y) ? std::copysign(end, R(y)) : R(y);
  return static_cast<double>(std::ldexp(std::fabs(value - exact), L::digits - exponent));
}

}  // namespace fusec
