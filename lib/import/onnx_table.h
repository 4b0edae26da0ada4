#pragma once
// What the operator tables take: each operator, the sets at which it changed, and the element types of its data.

#include <string>

namespace fusec::onnx {

/// Found by asking each row with each type. One line an operator, aligned.
std::string operator_table();

}  // namespace fusec::onnx
