#pragma once
// One block of memory for values that live at different times: offsets such that two values share bytes only when no step needs both.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusec {

struct Lifetime {
  size_t bytes;
  uint32_t first, last;  // steps, both included
  size_t offset = 0;     // found by plan_arena: a multiple of 256
};

/// Sets the offsets; returns the bytes of the whole. Greedy by size, the lowest gap that fits: near the optimum in practice
/// (Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
size_t plan_arena(std::vector<Lifetime>& values);

}  // namespace fusec
