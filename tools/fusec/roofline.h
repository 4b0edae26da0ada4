#pragma once
// What holds a kernel back: its bytes and its arithmetic against what the device can do, and how much of a multiprocessor it fills.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/fusec/ceilings.h"
#include "tools/fusec/kernels.h"

namespace fusec::cli {

/// What a device can do, and how that is known.
struct Limits {
  double copy = 0, arithmetic = 0;  // bytes a second (read + written), adds of f32 a second
  double launch = 0;                // seconds that even an empty kernel takes
  std::string source;               // "measured on cuda:0", "the table's for sm_90, not measured"
};
/// Measured now: a copy of 256 MB, a chain of adds, an empty kernel. Some tenths of a second.
Result<Limits> measured_limits(const Backend& device);
/// Of a GPU that need not be there.
Limits table_limits(int sm);

struct KernelReport {
  double bytes = 0, adds = 0;                            // of the whole kernel; arithmetic counted once, in adds
  double memory = 0, arithmetic = 0, predicted = 0;      // seconds: at the copy rate, at the add rate, the larger one or a launch
  double measured = 0;                                   // 0: it was not
  int64_t registers = -1, spill_bytes = -1, compile_us = -1;
  Occupancy occupancy;
  double in_flight = 0;                                  // bytes that a multiprocessor has asked for before it waits; 0: unknown
};

/// Arithmetic of a kernel, in adds: each value once where it varies, formulas by their steps for the result's type.
double kernel_adds(const Kernel& kernel, const Facts& facts);
/// `artifact` may be null: then nothing is known of registers. CPUs have none to report either way.
KernelReport report(const PlannedKernel& kernel, const Limits& limits, const Artifact* artifact, const Scheduler& scheduler);

std::string text(const KernelReport& report);  // lines, indented as explain's
nlohmann::json json(const KernelReport& report);

}  // namespace fusec::cli
