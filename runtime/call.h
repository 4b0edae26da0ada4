#pragma once
// One kind of call, worked out: which code runs in which step, with which arguments. Everything but the pointers of the caller and
// of the workspace is final, so a call of this kind patches pointers and starts.

#include <mutex>

#include "runtime/backend.h"
#include "runtime/chooser.h"
#include "runtime/plan.h"

namespace fusec {

/// Pointers a call brings: inputs, outputs, then these two.
struct Pointers {
  uint32_t arena, counters;  // positions in the table
};

/// An 8-byte field of the argument block that holds table[pointer] + offset.
struct Patch {
  uint32_t at, pointer;
  int64_t offset;  // bytes
};

struct PackedStep {
  std::shared_ptr<const Loaded> code;
  Launch launch;
  uint32_t args = 0, bytes = 0;     // its part of PackedCall::args
  uint32_t first_patch = 0, patches = 0;
  struct Touch {                    // memory that it may touch, for simt
    uint32_t pointer;
    int64_t offset;
    uint64_t bytes;
  };
  std::vector<Touch> touches;
};

struct PackedCall {
  std::vector<PackedStep> steps;
  std::vector<std::byte> args;
  std::vector<Patch> patches;
  size_t arena_bytes = 0, counter_bytes = 0;  // of the workspace: counters first, then the arena
  /// Bytes of workspace, counters padded to 256.
  size_t workspace() const { return counters() + arena_bytes; }
  size_t counters() const { return (counter_bytes + 255) / 256 * 256; }
};

/// A buffer of a call as the caller gave it.
struct CallBuffer {
  std::vector<int64_t> extents, strides;  // strides canonical
  uintptr_t address = 0;                  // only its alignment matters, and whether it is an input's
};

/// What packing needs to know of a call.
struct CallShape {
  Sizes sizes;
  std::vector<CallBuffer> inputs, outputs;
  std::vector<std::pair<uint32_t, uint32_t>> aliases;  // (input, output) that are exactly the same memory
};

/// Kernels of one step: one a layout class, with code for each schedule.
class StepKernels {
 public:
  struct Variant {
    std::vector<Layout> inputs, outputs;
    std::shared_ptr<const Kernel> kernel;
    std::vector<std::pair<std::string, std::shared_ptr<const Loaded>>> code;  // by schedule bytes
  };
  const PlanStep* step = nullptr;
  std::vector<std::unique_ptr<Variant>> variants;
  int dumped = 0;  // kernels that were written as files
};

/// Everything of a program that packing uses and fills. One packing at a time.
struct Packer {
  const ProgramPlan& plan;
  const Backend& backend;
  Cache& cache;
  Numerics numerics;
  bool ahead;                               // compile also what calls with other pointers will need
  const Chooser& chooser;
  std::vector<StepKernels>& steps;          // of plan.steps
  std::vector<StepKernels>& alias_copies;   // one an output: moves it from a temporary into place
  std::vector<PlanStep>& alias_steps;       // what those copy; made when first needed
  const std::vector<std::unique_ptr<Memory>>& constants;
  Trace& trace;                             // where kernels are dumped
};

/// Errors   of building, choosing, compiling and loading kernels; input: extents that no memory holds.
Result<PackedCall> pack(const Packer& packer, const CallShape& call);

/// The kernel of a step for buffers of these layouts, built when it is new.
Result<StepKernels::Variant*> variant(StepKernels& step, std::vector<Layout> inputs, std::vector<Layout> outputs, Numerics numerics);

}  // namespace fusec
