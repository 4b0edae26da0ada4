#pragma once
// The rate at which a device copies memory: the ceiling that kernels are measured against.

#include <string>

#include "fusec/result.h"

namespace fusec::cli {

/// Bytes read plus bytes written, a second: the best of several copies of a block far larger than any cache.
Result<double> copy_rate(const std::string& device);

}  // namespace fusec::cli
