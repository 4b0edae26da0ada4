#pragma once
// Is what a device computed what the reference evaluator says? How close they must be follows from the graph:
//   exact      nothing that the output depends on sums floats: every bit (any NaN equals any), in strict mode
//   bounded    a sum or product of floats over n elements: its order is free, so 16 + 4√n units of f32 (f64) rounding, measured on
//              the largest output, and one more rounding to the output's type. Where that is not met, each element has a bound of its
//              own, from the magnitudes of its addends (lib/fuzz/ranges.h), if the graph is small
//   fused, fast  as bounded, with the roundings of narrow types left out

#include <span>

#include "fusec/graph.h"

namespace fusec::cli {

struct CheckReport {
  bool good = true;
  std::string text;  // a line an output
};

Result<CheckReport> check(const Graph& graph, std::span<const Tensor> inputs, const std::vector<Tensor>& got, Numerics numerics);

}  // namespace fusec::cli
