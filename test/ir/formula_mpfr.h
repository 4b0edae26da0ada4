#pragma once
// The formulas in MPFR, 192 bits: the judge of formula_accuracy_test.

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fusec/op.h"

namespace fusec {

/// A number of 192 bits and a 62-bit exponent.
class Big {
 public:
  Big(long double v = 0) { mpfr_init2(v_, 192), mpfr_set_ld(v_, v, MPFR_RNDN); }
  Big(const Big& other) { mpfr_init2(v_, 192), mpfr_set(v_, other.v_, MPFR_RNDN); }
  Big& operator=(const Big& other) { return mpfr_set(v_, other.v_, MPFR_RNDN), *this; }
  ~Big() { mpfr_clear(v_); }

  friend Big operator+(const Big& a, const Big& b) { return apply(mpfr_add, a, b); }
  friend Big operator-(const Big& a, const Big& b) { return apply(mpfr_sub, a, b); }
  friend Big operator*(const Big& a, const Big& b) { return apply(mpfr_mul, a, b); }
  friend Big operator/(const Big& a, const Big& b) { return apply(mpfr_div, a, b); }
  friend bool operator<(const Big& a, const Big& b) { return mpfr_less_p(a.v_, b.v_); }

  static Big apply(int (*f)(mpfr_t, const mpfr_t, mpfr_rnd_t), const Big& a) {
    Big r;
    f(r.v_, a.v_, MPFR_RNDN);
    return r;
  }
  static Big apply(int (*f)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t), const Big& a, const Big& b) {
    Big r;
    f(r.v_, a.v_, b.v_, MPFR_RNDN);
    return r;
  }
  static Big pi() {
    Big r;
    mpfr_const_pi(r.v_, MPFR_RNDN);
    return r;
  }
  static Big parse(const char* digits) {
    Big r;
    mpfr_set_str(r.v_, digits, 10, MPFR_RNDN);
    return r;
  }

  const mpfr_t& value() const { return v_; }

 private:
  mpfr_t v_;
};

/// `op` of finite operands for which the result is a finite number or a true infinity or NaN.
inline Big exact_value(Op op, const Big& x, const Big& y, const Big& alpha, const Big& beta) {
  const Big zero, one = 1, two = 2;
  const auto of = [](auto f, const Big& v) { return Big::apply(f, v); };
  const auto exp = [&](const Big& v) { return of(mpfr_exp, v); };
  const auto softplus = [&] {  // exp of a large x leaves even MPFR's exponents
    return x < zero ? of(mpfr_log1p, exp(x)) : x + of(mpfr_log1p, exp(zero - x));
  };
  const auto erfc = [&](const Big& v) { return of(mpfr_erfc, v); };
  const Big root2 = of(mpfr_sqrt, two);
  switch (op) {
    case Op::rsqrt: return one / of(mpfr_sqrt, x);
    case Op::cbrt: return of(mpfr_cbrt, x);
    case Op::exp: return exp(x);
    case Op::exp2: return of(mpfr_exp2, x);
    case Op::expm1: return of(mpfr_expm1, x);
    case Op::log: return of(mpfr_log, x);
    case Op::log2: return of(mpfr_log2, x);
    case Op::log10: return of(mpfr_log10, x);
    case Op::log1p: return of(mpfr_log1p, x);
    case Op::sin: return of(mpfr_sin, x);
    case Op::cos: return of(mpfr_cos, x);
    case Op::tan: return of(mpfr_tan, x);
    case Op::asin: return of(mpfr_asin, x);
    case Op::acos: return of(mpfr_acos, x);
    case Op::atan: return of(mpfr_atan, x);
    case Op::sinh: return of(mpfr_sinh, x);
    case Op::cosh: return of(mpfr_cosh, x);
    case Op::tanh: return of(mpfr_tanh, x);
    case Op::asinh: return of(mpfr_asinh, x);
    case Op::acosh: return of(mpfr_acosh, x);
    case Op::atanh: return of(mpfr_atanh, x);
    case Op::erf: return of(mpfr_erf, x);
    case Op::erfc: return erfc(x);
    case Op::sigmoid: return one / (one + exp(zero - x));
    case Op::gelu: return x * erfc((zero - x) / root2) / two;
    case Op::gelu_tanh: {
      const Big u = two * of(mpfr_sqrt, two / Big::pi()) * (x + Big::parse("0.044715") * x * x * x);
      return x / (one + exp(zero - u));
    }
    case Op::silu: return x / (one + exp(zero - x));
    case Op::softplus: return softplus();
    case Op::mish: return x * of(mpfr_tanh, softplus());
    case Op::elu: return zero < x ? x : alpha * of(mpfr_expm1, x);
    case Op::selu:
      return Big::parse("1.0507009873554804934193349852946") *
             (zero < x ? x : Big::parse("1.6732632423543772848170429916717") * of(mpfr_expm1, x));
    case Op::hardswish: return x < Big(-3) ? zero * x : Big(3) < x ? x : x * (x + Big(3)) / Big(6);
    case Op::hardsigmoid: {
      const Big v = alpha * x + beta;
      return v < zero ? zero : one < v ? one : v;
    }
    case Op::leaky_relu: return x < zero ? alpha * x : x;
    case Op::pow: return Big::apply(mpfr_pow, x, y);
    case Op::atan2: return Big::apply(mpfr_atan2, x, y);
    case Op::hypot: return Big::apply(mpfr_hypot, x, y);
    default: return of(mpfr_log, Big(-1));
  }
}

/// Distance of y from `exact` in ulps of T at `exact`, as ulps() in formula_reference.h counts.
template <class T>
double big_ulps(T y, const Big& exact) {
  using L = std::numeric_limits<T>;
  constexpr double wrong = std::numeric_limits<double>::infinity();
  const mpfr_t& e = exact.value();
  if (std::isnan(y) || mpfr_nan_p(e)) return std::isnan(y) == bool(mpfr_nan_p(e)) ? 0 : wrong;
  if (mpfr_zero_p(e)) return y == 0 ? 0 : wrong;
  if (y == 0 && std::signbit(y) != bool(mpfr_signbit(e))) return wrong;
  const long double end = std::ldexp(1.0L, L::max_exponent) * (mpfr_signbit(e) ? -1 : 1);
  const bool beyond = mpfr_inf_p(e) || mpfr_get_exp(e) > L::max_exponent;
  if (beyond && std::isinf(y)) return std::signbit(y) == bool(mpfr_signbit(e)) ? 0 : wrong;
  const Big limited = beyond ? Big(end) : exact;
  const Big distance = (std::isinf(y) ? Big(std::copysign(end, y)) : Big(y)) - limited;
  const int exponent = std::clamp(static_cast<int>(mpfr_get_exp(limited.value())), L::min_exponent, L::max_exponent);
  const double apart = mpfr_get_d((distance * Big(std::ldexp(1.0L, L::digits - exponent))).value(), MPFR_RNDN);
  return std::fabs(apart);
}

}  // namespace fusec
