#pragma once
// What compile() does to a graph before it is fused: the pass pipeline, then composites become primitives.

#include "lib/passes/switches.h"

namespace fusec {

/// Errors   input: a rule or pass of that name does not exist; internal: a pass broke the graph.
Result<Graph> optimise(const Graph& graph, Numerics numerics, const std::vector<std::string>& disabled_rules, const Switches& switches,
                       Trace& trace);

}  // namespace fusec
