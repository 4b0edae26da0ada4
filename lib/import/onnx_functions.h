#pragma once
// Operators that a model brings with it: calls become their bodies.

#include "lib/import/onnx_model.h"

namespace fusec::onnx {

/// Puts the body of a model's function in the place of each call of it, functions within functions too. A value of the
/// body is called CALL.VALUE then; the body's nodes keep the operator set of the function and say where they come from.
/// Errors: functions that nest deeper than 32 or in a circle; more than `most` nodes; two functions of one name.
Status inline_functions(ModelMessage& model, size_t most);

}  // namespace fusec::onnx
