#pragma once
// The formulas as plain C++, for tests: the same templates that formula() records, over the Native algebra.

#include "lib/ir/formulas.h"

namespace fusec::formulas {

/// One value of `op`; 0 for an op without a formula. The scalars alpha and beta are ignored by most.
template <class T>
T native(Op op, T x_value, T y_value = 0, T alpha_value = 0, T beta_value = 0) {
  [[maybe_unused]] const Native<T> x = x_value, y = y_value, alpha = alpha_value, beta = beta_value;
  switch (op) {
#define FORMULA(name, operands, scalars, body) \
  case Op::name:                                \
    return Native<T>(body).value;
#include "lib/ir/formulas.def"
#undef FORMULA
    default:
      return 0;
  }
}

/// The same over an array: the switch is outside the loop, so the compiler vectorises it.
template <class T>
void native(Op op, const T* xs, const T* ys, T* out, size_t n, T alpha_value, T beta_value) {
  [[maybe_unused]] const Native<T> alpha = alpha_value, beta = beta_value;
  switch (op) {
#define FORMULA(name, operands, scalars, body)                         \
  case Op::name:                                                        \
    for (size_t i = 0; i < n; ++i) {                                    \
      [[maybe_unused]] const Native<T> x = xs[i], y = ys[i];            \
      out[i] = Native<T>(body).value;                                  \
    }                                                                   \
    return;
#include "lib/ir/formulas.def"
#undef FORMULA
    default:
      return;
  }
}

}  // namespace fusec::formulas
