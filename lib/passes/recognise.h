#pragma once

#include "lib/passes/pass.h"

namespace fusec {

/// Composites and activations that were written out become one node again.
/// Takes    a verified graph, simplified (the forms looked for are canonical ones), before decompose.
/// Returns  strict: the graph itself, for the arithmetic of a composite is not bit for bit that of its spelling. fused, fast: the graph
///          with softmax, log_softmax, logsumexp, layer_norm, rms_norm (scale and bias taken in) and the rows of activations.cpp
///          (sigmoid, silu, softplus, mish, gelu, gelu_tanh) in place of their spellings.
/// Ensures  a reduction is only taken for a row's own when its views line it up with the rows (row_value.h).
/// Errors   none.
Result<Graph> recognise(const Graph& graph, PassContext& context);

}  // namespace fusec
