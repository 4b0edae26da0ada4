// mbarriers, copies that travel by themselves, and named barriers.
//
// A copy is checked when it is issued, with what the issuing thread knows; its target holds 0xff until it is delivered:
// at random, as late as possible (forward) or at once (reverse). In the detector it is an access by an agent of the
// mbarrier (or of the thread's group) that a thread comes to know when it waits for the phase (or the group): reading
// early, or refilling a slot that is still read, is a fault.

#include <algorithm>
#include <cstring>

#include "test/simt/machine.h"

namespace fusec::simt {
namespace {

enum GroupKind { kBulk, kCopy, kBulkComplete };

/// `travels`: a copy will tell it. Copies and the threads of other blocks do not see an initialisation that is not fenced.
Mbarrier& mbarrier_at(void* at, u32 site, bool travels = false) {
  auto found = machine->mbarriers.find(at);
  if (found == machine->mbarriers.end())
    fail_here(SIMT_ASYNC, site, "use of an mbarrier that nobody initialised, %s,", describe(at).c_str());
  access(at, 8, 8, kRead | kAtomic | kUnlogged, site);  // races with the init, unless a barrier stands between
  if (found->second.maker && (travels || machine->current->block != found->second.block))
    fail_here(SIMT_ASYNC, site, "use of an mbarrier whose initialisation nobody fenced, %s,", describe(at).c_str());
  return found->second;
}

void settle(Mbarrier& barrier) {
  if (barrier.pending || barrier.bytes) return;
  barrier.phase++;
  barrier.pending = barrier.count;
  progressed();
  if (barrier.slot) barrier.gathering.add_slot(barrier.block->linear, barrier.slot, machine->stride, next_time());
  barrier.released = barrier.gathering.freeze();
  std::vector<Thread*> woken;
  std::erase_if(barrier.waiting, [&](const auto& waiting) {
    if ((barrier.phase & 1) == waiting.second) return false;
    woken.push_back(waiting.first);
    return true;
  });
  wake_all(woken);
}

void check_aligned(const void* at, u32 bytes, u32 site) {
  if ((reinterpret_cast<uintptr_t>(at) | bytes) & 15)
    fail_here(SIMT_MISALIGNED, site, "misaligned (16 bytes wanted, of address and size): bulk copy of %u bytes at %s",
              bytes, describe(at).c_str());
}

void take_off(void* to, const void* from, u32 bytes, void* mbarrier, u32 block, u32 slot, u32 site,
              Known sender = nullptr) {
  Flight flight{static_cast<char*>(to), {}, mbarrier, block, slot, site, std::move(sender)};
  flight.bytes.assign(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  std::memset(to, 0xff, bytes);
  machine->flights.push_back(std::move(flight));
}

// The agent for a thread's copies of a kind, which is told in the order of its groups.
u32 agent_of(Thread& thread, int kind, u32 site) {
  Groups& groups = thread.groups[kind];
  if (!groups.slot) groups.slot = new_agent(*thread.block, site);
  groups.waited = false;
  groups.site = site;
  return groups.slot;
}

u32 agent_of(Mbarrier& barrier, u32 site) {
  if (!barrier.slot) barrier.slot = new_agent(*barrier.block, site);
  return barrier.slot;
}

}  // namespace

void deliver(size_t index) {
  Machine& m = *machine;
  Flight flight = std::move(m.flights[index]);
  m.flights.erase(m.flights.begin() + static_cast<ptrdiff_t>(index));
  std::memcpy(flight.to, flight.bytes.data(), flight.bytes.size());
  progressed();
  if (!flight.mbarrier) return;
  Mbarrier& barrier = m.mbarriers.at(flight.mbarrier);
  barrier.bytes -= static_cast<int64_t>(flight.bytes.size());
  barrier.gathering.add(flight.sender);
  settle(barrier);
}

void deliver_some() {
  Machine& m = *machine;
  if (m.options.order == SIMT_FORWARD) return;
  while (!m.flights.empty() && (m.options.order == SIMT_REVERSE || random_below(8) == 0))
    deliver(m.options.order == SIMT_REVERSE ? 0 : random_below(static_cast<u32>(m.flights.size())));
}

void check_groups(const Thread& thread) {
  for (const Groups& groups : thread.groups)
    if (!groups.waited) fail_here(SIMT_ASYNC, groups.site, "a thread ends without a wait for its copy, issued");
  if (thread.block->live) return;
  for (const Flight& flight : machine->flights)
    if (is_shared(flight.to) && owner(flight.to) == thread.block)
      fail(SIMT_ASYNC, flight.site,
           format("block %u ends while the copy into its shared memory issued at %s is under way", thread.block->linear,
                  place(flight.site).c_str()));
}

extern "C" void simt_rt_mbarrier_init(void* at, u32 count, u32 site) {
  step(site);
  if (!is_shared(at) || !count)
    fail_here(SIMT_ASYNC, site, "initialisation of an mbarrier with count %u in %s", count, describe(at).c_str());
  access(at, 8, 8, kWrite | kUnlogged, site);
  Mbarrier barrier;
  barrier.block = owner(at);
  barrier.maker = machine->current;
  barrier.count = barrier.pending = count;
  machine->mbarriers[at] = std::move(barrier);
}

extern "C" void simt_rt_mbarrier_fence(u32 site) {
  step(site);
  for (auto& [at, barrier] : machine->mbarriers)
    if (barrier.maker == machine->current) barrier.maker = nullptr;
}

extern "C" void simt_rt_mbarrier_arrive(void* at, u32 arrivals, u32 bytes, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Mbarrier& barrier = mbarrier_at(at, site);
  if (arrivals > barrier.pending)
    fail_here(SIMT_ASYNC, site, "arrival at an mbarrier whose %u arrivals are complete,", barrier.count);
  barrier.bytes += bytes;
  barrier.pending -= arrivals;
  if (arrivals) barrier.gathering.add(thread, release(thread));
  settle(barrier);
}

extern "C" int simt_rt_mbarrier_wait(void* at, u32 parity, int blocks, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Mbarrier& barrier = mbarrier_at(at, site);
  if ((barrier.phase & 1) == (parity & 1)) {
    if (!blocks) {
      polled(site);
      return 0;
    }
    barrier.waiting.emplace_back(&thread, parity & 1);
    expect(Wait::mbarrier, site);
    suspend();
  }
  learn(thread, barrier.released);
  return 1;
}

extern "C" void simt_rt_bulk_load(void* to, const void* from, u32 bytes, void* at, u32 site) {
  step(site);
  Mbarrier& barrier = mbarrier_at(at, site, true);
  check_aligned(to, bytes, site);
  check_aligned(from, bytes, site);
  u32 block = barrier.block->linear, slot = agent_of(barrier, site);
  access_for_agent(const_cast<void*>(from), bytes, 16, false, block, slot, site);
  access_for_agent(to, bytes, 16, true, block, slot, site);
  if (machine->traffic) machine->traffic->bulk(site, bytes);
  take_off(to, from, bytes, at, block, slot, site);
}

extern "C" void simt_rt_st_async(void* to, const void* value, u32 bytes, void* at, u32 site) {
  step(site);
  Mbarrier& barrier = mbarrier_at(at, site, true);
  if (!is_shared(to) || owner(to) != barrier.block)
    fail_here(SIMT_ASYNC, site, "st.async to %s, which is not in the block of its mbarrier,", describe(to).c_str());
  u32 block = barrier.block->linear, slot = agent_of(barrier, site);
  access_for_agent(to, bytes, bytes, true, block, slot, site);
  Thread& thread = *machine->current;
  u32 time = release(thread);
  take_off(to, value, bytes, at, block, slot, site, snapshot(thread, time));
}

extern "C" void simt_rt_bulk_store(void* to, const void* from, u32 bytes, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  check_aligned(to, bytes, site);
  check_aligned(from, bytes, site);
  check_proxy(const_cast<void*>(from), bytes, site);
  u32 slot = agent_of(thread, kBulk, site);
  access_for_agent(const_cast<void*>(from), bytes, 16, false, thread.block->linear, slot, site);
  access_for_agent(to, bytes, 16, true, thread.block->linear, slot, site);
  if (machine->traffic) machine->traffic->bulk(site, bytes);
  take_off(to, from, bytes, nullptr, thread.block->linear, slot, site);
}

extern "C" void simt_rt_cp_async(void* to, const void* from, u32 bytes, u32 read, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  if ((bytes != 4 && bytes != 8 && bytes != 16) || read > bytes)
    fail_here(SIMT_ASYNC, site, "cp.async of %u bytes, of which %u are read (4, 8 or 16 can be copied),", bytes, read);
  u32 slot = agent_of(thread, kCopy, site);
  char data[16] = {};
  if (read) {
    access_for_agent(const_cast<void*>(from), read, bytes, false, thread.block->linear, slot, site);
    std::memcpy(data, from, read);
    if (machine->traffic)
      machine->traffic->log(static_cast<u32>(&thread - machine->pool.data()), site, reinterpret_cast<u64>(from), read,
                            false);
  }
  access_for_agent(to, bytes, bytes, true, thread.block->linear, slot, site);
  take_off(to, data, bytes, nullptr, thread.block->linear, slot, site);
}

extern "C" void simt_rt_commit(int kind, u32 site) {
  step(site);
  machine->current->groups[kind].committed.push_back(next_time());
}

extern "C" void simt_rt_wait_group(int kind, u32 left, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Groups& groups = thread.groups[kind == kBulkComplete ? kBulk : kind];
  if (groups.committed.size() <= left) return;
  Machine& m = *machine;
  for (size_t i = 0; i < m.flights.size();) {
    if (!m.flights[i].mbarrier && m.flights[i].block == thread.block->linear && m.flights[i].slot == groups.slot) {
      deliver(i);
    } else {
      i++;
    }
  }
  u32 until = groups.committed[groups.committed.size() - 1 - left];
  if (!left) groups.waited = true;
  if (groups.slot) learn(thread, with_slot(thread.extra, thread.block->linear, groups.slot, m.stride, until));
  progressed();
}

extern "C" void simt_rt_named(u32 id, u32 threads, int waits, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Named& named = thread.block->named[id];
  if (id > 15 || !threads || threads % 32)
    fail_here(SIMT_DIVERGENT_BARRIER, site, "named barrier %u for %u threads (ids are 0 to 15, threads come in warps)",
              id, threads);
  if (named.arrived && named.needed != threads)
    fail_here(SIMT_DIVERGENT_BARRIER, site, "named barrier %u for %u threads, which %s has for %u,", id, threads,
              place(named.site).c_str(), named.needed);
  named.needed = threads;
  named.site = site;
  named.gathering.add(thread, release(thread));
  if (waits) {
    named.waiting.push_back(&thread);
    expect(Wait::named, site);
  }
  if (++named.arrived == threads) {
    Known all = named.gathering.freeze();
    std::vector<Thread*> waiting = std::move(named.waiting);
    named.waiting.clear();
    named.arrived = 0;
    for (Thread* one : waiting) learn(*one, all);
    progressed();
    wake_all(waiting);
  }
  if (waits) suspend();
}

}  // namespace fusec::simt
