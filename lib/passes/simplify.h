#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// Applies the rule tables of rules.h until none fires.
/// Takes    a verified graph; composites may be in it.
/// Returns  a graph in normal form (canonicalise.h) that computes the same: under strict the same bits, under fused and fast also what
///          rows marked so allow.
/// Ends     because each row lowers the measure of rewriter.h. Near linear; the stack does not grow with the graph.
/// Errors   internal only: a row that builds an ill-typed node, with its name.
Result<Graph> simplify(const Graph& graph, PassContext& context);

}  // namespace fusec
