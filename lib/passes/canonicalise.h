#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// One spelling for each thing: the normal form of lib/rewrite/canonical.h for every node.
/// Takes    a verified graph.
/// Returns  an equal graph: constants stand right, broadcasts that an op would do itself are gone, dense constants of one value are
///          broadcasts of a scalar, not and division have one name for each type. Idempotent.
/// Errors   none.
Result<Graph> canonicalise(const Graph& graph, PassContext& context);

}  // namespace fusec
