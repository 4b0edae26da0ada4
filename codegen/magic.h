#pragma once
// Exact division by a number known at launch: n / d = (high(n * multiplier) + n) >> shift, where `high` is the upper half of the
// product. For 0 <= n < 2^(bits-1) and 1 <= d < 2^(bits-1), bits 32 or 64.
// Source: Granlund & Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994), figure 4.1.

#include <bit>
#include <cstdint>

namespace fusec {

struct Magic {
  uint64_t multiplier;
  uint32_t shift;
};

inline Magic magic32(uint32_t d) {
  const uint32_t shift = d <= 1 ? 0 : 32 - std::countl_zero(d - 1);  // ceil(log2 d)
  const uint64_t m = d ? ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1 : 1;
  return {m & 0xffffffffu, shift};
}

inline Magic magic64(uint64_t d) {
  const uint32_t shift = d <= 1 ? 0 : 64 - std::countl_zero(d - 1);
  __extension__ typedef unsigned __int128 Wide;
  const Wide power = static_cast<Wide>(1) << shift;
  const Wide m = d ? ((power - d) << 64) / d + 1 : 1;
  return {static_cast<uint64_t>(m), shift};
}

}  // namespace fusec
