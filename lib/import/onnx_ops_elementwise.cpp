// Elementwise operators: arithmetic, comparisons, logic. ONNX broadcasts as fusec does, and never promotes types.

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

template <Op op>
void unary(Call& c) {
  c.out(c.add(op, {c.in(0)}));
}

template <Op op>
void binary(Call& c) {
  c.out(c.add(op, {c.in(0), c.in(1)}));
}

/// Sum, Max, Min: any number of operands, one after another.
Value fold(Call& c, Op op) {
  Value all = c.in(0);
  for (size_t i = 1; i < c.size(); ++i) all = c.add(op, {all, c.in(i)});
  return all;
}

template <Op op>
void variadic(Call& c) {
  c.out(fold(c, op));
}

void mean(Call& c) {
  const Value sum = fold(c, Op::add);
  c.out(c.size() == 1 ? sum : c.add(Op::div, {sum, c.like(sum, static_cast<double>(c.size()))}));
}

/// The result has the type of the base. Mixed types meet where both fit: two integers in i64, an integer base and a
/// float exponent in f64, a float base takes the exponent in its own type.
void pow(Call& c) {
  const Value x = c.in(0), y = c.in(1);
  if (!x.valid() || !y.valid()) return;
  DType meet = c.dtype(x);
  if (meet != c.dtype(y) && !is_float(meet)) meet = is_float(c.dtype(y)) ? DType::f64 : DType::i64;
  c.out(c.cast(c.add(Op::pow, {c.cast(x, meet), c.cast(y, meet)}), c.dtype(x)));
}

/// fmod=1 takes the sign of the dividend; fmod=0 that of the divisor, before operator set 28 for integers only.
void mod(Call& c) {
  const Value x = c.in(0), y = c.in(1);
  const bool fmod = c.i("fmod", 0) != 0;
  if (!fmod && is_float(c.dtype(x)) && c.opset < 28)
    c.fail("floats need fmod=1 before operator set 28");
  c.out(c.add(fmod ? Op::trunc_mod : Op::floor_mod, {x, y}));
}

void bit_shift(Call& c) {
  const std::string_view direction = c.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.fail("direction is " + quote(direction) + ", not LEFT or RIGHT");
  c.out(c.add(direction == "LEFT" ? Op::shl : Op::shr, {c.in(0), c.in(1)}));
}

void is_inf(Call& c) {
  const Value x = c.in(0);
  const bool negative = c.i("detect_negative", 1) != 0, positive = c.i("detect_positive", 1) != 0;
  Value found = c.add(Op::is_inf, {x});
  if (!negative) found = c.add(Op::and_, {found, c.add(Op::gt, {x, c.like(x, 0)})});
  if (!positive) found = c.add(Op::and_, {found, c.add(Op::lt, {x, c.like(x, 0)})});
  c.out(found);
}

void identity(Call& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  c.outputs[0] = c.item(0);
}

const OpRow kRows[] = {
    //  operator        since  inputs  out  attributes                        import
    {"Abs",                6,  1, 1,    1,  "",                               unary<Op::abs>},
    {"Neg",                6,  1, 1,    1,  "",                               unary<Op::neg>},
    {"Sign",               9,  1, 1,    1,  "",                               unary<Op::sign>},
    {"Ceil",               6,  1, 1,    1,  "",                               unary<Op::ceil>},
    {"Floor",              6,  1, 1,    1,  "",                               unary<Op::floor>},
    {"Round",             11,  1, 1,    1,  "",                               unary<Op::round_even>},
    {"Sqrt",               6,  1, 1,    1,  "",                               unary<Op::sqrt>},
    {"Reciprocal",         6,  1, 1,    1,  "",                               unary<Op::reciprocal>},
    {"Exp",                6,  1, 1,    1,  "",                               unary<Op::exp>},
    {"Log",                6,  1, 1,    1,  "",                               unary<Op::log>},
    {"Sin",                7,  1, 1,    1,  "",                               unary<Op::sin>},
    {"Cos",                7,  1, 1,    1,  "",                               unary<Op::cos>},
    {"Tan",                7,  1, 1,    1,  "",                               unary<Op::tan>},
    {"Asin",               7,  1, 1,    1,  "",                               unary<Op::asin>},
    {"Acos",               7,  1, 1,    1,  "",                               unary<Op::acos>},
    {"Atan",               7,  1, 1,    1,  "",                               unary<Op::atan>},
    {"Sinh",               9,  1, 1,    1,  "",                               unary<Op::sinh>},
    {"Cosh",               9,  1, 1,    1,  "",                               unary<Op::cosh>},
    {"Tanh",               6,  1, 1,    1,  "",                               unary<Op::tanh>},
    {"Asinh",              9,  1, 1,    1,  "",                               unary<Op::asinh>},
    {"Acosh",              9,  1, 1,    1,  "",                               unary<Op::acosh>},
    {"Atanh",              9,  1, 1,    1,  "",                               unary<Op::atanh>},
    {"Erf",                9,  1, 1,    1,  "",                               unary<Op::erf>},
    {"Not",                1,  1, 1,    1,  "",                               unary<Op::not_>},
    {"BitwiseNot",        18,  1, 1,    1,  "",                               unary<Op::bitwise_not>},
    {"IsNaN",              9,  1, 1,    1,  "",                               unary<Op::is_nan>},
    {"IsInf",             10,  1, 1,    1,  "detect_negative detect_positive", is_inf},
    {"Identity",           1,  1, 1,    1,  "",                               identity, Narrow::pass},
    {"Add",                7,  2, 2,    1,  "",                               binary<Op::add>},
    {"Sub",                7,  2, 2,    1,  "",                               binary<Op::sub>},
    {"Mul",                7,  2, 2,    1,  "",                               binary<Op::mul>},
    {"Div",                7,  2, 2,    1,  "",                               binary<Op::div>},
    {"Pow",                7,  2, 2,    1,  "",                               pow},
    {"Mod",               10,  2, 2,    1,  "fmod",                           mod},
    {"And",                7,  2, 2,    1,  "",                               binary<Op::and_>},
    {"Or",                 7,  2, 2,    1,  "",                               binary<Op::or_>},
    {"Xor",                7,  2, 2,    1,  "",                               binary<Op::xor_>},
    {"BitwiseAnd",        18,  2, 2,    1,  "",                               binary<Op::and_>},
    {"BitwiseOr",         18,  2, 2,    1,  "",                               binary<Op::or_>},
    {"BitwiseXor",        18,  2, 2,    1,  "",                               binary<Op::xor_>},
    {"BitShift",          11,  2, 2,    1,  "direction",                      bit_shift},
    {"Equal",              7,  2, 2,    1,  "",                               binary<Op::eq>},
    {"Less",               7,  2, 2,    1,  "",                               binary<Op::lt>},
    {"Greater",            7,  2, 2,    1,  "",                               binary<Op::gt>},
    {"LessOrEqual",       12,  2, 2,    1,  "",                               binary<Op::le>},
    {"GreaterOrEqual",    12,  2, 2,    1,  "",                               binary<Op::ge>},
    {"Max",                6,  1, kAny, 1,  "",                               variadic<Op::max>},
    {"Min",                6,  1, kAny, 1,  "",                               variadic<Op::min>},
    {"Sum",                6,  1, kAny, 1,  "",                               variadic<Op::add>},
    {"Mean",               6,  1, kAny, 1,  "",                               mean},
    {"Where",              9,  3, 3,    1,  "",                               [](Call& c) { c.out(c.add(Op::select, {c.in(0), c.in(1), c.in(2)})); }},
};

}  // namespace

std::span<const OpRow> elementwise_rows() { return kRows; }

}  // namespace fusec::onnx
