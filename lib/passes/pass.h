#pragma once
// What a pass is: a function from Graph to Graph, given what travels with the compilation.

#include <string_view>

#include "fusec/graph.h"
#include "lib/rewrite/rewriter.h"
#include "lib/support/trace.h"

namespace fusec {

struct PassContext {
  Numerics numerics = Numerics::strict;
  RuleControl& rules;  // passes that are no rule lists count their rewrites here too, by a name of their own
  Trace& trace;
};

using PassFunction = Result<Graph> (*)(const Graph&, PassContext&);

/// Runs `sweep(graph)` on its own result until one fires no rewrite; `sweep` counts what it does in context.rules.
template <class Sweep>
Result<Graph> until_quiet(const Graph& graph, PassContext& context, Sweep&& sweep) {
  Graph current = graph;
  for (;;) {
    const int64_t before = context.rules.fired;
    Result<Graph> next = sweep(current);
    if (!next || context.rules.fired == before) return next;
    current = std::move(*next);
  }
}

struct Pass {
  std::string_view name;
  PassFunction function;
  std::string_view why;
};

}  // namespace fusec
