#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// Fewer views, and views where they can still meet others.
/// Takes    a verified graph.
/// Returns  an equal graph, bit for bit, in which
///            views that change nothing are gone; two of a kind in a row are one; a transpose that moves only axes of one is a reshape;
///            a slice of a concat, pad, broadcast, reverse or transpose slices what lies below it;
///            neighbouring slices of one value, concatenated, are one slice;
///            an elementwise op computes before a broadcast, and before a transpose, reshape or reverse that all its operands share.
/// Ends     each rewrite removes a view, moves a slice down or another view up, once past each node.
/// Errors   none.
Result<Graph> views(const Graph& graph, PassContext& context);

}  // namespace fusec
