// Every load and store passes here before it happens: is it inside something, aligned, initialised, ordered?

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "test/simt/machine.h"
#include "test/simt/stacks.h"

namespace fusec::simt {
namespace {

// An arena is the shared memory of one block with red zones between its variables: 227 KB, the zones, and room to
// spare.
constexpr size_t kArena = 384 << 10;
enum Byte : u8 { kZoneByte, kUnwritten, kWritten };

char* arenas;
Cell* arena_cells;
std::vector<u8> arena_bytes;     // Byte, for each byte of each arena
std::vector<size_t> arena_used;  // bytes of each arena that the last block used
size_t arena_count;

const char* verb(bool write) { return write ? "write" : "read"; }

[[noreturn]] void bad_access(simt_fault fault, const std::string& how, bool write, u64 bytes, const void* at,
                             u32 site) {
  fail_here(fault, site, "%s: %s of %llu bytes at %s", how.c_str(), verb(write), static_cast<unsigned long long>(bytes),
            describe(at).c_str());
}

std::string who(const Entry& entry) {
  u32 warps = machine->stride / 32, block = entry.warp / warps, first = entry.warp % warps * 32;
  u32 thread = first + static_cast<u32>(__builtin_ctz(entry.lanes));
  std::string where = format("block %u at %s", block, place(entry.site).c_str());
  if (entry.agent) return "a copy under way, issued in " + where;
  return format("thread %u%s of ", thread, entry.lanes & (entry.lanes - 1) ? " and others" : "") + where;
}

[[noreturn]] void race(const Entry& old, bool write, void* at, bool shared, u32 site) {
  const Thread& thread = *machine->current;
  bool async = old.agent;
  fail(async  ? SIMT_ASYNC :
       shared ? SIMT_RACE_SHARED :
                SIMT_RACE_GLOBAL,
       site,
       format("%s on %s: %s by %s at %s, and nothing orders it after the %s by %s", async ? "early access" : "race",
              describe(at).c_str(), verb(write), name(thread).c_str(), place(site).c_str(),
              old.atomic ? "atomic" : verb(old.write), who(old).c_str()));
}

// Runs over the words of an access. `entry` says who it is; its byte mask is set here.
void check_order(Cell* cells, size_t offset, u64 bytes, Entry entry, u32 floor, bool shared, void* at, u32 site) {
  const Thread& thread = *machine->current;
  size_t end = offset + bytes;
  for (size_t word = offset / 4; word * 4 < end; word++) {
    size_t from = std::max(offset, word * 4), to = std::min(end, word * 4 + 4);
    entry.bytes = ((1u << (to - from)) - 1) << (from - word * 4);
    if (const Entry* old = touch(cells[word], entry, floor, thread))
      race(*old, entry.write, static_cast<char*>(at) + (from - offset), shared, site);
  }
}

Entry entry_of(const Thread& thread, u32 how, bool shared, u32 site) {
  Entry entry;
  entry.warp = thread.slot / 32;
  entry.lanes = 1u << thread.lane;
  entry.time = thread.since;
  entry.site = site;
  entry.write = (how & kWrite) != 0;
  entry.atomic = (how & kAtomic) != 0;
  // An atomic behind a fence counts as published by that fence: who reads its value knows that it is over.
  const Mark& mark = shared ? thread.fence_block : thread.fence_gpu;
  if (entry.atomic && mark.time) entry.time = mark.time - 1;
  return entry;
}

struct Target {
  bool shared = false;
  Block* block = nullptr;    // shared: whose
  Buffer* buffer = nullptr;  // global
  size_t offset = 0;
  Cell* cells = nullptr;
  u32 floor = 0;
};

void check_shared(Target& target, void* at, u64 bytes, bool write, u32 site) {
  Machine& m = *machine;
  Thread& thread = *m.current;
  size_t from = static_cast<char*>(at) - arenas;
  target.offset = from % kArena;
  u8* state = &arena_bytes[from];
  u64 inside = 0, written = 0;
  if (target.offset + bytes <= kArena)
    for (u64 i = 0; i < bytes; i++) inside += state[i] != kZoneByte, written += state[i] == kWritten;
  if (inside != bytes) bad_access(SIMT_BOUNDS, "out of bounds", write, bytes, at, site);
  if (!write && written != bytes)
    bad_access(SIMT_UNINITIALISED, "shared memory that nobody wrote", write, bytes, at, site);
  if (write) std::memset(state, kWritten, bytes);
  target.block = m.live[from / kArena];
  if (target.block != thread.block) {
    if (target.block->cluster != thread.block->cluster || !target.block->live)
      bad_access(SIMT_EXIT, "shared memory of a block that has ended", write, bytes, at, site);
  }
  target.cells = arena_cells + from / kArena * (kArena / 4);
  target.floor = thread.block->cluster->start;
}

void check_global(Target& target, void* at, u64 bytes, bool write, u32 site) {
  Machine& m = *machine;
  char* p = static_cast<char*>(at);
  Buffer& buffer = *target.buffer;
  if (p + bytes > buffer.end) bad_access(SIMT_BOUNDS, "out of bounds", write, bytes, at, site);
  target.offset = p - buffer.begin;
  if (!buffer.written.empty()) {
    u8* written = buffer.written.data() + target.offset;
    if (write) {
      std::memset(written, 1, bytes);
    } else if (std::memchr(written, 0, bytes)) {
      bad_access(SIMT_UNINITIALISED, "global memory that nobody wrote", write, bytes, at, site);
    }
  }
  if (m.options.races == SIMT_RACES_ALL) {
    target.cells = m.memory->shadow(buffer);
    target.floor = m.base;
  }
}

// False: memory of the thread itself or the module's own variables.
bool locate(Target& target, void* at, u64 bytes, u32 align, bool write, u32 site) {
  Machine& m = *machine;
  char* p = static_cast<char*>(at);
  target.shared = is_shared(at);
  if (!target.shared && !(target.buffer = m.memory->find(at, false))) {
    if (on_own_stack(at)) return false;
    if (p >= m.args && p + bytes <= m.args + m.arg_bytes) return false;
    for (const Range& range : m.kernel->globals)
      if (p >= range.begin && p + bytes <= range.end) return false;
    bad_access(SIMT_BOUNDS, "out of bounds", write, bytes, at, site);
  }
  if (reinterpret_cast<uintptr_t>(at) & (align - 1))
    bad_access(SIMT_MISALIGNED, format("misaligned, %u bytes wanted", align), write, bytes, at, site);
  if (target.shared) {
    check_shared(target, at, bytes, write, site);
  } else {
    check_global(target, at, bytes, write, site);
  }
  return true;
}

void remember_remote(Block& block, const Entry& entry) {
  for (Entry& old : block.remote)
    if (old.warp == entry.warp && old.time == entry.time) {
      old.lanes |= entry.lanes;
      return;
    }
  block.remote.push_back(entry);
}

}  // namespace

bool is_shared(const void* at) {
  return static_cast<size_t>(static_cast<const char*>(at) - arenas) < arena_count * kArena;
}

Block* owner(const void* at) { return machine->live[(static_cast<const char*>(at) - arenas) / kArena]; }

std::string describe(const void* at) {
  const char* p = static_cast<const char*>(at);
  if (!is_shared(at)) {
    Buffer* buffer = machine->memory->find(at, true);
    if (!buffer) return format("address %p, which is in no buffer", at);
    return format("%s%+lld (%lld bytes)", buffer->name.c_str(), static_cast<long long>(p - buffer->begin),
                  static_cast<long long>(buffer->end - buffer->begin));
  }
  size_t offset = (p - arenas) % kArena;
  std::string text = format("shared memory +%zu", offset);
  auto name = [&](const std::string& variable, u64 begin,
                  u64 bytes) {  // the last one that begins before, or just behind
    if (offset + 32 >= begin)
      text = format("shared %s%+lld (%llu bytes)", variable.c_str(),
                    static_cast<long long>(offset) - static_cast<long long>(begin),
                    static_cast<unsigned long long>(bytes));
  };
  for (const SharedVariable& variable : machine->kernel->shared) name(variable.name, variable.offset, variable.bytes);
  if (machine->dynamic) name("dynamic memory", machine->kernel->dynamic_offset, machine->dynamic);
  Block* of = owner(at);
  return of == machine->current->block ? text : text + format(" of block %u", of->linear);
}

void prepare_arena(Block& block) {
  size_t index = std::find(machine->live.begin(), machine->live.end(), &block) - machine->live.begin();
  size_t want = machine->live.size();
  if (arena_count < want) {
    if (arenas) {
      munmap(arenas, arena_count * kArena);
      give_cells(arena_cells);
    }
    arena_count = want;
    arenas = static_cast<char*>(
        mmap(nullptr, want * kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    arena_cells = take_cells(want * (kArena / 4));
    arena_bytes.assign(want * kArena, kZoneByte);
    arena_used.assign(want, 0);
  }
  block.shared = arenas + index * kArena;
  u8* bytes = &arena_bytes[index * kArena];
  const Kernel& kernel = *machine->kernel;
  size_t used = kernel.dynamic_offset + machine->dynamic;
  std::memset(bytes, kZoneByte, std::max(used, arena_used[index]));
  arena_used[index] = used;
  for (const SharedVariable& variable : kernel.shared) std::memset(bytes + variable.offset, kUnwritten, variable.bytes);
  std::memset(bytes + kernel.dynamic_offset, kUnwritten, machine->dynamic);
  std::memset(block.shared, 0xff, used);
}

void access(void* at, u64 bytes, u32 align, u32 how, u32 site) {
  Machine& m = *machine;
  Thread& thread = *m.current;
  Target target;
  if (!bytes || !locate(target, at, bytes, align, how & kWrite, site)) return;
  if ((how & (kWrite | kAtomic)) == kWrite) progressed();
  if (m.traffic && !(how & kUnlogged))
    m.traffic->log(static_cast<u32>(&thread - m.pool.data()), site, reinterpret_cast<u64>(at), static_cast<u32>(bytes),
                   target.shared);
  bool remote = target.shared && target.block != thread.block;
  if (m.options.races == SIMT_RACES_OFF && !remote) return;
  Entry entry = entry_of(thread, how, target.shared, site);
  if (remote) remember_remote(*target.block, entry);
  if (m.options.races == SIMT_RACES_OFF || !target.cells) return;
  check_order(target.cells, target.offset, bytes, entry, target.floor, target.shared, at, site);
}

void access_for_agent(void* at, u64 bytes, u32 align, bool write, u32 block, u32 slot, u32 site) {
  Machine& m = *machine;
  Target target;
  if (!locate(target, at, bytes, align, write, site) || m.options.races == SIMT_RACES_OFF || !target.cells) return;
  Entry entry;
  entry.warp = (block * m.stride + slot) / 32;
  entry.lanes = 1u << (slot & 31);
  entry.time = now;  // before the time at which its group or its mbarrier's phase will be over
  entry.site = site;
  entry.write = write;
  entry.agent = 1;
  check_order(target.cells, target.offset, bytes, entry, target.floor, target.shared, at, site);
}

void check_proxy(void* at, u64 bytes, u32 site) {
  if (machine->options.races == SIMT_RACES_OFF || !is_shared(at)) return;
  Thread& thread = *machine->current;
  size_t from = static_cast<char*>(at) - arenas;
  for (size_t word = from / 4; word * 4 < from + bytes; word++) {
    const Entry& entry = arena_cells[word].write;
    if (entry.agent || entry.time < thread.block->cluster->start) continue;
    u32 linear = entry.warp % (machine->stride / 32) * 32 + static_cast<u32>(__builtin_ctz(entry.lanes));
    if (thread.proxy_fence <= entry.time && thread.block->threads[linear]->proxy_fence <= entry.time)
      fail_here(SIMT_ASYNC, site, "bulk store of %s, written at %s and not fenced for the async proxy since,",
                describe(at).c_str(), place(entry.site).c_str());
  }
}

// --- the hooks that the pass puts in front of loads and stores -----------------------------------

extern "C" void simt_rt_access(void* at, u32 site) {
  Machine& m = *machine;
  step(site);
  const Site& s = m.kernel->sites[site];
  if (__builtin_expect(!s.is_volatile, 1)) return access(at, s.bytes, s.align, s.write ? kWrite : kRead, site);
  volatile_access(at, s, site);
}

extern "C" void simt_rt_range(void* at, u64 bytes, u32 site) {
  step(site);
  const Site& s = machine->kernel->sites[site];
  access(at, bytes, s.align, s.write ? kWrite : kRead, site);
}

extern "C" void simt_rt_step(u32 site) { step(site); }

}  // namespace fusec::simt
