#pragma once
// Happens-before knowledge: which accesses of which threads are known to come before a thread's next step.
//
// Time is one counter for the process: every release (barrier, fence, arrival) takes the next number. An access carries
// the number of its thread's last release (Thread::since); a thread that knows "thread a up to R" knows all of a's
// accesses with a number below R. What a whole block or warp knows of itself is one number, kept there; this file holds
// the rest, which is rare: knowledge across blocks, from fences and atomics, mbarriers, named barriers and partial
// __syncwarp. It is immutable and shared, since barriers hand it to everybody.
//
// A block has `stride` slots: its threads, rounded up to warps, then slots for what works beside the threads (agents_of): an
// mbarrier's copies, a thread's bulk groups.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fusec::simt {

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = uint64_t;

struct Thread;

/// Mbarriers and groups of copies of a block: 256, or in large blocks one for each thread and 32 more.
inline u32 agents_of(u32 threads) { return threads + 32 > 256 ? (threads + 63) / 32 * 32 : 256; }

using Times = std::vector<u32>;  // for each slot of one block: known up to this time

struct Clock {
  std::vector<std::pair<u32, std::shared_ptr<const Times>>> blocks;  // sorted by block of the grid

  const Times* find(u32 block) const;
};
using Known = std::shared_ptr<const Clock>;  // null: nothing beyond the own block's and warp's numbers

/// What either side knows. Returns an argument itself where it holds all of the other.
Known join(const Known& a, const Known& b);

/// What a thread knows at `time`, its own accesses up to then included, as knowledge that others can take over.
/// block and warp: the numbers of its block and warp at that time.
Known snapshot(const Thread& thread, u32 time, u32 block, u32 warp, const Known& extra);

/// `known`, and the slot of the block up to `time`.
Known with_slot(const Known& known, u32 block, u32 slot, u32 stride, u32 time);

/// Collects what many threads know, as a barrier does: cheap for one more thread of a block that is already in.
class Gathering {
 public:
  void add(const Thread& thread, u32 time);
  void add(const Known& known);
  void add_slot(u32 block, u32 slot, u32 stride, u32 time);
  /// All that came together; the gathering goes on from there.
  Known freeze();

 private:
  Times& own(u32 block, u32 stride);

  std::vector<std::pair<u32, Times>> blocks_;
  std::vector<std::pair<u32, u32>> floors_;  // block -> the block number already applied
  std::vector<Known> seen_;
};

}  // namespace fusec::simt
