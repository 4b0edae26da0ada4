#pragma once
// Random valid graphs and inputs for differential testing: the same seed gives the same graph and data on every machine.

#include <cstdint>
#include <vector>

#include "fusec/graph.h"

namespace fusec::fuzz {

/// A small deterministic generator (SplitMix64): Steele, Lea & Flood, "Fast splittable pseudorandom number generators", 2014.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// Uniform in [0, n), n > 0.
  uint64_t below(uint64_t n) { return next() % n; }
  /// One time in `one_in`; 0 is never.
  bool chance(unsigned one_in) { return one_in != 0 && below(one_in) == 0; }
  double unit() { return double(next() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& from) { return from[below(from.size())]; }

 private:
  uint64_t state_;
};

struct GraphOptions {
  size_t max_nodes = 14;
  size_t max_inputs = 4;
  double max_elements = 1 << 14;  // of any value, symbols counted at their drawn sizes
  bool far = true;                // one in eight of the deep and of the wide ones is five times as large
};

struct Drawn {
  Graph graph;
  Sizes sizes;  // a value for every symbol
};

/// A graph of all ops and dtypes, with views, broadcasts, symbolic and zero dims, several outputs; verified by construction. Most are
/// small and mixed; some are deep chains, some wide, some reduce long rows.
Drawn random_graph(uint64_t seed, const GraphOptions& options = {});

/// Where the moderate numbers of a tensor lie: within 6 of 0; about 1e4 apart from it; tiny; of any magnitude.
enum class Spread : uint8_t { usual, far, tiny, wide };
/// Elements of any dtype: mostly moderate numbers, one in `special` a special one (NaN, infinities, zeros of both signs, denormals,
/// extremes of the type); 0: none.
Tensor random_tensor(DType dtype, std::vector<int64_t> extents, uint64_t seed, unsigned special = 8, Spread spread = Spread::usual);

}  // namespace fusec::fuzz
