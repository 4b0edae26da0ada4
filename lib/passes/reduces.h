#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// Fewer reductions, over the values they read.
/// Takes    a verified graph; composites are left alone.
/// Returns  an equal graph, bit for bit, in which
///            min of min, max of max, any of any, all of all, and sums and products of integers are one reduction;
///            a reduction over axes of extent one is a reshape, and for a float sum the addition of its start value 0.0 (to -0.0);
///            a reduction of a transpose reduces below it; min, max, any and all do not read what a broadcast repeats;
///            a reduction that is there with its axes kept and without is one, and a reshape;
///            not a reduction's order: float sums and products over several elements stay as they are.
/// Ends     each rewrite removes a reduction, or an axis of one, or moves one below a view.
/// Errors   none.
Result<Graph> reduces(const Graph& graph, PassContext& context);

}  // namespace fusec
