#pragma once
// Kernels by hand that ceilings are measured with: what a device reads, and what a launch costs.

#include "codegen/artifact.h"

namespace fusec::cuda {

/// Reads `count` pieces of 16 bytes and keeps nothing. Arguments: const void* from, uint64_t count, void* sink (16 bytes, seldom written).
Code plain_read();
/// Does nothing with that many bytes of arguments.
Code plain_empty(size_t argument_bytes);

}  // namespace fusec::cuda
