// The C door: locks, checks of a launch, and results that outlive it.

#include "test/simt/c_api.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "test/simt/machine.h"

struct simt_kernel {
  std::shared_ptr<const fusec::simt::Kernel> kernel;
};
struct simt_memory {
  fusec::simt::Memory memory;
};

namespace fusec::simt {
namespace {

constexpr u32 kMostShared = 227 << 10, kMostThreads = 1024, kMostCluster = 16;
constexpr u64 kLimit = 2'000'000'000;

std::mutex one_at_a_time;  // launches, and the shadows they share with memory

struct Outcome {
  simt_result result{};  // first: the handle is its address
  std::string text;
  std::vector<u32> lines;
  std::vector<simt_count> counts;
};

// What is wrong with the launch, or "".
std::string check(const Machine& m, const char* entry, const EntryPoint* point, size_t arg_bytes) {
  if (!point) {
    std::string known;
    for (const auto& [name, unused] : m.kernel->entries) known += (known.empty() ? "" : ", ") + name;
    return format("no kernel %s in the text; it has: %s", entry, known.c_str());
  }
  if (arg_bytes < point->arg_bytes)
    return format("%zu bytes of arguments; %s takes %llu", arg_bytes, entry,
                  static_cast<unsigned long long>(point->arg_bytes));
  u64 threads = u64{m.size.x} * m.size.y * m.size.z, blocks = u64{m.grid.x} * m.grid.y * m.grid.z;
  if (!blocks || !threads) return "an empty grid or block";
  if (threads > kMostThreads)
    return format("%llu threads a block; 1024 are possible", static_cast<unsigned long long>(threads));
  if (blocks * ((threads + 31) / 32 + agents_of(u32(threads)) / 32) >> 32) return "too many blocks for the host";
  if (!m.cluster || m.cluster > kMostCluster || m.grid.x % m.cluster)
    return format("a cluster of %u blocks on a grid of %u", m.cluster, m.grid.x);
  u64 shared = m.kernel->shared_bytes + m.dynamic;
  if (shared > kMostShared)
    return format("%llu bytes of shared memory; a block has %u", static_cast<unsigned long long>(shared), kMostShared);
  return "";
}

void add_counts(const Machine& m, Outcome& out) {
  if (!m.traffic) return;
  for (const auto& [key, count] : m.traffic->counts()) {
    const Site& site = m.kernel->sites[key.site];
    u32 line = site.lines.empty() ? 0 : site.lines.front();
    u32 bytes = count.lanes ? static_cast<u32>(count.bytes / count.lanes) : 0;
    out.counts.push_back({line, site.lines.data(), site.lines.size(), site.bytes ? site.bytes : bytes, site.write,
                          key.shared, count.requests, count.lanes, count.sectors, count.ideal_sectors, count.passes,
                          count.ideal_passes});
  }
}

const simt_result* finish(const Machine& m, Outcome* out) {
  simt_result& result = out->result;
  result.fault = m.fault;
  out->text = m.why;
  if (m.fault_site) out->lines = m.kernel->sites[m.fault_site].lines;
  add_counts(m, *out);
  const Index &b = m.fault_block, &t = m.fault_thread;
  std::memcpy(result.block, &b, sizeof result.block);
  std::memcpy(result.thread, &t, sizeof result.thread);
  result.text = out->text.c_str();
  result.line = out->lines.empty() ? 0 : out->lines[0];
  result.lines = out->lines.data();
  result.line_count = out->lines.size();
  result.steps = m.steps;
  result.switches = m.switches;
  result.counts = out->counts.data();
  result.count_count = out->counts.size();
  return &result;
}

char* copy(const std::string& text) {
  char* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out) std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

}  // namespace
}  // namespace fusec::simt

using namespace fusec::simt;

int simt_api_version(void) { return SIMT_API_VERSION; }

simt_kernel* simt_load(const char* text, size_t bytes, char** error) {
  std::string why;
  auto kernel = compile(std::string(text, bytes), why);
  if (kernel) return new simt_kernel{std::move(kernel)};
  if (error) *error = copy(why);
  return nullptr;
}

void simt_unload(simt_kernel* kernel) { delete kernel; }
void simt_free_text(char* text) { std::free(text); }

simt_memory* simt_memory_new(void) { return new simt_memory; }

void simt_memory_free(simt_memory* memory) {
  std::lock_guard lock(one_at_a_time);
  delete memory;
}

void* simt_allocate(simt_memory* memory, size_t bytes, const char* name, int unwritten) {
  std::lock_guard lock(one_at_a_time);
  try {
    return memory->memory.allocate(bytes, name, unwritten);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void simt_add(simt_memory* memory, void* begin, size_t bytes, const char* name, int unwritten) {
  std::lock_guard lock(one_at_a_time);
  memory->memory.add(begin, bytes, name, unwritten);
}

int simt_remove(simt_memory* memory, void* begin) {
  std::lock_guard lock(one_at_a_time);
  return memory->memory.remove(begin);
}

const simt_result* simt_launch(simt_kernel* kernel, const char* entry, simt_memory* memory, const uint32_t grid[3],
                               const uint32_t block[3], uint32_t cluster, uint32_t dynamic_shared_bytes,
                               const void* args, size_t arg_bytes, const simt_options* options) {
  std::lock_guard lock(one_at_a_time);
  Machine m;
  m.kernel = kernel->kernel.get();
  m.memory = &memory->memory;
  if (options) m.options = *options;
  if (!m.options.limit) m.options.limit = kLimit;
  m.grid = {grid[0], grid[1], grid[2]};
  m.size = {block[0], block[1], block[2]};
  m.cluster = cluster ? cluster : 1;
  m.dynamic = dynamic_shared_bytes;
  m.threads = block[0] * block[1] * block[2];
  m.stride = (m.threads + 31) / 32 * 32 + agents_of(m.threads);
  m.args = static_cast<const char*>(args);
  m.arg_bytes = static_cast<u32>(arg_bytes);
  auto* out = new Outcome;
  auto found = m.kernel->entries.find(entry);
  std::string wrong = check(m, entry, found == m.kernel->entries.end() ? nullptr : &found->second, arg_bytes);
  machine = &m;
  if (wrong.empty()) {
    m.entry = found->second.call;
    run_grid();
  } else {
    report(SIMT_LAUNCH, 0, wrong, nullptr);
  }
  machine = nullptr;
  return finish(m, out);
}

void simt_result_free(const simt_result* result) { delete reinterpret_cast<const Outcome*>(result); }
