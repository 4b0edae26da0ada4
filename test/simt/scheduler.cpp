// Who runs: every CUDA thread is a fiber that runs until it must wait. Then the next one is picked from those that can
// run: at random, or first come first served with threads and blocks counted up (forward) or down (reverse).

#include <algorithm>

#include "test/simt/fiber.h"
#include "test/simt/machine.h"
#include "test/simt/stacks.h"

namespace fusec::simt {

Machine* machine;
u32 now = 1;

namespace {

Thread* pick() {
  Machine& m = *machine;
  if (m.head == m.ready.size()) {
    m.ready.clear();
    m.head = 0;
    m.ready.swap(m.later);
    if (m.ready.empty()) return nullptr;
  }
  if (m.options.order == SIMT_RANDOM) {
    std::swap(m.ready[random_below(static_cast<u32>(m.ready.size()))], m.ready.back());
    Thread* thread = m.ready.back();
    m.ready.pop_back();
    return thread;
  }
  Thread* thread = m.ready[m.head++];
  if (m.head > 4096) {
    m.ready.erase(m.ready.begin(), m.ready.begin() + static_cast<ptrdiff_t>(m.head));
    m.head = 0;
  }
  return thread;
}

// Leaves the running fiber for the next one, or for the launching stack when there is none or a fault was found.
void leave(void** save) {
  Machine& m = *machine;
  m.switches++;
  if (!m.flights.empty()) deliver_some();
  Thread* next = m.dead ? nullptr : pick();
  while (!next && !m.dead && !m.flights.empty()) {
    deliver(0);
    next = pick();
  }
  if (next == m.current) return;  // its saved place is stale
  if (next) m.current = next;
  fiber_switch(save, next ? next->stack : m.home);
}

void complete_barrier(Block& block) {
  block.outcome = block.votes;  // a fast thread may vote again before a slow one reads this
  block.arrived = 0;
  meet(block);
  for (Warp& warp : block.warps) warp.known = block.known;
  progressed();
  std::vector<Thread*> waiting;
  for (Thread* thread : block.threads)
    if (thread->wait == Wait::barrier) waiting.push_back(thread);
  wake_all(waiting);
}

void complete_cluster(Cluster& cluster) {
  cluster.arrived = 0;
  cluster.phase++;
  cluster.released = cluster.gathering.freeze();
  progressed();
  std::vector<Thread*> waiting;
  for (Block* block : cluster.blocks)
    for (Thread* thread : block->threads)
      if (thread->wait == Wait::cluster) waiting.push_back(thread);
  wake_all(waiting);
}

// A block's shared memory ends with its last thread: whatever peers did to it must be known to one of its threads by
// then.
void check_remote(Thread& thread) {
  Block& block = *thread.block;
  std::erase_if(block.remote, [&](const Entry& entry) { return ordered(entry, thread); });
  if (block.live || block.remote.empty()) return;
  const Entry& entry = block.remote.front();
  fail(SIMT_EXIT, entry.site,
       format("block %u ends, and nothing orders that after the access by a peer (block %u) at %s to its shared memory",
              block.linear, entry.warp / (machine->stride / 32), place(entry.site).c_str()));
}

void end_thread() {
  Machine& m = *machine;
  Thread& thread = *m.current;
  Block& block = *thread.block;
  Warp& warp = *thread.warp;
  thread.done = true;
  block.live--;
  block.cluster->live--;
  warp.live &= ~(1u << thread.lane);
  progressed();
  for (const Collective& open : warp.open)
    if (open.mask >> thread.lane & 1)
      fail(SIMT_DIVERGENT_WARP, open.site,
           format("%s ends while lanes %08x wait for it at %s (mask %08x)", name(thread).c_str(), open.arrived,
                  place(open.site).c_str(), open.mask));
  check_groups(thread);
  check_remote(thread);
  if (block.live && block.arrived == block.live) complete_barrier(block);
  if (block.cluster->live && block.cluster->arrived == block.cluster->live) complete_cluster(*block.cluster);
}

void thread_main() {
  machine->entry(machine->args);
  end_thread();
  void* nowhere;
  leave(&nowhere);
  __builtin_trap();
}

void start_block(Block& block, Cluster& cluster, u32 linear, u32 rank, Thread* threads) {
  Machine& m = *machine;
  block = Block{};
  block.linear = linear;
  block.rank = rank;
  block.at = {linear % m.grid.x, linear / m.grid.x % m.grid.y, linear / m.grid.x / m.grid.y};
  block.cluster = &cluster;
  block.live = m.threads;
  block.known = cluster.start;
  block.warps.resize((m.threads + 31) / 32);
  for (u32 i = 0; i < m.threads; i++) {
    Thread& thread = threads[i] = Thread{};
    thread.at = {i % m.size.x, i / m.size.x % m.size.y, i / m.size.x / m.size.y};
    thread.block = &block;
    thread.warp = &block.warps[i / 32];
    thread.warp->known = cluster.start;
    thread.warp->lane[i % 32] = &thread;
    thread.warp->live |= 1u << i % 32;
    thread.warp->exists = thread.warp->live;
    thread.linear = i;
    thread.lane = i % 32;
    thread.slot = linear * m.stride + i;
    thread.since = cluster.start;
    // Stacks start at different offsets, or all their tops would share a few lines of the cache.
    size_t index = static_cast<size_t>(&thread - m.pool.data());
    thread.stack = fiber_prepare(stack_top(index) - 64 - index * 192 % 4096, thread_main);
    block.threads.push_back(&thread);
  }
  cluster.blocks.push_back(&block);
  m.live.push_back(&block);
}

// Runs clusters[first, last), side by side, until all their threads have ended.
void run_clusters(const std::vector<u32>& order, size_t first, size_t last, std::vector<Block>& blocks,
                  std::vector<Cluster>& clusters) {
  Machine& m = *machine;
  m.live.clear();
  m.ready.clear();
  m.later.clear();
  m.head = 0;
  m.mbarriers.clear();
  for (size_t i = first; i < last; i++) {
    Cluster& cluster = clusters[i - first] = Cluster{};
    cluster.start = next_time();
    cluster.live = m.threads * m.cluster;
    for (u32 rank = 0; rank < m.cluster; rank++) {
      size_t slot = (i - first) * m.cluster + rank;
      start_block(blocks[slot], cluster, order[i] * m.cluster + rank, rank, &m.pool[slot * m.threads]);
    }
  }
  std::vector<Thread*> all;
  for (Block* block : m.live) {
    prepare_arena(*block);
    all.insert(all.end(), block->threads.begin(), block->threads.end());
  }
  wake_all(all);
  m.current = pick();
  {
    StackGuard guard;
    fiber_switch(&m.home, m.current->stack);
  }
  if (m.dead) return;
  for (Block* block : m.live)
    if (block->live) return report_deadlock();
  if (m.traffic)
    for (u32 i = 0; i < m.live.size(); i++) m.traffic->finish(i * m.threads, m.threads);
}

}  // namespace

u32 random_below(u32 n) {
  u64& x = machine->random;  // xorshift*
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return static_cast<u32>(((x * 0x2545F4914F6CDD1Dull) >> 32) * n >> 32);
}

void expect(Wait wait, u32 site, u32 mask) {
  Thread& thread = *machine->current;
  thread.wait = wait;
  thread.site = site;
  thread.mask = mask;
}

void suspend() { leave(&machine->current->stack); }

void wake(Thread* thread) {
  thread->wait = Wait::nothing;
  machine->ready.push_back(thread);
}

void wake_all(std::span<Thread* const> threads) {
  if (machine->options.order == SIMT_REVERSE) {
    std::for_each(threads.rbegin(), threads.rend(), wake);
  } else {
    std::for_each(threads.begin(), threads.end(), wake);
  }
}

void give_way() {
  Thread& thread = *machine->current;
  machine->later.push_back(&thread);
  leave(&thread.stack);
}

void polled(u32 site) {
  Machine& m = *machine;
  // Copies that travel as long as somebody can run would never arrive while everybody polls for them.
  if (!m.flights.empty() && m.idle_polls >= m.pool.size()) deliver(0);
  if (++m.idle_polls > 10'000 + 64 * m.pool.size())
    fail_here(SIMT_ENDLESS, site, "endless spin, nothing changes any more: poll");
  give_way();
}

void step(u32 site) {
  Machine& m = *machine;
  if (++m.steps > m.options.limit)
    fail_here(SIMT_ENDLESS, site, "no end in sight after %llu steps, the last",
              static_cast<unsigned long long>(m.options.limit));
}

void run_grid() {
  Machine& m = *machine;
  u32 blocks = m.grid.x * m.grid.y * m.grid.z;
  size_t side_by_side = std::min<size_t>(std::max(1u, m.options.resident), blocks / m.cluster);
  m.random = m.options.seed * 0x9E3779B97F4A7C15ull | 1;
  for (int i = 0; i < 4; i++) random_below(1);
  m.base = next_time();
  forget_lists();

  std::vector<u32> order(blocks / m.cluster);
  for (u32 i = 0; i < order.size(); i++) order[i] = i;
  if (m.options.order == SIMT_REVERSE) std::reverse(order.begin(), order.end());
  if (m.options.order == SIMT_RANDOM)
    for (u32 i = static_cast<u32>(order.size()); i > 1; i--) std::swap(order[i - 1], order[random_below(i)]);

  size_t resident_threads = side_by_side * m.cluster * m.threads;
  if (!prepare_stacks(resident_threads))
    return report(SIMT_LAUNCH, 0, format("no memory for the stacks of %zu threads", resident_threads), nullptr);
  m.pool.resize(resident_threads);
  if (m.options.traffic) m.traffic = std::make_unique<Traffic>(static_cast<u32>(resident_threads));
  std::vector<Block> block_pool(side_by_side * m.cluster);
  std::vector<Cluster> cluster_pool(side_by_side);
  for (size_t i = 0; i < order.size() && !m.dead; i += side_by_side)
    run_clusters(order, i, std::min(order.size(), i + side_by_side), block_pool, cluster_pool);
  m.pool.clear();
}

// --- barriers of blocks and clusters -------------------------------------------------------------

extern "C" int simt_rt_barrier(int vote, int predicate, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Block& block = *thread.block;
  if (block.arrived && block.site != site)
    fail_here(SIMT_DIVERGENT_BARRIER, site, "divergent barrier: %u threads wait at %s; another is reached",
              block.arrived, place(block.site).c_str());
  if (!block.arrived) block.votes = {};
  block.site = site;
  block.votes.yes += predicate != 0;
  block.votes.all++;
  expect(Wait::barrier, site);
  if (++block.arrived == block.live) complete_barrier(block);
  suspend();
  const Votes& votes = block.outcome;
  return vote == 1 ? votes.yes != 0 : vote == 2 ? votes.yes == votes.all : vote == 3 ? static_cast<int>(votes.yes) : 0;
}

extern "C" void simt_rt_cluster_arrive(int relaxed, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Cluster& cluster = *thread.block->cluster;
  if (thread.arrived_cluster)
    fail_here(SIMT_DIVERGENT_BARRIER, site, "second arrival at the cluster barrier without a wait");
  thread.arrived_cluster = true;
  thread.cluster_phase = cluster.phase;
  if (!relaxed) cluster.gathering.add(thread, release(thread));
  if (++cluster.arrived == cluster.live) complete_cluster(cluster);
}

extern "C" void simt_rt_cluster_wait(u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Cluster& cluster = *thread.block->cluster;
  if (!thread.arrived_cluster)
    fail_here(SIMT_DIVERGENT_BARRIER, site, "wait at the cluster barrier without an arrival");
  thread.arrived_cluster = false;
  if (cluster.phase == thread.cluster_phase) {
    expect(Wait::cluster, site);
    suspend();
  }
  learn(thread, cluster.released);
}

extern "C" void* simt_rt_map(const void* at, u32 rank, u32 site) {
  step(site);
  if (!is_shared(at)) fail_here(SIMT_BOUNDS, site, "map of an address that is not shared memory");
  Block& from = *owner(at);
  const std::vector<Block*>& peers = from.cluster->blocks;
  if (rank >= peers.size()) fail_here(SIMT_BOUNDS, site, "map to rank %u of a cluster of %zu", rank, peers.size());
  return peers[rank]->shared + (static_cast<const char*>(at) - from.shared);
}

// --- who am I ------------------------------------------------------------------------------------

extern "C" Index simt_is_thread() { return machine->current->at; }
extern "C" Index simt_is_block() { return machine->current->block->at; }
extern "C" Index simt_is_block_size() { return machine->size; }
extern "C" Index simt_is_grid_size() { return machine->grid; }
extern "C" u32 simt_is_rank() { return machine->current->block->rank; }
extern "C" u32 simt_is_cluster() { return machine->cluster; }
extern "C" void* simt_is_shared() { return machine->current->block->shared; }

extern "C" void simt_rt_yield(u32 site) {
  step(site);
  polled(site);
}

extern "C" void simt_rt_trap(u32 site) { fail_here(SIMT_TRAP, site, "trap"); }

}  // namespace fusec::simt
