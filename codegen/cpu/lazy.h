#pragma once
// A softmax in one walk: sum of exp(x - m) against a provisional m, which is raised only when some x exceeds it by 60.
// Any m near enough serves, since a softmax divides one exponential by the sum of the others. Where it may be used is
// seen from the kernel.

#include <optional>

#include "lib/kernel/kernel.h"

namespace fusec::cpu {

struct LazyPair {
  Val x, shifted, e;  // e = exp(shifted), shifted = x - max
  uint16_t max, sum;  // reductions
};

/// Sweeps {max of x}, {sum of e}, stores; the sum is free to be online (kOnline); the maximum serves nothing but
/// `shifted`, and that nothing but e. nullopt otherwise.
std::optional<LazyPair> lazy_pair(const Kernel& kernel);

}  // namespace fusec::cpu
