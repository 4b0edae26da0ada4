#pragma once
// The normal form of one node, so that rules and people see one spelling of each thing.

#include "fusec/graph.h"

namespace fusec {

/// Adds a node in normal form; the value has the type and, bit for bit, the elements that the plain node would have.
///   add 2.0, %x                     →  add %x, 2.0            constants stand right (float min and max of a zero stay: its sign)
///   lt 2.0, %x                      →  gt %x, 2.0
///   add %x, (broadcast %v, shape)   →  add %x, %v             where the result is as large without it
///   constant of equal elements      →  broadcast of a scalar
///   trunc_div of integers           →  div                    bitwise_not of bool → not
Value add_canonical(GraphBuilder& b, Op op, std::vector<Value> args, Attrs attrs);

/// May the two operands be exchanged without a bit changing? Not those of a float min or max with a zero: max(-0.0, 0.0) is its first
/// operand.
bool may_swap(const GraphBuilder& b, Op op, Value left, Value right);

}  // namespace fusec
