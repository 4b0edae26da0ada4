#pragma once
// The algebra that formulas are written in. A formula is a template over F, a value in one of two algebras:
//
//   Native<float>    plain arithmetic: tests run it over all inputs, the compiler vectorises it
//   Recorded<float>  a step of the list that a Recorder keeps; equal steps are one step
//
//   template <class F> F silly(F x) { return select(x < 0.0, fma(x, x, 1.0), sqrt(x)); }
//
// Both offer the same operations, those of ops.def with its meanings (total: shifts, casts and integer arithmetic never
// trap). Literals convert to the type of the other operand, so 0.0 is right for float and double alike.

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <type_traits>

#include "lib/ir/formula.h"

namespace fusec::formulas {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  if constexpr (std::is_same_v<T, int8_t>) return DType::i8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::i16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::u16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::u32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::u64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
}

template <size_t bytes>
using UnsignedOf =
    std::conditional_t<bytes == 8, uint64_t,
                       std::conditional_t<bytes == 4, uint32_t, std::conditional_t<bytes == 2, uint16_t, uint8_t>>>;

/// The operations of algebra A on values of type T: friends that argument lookup finds, so that literals convert.
template <template <class> class A, class T>
struct Operators {
  using V = A<T>;
  using B = A<bool>;
  friend V operator+(V x, V y) { return V::template of<Op::add>(x, y); }
  friend V operator-(V x, V y) { return V::template of<Op::sub>(x, y); }
  friend V operator*(V x, V y) { return V::template of<Op::mul>(x, y); }
  friend V operator/(V x, V y) { return V::template of<Op::div>(x, y); }
  friend V operator-(V x) { return V::template of<Op::neg>(x); }
  friend V operator&(V x, V y) { return V::template of<Op::and_>(x, y); }
  friend V operator|(V x, V y) { return V::template of<Op::or_>(x, y); }
  friend V operator^(V x, V y) { return V::template of<Op::xor_>(x, y); }
  friend V operator<<(V x, V y) { return V::template of<Op::shl>(x, y); }
  friend V operator>>(V x, V y) { return V::template of<Op::shr>(x, y); }
  friend B operator==(V x, V y) { return B::template of<Op::eq>(x, y); }
  friend B operator!=(V x, V y) { return B::template of<Op::ne>(x, y); }
  friend B operator<(V x, V y) { return B::template of<Op::lt>(x, y); }
  friend B operator<=(V x, V y) { return B::template of<Op::le>(x, y); }
  friend B operator>(V x, V y) { return B::template of<Op::gt>(x, y); }
  friend B operator>=(V x, V y) { return B::template of<Op::ge>(x, y); }
  friend B is_nan(V x) { return B::template of<Op::is_nan>(x); }
  friend V fma(V x, V y, V z) { return V::template of<Op::fma>(x, y, z); }
  friend V abs(V x) { return V::template of<Op::abs>(x); }
  friend V sqrt(V x) { return V::template of<Op::sqrt>(x); }
  friend V floor(V x) { return V::template of<Op::floor>(x); }
  friend V trunc(V x) { return V::template of<Op::trunc>(x); }
  friend V round_even(V x) { return V::template of<Op::round_even>(x); }
  friend V min(V x, V y) { return V::template of<Op::min>(x, y); }
  friend V max(V x, V y) { return V::template of<Op::max>(x, y); }
  friend V copysign(V x, V y) { return V::template of<Op::copysign>(x, y); }
  friend V trunc_div(V x, V y) { return V::template of<Op::trunc_div>(x, y); }
  friend V select(B c, V x, V y) { return V::template of<Op::select>(c, x, y); }
};

template <class To, template <class> class A, class From>
A<To> cast(A<From> x) { return A<To>::template of<Op::cast>(x); }
template <class To, template <class> class A, class From>
A<To> bitcast(A<From> x) {
  static_assert(sizeof(To) == sizeof(From));
  return A<To>::template of<Op::bitcast>(x);
}

// --- Native
// ------------------------------------------------------------------------------------------------------------

/// `op` on plain values, result R: the meanings of ops.def in a form that vectorises.
template <Op op, class R, class X>
R evaluate(X x) {
  if constexpr (op == Op::neg) {
    if constexpr (std::is_floating_point_v<X>) return -x;
    else return R(0 - std::make_unsigned_t<X>(x));
  }
  if constexpr (op == Op::abs) return std::abs(x);
  if constexpr (op == Op::sqrt) return std::sqrt(x);
  if constexpr (op == Op::floor) return std::floor(x);
  if constexpr (op == Op::trunc) return std::trunc(x);
  if constexpr (op == Op::round_even) return std::nearbyint(x);  // the default rounding mode
  if constexpr (op == Op::is_nan) return x != x;
  if constexpr (op == Op::bitcast) return std::bit_cast<R>(x);
  if constexpr (op == Op::cast) {
    if constexpr (std::is_same_v<R, bool>) return x != X(0);
    else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<R>) {
      constexpr X low = X(std::numeric_limits<R>::min());  // a power of two or 0
      constexpr X high = X(std::numeric_limits<R>::max() / 2 + 1) * 2;
      return x != x ? R(0) : x < low ? std::numeric_limits<R>::min() : x >= high ? std::numeric_limits<R>::max() : R(x);
    } else return R(x);
  }
}

template <Op op, class R, class X>
R evaluate(X x, X y) {
  if constexpr (std::is_same_v<R, bool> && !std::is_same_v<X, bool>) {
    if constexpr (op == Op::eq) return x == y;
    if constexpr (op == Op::ne) return x != y;
    if constexpr (op == Op::lt) return x < y;
    if constexpr (op == Op::le) return x <= y;
    if constexpr (op == Op::gt) return x > y;
    if constexpr (op == Op::ge) return x >= y;
  } else if constexpr (std::is_floating_point_v<X>) {
    if constexpr (op == Op::add) return x + y;
    if constexpr (op == Op::sub) return x - y;
    if constexpr (op == Op::mul) return x * y;
    if constexpr (op == Op::div) return x / y;
    if constexpr (op == Op::min) return x != x ? x : y != y ? y : x < y ? x : y;
    if constexpr (op == Op::max) return x != x ? x : y != y ? y : x > y ? x : y;
    if constexpr (op == Op::copysign) return std::copysign(x, y);
  } else if constexpr (std::is_same_v<X, bool>) {
    if constexpr (op == Op::and_) return x && y;
    if constexpr (op == Op::or_) return x || y;
    if constexpr (op == Op::xor_) return x != y;
  } else {
    using U = std::make_unsigned_t<X>;
    constexpr U width = 8 * sizeof(X);
    if constexpr (op == Op::add) return R(U(x) + U(y));
    if constexpr (op == Op::sub) return R(U(x) - U(y));
    if constexpr (op == Op::mul) return R(U(x) * U(y));
    if constexpr (op == Op::and_) return x & y;
    if constexpr (op == Op::or_) return x | y;
    if constexpr (op == Op::xor_) return x ^ y;
    if constexpr (op == Op::min) return x < y ? x : y;
    if constexpr (op == Op::max) return x > y ? x : y;
    if constexpr (op == Op::shl) return U(y) < width ? R(U(x) << (U(y) & (width - 1))) : R(0);
    if constexpr (op == Op::shr) {
      const U count = U(y) < width ? U(y) : width - 1;
      const X shifted = X(x >> count);
      return std::is_signed_v<X> || U(y) < width ? shifted : X(0);
    }
    if constexpr (op == Op::trunc_div || op == Op::div)
      return y == 0 ? X(0) : (std::is_signed_v<X> && y == X(-1)) ? R(U(0) - U(x)) : X(x / y);
  }
}

template <Op op, class R, class X, class Y>
R evaluate(X x, Y y, Y z) {
  if constexpr (op == Op::select) return x ? y : z;
  if constexpr (op == Op::fma) return std::fma(x, y, z);
}

template <class T>
struct Native : Operators<Native, T> {
  using Scalar = T;
  template <class U>
  using Of = Native<U>;
  T value;
  Native(T v) : value(v) {}

  template <Op op, class... X>
  static Native of(X... x) { return evaluate<op, T>(x.value...); }
};

// --- Recorded
// ----------------------------------------------------------------------------------------------------------

/// Collects steps; an equal earlier step stands for a new one.
class Recorder {
 public:
  uint16_t add(const Step& step);
  std::vector<Step> take() { return std::move(steps_); }

 private:
  using Key = std::tuple<int, int, int, std::array<uint16_t, 3>, uint64_t>;
  std::vector<Step> steps_;
  std::map<Key, uint16_t> known_;
};

template <class T>
class Recorded : public Operators<Recorded, T> {
 public:
  using Scalar = T;
  template <class U>
  using Of = Recorded<U>;

  Recorded(T constant) : constant_(constant) {}
  Recorded(Recorder* recorder, uint16_t id) : recorder_(recorder), id_(id) {}

  template <Op op, class... X>
  static Recorded of(X... x) {
    Recorder* recorder = nullptr;
    ((recorder = x.recorder() ? x.recorder() : recorder), ...);
    if (!recorder) return evaluate<op, T>(x.constant()...);
    return {recorder, recorder->add({Step::compute, op, dtype_of<T>(), {x.id(recorder)...}, 0})};
  }

  Recorder* recorder() const { return recorder_; }  // null: a constant that no operation has used yet
  T constant() const { return constant_; }
  uint16_t id(Recorder* recorder) const {
    if (recorder_) return id_;
    uint64_t bits = 0;
    if constexpr (std::is_same_v<T, bool>) bits = constant_ ? 1 : 0;
    else bits = std::bit_cast<UnsignedOf<sizeof(T)>>(constant_);
    return recorder->add({Step::constant, Op::constant, dtype_of<T>(), {}, bits});
  }

 private:
  T constant_{};
  Recorder* recorder_ = nullptr;
  uint16_t id_ = 0;
};

// --- shorthands
// --------------------------------------------------------------------------------------------------------

template <class F>
using Scalar = typename F::Scalar;
template <class F>
using Bits = typename F::template Of<std::conditional_t<sizeof(Scalar<F>) == 4, int32_t, int64_t>>;

/// c[0] + c[1] x + …
template <class F, size_t n>
F horner(F x, const Scalar<F> (&c)[n]) {
  F sum = c[n - 1];
  for (size_t k = n - 1; k-- > 0;) sum = fma(sum, x, F(c[k]));
  return sum;
}

template <class F>
Bits<F> bits(F x) { return bitcast<Scalar<Bits<F>>>(x); }
template <class F>
F from_bits(Bits<F> x) { return bitcast<Scalar<F>>(x); }

/// x, but `limit` when x is above it; a NaN stays. One min instruction where the operands' order is right.
template <class F>
F at_most(F x, F limit) { return select(x > limit, limit, x); }
template <class F>
F at_least(F x, F limit) { return select(x < limit, limit, x); }

}  // namespace fusec::formulas
