// Rows that follow from the traits of the op cards: a new op with kProjection has its row the moment its card is written.
//
//   kInvolution   neg(neg(x)) → x          kIdempotent  max(x, x) → x
//   kProjection   floor(floor(x)) → floor(x), and any rounding of a rounding is the inner one

#include "lib/passes/rules.h"

namespace fusec {
namespace {

using namespace patterns;

std::vector<RewriteRule> from_traits() {
  std::vector<RewriteRule> rules;
  for (int k = 0; k < kOps; k++) {
    const Op op = Op(k);
    const std::string op_name(name(op));
    if (has(op, kInvolution) && op != Op::not_)  // ~ stands for not too
      rules.push_back({op_name + "-twice", apply(op, apply(op, x)), x, exact});
    if (has(op, kProjection)) rules.push_back({op_name + "-twice", apply(op, apply(op, x)), apply(op, x), exact});
    if (has(op, kIdempotent)) rules.push_back({op_name + "-self", node(op, {x, x}), x, exact});
  }
  const Op roundings[] = {Op::ceil, Op::floor, Op::round_even, Op::trunc};
  for (Op outer : roundings)
    for (Op inner : roundings)
      if (outer != inner)
        rules.push_back({std::string(name(outer)) + "-" + std::string(name(inner)), apply(outer, apply(inner, x)), apply(inner, x), exact});
  return rules;
}

}  // namespace

const std::vector<RewriteRule>& trait_rules() {
  static const std::vector<RewriteRule> rules = from_traits();
  return rules;
}

std::vector<const std::vector<RewriteRule>*> simplify_tables() {
  return {&trait_rules(), &identities(), &compares(), &bit_rules(), &casts()};
}

std::vector<const std::vector<RewriteRule>*> rule_tables() {
  std::vector<const std::vector<RewriteRule>*> tables = simplify_tables();
  tables.push_back(&activations());
  return tables;
}

}  // namespace fusec
