#pragma once
// What a device may compute for each element of each output, when it may add up in any order.
//
// The graph is evaluated as the reference does, and beside each value runs the range that a device's may lie in: exactly the value where no
// float sum comes before it; after a sum of n addends the sum ± 2 (n + 4) roundings of the sum of the addends' magnitudes, so that addends
// which cancel widen the range and a small result does not narrow it. Elementwise ops take the range of their operands' ends; where an op
// jumps or has a pole within the range, or an order may overflow where another does not, anything goes.

#include <optional>
#include <span>
#include <string>

#include "fusec/graph.h"

namespace fusec::fuzz {

/// A value with its ranges, which are of the value's type. No data in `low`: every element is exactly the value's. An element whose
/// low is above its high may be anything; a NaN in both must be a NaN.
struct Ranges {
  Tensor value;
  Tensor low, high;
  bool exact() const { return low.data.empty(); }
};

/// The ranges of a graph's outputs. fused and fast widen them by what these modes may leave out (docs/numerics.md).
/// Errors   as evaluate().
Result<std::vector<Ranges>> evaluate_ranges(const Graph& graph, std::span<const Tensor> inputs, Numerics numerics = Numerics::strict);

/// How many elements were compared in which way.
struct Compared {
  int64_t exact = 0, within = 0, free = 0;
};
/// The first element out of its range. Equal types are the caller's to check.
std::optional<int64_t> outside(const Ranges& want, const Tensor& got, Compared* compared = nullptr);
/// "0.5", "0.49 to 0.51", "anything": for messages.
std::string range_text(const Ranges& want, int64_t at);

}  // namespace fusec::fuzz
