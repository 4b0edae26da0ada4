#pragma once
// The operator tables: what ONNX operators of the default domain mean in fusec's IR, by version.

#include <span>
#include <string_view>

#include "lib/import/onnx_call.h"

namespace fusec::onnx {

/// Operator sets that import knows. Before 7 (ONNX 1.2) only operators that have not changed since have rows.
inline constexpr int kOldestOpset = 1, kNewestOpset = 28;

std::span<const OpRow> elementwise_rows();   // onnx_ops_elementwise.cpp
std::span<const OpRow> activation_rows();    // onnx_ops_activation.cpp
std::span<const OpRow> conversion_rows();    // onnx_ops_convert.cpp: casts, quantisation
std::span<const OpRow> reduce_rows();        // onnx_ops_reduce.cpp
std::span<const OpRow> normalize_rows();     // onnx_ops_normalize.cpp: softmax and norms
std::span<const OpRow> layout_rows();        // onnx_ops_layout.cpp: views and movement
std::span<const OpRow> gather_rows();        // onnx_ops_gather.cpp
std::span<const OpRow> constant_rows();      // onnx_ops_constant.cpp: constants, ranges, masks
std::span<const OpRow> shape_rows();         // onnx_ops_shape.cpp: Shape, Size
std::span<const OpRow> loss_rows();          // onnx_ops_loss.cpp
std::span<const OpRow> scan_rows();          // onnx_ops_scan.cpp: running sums

/// All rows, sorted by operator, then version.
std::span<const OpRow> all_rows();
/// The row of `op` for a model of operator set `opset`; null when there is none.
const OpRow* find_row(std::string_view op, int64_t opset);

/// Shape arithmetic: when every operand is a vector of dims, computes with them. False when the operator is not one
/// of those that shapes are made with, or its operands are something else.
bool import_dims(Call& c);  // onnx_ops_shape.cpp

}  // namespace fusec::onnx
