#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// Marks the second of two reductions that one sweep can carry, so that a kernel may merge them (lib/kernel/merge_sweeps.h).
/// Takes    a verified graph without composites; it runs last, for later rewrites could break a pair.
/// Returns  the graph with kOnline added to
///            sum of exp(x - m)        where m is the reduce_max of x over the same axes,
///            sum of (x - mean)²       where mean is sum(x) / count over the same axes,
///          and no other change. Elementwise results keep their bits in every mode; the marked sum may differ by its order only.
/// Ensures  the addends are f32 or f64, so nothing between was rounded to a narrower type, and are no output.
/// Errors   none.
Result<Graph> pair_reductions(const Graph& graph, PassContext& context);

}  // namespace fusec
