#pragma once
// The ways in which the same call may come and must give the same elements: values known beforehand, more of them, memory that is
// strided or not aligned. `; variants: N` in a .fus file asks for them (fus_file.h).

#include <span>
#include <string>

#include "fusec/fusec.h"

namespace fusec::cli {

/// Does what a call returns meet what is wanted? "" or a sentence.
using Meets = std::string (*)(const Tensor& got, const Tensor& want, bool exact, double tolerance);

struct Wanted {
  std::span<const Tensor> results;
  bool exact = true;
  double tolerance = 0;
  Meets meets = nullptr;
};

/// Runs a program with these inputs
///   - as they are, with the symbol `tiled` (when the graph has it) at its own size, 67 and 4099: inputs and results repeat along it;
///   - dense, with every last axis at stride 2, and one element behind an aligned address; bytes between the elements of a result stay;
///   - as constants, folded by the passes.
/// Errors   what differs, and in which of these.
Status check_variants(const Program& program, std::span<const Tensor> inputs, const std::string& tiled, const Wanted& wanted);

}  // namespace fusec::cli
