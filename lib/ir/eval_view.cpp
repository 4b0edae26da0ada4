// Views of the reference evaluator: each is a copy through strides.

#include <cstring>

#include "lib/ir/convert.h"
#include "lib/ir/eval_parts.h"
#include "lib/ir/strided.h"

namespace fusec {
namespace {

int64_t at(const Dim& dim, const Sizes& sizes) { return dim.value(sizes).value_or(0); }

void read_all(const Tensor& x, StridedView view, Tensor& result) {
  if (result.elements() == 0) return;
  Reader(x.data.data(), bytes(x.dtype), std::move(view)).read(result.data.data(), static_cast<size_t>(result.elements()));
}

/// Element by element: slow, obvious, right.
void gather(const Tensor& x, const Tensor& index, size_t axis, Tensor& result) {
  const size_t size = bytes(x.dtype), rank = result.extents.size();
  const std::vector<int64_t> from = broadcast_strides(x.extents, result.extents), by = broadcast_strides(index.extents, result.extents);
  const int64_t n = x.extents[axis], along = dense_strides(x.extents)[axis];
  std::vector<int64_t> positions(static_cast<size_t>(index.elements()));
  convert(index.dtype, index.data.data(), DType::i64, reinterpret_cast<std::byte*>(positions.data()), positions.size());
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0, count = result.elements(); i < count; ++i) {
    int64_t read = 0, chosen = 0;
    for (size_t k = 0; k < rank; ++k) {
      if (k != axis) read += at[k] * from[k];
      chosen += at[k] * by[k];
    }
    int64_t position = positions[static_cast<size_t>(chosen)];
    if (position < 0) position += n;
    std::byte* to = result.data.data() + static_cast<size_t>(i) * size;
    if (position >= 0 && position < n) std::memcpy(to, x.data.data() + static_cast<size_t>(read + position * along) * size, size);
    else std::memset(to, 0, size);
    for (size_t k = rank; k-- > 0 && ++at[k] == result.extents[k];) at[k] = 0;
  }
}

}  // namespace

void evaluate_view(const Node& n, std::span<const Tensor* const> args, const Sizes& sizes, Tensor& result) {
  const Tensor& x = *args[0];
  const Attrs& a = *n.attrs;
  const std::vector<int64_t> dense = dense_strides(x.extents);
  StridedView view{result.extents, dense, 0};
  switch (n.op) {
    case Op::reshape:
      if (!x.data.empty()) std::memcpy(result.data.data(), x.data.data(), x.data.size());
      return;
    case Op::broadcast:
      view.strides = broadcast_strides(x.extents, result.extents);
      return read_all(x, std::move(view), result);
    case Op::transpose:
      for (size_t k = 0; k < dense.size(); ++k) view.strides[k] = dense[static_cast<size_t>(a.perm[k])];
      return read_all(x, std::move(view), result);
    case Op::slice:
      for (size_t k = 0; k < dense.size(); ++k) {
        view.offset += at(a.start[k], sizes) * dense[k];
        view.strides[k] = dense[k] * a.step[k];
      }
      return read_all(x, std::move(view), result);
    case Op::reverse:
      for (int64_t axis : a.axes) {
        const auto k = static_cast<size_t>(axis);
        view.offset += (x.extents[k] - 1) * dense[k];
        view.strides[k] = -dense[k];
      }
      return read_all(x, std::move(view), result);
    case Op::gather: return gather(x, *args[1], static_cast<size_t>(a.axis), result);
    case Op::concat: {
      const auto axis = static_cast<size_t>(a.axis);
      StridedView place{{}, dense_strides(result.extents), 0};
      for (const Tensor* part : args) {
        place.extents = part->extents;
        scatter(part->data.data(), result.data.data(), bytes(x.dtype), place);
        place.offset += part->extents[axis] * place.strides[axis];
      }
      return;
    }
    case Op::pad: {
      const size_t size = bytes(x.dtype);
      for (size_t i = 0; i < result.data.size(); i += size) std::memcpy(result.data.data() + i, a.value->data.data(), size);
      StridedView place{x.extents, dense_strides(result.extents), 0};
      for (size_t k = 0; k < dense.size(); ++k) place.offset += at(a.low[k], sizes) * place.strides[k];
      return scatter(x.data.data(), result.data.data(), size, place);
    }
    default: return;
  }
}

}  // namespace fusec
