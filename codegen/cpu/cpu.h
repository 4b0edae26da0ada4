#pragma once
// The CPU back end: a Kernel becomes an object file in memory. No LLVM type appears here.
//
// Entry ABI: extern "C" void entry(const void* args, int64_t begin, int64_t end) computes the work items [begin, end)
// of one call. `args` holds the artifact's slots in order, each aligned to its size. Work items are independent, and
// which elements an item owns follows from the schedule and the extents only: results do not depend on how items are
// spread over threads. A split reduction has a second entry with the same signature over rows: it merges partial states
// in a fixed order.
//
// How the CPU reads a Schedule: `vector_axis` is the axis whose neighbours share a vector, lane[vector_axis] the elements
// of a vector, `steps` how many vectors run side by side, block[vector_axis] the elements of one work item along that
// axis when it is kept, and block of a reduced axis the indices of one part of a split reduction. A second axis with
// `lane` is, in cpu_flat, a short inner axis that shares the lanes; in cpu_tile and cpu_column without `block` a short
// axis that is combed apart in registers (both have their extent baked); in cpu_tile with `block` the other side of
// square tiles. `ahead`: the stores of a row run beside the reads of the next; keep = cache_buffer: the softmax that
// keeps its exponentials. Access.bytes > element size says that an access is contiguous along the vector axis, `staged`
// that it is turned or combed; `bypass` allows non-temporal stores, `prefetch` asks for prefetching.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "codegen/artifact.h"
#include "codegen/scheduler.h"

namespace fusec::cpu {

struct Device {
  std::string cpu;       // LLVM's name of the host processor
  std::string features;  // "+avx2,+fma,…"
  int vector_bytes = 16;
  int threads = 1;                     // hardware threads this process may use
  size_t l1 = 32 << 10, l2 = 1 << 20;  // bytes of one core's data caches
};

/// The host, found once. Costs no start-up of the code generator.
const Device& host();
/// Part of every cache key: LLVM's version, the processor and its features.
std::string identity(const Device& device);

/// How `kernel` runs on calls like `facts`. Pure; microseconds.
Schedule schedule(const Kernel& kernel, const Facts& facts, const Device& device);
/// grid[0]: work items of the entry (of both phases when split: parts = grid[0], rows of the second = grid[1]); block:
/// the least number of items worth a thread of its own.
Launch launch(const Kernel& kernel, const Schedule& schedule, const Facts& facts);
/// Both, and what may be changed.
std::shared_ptr<const Scheduler> scheduler(const Device& device);

/// Kernel to object file. `entry` is the symbol's name.
Result<Artifact> compile(const Kernel& kernel, const Schedule& schedule, const Device& device,
                         const std::string& entry = "g0");
/// The same as text, for people.
Result<std::string> llvm_ir(const Kernel& kernel, const Schedule& schedule, const Device& device,
                            const std::string& entry = "g0");
Result<std::string> assembly(const Kernel& kernel, const Schedule& schedule, const Device& device,
                             const std::string& entry = "g0");

}  // namespace fusec::cpu
