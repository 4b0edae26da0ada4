#pragma once
// One graph measured on one device: the time of a warm call from flushed caches, the host's part of it, what its kernels are, and
// whether it computed the right thing.

#include <future>
#include <map>
#include <string>
#include <vector>

#include "fusec/fusec.h"
#include "tools/fusec/ceilings.h"

namespace fusec {
struct PackedCall;
}

namespace fusec::cli {

/// What is measured.
struct Subject {
  std::string text;                   // of the one graph
  Sizes sizes;                        // of its named dims
  std::vector<std::string> positive;  // inputs that are drawn positive: they are under a root or a divisor
  int64_t rows = 0;                   // an extent whose indices are independent of each other: what a check may cut; 0 = there is none
};

struct MeasureOptions {
  CompileOptions compile;  // device and sizes are the measurer's
  int runs = 31;       // timed calls; the median counts
  bool check = true;
  int64_t check_elements = 1'000'000;  // about so many of a large graph
  bool host = true;    // also measure what a call costs the host
};

struct KernelFigures {
  std::string entry, schedule;
  int64_t registers = -1, spill_bytes = -1, compile_us = -1;  // -1: unknown
  double occupancy = 0;                                        // 0: unknown
};

struct Figures {
  double bytes = 0;          // each input read once, each output written once
  Spread time;
  double compile = 0;        // seconds of compile() and of the first call, which may come from the cache
  double host = 0, bare = 0; // seconds of the host in a warm call, and in a bare launch of an empty kernel with as many arguments
  double replay = 0;         // … in a replay of the prepared call
  double from_disk = 0;      // seconds from asking the disk cache for the first kernel to its start; 0: not measured, or no cache
  std::vector<KernelFigures> kernels;
  bool checked = false, good = true;
  std::string check;         // what was compared, and what was found
  int64_t registers() const, spill_bytes() const, compile_us() const;  // of all kernels: the most, the sum, the sum; -1: unknown
};

/// What a check found; a check may run beside other measurements.
struct Checked {
  bool good = true;
  std::string text;
};

class Measurer {
 public:
  Measurer(const Backend& device, const Flush& flush) : device_(device), flush_(flush) {}

  /// Inputs are drawn (4 million elements of each; a larger one repeats them). Outputs are poisoned (each byte 0x7f) before the call that is
  /// checked: whole up to four times check_elements, else about check_elements of whole rows, or whole where no rows are known.
  /// With `later`, the comparison runs beside what follows, and figures say nothing about it.
  /// Errors   of compiling and running.
  Result<Figures> measure(const Subject& subject, const MeasureOptions& options, std::future<Result<Checked>>* later = nullptr);
  /// … of a graph that was compiled before.
  Result<Figures> measure(const Program& program, const Subject& subject, const MeasureOptions& options, std::future<Result<Checked>>* later = nullptr);
  /// Median seconds of each kernel of a call by itself, from flushed caches, on drawn inputs.
  Result<std::vector<double>> kernel_times(const Program& program, const Subject& subject, int runs);
  /// Compiles a subject for the device.
  Result<Program> compile(const Subject& subject, const MeasureOptions& options) const;

 private:
  Result<double> from_disk(const Program& program, const Subject& subject, const MeasureOptions& options, const PackedCall& call,
                           std::span<const uintptr_t> pointers) const;
  const Tensor& drawn(const std::string& name, DType type, int64_t count, bool positive);

  const Backend& device_;
  const Flush& flush_;
  std::map<std::string, Tensor> drawn_;
  double returned_ = 0;  // bytes of device memory that the last subject gave back
};

}  // namespace fusec::cli
