// Activations as exporters write them out, and the one op each of them is. The function is the same, its arithmetic is not, so these
// rows are for `fused` and `fast`. Constants may have been rounded to a narrow type on their way here.

#include <cmath>
#include <string>

#include "lib/ir/convert.h"
#include "lib/passes/rules.h"

namespace fusec {
namespace {

using namespace patterns;

bool near(const Tensor& t, double wanted) {
  const double tolerance = t.dtype == DType::f64 || t.dtype == DType::f32 ? 1e-6 : 4e-3;
  return std::fabs(element(t, 0) - wanted) <= tolerance * wanted;
}

bool root_half(const Match& m) { return near(m.c(), 0.70710678118654752); }
bool root_two(const Match& m) { return near(m.c(), 1.4142135623730951); }
bool tanh_constants(const Match& m) { return near(m.c(), 0.79788456080286536) && near(m.d(), 0.044715); }

Pattern sigmoid(Pattern p) { return apply(Op::sigmoid, std::move(p)); }
Pattern exp(Pattern p) { return apply(Op::exp, std::move(p)); }

/// x / 2 * inner, in the three ways to set the brackets.
void add_halves(std::vector<RewriteRule>& rules, const std::string& base, const Pattern& inner, Op op, bool (*when)(const Match&)) {
  rules.push_back({base + "-1", (x * inner) * 0.5, apply(op, x), fused, when});
  rules.push_back({base + "-2", (x * 0.5) * inner, apply(op, x), fused, when});
  rules.push_back({base + "-3", x * (inner * 0.5), apply(op, x), fused, when});
}

void add_gelus(std::vector<RewriteRule>& rules) {
  add_halves(rules, "gelu-mul", apply(Op::erf, x * c) + 1, Op::gelu, root_half);
  add_halves(rules, "gelu-div", apply(Op::erf, x / c) + 1, Op::gelu, root_two);
  const std::pair<const char*, Pattern> cubes[] = {{"pow", node(Op::pow, {x, 3})}, {"mul", (x * x) * x}};
  for (const auto& [spelling, cube] : cubes)
    add_halves(rules, std::string("gelu-tanh-") + spelling, apply(Op::tanh, (cube * d + x) * c) + 1, Op::gelu_tanh, tanh_constants);
  const Pattern bracket = (x * x) * d + 1;
  add_halves(rules, "gelu-tanh-outer", apply(Op::tanh, (x * bracket) * c) + 1, Op::gelu_tanh, tanh_constants);
  add_halves(rules, "gelu-tanh-inner", apply(Op::tanh, (x * c) * bracket) + 1, Op::gelu_tanh, tanh_constants);
}

std::vector<RewriteRule> table() {
  std::vector<RewriteRule> rules = {
      //  name               find                                           put                        holds
      {"sigmoid",            apply(Op::reciprocal, exp(-x) + 1),            sigmoid(x),                fused},
      {"silu",               x * sigmoid(x),                                apply(Op::silu, x),        fused},
      {"silu-div",           x / (exp(-x) + 1),                             apply(Op::silu, x),        fused},
      {"softplus",           apply(Op::log, exp(x) + 1),                    apply(Op::softplus, x),    fused},
      {"softplus-log1p",     apply(Op::log1p, exp(x)),                      apply(Op::softplus, x),    fused},
      {"mish",               x * apply(Op::tanh, apply(Op::softplus, x)),   apply(Op::mish, x),        fused},
  };
  add_gelus(rules);
  return rules;
}

}  // namespace

const std::vector<RewriteRule>& activations() {
  static const std::vector<RewriteRule> rules = table();
  return rules;
}

}  // namespace fusec
