#pragma once
// Delta debugging of graphs: a smaller graph that still fails, by the same moves in the same order for the same graph and predicate.

#include <functional>

#include "fusec/graph.h"

namespace fusec::fuzz {

struct Failing {
  Graph graph;
  Sizes sizes;  // of the symbols; a graph whose sizes nobody knows has none here, and keeps its symbols
};

/// Moves, each tried on every place until none helps: leave out inputs that nobody reads; leave out an output; return an output's operand
/// instead of it; put a node's operand of the same type, or a new input, in the node's place; numbers for all symbols; ones, then zeros,
/// for a constant; a smaller size for a symbol or for all dims of one extent.
/// `fails` is asked at most `most_tries` times; `progress` is told of each smaller graph.
Failing shrink(Failing failing, const std::function<bool(const Failing&)>& fails, int most_tries,
               const std::function<void(const Failing&)>& progress = {});

}  // namespace fusec::fuzz
