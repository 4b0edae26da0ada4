#pragma once
// Measures the candidates of each kernel of a graph on a device, and finds the fastest.

#include <functional>

#include "runtime/tuning.h"
#include "tools/fusec/measure.h"

namespace fusec::cli {

struct TuneOptions {
  MeasureOptions measure;   // runs: of the final comparison; the first look takes seven
  size_t most = 96;         // candidates of a kernel
};

struct TunedKernel {
  TuningEntry entry;        // model_seconds and seconds: of the whole call, with this kernel by the model and by the candidate
  size_t tried = 0, failed = 0;
  std::string wrong;        // a candidate whose result was wrong, "" when none was
};

struct Tuned {
  double bytes = 0;
  double model = 0, best = 0;  // seconds of the whole call by the model, and with each kernel's fastest candidate
  std::vector<TunedKernel> kernels;
};

/// Each candidate is compiled, checked against the reference on a slice, and timed; the four fastest and the model's choice are then timed
/// again in turns. A candidate wins when it is at least 1 % faster.
/// Errors   of planning, of compiling and running the model's choice.
Result<Tuned> tune(Measurer& measurer, const Backend& device, const Subject& subject, const TuneOptions& options);

}  // namespace fusec::cli
