#pragma once
// Fills the argument block of one launch from the artifact's slots.

#include "runtime/call.h"

namespace fusec {

/// Where an operand's first element is: table[pointer] + offset.
struct OperandPlace {
  uint32_t pointer = 0;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // canonical, in elements
};

struct LaunchPlace {
  uint32_t arena, counters;      // pointers of the table
  int64_t states_offset = 0, counters_offset = 0;
};

/// Appends the block to call.args and its patches to call.patches; fills args, bytes, first_patch and patches of `step`.
/// Errors   internal: a value that does not fit its field.
Status fill(const Kernel& kernel, const Artifact& artifact, const Facts& facts, const Sizes& sizes, const Launch& launch,
            std::span<const OperandPlace> operands, const LaunchPlace& place, PackedCall& call, PackedStep& step);

}  // namespace fusec
