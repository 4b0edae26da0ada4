// How far every formula is from the truth: never further than docs/numerics.md states. The C library in a wider type
// judges a large sample; MPFR judges a part of it and the worst input found, and so the C library too.

#include <gtest/gtest.h>

#include "test/ir/formula_mpfr.h"
#include "test/ir/formula_native.h"
#include "test/ir/formula_reference.h"
#include "test/ir/formula_sample.h"
#include "test/ir/formula_table.h"

namespace fusec {
namespace {

const std::string kTable = std::string(FUSEC_SOURCE_DIR) + "/docs/numerics.md";
constexpr double kAlpha = 0.25, kBeta = 0.5;

/// Where the table makes no promise: f64 angles beyond 2^45 count as 0.
template <class T>
bool outside(Op op, T x) {
  const bool circular = op == Op::sin || op == Op::cos || op == Op::tan;
  return circular && sizeof(T) == 8 && std::fabs(x) > T(0x1p45) && !std::isinf(x);
}

/// Operands with which MPFR and the C library need not agree on signs and special cases.
template <class T>
bool ordinary(T x) { return std::isfinite(x) && x != 0; }

template <class T, class R>
void expect_accuracy(Op op, const FormulaRow& row, size_t samples, size_t judged_by_mpfr) {
  const double bound = row.bound(formulas::dtype_of<T>());
  const int operands = info(op).arity;
  constexpr size_t kBlock = 4096;
  std::vector<T> x(kBlock), y(kBlock), out(kBlock);
  Sample<T> sample(static_cast<uint64_t>(op) + 1);
  double worst = 0;
  T worst_x = 1, worst_y = 1, worst_out = 0;
  size_t mpfr_left = judged_by_mpfr;
  const auto judge = [&](T a, T b, T value) {
    return big_ulps(value, exact_value(op, Big(a), Big(b), Big(T(kAlpha)), Big(T(kBeta))));
  };
  for (size_t start = 0; start < samples; start += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) {
      x[i] = operands == 1 ? sample.next(start + i) : sample.any();
      y[i] = sample.any();
    }
    formulas::native<T>(op, x.data(), y.data(), out.data(), kBlock, T(kAlpha), T(kBeta));
    for (size_t i = 0; i < kBlock; ++i) {
      if (outside(op, x[i])) {
        if (op != Op::tan) {
          ASSERT_LE(std::fabs(out[i]), T(1));
        }
        continue;
      }
      const double error = ulps<T, R>(out[i], reference<R>(op, x[i], y[i], T(kAlpha), T(kBeta)));
      ASSERT_LE(error, bound) << name(op) << " of " << x[i] << ", " << y[i] << " gave " << out[i];
      if (error > worst) worst = error, worst_x = x[i], worst_y = y[i], worst_out = out[i];
      if (mpfr_left > 0 && i % 7 == 0 && ordinary(x[i]) && ordinary(y[i])) {
        --mpfr_left;
        ASSERT_LE(judge(x[i], y[i], out[i]), bound) << name(op) << " of " << x[i] << ", " << y[i] << " by MPFR";
      }
    }
  }
  if (ordinary(worst_x) && ordinary(worst_y)) {
    EXPECT_NEAR(judge(worst_x, worst_y, worst_out), worst, 0.3) << name(op) << " of " << worst_x << ": judges differ";
  }
}

/// Every pair of special values: zeros, infinities, NaN, odd and even integers, the smallest and largest numbers.
template <class T, class R>
void expect_special_values(Op op, double bound) {
  using L = std::numeric_limits<T>;
  const T odd_limit = std::ldexp(T(1), L::digits);  // beyond it every number is even
  std::vector<T> values = {0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 7, 1e3, odd_limit - 1, odd_limit, odd_limit + 2, 1 - L::epsilon(),
                           1 + L::epsilon(), L::min(), L::denorm_min(), 3 * L::denorm_min(), L::max(), L::infinity(),
                           L::quiet_NaN()};
  for (size_t k = 0, n = values.size(); k < n; ++k) values.push_back(-values[k]);
  for (T x : values)
    for (T y : values) {
      if (outside(op, x)) continue;
      const T value = formulas::native<T>(op, x, y, T(kAlpha), T(kBeta));
      EXPECT_LE((ulps<T, R>(value, reference<R>(op, x, y, T(kAlpha), T(kBeta)))), bound)
          << name(op) << " of " << x << ", " << y << " gave " << value;
    }
}

class FormulaAccuracy : public ::testing::TestWithParam<int> {};

TEST_P(FormulaAccuracy, stays_within_the_stated_bounds) {
  const Op op = static_cast<Op>(GetParam());
  const auto rows = formula_rows(kTable);
  const auto row = rows.find(std::string(name(op)));
  ASSERT_NE(row, rows.end()) << "no row in docs/numerics.md";
  expect_accuracy<float, double>(op, row->second, 1 << 20, 1 << 11);
  expect_accuracy<double, long double>(op, row->second, 1 << 18, 1 << 12);
  expect_special_values<float, double>(op, row->second.bound(DType::f32));
  expect_special_values<double, long double>(op, row->second.bound(DType::f64));
  EXPECT_EQ(std::to_string(working_steps(*formula(op, DType::f32))), row->second.cells[FormulaRow::f32_steps]);
  EXPECT_EQ(std::to_string(working_steps(*formula(op, DType::f64))), row->second.cells[FormulaRow::f64_steps]);
}

std::vector<int> formula_ops() {
  std::vector<int> ops;
  for (int k = 0; k < kOps; ++k)
    if (info(static_cast<Op>(k)).form == Form::formula) ops.push_back(k);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, FormulaAccuracy, ::testing::ValuesIn(formula_ops()),
                         [](const auto& which) { return std::string(name(static_cast<Op>(which.param))); });

}  // namespace
}  // namespace fusec
