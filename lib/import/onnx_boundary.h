#pragma once
// Operators that fusec leaves to others, and the shapes of what they compute.

#include <optional>
#include <string_view>
#include <vector>

#include "lib/import/onnx_call.h"

namespace fusec::onnx {

/// Is it an operator that is known to lie outside fusec's field: matrix products, convolutions,
/// pooling with windows, recurrence, resampling, control flow, sorting, scatter …?
bool is_boundary(std::string_view op, std::string_view domain);

/// Types of a node's results, one for each; nullopt where they are not known: there is no rule for the operator, an
/// operand's shape is not known, or a size follows from no dims. A size that is no polynomial of the named dims is one of the call's
/// quotients. Nothing is added to the call's graph but operands.
std::vector<std::optional<Type>> boundary_types(Call& c);

}  // namespace fusec::onnx
