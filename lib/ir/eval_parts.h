#pragma once
// Parts of the reference evaluator (eval.cpp): each fills `result`, whose dtype, extents and data are already made.

#include <span>

#include "fusec/graph.h"

namespace fusec {

void evaluate_view(const Node& node, std::span<const Tensor* const> args, const Sizes& sizes, Tensor& result);
Status evaluate_elementwise(const Node& node, std::span<const Tensor* const> args, Tensor& result);
void evaluate_scan(const Node& node, const Tensor& x, Tensor& result);
Status evaluate_reduce(const Node& node, const Tensor& x, Tensor& result);

}  // namespace fusec
