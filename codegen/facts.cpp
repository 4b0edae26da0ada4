// What one call looks like to a kernel: extents, strides and alignment, from its sizes and buffers.
//
// A stride of a dim of extent 1 says nothing (frameworks leave anything there), so strides are made canonical first: such a dim
// walks with its right neighbour, or, at the end, with the last dim that matters.

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/schedule.h"

namespace fusec {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Products that leave int64 stay at its end: such a call is `wide` in any case.
int64_t times(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_mul_overflow(a, b, &out) ? ((a < 0) == (b < 0) ? kMost : -kMost) : out;
}
int64_t plus(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_add_overflow(a, b, &out) ? (a > 0 ? kMost : -kMost) : out;
}

int64_t value(const Dim& dim, const Sizes& sizes) {
  return dim.is_constant() ? dim.constant() : dim.value(sizes).value_or(kMost);
}

std::vector<int64_t> values(const Shape& shape, const Sizes& sizes) {
  std::vector<int64_t> out;
  out.reserve(shape.size());
  for (const Dim& dim : shape) out.push_back(value(dim, sizes));
  return out;
}

// One below 2^31 by more than any tile: an index a block past the end must not wrap either.
constexpr int64_t kNarrow = (int64_t{1} << 31) - (1 << 20);

uint32_t alignment(uintptr_t address) { return 1u << std::min(7, std::countr_zero(address | 128)); }

}  // namespace

std::vector<int64_t> canonical_strides(const std::vector<int64_t>& extents, std::vector<int64_t> strides) {
  const size_t rank = extents.size();
  size_t last = rank;
  while (last && extents[last - 1] == 1) --last;
  for (size_t k = last; k < rank; ++k) strides[k] = last ? strides[last - 1] : 1;
  for (size_t k = last; k-- > 0;)
    if (extents[k] == 1) strides[k] = times(strides[k + 1], extents[k + 1]);
  return strides;
}

Layout layout(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
  Layout out;
  if (extents.empty() || std::count(extents.begin(), extents.end(), 0)) return out;
  const std::vector<int64_t> walk = canonical_strides(extents, strides);
  out.unit = walk.back() == 1;
  for (size_t k = 0; k + 1 < extents.size(); ++k)
    if (walk[k] != times(walk[k + 1], extents[k + 1])) out.joined &= ~(1u << k);
  return out;
}

Facts facts(const Kernel& kernel, const Binding& binding) {
  const Sizes& sizes = binding.sizes;
  Facts out{};
  out.rows = out.columns = 1;
  for (const Axis& axis : kernel.axes) {
    const int64_t extent = value(axis.extent, sizes);
    out.extents.push_back(extent);
    int64_t& product = axis.reduced ? out.columns : out.rows;
    product = times(product, extent);
  }
  out.wide = times(out.rows, out.columns) >= kNarrow;

  struct Bound {
    std::vector<int64_t> block_stride;
    int64_t elements = 1, touched = 0;
  };
  std::vector<Bound> bound(kernel.operands.size());
  for (size_t i = 0; i < bound.size(); ++i) {
    const std::vector<int64_t> extents = values(kernel.operands[i].extents, sizes);
    const std::vector<int64_t> strides = canonical_strides(extents, binding.operands[i].strides);
    for (uint8_t end : kernel.operands[i].block_end) bound[i].block_stride.push_back(strides[end - 1]);
    int64_t span = 0;
    for (size_t k = 0; k < extents.size(); ++k) {
      if (strides[k]) bound[i].elements = times(bound[i].elements, extents[k]);
      if (extents[k] > 0) span = plus(span, times(strides[k] < 0 ? -strides[k] : strides[k], extents[k] - 1));
    }
    out.wide |= span >= kNarrow;
  }

  for (const Inst& inst : kernel.values) {
    if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
    Bound& operand = bound[inst.operand];
    Facts::Access access{std::vector<int64_t>(kernel.axes.size(), 0), 128};
    int64_t offset = 0;
    for (size_t b = 0; b < inst.map.at.size(); ++b) {
      const Linear& at = inst.map.at[b];
      const int64_t stride = operand.block_stride[b];
      offset = plus(offset, times(stride, value(at.offset, sizes)));
      for (size_t k = 0; k < at.factor.size(); ++k) {
        if (at.factor[k].is(0)) continue;
        access.step[k] = plus(access.step[k], times(stride, value(at.factor[k], sizes)));
      }
    }
    const size_t size = bytes(kernel.operands[inst.operand].type);
    access.align = alignment(reinterpret_cast<uintptr_t>(binding.operands[inst.operand].data) + uint64_t(offset) * size);

    int64_t low = offset, high = offset, image = 1;
    for (size_t k = 0; k < access.step.size(); ++k) {
      const int64_t reach = times(access.step[k], std::max<int64_t>(0, out.extents[k] - 1));
      (reach < 0 ? low : high) = plus(reach < 0 ? low : high, reach);
      // A block that is indexed by a computed value may touch all that the value ranges over: its axes count too.
      const bool varies = access.step[k] != 0 || (inst.varies >> k & 1);
      if (varies) image = times(image, out.extents[k]);
    }
    out.wide |= low <= -kNarrow || high >= kNarrow;
    operand.touched = std::min(operand.elements, plus(operand.touched, image));
    out.access.push_back(std::move(access));
  }
  for (size_t i = 0; i < bound.size(); ++i)
    out.footprint = plus(out.footprint, times(bound[i].touched, int64_t(bytes(kernel.operands[i].type))));
  return out;
}

Binding dense_binding(const Kernel& kernel, const Sizes& sizes) {
  Binding out{sizes, {}};
  for (const Operand& operand : kernel.operands) {
    BoundOperand bound;
    const std::vector<int64_t> extents = values(operand.extents, sizes);
    bound.strides = dense_strides(extents);
    // A layout class that is not dense: what walks apart gets a gap, so that the facts say so too.
    if (!operand.unit || operand.block_end.size() > 1) {
      int64_t stride = operand.unit ? 1 : 2;
      size_t block = operand.block_end.size();
      for (size_t k = extents.size(); k-- > 0;) {
        if (block && k + 1 == operand.block_end[block - 1]) {
          if (k + 1 != extents.size()) stride = times(stride, 2);
          --block;
        }
        bound.strides[k] = stride;
        stride = times(stride, std::max<int64_t>(1, extents[k]));
      }
    }
    out.operands.push_back(std::move(bound));
  }
  return out;
}

}  // namespace fusec
