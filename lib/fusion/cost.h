#pragma once
// Bytes and arithmetic of nodes and groups. Sizes come from the types; a symbol without a size counts as 4096.

#include <cstdint>

#include "fusec/graph.h"
#include "lib/fusion/group.h"

namespace fusec {

/// Arithmetic of an elementwise op for one element, in adds: of a formula what its steps for that result come to, else its card's cost.
int op_cost(Op op, DType result);
/// Bytes of a node's value in memory.
double value_bytes(const Graph& graph, NodeId id, const Sizes& sizes = {});
/// Arithmetic of a node over all its elements, in adds (a reduction counts its operand's elements).
double node_work(const Graph& graph, NodeId id, const Sizes& sizes = {});
/// Bytes a group moves: each input read once, each output written once. What a slice leaves out is still counted: an upper bound.
double traffic(const Graph& graph, const Group& group, const Sizes& sizes = {});
/// Bytes of the same nodes run one kernel a node: each operand read, each result written. Leaves, and views that only rename
/// memory (reshape, broadcast), move nothing.
double unfused_traffic(const Graph& graph, const Sizes& sizes = {});
size_t unfused_kernels(const Graph& graph);

}  // namespace fusec
