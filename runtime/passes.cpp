#include "runtime/passes.h"

#include "lib/ir/decompose.h"
#include "lib/passes/pipeline.h"

namespace fusec {

Result<Graph> optimise(const Graph& graph, Numerics numerics, const std::vector<std::string>& disabled_rules, const Switches& switches,
                       Trace& trace) {
  PassOptions options = switches.pass;
  options.numerics = numerics;
  options.disable.insert(disabled_rules.begin(), disabled_rules.end());
  Result<Graph> simple = run_pipeline(graph, options, trace);
  if (!simple) return simple.error();
  return decompose(*simple);  // nothing is left to do, unless the pass was disabled
}

}  // namespace fusec
