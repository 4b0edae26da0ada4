#pragma once
// The running machine: threads, warps, blocks and clusters of one launch, and the functions that the files of this
// folder lend each other. One launch runs at a time in a process (c_api.cpp holds the lock); `machine` is the one that
// runs.

#include <array>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "test/simt/c_api.h"
#include "test/simt/clock.h"
#include "test/simt/kernel.h"
#include "test/simt/memory.h"
#include "test/simt/shadow.h"
#include "test/simt/traffic.h"

namespace fusec::simt {

struct Index {
  u32 x, y, z;
};

enum class Wait : u8 { nothing, barrier, named, warp, cluster, mbarrier };

struct Block;
struct Cluster;
struct Warp;

/// A fence that a thread made: what a later atomic of it will publish.
struct Mark {
  u32 time = 0, block = 0, warp = 0;  // time 0: no fence yet
  Known extra, published;
};

/// One group of copies of a thread (bulk_group or cp.async group), oldest first.
struct Groups {
  u32 slot = 0;                // the agent that stands for them; 0: none yet
  bool waited = true;          // for everything issued
  u32 site = 0;                // of the last copy
  std::vector<u32> committed;  // time of each commit
};

struct Thread {
  Index at;               // threadIdx
  void* stack = nullptr;  // where it stopped
  Block* block = nullptr;
  Warp* warp = nullptr;
  u32 linear = 0, lane = 0;
  u32 slot = 0;   // in the grid: block * stride + linear
  u32 since = 0;  // time of its last release: what its accesses carry
  bool done = false;
  Wait wait = Wait::nothing;
  u32 site = 0, mask = 0;  // of the call that it waits in
  u64 result = 0;          // of a collective
  bool arrived_cluster = false, relaxed = false;
  u32 cluster_phase = 0;
  Known extra;
  Mark fence_block, fence_gpu;
  Known seen_block, seen_gpu;  // released by others at atomics that it read; its next fence takes them over
  u32 proxy_fence = 0;
  Groups groups[2];  // bulk, cp.async
};

/// A warp collective under way: its mask names the lanes that it waits for.
struct Collective {
  u32 mask = 0, arrived = 0, site = 0;
  int op = 0;
};

struct Warp {
  u32 live = 0, exists = 0;
  u32 known = 0;  // all lanes know each other's accesses before this time
  Collective open[4];
  Thread* lane[32] = {};
  u64 value[32];
  int pick[32], width[32];
};

struct Votes {
  u32 yes = 0, all = 0;
};

/// A named barrier (bar.sync id, n; bar.arrive id, n).
struct Named {
  u32 arrived = 0, needed = 0, site = 0;
  Gathering gathering;
  std::vector<Thread*> waiting;
};

struct Block {
  u32 linear = 0, rank = 0;
  Index at;
  Cluster* cluster = nullptr;
  char* shared = nullptr;  // its arena
  u32 live = 0, arrived = 0, site = 0;
  u32 known = 0;           // all threads know each other's accesses before this time
  Votes votes, outcome;    // of the barrier under way, of the last one
  bool any_extra = false;  // some thread may hold knowledge from outside
  u32 agents = 0;          // agent slots given out
  std::vector<Warp> warps;
  std::vector<Thread*> threads;
  std::map<u32, Named> named;
  std::vector<Entry> remote;  // accesses of peers to its shared memory that it does not know to be over
};

struct Cluster {
  std::vector<Block*> blocks;
  u32 live = 0, arrived = 0, phase = 0, start = 0;
  Gathering gathering;
  Known released;
};

struct Mbarrier {
  Block* block = nullptr;
  const Thread* maker = nullptr;  // until it has fenced the initialisation
  u32 count = 0, pending = 0, phase = 0, slot = 0;
  int64_t bytes = 0;  // expected less delivered
  Gathering gathering;
  Known released;                                // by the phases that are over
  std::vector<std::pair<Thread*, u32>> waiting;  // and for which parity
};

/// A copy under way: the data sits in `bytes` until it is delivered.
struct Flight {
  char* to;
  std::vector<char> bytes;
  void* mbarrier;   // told on delivery; null for groups
  u32 block, slot;  // the agent
  u32 site;
  Known sender;  // st.async: what the sending thread knew, which its signal releases
};

struct Machine {
  // what was asked for
  const Kernel* kernel = nullptr;
  Memory* memory = nullptr;
  simt_options options{};
  Index grid{}, size{};  // blocks, threads
  u32 threads = 0, stride = 0, cluster = 1, dynamic = 0;
  void (*entry)(const void*) = nullptr;
  const char* args = nullptr;
  u32 arg_bytes = 0;

  // what runs
  std::vector<Thread> pool;  // of the clusters that run side by side
  void* home = nullptr;      // the launching stack
  Thread* current = nullptr;
  std::vector<Thread*> ready, later;  // `later` gave way on purpose: they run when nobody else can
  size_t head = 0;
  std::vector<Block*> live;
  u64 random = 1;
  u32 base = 0;  // time at the launch: older entries are of other launches
  std::deque<Flight> flights;
  std::unordered_map<const void*, Mbarrier> mbarriers;
  std::unordered_map<const void*, Known> released;  // by atomics, for each address
  std::unique_ptr<Traffic> traffic;
  u64 idle_polls = 0;  // reads of flags since anything changed

  // what comes out
  bool dead = false;
  simt_fault fault = SIMT_OK;
  std::string why;
  u32 fault_site = 0;
  Index fault_block{}, fault_thread{};
  u64 steps = 0, switches = 0;
};

extern Machine* machine;
extern u32 now;  // the last time given out

inline u32 next_time() { return ++now; }
u32 random_below(u32 n);

// --- scheduler.cpp -------------------------------------------------------------------------------
void run_grid();
/// The running thread will wait: says for what. Whoever completes it calls wake, which may come before suspend.
void expect(Wait wait, u32 site, u32 mask = 0);
/// Lets others run until the running thread is woken.
void suspend();
void wake(Thread* thread);
/// Wakes several that waited for the same thing, in the launch's order.
void wake_all(std::span<Thread* const> threads);
/// Gives way to every other thread that can run.
void give_way();
/// A flag was read: gives way, and finds spins that nothing can end.
void polled(u32 site);
inline void progressed() { machine->idle_polls = 0; }
/// Counts a step against the limit.
void step(u32 site);

// --- faults.cpp: the first fault ends the launch -------------------------------------------------
[[noreturn]] void fail(simt_fault fault, u32 site, const std::string& why);
/// The same with " by block (…) thread (…) at line 12" behind it: what the running thread does there.
[[noreturn]] void fail_here(simt_fault fault, u32 site, const char* why, ...) __attribute__((format(printf, 3, 4)));
/// The same, where the calling code is not a thread's.
void report(simt_fault fault, u32 site, const std::string& why, const Thread* thread);
std::string format(const char* text, ...) __attribute__((format(printf, 1, 2)));
std::string name(const Thread& thread);  // "block (1,0,0) thread (5,0,0)"
std::string place(u32 site);             // "line 12 (from 40)"
void report_deadlock();

// --- access.cpp ----------------------------------------------------------------------------------
enum Access : u32 { kRead = 0, kWrite = 1, kAtomic = 2, kUnlogged = 4 };
/// One access of the running thread: bounds, alignment, initialisation, order. Does not return on a fault.
void access(void* at, u64 bytes, u32 align, u32 how, u32 site);
/// The same for a copy under way: checked with what the running thread knows, recorded for the agent.
void access_for_agent(void* at, u64 bytes, u32 align, bool write, u32 block, u32 slot, u32 site);
/// A bulk store reads shared memory through the async proxy: what threads wrote there wants a proxy fence first.
void check_proxy(void* at, u64 bytes, u32 site);
bool is_shared(const void* at);
Block* owner(const void* at);          // of an address in shared memory
std::string describe(const void* at);  // "x+16", "shared s+4 of block 2"
void prepare_arena(Block& block);

// --- order.cpp: what orders accesses -------------------------------------------------------------
bool ordered(const Entry& entry, const Thread& thread);
u32 release(Thread& thread);  // a new time: its earlier accesses are before it
void learn(Thread& thread, const Known& known);
Known snapshot(const Thread& thread, u32 time);
/// All threads that meet here know each other's accesses before the time returned.
u32 meet(Block& block);
u32 new_agent(Block& block, u32 site);

// --- atomics.cpp ---------------------------------------------------------------------------------
/// A load or store of a volatile variable: a flag, ordered like a relaxed atomic.
void volatile_access(void* at, const Site& what, u32 site);

// --- async.cpp: copies under way -----------------------------------------------------------------
void deliver(size_t index);
void deliver_some();
/// A thread ends: has it waited for what it issued?
void check_groups(const Thread& thread);

}  // namespace fusec::simt
