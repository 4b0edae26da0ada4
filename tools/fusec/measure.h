#pragma once
// One graph measured on one device: the time of a warm call from flushed caches, the host's part of it, what its kernels are, and
// whether it computed the right thing.

#include <string>
#include <vector>

#include "fusec/fusec.h"
#include "tools/fusec/ceilings.h"

namespace fusec::cli {

/// What is measured.
struct Subject {
  std::string text;                   // of the one graph
  Sizes sizes;                        // of its named dims
  std::vector<std::string> positive;  // inputs that are drawn positive: they are under a root or a divisor
  int64_t rows = 0;                   // an extent whose indices are independent of each other: what a check may cut; 0 = there is none
};

struct MeasureOptions {
  Numerics numerics = Numerics::strict;
  std::vector<std::string> schedule;
  int runs = 31;       // timed calls; the median counts
  bool check = true;
  bool host = true;    // also measure what a call costs the host
};

struct KernelFigures {
  std::string entry, schedule;
  int64_t registers = -1, spill_bytes = -1, compile_us = -1;  // -1: unknown
};

struct Figures {
  double bytes = 0;          // each input read once, each output written once
  Spread time;
  double compile = 0;        // seconds of compile() and of the first call, which may come from the cache
  double host = 0, bare = 0; // seconds of the host in a warm call, and in a bare launch of an empty kernel with as many arguments
  std::vector<KernelFigures> kernels;
  bool checked = false, good = true;
  std::string check;         // what was compared, and what was found
  int64_t registers() const, spill_bytes() const, compile_us() const;  // of all kernels: the most, the sum, the sum; -1: unknown
};

/// Outputs are poisoned (each byte 0x7f) before the call that is checked: whole up to 4 million elements, else on about a million
/// elements of whole rows, or whole where no rows are known.
/// Errors   of compiling and running.
Result<Figures> measure(const Backend& device, const Flush& flush, const Subject& subject, const MeasureOptions& options);

}  // namespace fusec::cli
