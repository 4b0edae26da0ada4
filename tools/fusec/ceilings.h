#pragma once
// What a device can do, measured in the same run as what is compared with it: the rates of copying, reading and writing, and what a
// launch costs.

#include <memory>
#include <vector>

#include "runtime/backend.h"

namespace fusec::cli {

/// Of some measured times, in seconds.
struct Spread {
  double median = 0, best = 0, spread = 0;  // spread: (p90 - p10) / median
  int runs = 0;
};
Spread spread(std::vector<double> times);

/// Puts the caches into the state that every timed call starts from: nothing of its operands in them, and no dirty line. A memset of
/// 256 MB, then a read of another 256 MB (CPU: of four times the largest cache, at most that).
class Flush {
 public:
  static Result<Flush> make(const Backend& device);
  Status operator()() const;

 private:
  const Backend* device_ = nullptr;
  std::shared_ptr<Memory> dirty_, clean_;
};

/// Waits until memory that was given back disturbs nothing: a GPU's driver clears it behind everybody's back. On an H200, behind 4 GB,
/// the first 16 calls of a sum of 1 GB ran at 0.87 of its rate, some 6 ms long (docs/performance.md); 10 ms a GB are waited.
void settle(const Backend& device, double bytes);

struct Ceilings {
  size_t block = 0;                        // bytes of the block that is copied, read and written
  double copy = 0, read = 0, write = 0;    // bytes a second; a copy counts both sides
  double arithmetic = 0;                   // adds a second, of f32; 0: not measured
  double launch = 0, host_launch = 0;      // seconds of an empty kernel between two events, and of the host's bare call; 0: no launches
};

/// Bytes a second, both sides counted, of copies of a block of that size.
Result<double> copy_rate(const Backend& device, const Flush& flush, size_t block, int runs);
/// `block` = 0: 2 GiB on a GPU, 256 MB elsewhere.
Result<Ceilings> measure_ceilings(const Backend& device, const Flush& flush, size_t block, int runs);

/// Adds a second that a chain of multiplications and additions of f32 reaches where memory does not hold it back.
Result<double> add_rate(const Backend& device, int runs);

/// Median seconds of the host in one call of each, in turns: a host's clock changes from one tenth of a second to the next. In batches that no
/// queue refuses.
Result<std::vector<double>> host_times(const Backend& device, const std::vector<std::function<Status()>>& calls);

bool is_gpu(const Backend& device);

}  // namespace fusec::cli
