#pragma once
// Questions about one number for each row: what softmax and the norms are made of.

#include <vector>

#include "fusec/graph.h"

namespace fusec {

/// A value that has one element for each row of some x, seen through the views that line it up with x.
/// Takes    a node whose value is combined with x: itself, or behind broadcasts and reshapes.
/// Returns  the node below those views when they line its rows up with x's rows (`axes` are one in it, all others x's own); null when
///          they do not: the column sums of a square matrix, say, set beside its rows.
const Node* row_value(const Graph& graph, NodeId id, const Shape& x, const std::vector<int64_t>& axes);

/// Is the value the number of elements along `axes` of `shape`: a constant, or a cast of `size`?
bool is_count(const Graph& graph, NodeId id, const Shape& shape, const std::vector<int64_t>& axes);

/// Is the node a mean of x over exactly `axes`: the composite, or sum / count, or sum * (1 / count)?
bool is_mean(const Graph& graph, const Node& node, NodeId x, const std::vector<int64_t>& axes);

}  // namespace fusec
