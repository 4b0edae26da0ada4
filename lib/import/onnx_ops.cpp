// The one index over all operator tables.

#include "lib/import/onnx_ops.h"

#include <algorithm>

namespace fusec::onnx {

std::span<const OpRow> all_rows() {
  static const std::vector<OpRow> kRows = [] {
    std::vector<OpRow> rows;
    for (std::span<const OpRow> part :
         {elementwise_rows(), activation_rows(), conversion_rows(), reduce_rows(), normalize_rows(), layout_rows(),
          gather_rows(), constant_rows(), shape_rows(), loss_rows(), scan_rows()})
      rows.insert(rows.end(), part.begin(), part.end());
    std::sort(rows.begin(), rows.end(),
              [](const OpRow& a, const OpRow& b) { return std::tie(a.op, a.since) < std::tie(b.op, b.since); });
    return rows;
  }();
  return kRows;
}

const OpRow* find_row(std::string_view op, int64_t opset) {
  const std::span<const OpRow> rows = all_rows();
  // The last row of `op` that is not newer than the model.
  auto after = std::upper_bound(rows.begin(), rows.end(), std::pair(op, opset), [](const auto& key, const OpRow& row) {
    return key < std::pair<std::string_view, int64_t>(row.op, row.since);
  });
  if (after == rows.begin()) return nullptr;
  const OpRow& row = *(after - 1);
  return row.op == op && row.import ? &row : nullptr;
}

}  // namespace fusec::onnx
