// The rows do the work: identities.cpp, compares.cpp, bits.cpp, casts.cpp, trait_rules.cpp.
//
//   %a = mul %x, 1.0     %b = neg %a     %c = neg %b     return %c     →     return %x

#include "lib/passes/simplify.h"

#include "lib/passes/rules.h"

namespace fusec {

Result<Graph> simplify(const Graph& graph, PassContext& context) {
  static const RuleSet rules(simplify_tables());
  return rewrite(graph, rules, context.numerics, context.rules);
}

}  // namespace fusec
