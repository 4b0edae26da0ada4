#pragma once
// What code generation hands over: bytes, an entry, and how to call it. The runtime packs arguments from the slots and launches;
// it decides nothing about code.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/schedule.h"

namespace fusec {

/// One field of the argument block. Fields follow one another, each aligned to its own size. CUDA kernels take the block as one
/// `const __grid_constant__` struct, CPU kernels a pointer to it.
struct Slot {
  enum Kind : uint8_t {
    pointer,   // of the first element of access `a` (an index into the kernel's loads and stores): base + constant offset
    step,      // elements from one index of axis `b` to the next, for access `a`
    stride,    // stride of block `b` of access `a`, in elements: multiplies Map::extra[b]
    extent,    // of axis `a`
    dim,       // value of `size`
    rows,      // product of the kept extents
    columns,   // product of the reduced extents
    states,    // pointer: partial states of this launch (Launch::state_bytes)
    counters,  // pointer: 32-bit counters of this launch, zero before and after
    splits,    // Launch::splits
    zero,      // the number 0, unknown to the compiler
    policy,    // cache policy: 1 = keep streamed loads (evict_last), 0 = none
    magic,     // multiplier of the exact division by extent of axis `a` (codegen/magic.h)
    shift,     // shift of the same division
  } kind;
  uint8_t bytes = 8;  // 4 or 8
  uint32_t a = 0, b = 0;
  Dim size{};
};

/// How one call starts: computed from kernel, schedule and facts, never part of the code.
struct Launch {
  uint32_t grid[3] = {1, 1, 1};   // blocks; CPU: grid[0] = independent work items
  uint32_t block = 1;             // threads a block
  uint32_t cluster = 1;
  uint32_t shared = 0;            // dynamic shared bytes
  uint32_t splits = 1;            // parts of each row
  uint64_t state_bytes = 0;       // workspace for partial states
  uint32_t counters = 0;          // 32-bit counters
  bool policy = false;
  bool together = false;          // blocks wait for each other: all must run at once
  bool empty = false;             // nothing to do: no launch
};

struct Code {
  std::string entry;              // symbol
  std::string text;               // CUDA C++; CPU: LLVM IR text only when asked for
  std::vector<Slot> slots;
  Schedule schedule;
};

struct Artifact {
  std::string target;             // "sm_90", or "cpu:" + features
  std::string entry;
  std::string finish_entry;       // CPU: second phase of a split reduction, or ""
  std::vector<uint8_t> bytes;     // cubin or object file
  std::vector<Slot> slots;
  Schedule schedule;
  std::map<std::string, int64_t> facts;  // registers, spill_bytes, shared_bytes, compile_us … for explain
};

/// How much of a multiprocessor a kernel fills: blocks that fit at once, and their threads as a part of all it holds. 0: unknown.
struct Occupancy {
  int blocks = 0;
  double fraction = 0;
};

/// Size of the argument block.
size_t args_bytes(const std::vector<Slot>& slots);

}  // namespace fusec
