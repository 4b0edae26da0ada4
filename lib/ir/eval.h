#pragma once
// The reference evaluator, node by node: slow, obvious, right. `evaluate` (fusec/graph.h) runs whole graphs on it, the constant
// folder single nodes.

#include <span>
#include <vector>

#include "fusec/graph.h"

namespace fusec {

/// The value of one node on known operands. `sizes` has every symbol of the node's type and attributes.
/// Every element is computed in the compute type of its operands and rounded once to the node's dtype. Sums and products of
/// floats accumulate in f64 in row-major order: other orders are judged against them, within bounds.
/// Composites are evaluated as their decomposition.
/// Errors   an argmax of nothing; a result larger than 2^33 bytes; sizes that do not fit.
Result<Tensor> evaluate_node(const Node& node, std::span<const Tensor* const> args, const Sizes& sizes);

/// The nodes whose elements reach an element of an output. The others need no value: what lies before an empty output may be very large
/// (the row maxima of a softmax of [1000,1000,0]).
std::vector<bool> reaching_elements(const Graph& graph, const Sizes& sizes);

}  // namespace fusec
