#pragma once
// A composite card *is* its decomposition: the primitives written here are what softmax, layer_norm and the like mean.

#include <span>

#include "fusec/graph.h"

namespace fusec {

/// The primitives of one composite node, added to `b`.
/// Takes    a composite op, its operands in `b` (absent trailing ones left out) and its attributes, normalised or not.
/// Returns  a value of the very type that infer() gives the composite; invalid, with the builder's error set, when that fails.
/// Ensures  operands narrower than f32 are cast to f32 first (f64 stays, one f64 operand makes all f64; integers stay where the
///          card takes them) and the result is rounded once at the end. Interior nodes carry relax flags, and only those do:
///          kContract on multiplications and additions, kReciprocal on the division of elements by a row value, kOnline on
///          the second reduction of a pair that one sweep can carry (max with sum of exp, sum with sum of squares) and on the sum of
///          deviations that f32 takes out again,
///          kFewerTerms on transcendentals whose result ends in f16, bf16 or f8 and on exp whose sum goes into a logarithm,
///          kNear (within 3 ulp) on the exp of softmax in f32.
/// NaN      a row of all -inf gives NaN in softmax and log_softmax, -inf in logsumexp; +inf gives NaN, NaN and inf; a NaN in a
///          row makes all of it NaN. Nothing reduced: mean NaN, var NaN, logsumexp -inf, norms 0. Divisors of 0 follow IEEE 754.
Value decompose(GraphBuilder& b, Op op, std::span<const Value> args, const Attrs& attrs);

/// Every composite of a graph replaced by its primitives. What a composite's result was called stays its name.
/// Ensures  no composite is left; nodes that were none are unchanged. Idempotent.
/// Errors   none for a verified graph.
Result<Graph> decompose(const Graph& graph);

}  // namespace fusec
