#pragma once
// The reference cells over arrays: one loop for each exact primitive and compute type, chosen once a node, not once an element.

#include <cstddef>

#include "fusec/op.h"
#include "fusec/type.h"

namespace fusec {

/// out[i] = op(x[i], y[i], z[i]) for i < n; operands that the op lacks are ignored. Elements are of compute type; bool is one
/// byte, 0 or 1. out may be one of the operands.
using CellLoop = void (*)(void* out, const void* x, const void* y, const void* z, size_t n);

/// The loop of an exact primitive on `type` (that of its data operand, a compute type). Null for cast and bitcast (convert.h)
/// and for types that the op's domain does not have.
CellLoop cell_loop(Op op, DType type);

}  // namespace fusec
