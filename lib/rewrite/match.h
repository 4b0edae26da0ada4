#pragma once
// One rule at one node: does it match, and what is put there.

#include <functional>

#include "lib/rewrite/rule.h"

namespace fusec {

/// Answers whether nothing but the node being looked at reads a value.
using ReadOnce = std::function<bool(Value)>;

/// The names of `rule` at `root`, when its pattern is there, its element type and mode allow it, and `when` agrees.
/// A pattern that could match in two ways round takes the first that `when` accepts.
std::optional<Match> match(const RewriteRule& rule, const GraphBuilder& b, Value root, Numerics numerics, const ReadOnce& once = {});

/// Makes one node; the rewriter passes one that simplifies on the way.
using Make = std::function<Value(Op, std::vector<Value>, Attrs)>;

/// Builds `put` with the names of `m`; its result has the element type and shape of `root` (a broadcast is added where the
/// expression alone would be smaller). nullopt when that cannot be, or a constant does not exist in its type: the rule then does
/// not fire.
std::optional<Value> build(const Pattern& put, const Match& m, GraphBuilder& b, Type root, const Make& make);

/// Value of an op over known operands, by the reference evaluator; nullopt when it has none.
std::optional<Tensor> evaluate_op(Op op, std::span<const Tensor> args, Attrs attrs);

/// Does a cast from one type to the other keep every value (NaN, infinities and -0.0 among them)?
bool widens(DType from, DType to);

}  // namespace fusec
