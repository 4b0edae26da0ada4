#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// Evaluates nodes whose operands are all known.
/// Takes    a verified graph, sizes symbolic or not (a node with a symbolic dim is never known).
/// Returns  the graph with such nodes replaced by constants. The value is the reference evaluator's: the same meaning as at run time.
/// Ensures  no new constant above kLargestFold bytes, and no node with more than kLargestOperand bytes of operands is evaluated;
///          broadcasts and iota stay (they are cheaper than the memory they stand for).
/// Errors   none: what the evaluator refuses stays.
Result<Graph> fold_constants(const Graph& graph, PassContext& context);

inline constexpr int64_t kLargestFold = 64 << 10, kLargestOperand = 4 << 20;

}  // namespace fusec
