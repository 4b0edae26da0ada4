#pragma once
// Inputs of a random graph: what is in them, and how they lie in memory. Both follow from a seed and the input's name alone, so a graph
// that was shrunk, or read from a file, is given the same kind of inputs again.

#include <string_view>
#include <vector>

#include "lib/fuzz/random_graph.h"

namespace fusec::fuzz {

/// Where the elements of a tensor lie in a block of memory: element (i0, i1, …) at offset + i0*stride0 + …, in elements.
struct Layout {
  std::vector<int64_t> strides;
  int64_t offset = 0;
  int64_t elements = 0;  // of the block
};

/// Dense, off its alignment by one element, rows with gaps, axes in another order, every second element; inputs also backwards and
/// repeated (a stride of 0). Half of all layouts are dense.
Layout random_layout(const std::vector<int64_t>& extents, bool output, uint64_t seed);

/// A block of memory with a tensor in it.
struct Placed {
  std::vector<std::byte> block;
  Layout layout;
  Tensor tensor;  // what a reader of the layout sees
};

/// The input called `name`: a few special values, many or none; numbers around 0, far from it, or tiny.
Placed random_input(std::string_view name, DType dtype, const std::vector<int64_t>& extents, uint64_t seed);
/// A tensor laid out so. `filled`: false puts nothing in, as for an output; bytes without an element have a pattern that a kernel must leave.
Placed placed(Tensor tensor, Layout layout, bool filled);
/// Memory for an output, with nothing in it.
Placed output_block(std::string_view name, DType dtype, const std::vector<int64_t>& extents, uint64_t seed);
/// Reads the tensor that `block` holds now; false when a byte between its elements is not as it was in `output`.
bool read_output(const std::vector<std::byte>& block, Placed& output);
/// May an output lie exactly where this input does?
bool may_hold_output(const Placed& input);

}  // namespace fusec::fuzz
