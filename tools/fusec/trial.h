#pragma once
// One graph, one seed: inputs drawn, laid out and run on a device, outputs held against their ranges (lib/fuzz/ranges.h).

#include <string>
#include <vector>

#include "fusec/fusec.h"
#include "lib/fuzz/ranges.h"

namespace fusec::cli {

struct TrialOptions {
  std::vector<std::string> devices;
  Numerics numerics = Numerics::strict;
  int runs = 1;  // of each call: all of them have to give the same bits. With more than one no output lies in an input's memory
  std::optional<std::pair<Op, Op>> planted;  // the devices are handed a graph with the second op in place of the first
};

/// "" when each device's outputs are what they may be and no byte beside them was touched; else the device and what is wrong. Inputs
/// and outputs may lie strided and off their alignment, an output sometimes in an input's memory. A graph that the reference evaluator
/// refuses, such as an argmax of nothing, passes; `refused` says why.
std::string trial(const TrialOptions& options, const Graph& graph, const Sizes& sizes, uint64_t seed, fuzz::Compared* compared = nullptr,
                  std::string* refused = nullptr);

}  // namespace fusec::cli
