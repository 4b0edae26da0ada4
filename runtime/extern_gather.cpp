// Gather over an axis that the importer finds too long for its own way: rows of a table of embeddings by their numbers.

#include <algorithm>
#include <string>

#include "runtime/extern.h"

namespace fusec {

Status extern_gather(const ExternCall& call) {
  const ExternValue &x = call.in(0), &indices = call.in(1), &y = call.out();
  const auto rank = static_cast<int64_t>(x.rank());
  const int64_t axis = call.i("axis", 0) < 0 ? call.i("axis", 0) + rank : call.i("axis", 0);
  if (axis < 0 || axis >= rank)
    return input_error("axis " + std::to_string(axis) + " of a table of rank " + std::to_string(rank));
  if (indices.dtype != DType::i64 && indices.dtype != DType::i32) return input_error("indices are i64 or i32");
  const auto at = static_cast<size_t>(axis);
  const int64_t before = x.elements(0, at), n = x.extents[at], behind = x.elements(at + 1, x.rank()),
                count = indices.elements();
  if (Status s = expects(call.outputs, 0, before * count * behind); !s) return s;
  float* to = y.f32();
  for (int64_t row = 0; row < before; ++row)
    for (int64_t k = 0; k < count; ++k, to += behind) {
      const int64_t given = indices.dtype == DType::i64 ? static_cast<const int64_t*>(indices.data)[k]
                                                        : static_cast<const int32_t*>(indices.data)[k];
      const int64_t index = given < 0 ? given + n : given;
      if (index < 0 || index >= n)
        return input_error("index " + std::to_string(given) + " of an axis of " + std::to_string(n));
      std::copy_n(x.f32() + (row * n + index) * behind, behind, to);
    }
  return Done{};
}

}  // namespace fusec
