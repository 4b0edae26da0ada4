// What comes before what: the numbers of blocks and warps, and the knowledge in Thread::extra.

#include "test/simt/machine.h"

namespace fusec::simt {

bool ordered(const Entry& entry, const Thread& thread) {
  const Block& block = *thread.block;
  u32 warps = machine->stride / 32, of_block = entry.warp / warps, first = entry.warp % warps * 32;
  u32 lanes = entry.lanes;
  if (of_block == block.linear && !entry.agent) {
    if (entry.time < block.known) return true;
    if (first == (thread.linear & ~31u)) {
      if (entry.time < thread.warp->known) return true;
      lanes &= ~(1u << thread.lane);
      if (!lanes) return true;
    }
  }
  const Times* known = thread.extra ? thread.extra->find(of_block) : nullptr;
  if (!known) return false;
  for (; lanes; lanes &= lanes - 1)
    if (entry.time >= (*known)[first + __builtin_ctz(lanes)]) return false;
  return true;
}

u32 release(Thread& thread) { return thread.since = next_time(); }

void learn(Thread& thread, const Known& known) {
  if (!known) return;
  thread.extra = join(thread.extra, known);
  thread.block->any_extra = true;
}

Known snapshot(const Thread& thread, u32 time) {
  return snapshot(thread, time, thread.block->known, thread.warp->known, thread.extra);
}

u32 meet(Block& block) {
  u32 time = block.known = next_time();
  Known all;
  if (block.any_extra)
    for (Thread* thread : block.threads) all = join(all, thread->extra);
  for (Thread* thread : block.threads) {
    thread->since = time;
    if (all) thread->extra = all;
  }
  return time;
}

u32 new_agent(Block& block, u32 site) {
  const u32 agents = agents_of(machine->threads);
  if (block.agents == agents)
    fail_here(SIMT_LAUNCH, site, "more than %u mbarriers and groups of copies in a block", agents);
  return machine->stride - agents + block.agents++;
}

// --- fences: what a thread did before becomes what its next atomics publish; what its earlier atomics read
// becomes known to it ------------------------------------------------------------------------------

extern "C" void simt_rt_fence(int scope, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  learn(thread, thread.seen_block);
  if (scope) learn(thread, thread.seen_gpu);
  u32 time = release(thread);
  Mark mark{time, thread.block->known, thread.warp->known, thread.extra, nullptr};
  thread.fence_block = mark;
  if (scope) thread.fence_gpu = mark;
}

extern "C" void simt_rt_proxy_fence(u32 site) {
  step(site);
  machine->current->proxy_fence = release(*machine->current);
}

}  // namespace fusec::simt
