// add 2.0, %x → add %x, 2.0 and the like; the forms are those of add_canonical, so that rules which build nodes agree with it.

#include "lib/passes/canonicalise.h"

namespace fusec {

Result<Graph> canonicalise(const Graph& graph, PassContext& context) {
  static const RuleSet none({});
  return rewrite(graph, none, context.numerics, context.rules);
}

}  // namespace fusec
