#pragma once
// What compile() does to a graph before it is fused: the pass pipeline, then composites become primitives.

#include "fusec/graph.h"

namespace fusec {

/// Errors   input: a rule or pass of that name does not exist; internal: a pass broke the graph.
Result<Graph> optimise(const Graph& graph, Numerics numerics, const std::vector<std::string>& disabled_rules);

}  // namespace fusec
