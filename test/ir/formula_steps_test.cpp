// The steps of every formula: well formed, and interpreted they give the bits that the same templates give as plain
// C++.

#include "lib/ir/formula.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "test/ir/formula_native.h"

namespace fusec {
namespace {

/// One exact primitive on bits, written from ops.def alone, without the algebra of the formulas.
template <class T>
uint64_t step_value(const Step& step, DType from, const uint64_t* v) {
  using U = formulas::UnsignedOf<sizeof(T)>;
  const auto x = std::bit_cast<T>(static_cast<U>(v[0]));
  const auto y = std::bit_cast<T>(static_cast<U>(v[1]));
  const auto z = std::bit_cast<T>(static_cast<U>(v[2]));
  const auto put = [](T value) { return uint64_t{std::bit_cast<U>(value)}; };
  switch (step.op) {
    case Op::eq: return x == y;
    case Op::ne: return x != y;
    case Op::lt: return x < y;
    case Op::le: return x <= y;
    case Op::gt: return x > y;
    case Op::ge: return x >= y;
    case Op::min: return std::isnan(double(x)) || x < y ? put(x) : put(y);
    case Op::max: return std::isnan(double(x)) || x > y ? put(x) : put(y);
    default: break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (step.op) {
      case Op::add: return put(x + y);
      case Op::sub: return put(x - y);
      case Op::mul: return put(x * y);
      case Op::div: return put(x / y);
      case Op::fma: return put(std::fma(x, y, z));
      case Op::neg: return put(-x);
      case Op::abs: return put(std::fabs(x));
      case Op::sqrt: return put(std::sqrt(x));
      case Op::floor: return put(std::floor(x));
      case Op::trunc: return put(std::trunc(x));
      case Op::round_even: return put(std::nearbyint(x));
      case Op::copysign: return put(std::copysign(x, y));
      case Op::is_nan: return std::isnan(x);
      default: break;
    }
  } else {
    const U a = static_cast<U>(x), b = static_cast<U>(y);
    const bool wide = b >= 8 * sizeof(T), negative = std::is_signed_v<T> && x < 0;
    switch (step.op) {
      case Op::add: return U(a + b);
      case Op::sub: return U(a - b);
      case Op::mul: return U(a * b);
      case Op::and_: return a & b;
      case Op::or_: return a | b;
      case Op::xor_: return a ^ b;
      case Op::neg: return U(0 - a);
      case Op::shl: return wide ? 0 : U(a << b);
      case Op::shr: return wide ? (negative ? U(-1) : 0) : negative ? U(~(U(~a) >> b)) : U(a >> b);
      case Op::trunc_div: return b == 0 ? 0 : b == U(-1) && std::is_signed_v<T> ? U(0 - a) : put(x / y);
      default: break;
    }
  }
  ADD_FAILURE() << "no meaning for " << name(step.op) << " on " << name(from);
  return 0;
}

template <class To, class From>
uint64_t cast_value(From x) {
  using U = formulas::UnsignedOf<sizeof(To)>;
  if constexpr (std::is_floating_point_v<To>) return std::bit_cast<U>(static_cast<To>(x));
  else if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(x)) return 0;
    const long double wide = x;  // holds every integer of 64 bits
    if (wide <= static_cast<long double>(std::numeric_limits<To>::min())) return U(std::numeric_limits<To>::min());
    if (wide >= static_cast<long double>(std::numeric_limits<To>::max())) return U(std::numeric_limits<To>::max());
    return static_cast<U>(static_cast<To>(x));
  } else return static_cast<U>(static_cast<To>(x));
}

/// visit(T{}) for the C++ type behind `type`.
template <class Visit>
uint64_t with_type(DType type, Visit visit) {
  switch (type) {
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::i8: return visit(int8_t{});
    case DType::i16: return visit(int16_t{});
    case DType::u8: return visit(uint8_t{});
    case DType::u16: return visit(uint16_t{});
    case DType::i32: return visit(int32_t{});
    case DType::u32: return visit(uint32_t{});
    case DType::i64: return visit(int64_t{});
    case DType::u64: return visit(uint64_t{});
    default: break;
  }
  ADD_FAILURE() << "steps do not compute in " << name(type);
  return 0;
}

uint64_t interpret(const Formula& f, const uint64_t* parameters) {
  std::vector<uint64_t> values(f.steps.size());
  for (size_t k = 0; k < f.steps.size(); ++k) {
    const Step& step = f.steps[k];
    if (step.kind == Step::parameter) values[k] = parameters[step.bits];
    if (step.kind == Step::constant) values[k] = step.bits;
    if (step.kind != Step::compute) continue;
    uint64_t v[3];
    for (int j = 0; j < 3; ++j) v[j] = values[step.args[j]];
    const DType from = f.steps[step.args[0]].type;
    if (step.op == Op::select) values[k] = v[0] ? v[1] : v[2];
    else if (step.op == Op::bitcast) values[k] = v[0];
    else if (from == DType::boolean)
      values[k] = step.op == Op::and_ ? v[0] & v[1] : step.op == Op::or_ ? v[0] | v[1] : v[0] ^ v[1];
    else if (step.op == Op::cast)
      values[k] = with_type(from, [&](auto x) {
        using From = decltype(x);
        using U = formulas::UnsignedOf<sizeof(From)>;
        const From value = std::bit_cast<From>(static_cast<U>(v[0]));
        return with_type(step.type, [&](auto to) { return cast_value<decltype(to)>(value); });
      });
    else values[k] = with_type(from, [&](auto x) { return step_value<decltype(x)>(step, from, v); });
  }
  return values.back();
}

template <class T>
std::vector<T> interesting() {
  using L = std::numeric_limits<T>;
  const T e = L::epsilon();
  std::vector<T> values = {0, 1, 0.5, 2, 3, T(0.1), T(3.14159265), 10, 88, 104, 700, 746, 1000, 1e9, T(1e30), 1 - e, 1 + e,
                           e, L::min(), L::max(), L::denorm_min(), L::infinity(), L::quiet_NaN()};
  for (size_t k = 0, n = values.size(); k < n; ++k) values.push_back(-values[k]);
  return values;
}

template <class T>
void expect_same_bits(Op op) {
  using U = formulas::UnsignedOf<sizeof(T)>;
  const Formula* f = formula(op, formulas::dtype_of<T>());
  ASSERT_TRUE(f) << name(op);
  const std::vector<T> special = interesting<T>();
  std::mt19937_64 random(7);
  const int count = f->operands == 1 ? 20000 : 40000;
  for (int i = 0; i < count; ++i) {
    const size_t n = special.size();
    T in[4];
    for (int k = 0; k < 4; ++k) in[k] = std::bit_cast<T>(static_cast<U>(random()));
    if (i < static_cast<int>(n * n)) in[0] = special[i % n], in[1] = special[i / n];
    else if (i % 2) for (T& x : in) x = static_cast<T>(std::ldexp(double(int64_t(random())), int(random() % 24) - 76));
    in[f->operands] = T(0.25), in[f->operands + 1] = T(0.5);
    uint64_t parameters[4];
    for (int k = 0; k < 4; ++k) parameters[k] = std::bit_cast<U>(in[k]);
    const T native = formulas::native(op, in[0], in[1], in[f->operands], in[f->operands + 1]);
    const T steps = std::bit_cast<T>(static_cast<U>(interpret(*f, parameters)));
    if (std::isnan(native) && std::isnan(steps)) continue;
    ASSERT_EQ(std::bit_cast<U>(native), std::bit_cast<U>(steps)) << name(op) << " of " << in[0] << ", " << in[1];
  }
}

TEST(FormulaSteps, interpreted_give_the_bits_of_the_native_algebra) {
  for (int k = 0; k < kOps; ++k) {
    const Op op = static_cast<Op>(k);
    if (info(op).form != Form::formula) continue;
    expect_same_bits<float>(op);
    expect_same_bits<double>(op);
  }
}

/// What the reader of steps relies on: parameters first to last, arguments earlier, operand types as ops.def wants
/// them.
void expect_well_formed(const Formula& f) {
  ASSERT_FALSE(f.steps.empty());
  EXPECT_EQ(f.steps.back().type, f.type);
  for (size_t k = 0; k < f.steps.size(); ++k) {
    const Step& step = f.steps[k];
    if (step.kind == Step::parameter) {
      EXPECT_LT(step.bits, f.operands + f.scalars);
      EXPECT_EQ(step.type, f.type);
    }
    if (step.kind != Step::compute) continue;
    const OpInfo& card = info(step.op);
    ASSERT_EQ(card.form, Form::exact) << card.name;
    for (int j = 0; j < card.arity; ++j) ASSERT_LT(step.args[j], k);
    const auto type = [&](int j) { return f.steps[step.args[j]].type; };
    if (card.rule == Rule::select) {
      EXPECT_EQ(type(0), DType::boolean);
      EXPECT_EQ(type(1), step.type);
      EXPECT_EQ(type(2), step.type);
    } else if (card.rule == Rule::same) {
      for (int j = 0; j < card.arity; ++j) EXPECT_EQ(type(j), step.type) << card.name;
    } else if (card.rule == Rule::compare || card.rule == Rule::test) {
      EXPECT_EQ(step.type, DType::boolean);
      for (int j = 1; j < card.arity; ++j) EXPECT_EQ(type(j), type(0)) << card.name;
    } else if (card.rule == Rule::bitcast) {
      EXPECT_EQ(bytes(type(0)), bytes(step.type));
    } else {
      EXPECT_EQ(card.rule, Rule::cast);
    }
    if (card.domain == Domain::floats) { EXPECT_TRUE(is_float(type(0))) << card.name; }
    if (card.domain == Domain::integers) { EXPECT_TRUE(is_integer(type(0))) << card.name; }
    if (card.domain == Domain::bits) { EXPECT_FALSE(is_float(type(0))) << card.name; }
  }
}

TEST(FormulaSteps, are_well_formed_and_exist_for_every_float_formula) {
  for (int k = 0; k < kOps; ++k) {
    const Op op = static_cast<Op>(k);
    if (info(op).form != Form::formula) continue;
    for (DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
      SCOPED_TRACE(std::string(name(op)) + " " + std::string(name(type)));
      const Formula* f = formula(op, type);
      ASSERT_TRUE(f);
      EXPECT_EQ(f->operands, info(op).arity);
      EXPECT_EQ(formula(op, type), f);
      expect_well_formed(*f);
    }
  }
}

/// x^y by y multiplications.
template <class T>
void expect_integer_powers() {
  using U = formulas::UnsignedOf<sizeof(T)>;
  const Formula* f = formula(Op::pow, formulas::dtype_of<T>());
  ASSERT_TRUE(f);
  expect_well_formed(*f);
  const auto steps = [&](T x, T y) {
    const uint64_t parameters[] = {static_cast<U>(x), static_cast<U>(y)};
    return static_cast<T>(interpret(*f, parameters));
  };
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const T x = i < 40 ? static_cast<T>(i - 20) : static_cast<T>(random());
    U power = 1;
    for (int y = 0; y < 120; ++y, power = static_cast<U>(power * static_cast<U>(x)))
      ASSERT_EQ(steps(x, static_cast<T>(y)), static_cast<T>(power)) << int64_t(x) << "^" << y;
    const T large = static_cast<T>(random() >> 1 | random() % 2);  // x^(2k + b) = (x x)^k x^b
    if (large < 2) continue;
    const U left = static_cast<U>(steps(static_cast<T>(static_cast<U>(x) * uint64_t{static_cast<U>(x)}), large / 2));
    ASSERT_EQ(static_cast<U>(steps(x, large)), static_cast<U>(left * uint64_t{large % 2 ? static_cast<U>(x) : U(1)}));
  }
  if constexpr (std::is_signed_v<T>) {
    for (int y : {-1, -2, -3, -127, -128}) {
      for (int x : {2, -2, 3, 7, 127, -128, 0})
        EXPECT_EQ(steps(static_cast<T>(x), static_cast<T>(y)), 0) << x << "^" << y;
      EXPECT_EQ(steps(1, static_cast<T>(y)), 1);
      EXPECT_EQ(steps(-1, static_cast<T>(y)), y % 2 ? -1 : 1);
    }
    EXPECT_EQ(steps(3, std::numeric_limits<T>::min()), 0);
  }
}

TEST(FormulaSteps, integer_powers_wrap_and_negative_exponents_truncate) {
  expect_integer_powers<int8_t>();
  expect_integer_powers<int16_t>();
  expect_integer_powers<int32_t>();
  expect_integer_powers<int64_t>();
  expect_integer_powers<uint8_t>();
  expect_integer_powers<uint16_t>();
  expect_integer_powers<uint32_t>();
  expect_integer_powers<uint64_t>();
}

TEST(FormulaSteps, other_ops_and_types_have_none) {
  EXPECT_EQ(formula(Op::add, DType::f32), nullptr);
  EXPECT_EQ(formula(Op::add, DType::bf16), nullptr);
  EXPECT_EQ(formula(Op::exp, DType::i32), nullptr);
}

}  // namespace
}  // namespace fusec
