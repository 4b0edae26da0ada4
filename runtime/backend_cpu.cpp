// The host as a device: LLVM objects from the cache, loaded by ORC, run by the parallel loop.

#if FUSEC_HAS_CPU

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "codegen/cpu/cpu.h"
#include "lib/support/stopwatch.h"
#include "runtime/backend.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/threads.h"
#include "runtime/host_memory.h"

namespace fusec {
namespace {

struct CpuCode final : Loaded {
  cpu::Code code;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend() : identity_(cpu::identity(cpu::host())) {}

  const std::string& name() const override { return name_; }
  std::string description() const override { return cpu::host().cpu; }
  Schedule schedule(const Kernel& kernel, const Facts& facts) const override { return cpu::schedule(kernel, facts, cpu::host()); }
  Launch launch(const Kernel& kernel, const Schedule& schedule, const Facts& facts) const override {
    return cpu::launch(kernel, schedule, facts);
  }
  std::string settle(const Kernel& kernel, const Facts& facts, Schedule& schedule) const override {
    return scheduler_->settle(kernel, facts, schedule);
  }
  std::vector<Candidate> candidates(const Kernel& kernel, const Facts& facts) const override { return scheduler_->candidates(kernel, facts); }
  std::string device_key() const override { return scheduler_->device_key(); }
  std::string target_key() const override { return scheduler_->target_key(); }

  Result<std::shared_ptr<const Loaded>> load(const Kernel& kernel, const Schedule& schedule, Cache& cache) const override {
    const Digest key = cache_key({"cpu", print(kernel), bytes(schedule), identity_});
    Result<Cache::Shared> artifact = cache.get(key, [&] {
      const Stopwatch::Running running(compiling_);
      return cpu::compile(kernel, schedule, cpu::host());
    });
    if (!artifact) return artifact.error();
    const Stopwatch::Running running(loading_);
    Result<cpu::Code> code = cpu::load((*artifact)->bytes, (*artifact)->entry, (*artifact)->finish_entry);
    if (!code) return code.error();
    auto loaded = std::make_shared<CpuCode>();
    loaded->artifact = *artifact;
    loaded->code = std::move(*code);
    return std::shared_ptr<const Loaded>(std::move(loaded));
  }

  Costs costs() const override { return {"LLVM", 0, 0, compiling_.seconds(), loading_.seconds()}; }

  std::vector<std::pair<std::string, std::string>> texts(const Kernel& kernel, const Schedule& schedule) const override {
    std::vector<std::pair<std::string, std::string>> out;
    if (Result<std::string> text = cpu::llvm_ir(kernel, schedule, cpu::host())) out.emplace_back(".ll", std::move(*text));
    if (Result<std::string> text = cpu::assembly(kernel, schedule, cpu::host())) out.emplace_back(".s", std::move(*text));
    return out;
  }

  Status may_prepare(void*) const override { return Done{}; }
  bool captured(void*) const override { return false; }

  Status start(const Loaded& loaded, const Launch& launch, std::span<const std::byte> args, std::span<const Region>, void*) const override {
    const cpu::Code& code = static_cast<const CpuCode&>(loaded).code;
    // The loop's body must fit std::function without allocation: two words.
    struct Call {
      cpu::Entry entry;
      const void* args;
    } call{code.entry, args.data()};
    auto body = [&call](int64_t begin, int64_t end) { call.entry(call.args, begin, end); };
    cpu::parallel_for(launch.grid[0], launch.block, body);
    if (code.finish) {
      call.entry = code.finish;
      cpu::parallel_for(launch.grid[1], 1, body);
    }
    return Done{};
  }

  Result<std::unique_ptr<Memory>> allocate(size_t bytes) const override { return allocate_host(bytes); }
  Status upload(void* to, const void* from, size_t bytes) const override { return copy_host(to, from, bytes); }
  Status download(void* to, const void* from, size_t bytes) const override { return upload(to, from, bytes); }
  Status copy(void* to, const void* from, size_t bytes, void*) const override {
    struct Call {
      std::byte* to;
      const std::byte* from;
      int64_t bytes;
    } call{static_cast<std::byte*>(to), static_cast<const std::byte*>(from), int64_t(bytes)};
    cpu::parallel_for((call.bytes + kChunk - 1) / kChunk, 1, [&call](int64_t begin, int64_t end) {
      const int64_t first = begin * kChunk, last = std::min(end * kChunk, call.bytes);
      std::memcpy(call.to + first, call.from + first, size_t(last - first));
    });
    return Done{};
  }
  Status fill(void* data, uint8_t byte, size_t bytes, void*) const override {
    struct Call {
      std::byte* to;
      int64_t bytes;
      uint8_t byte;
    } call{static_cast<std::byte*>(data), int64_t(bytes), byte};
    cpu::parallel_for((call.bytes + kChunk - 1) / kChunk, 1, [&call](int64_t begin, int64_t end) {
      const int64_t first = begin * kChunk, last = std::min(end * kChunk, call.bytes);
      std::memset(call.to + first, call.byte, size_t(last - first));
    });
    return Done{};
  }
  Status wait(void*) const override { return Done{}; }

  Status sweep(const void* data, size_t bytes, void*) const override {
    struct Call {
      const uint64_t* from;
      int64_t bytes;
      std::atomic<uint64_t> sink = 0;  // nobody looks at it, but the compiler does not know that
    } call{static_cast<const uint64_t*>(data), int64_t(bytes)};
    cpu::parallel_for((call.bytes + kChunk - 1) / kChunk, 1, [&call](int64_t begin, int64_t end) {
      const int64_t first = begin * kChunk / 8, last = std::min(end * kChunk, call.bytes) / 8;
      uint64_t all = 0;
      for (int64_t i = first; i < last; ++i) all ^= call.from[i];
      call.sink.fetch_xor(all, std::memory_order_relaxed);
    });
    return Done{};
  }
  size_t cache_bytes() const override {
    const long l3 = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return l3 > 0 ? size_t(l3) : size_t{32} << 20;
  }

 private:
  static constexpr int64_t kChunk = 1 << 20;  // bytes that a thread copies, fills or reads at a time
  std::string name_ = "cpu", identity_;
  mutable Stopwatch compiling_, loading_;
  std::shared_ptr<const Scheduler> scheduler_ = cpu::scheduler(cpu::host());
};

}  // namespace

Result<std::shared_ptr<const Backend>> cpu_backend() {
  static const std::shared_ptr<const Backend> kBackend = std::make_shared<CpuBackend>();
  return kBackend;
}

}  // namespace fusec

#endif
