// Algebra that never makes a graph worse. Each row lowers the measure of rewriter.h, so rewriting stops.
// What is missing here is missing on purpose: x + 0.0 (turns -0.0 into 0.0), x * 0.0 and x - x (NaN, inf), x / x, log(exp(x)) and
// sqrt(x * x) (overflow) are no identities of floats; the last two are rows for `fast`.

#include <cmath>

#include "lib/ir/convert.h"
#include "lib/passes/rules.h"
#include "lib/rewrite/match.h"

namespace fusec {
namespace {

using namespace patterns;

double number(const Tensor& t) { return element(t, 0); }

/// 1 / c is a power of two of c's type: x / c and x * (1 / c) are then the same real number, rounded once.
bool has_exact_reciprocal(const Match& m) {
  const double c = number(m.c());
  int exponent = 0;
  if (!is_float(m.c().dtype) || c == 0 || !std::isfinite(c) || std::fabs(std::frexp(c, &exponent)) != 0.5) return false;
  // A row's mean keeps its division: one a row costs nothing, and sum / count is what pair_reductions looks for.
  if (is_reduce(m.graph->node(m.values[0]).op)) return false;
  const std::optional<Tensor> r = scalar_tensor(m.c().dtype, 1 / c);
  return r && std::isfinite(number(*r)) && number(*r) == 1 / c;
}

bool is_moderate(const Match& m) {
  const double c = std::fabs(number(m.c()));
  return c > 0x1p-100 && c < 0x1p100 && !is_reduce(m.graph->node(m.values[0]).op);
}

bool is_signed_x(const Match& m) { return is_signed(m.x().dtype); }
bool unsigned_power_of_two(const Match& m) { return is_unsigned_x(m) && is_power_of_two_c(m); }

/// a <= b in their own type: 64-bit integers are more than a double holds.
bool at_most(const Tensor& a, const Tensor& b) {
  const Tensor operands[] = {a, b};
  const std::optional<Tensor> result = evaluate_op(Op::le, operands, {});
  return result && result->data[0] == std::byte{1};
}

/// The clamps [c, d] and then [e, f] overlap (with a NaN they do not), so one to what both allow is enough.
bool clamps_meet(const Match& m) {
  return at_most(m.e(), m.d()) && at_most(m.c(), m.d()) && at_most(m.e(), m.f());
}

}  // namespace

bool is_unsigned_x(const Match& m) { return is_integer(m.x().dtype) && !is_signed(m.x().dtype); }
bool is_boolean_x(const Match& m) { return m.x().dtype == DType::boolean; }
bool is_positive_c(const Match& m) { return number(m.c()) > 0; }

bool is_power_of_two_c(const Match& m) {
  if (!is_integer(m.c().dtype)) return false;
  const double c = number(m.c());  // beyond 2^53 it may round to a power of two: those are left alone
  int exponent = 0;
  return c > 0 && c <= 0x1p52 && std::frexp(c, &exponent) == 0.5;
}

std::optional<Tensor> log2_of_c(const Match& m) {
  int exponent = 0;
  std::frexp(number(m.c()), &exponent);
  return scalar_tensor(m.c().dtype, exponent - 1);
}

const std::vector<RewriteRule>& identities() {
  static const std::vector<RewriteRule> rules = {
      //  name               find                     put                       holds      when
      {"mul-one",            x * 1,                   x,                        exact},
      {"mul-minus-one",      x * -1,                  -x,                       exact},
      {"mul-zero",           x * 0,                   0,                        integers},
      {"div-one",            x / 1,                   x,                        exact},
      {"div-minus-one",      x / -1,                  -x,                       exact},
      {"floor-div-one",      node(Op::floor_div, {x, 1}),  x,                   integers},
      {"floor-mod-one",      node(Op::floor_mod, {x, 1}),  0,                   integers},
      {"trunc-mod-one",      node(Op::trunc_mod, {x, 1}),  0,                   integers},
      {"one-div",            1 / x,                   apply(Op::reciprocal, x), floats},
      {"div-pow2",           x / c,                   x * fold(1 / c),          floats,    has_exact_reciprocal},
      {"add-zero",           x + 0,                   x,                        integers},   // floats: -0.0 + 0.0 is 0.0
      {"add-minus-zero",     x + -0.0,                x,                        floats},
      {"sub-zero",           x - 0,                   x,                        exact},      // -0.0 - 0.0 is -0.0
      {"sub-const",          x - c,                   x + fold(-c),             exact},      // one spelling: constants are added
      {"zero-sub",           0 - x,                   -x,                       integers},   // floats: 0.0 - 0.0 is 0.0
      {"minus-zero-sub",     -0.0 - x,                -x,                       floats},
      {"sub-self",           x - x,                   0,                        integers},
      {"add-neg",            x + -y,                  x - y,                    exact},
      {"sub-neg",            x - -y,                  x + y,                    exact},
      {"neg-sub",            -(x - y),                y - x,                    integers},   // floats: -(x - x) is -0.0
      {"mul-neg-neg",        -x * -y,                 x * y,                    exact},
      {"div-neg-neg",        -x / -y,                 x / y,                    floats},     // i8: -128 / -2 would be -64
      {"mul-neg-const",      -x * c,                  x * fold(-c),             exact},
      {"div-neg-const",      -x / c,                  x / fold(-c),             floats},
      {"neg-mul-const",      -once(x * c),            x * fold(-c),             exact},
      {"neg-div-const",      -once(x / c),            x / fold(-c),             floats},
      {"add-const",          (x + c) + d,             x + fold(c + d),          integers},
      {"add-const-fast",     (x + c) + d,             x + fold(c + d),          fast},
      {"mul-const",          (x * c) * d,             x * fold(c * d),          integers},
      {"mul-const-fast",     (x * c) * d,             x * fold(c * d),          fast},
      {"sub-sub-const",      (c - x) + d,             fold(c + d) - x,          integers},
      {"const-sub-add",      c - (x + d),             fold(c - d) - x,          integers},
      {"const-sub-sub",      c - (d - x),             x + fold(c - d),          integers},
      {"neg-add-const",      -once(x + c),            fold(-c) - x,             integers},
      {"add-sub-back",       (x - y) + y,             x,                        integers},
      {"sub-add-back",       (x + y) - y,             x,                        integers},
      {"factor",             once(x * y) + once(x * z),  x * (y + z),           integers},
      {"factor-fast",        once(x * y) + once(x * z),  x * (y + z),           fast},
      {"udiv-pow2",          x / c,                   x >> derived(log2_of_c),  integers,  unsigned_power_of_two},
      {"floor-div-pow2",     node(Op::floor_div, {x, c}),  x >> derived(log2_of_c),  integers,  is_power_of_two_c},
      {"floor-mod-pow2",     node(Op::floor_mod, {x, c}),  x & fold(c - 1),     integers,  is_power_of_two_c},
      {"trunc-mod-pow2",     node(Op::trunc_mod, {x, c}),  x & fold(c - 1),     integers,  unsigned_power_of_two},

      {"abs-neg",            abs(-x),                 abs(x),                   exact,     is_signed_x},
      {"abs-unsigned",       abs(x),                  x,                        integers,  is_unsigned_x},
      {"abs-square",         abs(x * x),              x * x,                    floats},     // integers wrap below zero
      {"square-abs",         abs(x) * abs(x),         x * x,                    exact},
      {"relu-unsigned",      relu(x),                 x,                        integers,  is_unsigned_x},
      {"relu-abs",           relu(abs(x)),            abs(x),                   floats},     // integers: |MIN| is MIN
      {"abs-relu",           abs(relu(x)),            relu(x),                  integers},   // floats: relu(-0.0) is -0.0
      {"abs-exp",            abs(apply(Op::exp, x)),  apply(Op::exp, x),        exact},
      {"relu-exp",           relu(apply(Op::exp, x)), apply(Op::exp, x),        exact},
      {"abs-sigmoid",        abs(apply(Op::sigmoid, x)),  apply(Op::sigmoid, x),    exact},
      {"relu-sigmoid",       relu(apply(Op::sigmoid, x)), apply(Op::sigmoid, x),    exact},

      {"max-lowest",         max(x, lowest),          x,                        exact},
      {"min-highest",        min(x, highest),         x,                        exact},
      {"max-highest",        max(x, highest),         highest,                  integers},   // floats: a NaN stays
      {"min-lowest",         min(x, lowest),          lowest,                   integers},
      {"max-const",          max(max(x, c), d),       max(x, fold(max(c, d))),  exact},
      {"min-const",          min(min(x, c), d),       min(x, fold(min(c, d))),  exact},
      {"max-max",            max(x, max(x, y)),       max(x, y),                integers},
      {"min-min",            min(x, min(x, y)),       min(x, y),                integers},
      {"max-min",            max(x, min(x, y)),       x,                        integers},   // floats: y may be NaN
      {"min-max",            min(x, max(x, y)),       x,                        integers},
      {"max-zero",           max(x, 0),               relu(x),                  exact},
      {"min-max-const",      min(max(x, c), d),       clamp(x, c, d),           exact},
      {"min-relu",           min(relu(x), c),         clamp(x, 0, c),           exact},
      {"relu-min",           relu(min(x, c)),         clamp(x, 0, c),           exact,     is_positive_c},
      {"max-relu",           max(relu(x), c),         max(x, c),                exact,     is_positive_c},
      {"relu-max",           relu(max(x, c)),         max(x, c),                exact,     is_positive_c},
      {"clamp-max",          clamp(max(x, c), d, e),  clamp(x, fold(max(c, d)), e),     exact},
      {"min-clamp",          min(clamp(x, c, d), e),  clamp(x, c, fold(min(d, e))),     exact},
      {"clamp-clamp",        clamp(clamp(x, c, d), e, f),  clamp(x, fold(max(c, e)), fold(min(d, f))),  exact,  clamps_meet},
      {"relu-clamp",         relu(clamp(x, c, d)),    clamp(x, c, d),           exact,
       [](const Match& m) { return number(m.c()) > 0 && number(m.d()) > 0; }},

      {"pow-one",            node(Op::pow, {x, 1}),   x,                        exact},
      {"pow-zero",           node(Op::pow, {x, 0}),   1,                        exact},
      {"pow-two",            node(Op::pow, {x, 2}),   x * x,                    exact},
      {"pow-half-fast",      node(Op::pow, {x, 0.5}), apply(Op::sqrt, x),       fast},
      {"pow-minus-one-fast", node(Op::pow, {x, -1}),  apply(Op::reciprocal, x), fast},
      {"log-exp-fast",       apply(Op::log, apply(Op::exp, x)),   x,            fast},
      {"exp-log-fast",       apply(Op::exp, apply(Op::log, x)),   x,            fast},
      {"sqrt-square-fast",   apply(Op::sqrt, x * x),  abs(x),                   fast},
      {"rsqrt-fast",         apply(Op::reciprocal, apply(Op::sqrt, x)),  apply(Op::rsqrt, x),      fast},
      {"div-sqrt-fast",      x / apply(Op::sqrt, y),  x * apply(Op::rsqrt, y),  fast},
      {"div-const-fast",     x / c,                   x * fold(1 / c),          fast,      is_moderate},
  };
  return rules;
}

}  // namespace fusec
