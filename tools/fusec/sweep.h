#pragma once
// The sweep that looks for cliffs: softmax, layer_norm, rms_norm, sums of rows and of columns and a bias + gelu chain, over row lengths
// from 16 to 1,048,576 (odd ones, primes, powers of two and one more), in f32, bf16 and u8 → f32, each moving about the same bytes.

#include <string>
#include <vector>

#include "tools/fusec/measure.h"

namespace fusec::cli {

struct SweepOptions {
  MeasureOptions measure;
  double bytes = 0;                  // each; 0: 1 GB on a GPU, 32 MB elsewhere
  bool quick = false;                // fewer lengths
  std::vector<std::string> only;     // "softmax", "f32", "softmax_f32": of these alone
  std::vector<int64_t> lengths;      // instead of the list
  bool markdown = false;
  std::string json;                  // file, or ""
};

/// Prints a row for each length as it is done, then what lies below its bound: 0.97 of the copy rate up to 16,384 elements, 0.93 up to
/// 524,288, 0.83 beyond; and an odd length more than 5 % below its even neighbour.
/// Returns an exit status: 0 also with cliffs; 1 when a result was wrong or a kernel failed.
int sweep(const Backend& device, const SweepOptions& options);

}  // namespace fusec::cli
