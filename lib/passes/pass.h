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

struct Pass {
  std::string_view name;
  PassFunction function;
  std::string_view why;
};

}  // namespace fusec
