#pragma once
// What a program needs of a device: choose a schedule, get code ready, start it, and memory. One implementation a back end; a program
// knows nothing else of devices.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "codegen/scheduler.h"
#include "runtime/cache.h"

namespace fusec {

/// Code on a device, ready to start. Lives as long as somebody holds it.
struct Loaded {
  std::shared_ptr<const Artifact> artifact;
  virtual ~Loaded() = default;
};

/// Memory on a device, freed with the object. On the host for cpu and simt.
struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
  virtual ~Memory() = default;
};

/// Launches that were recorded, to be repeated as one.
struct Recorded {
  virtual ~Recorded() = default;
};

/// Bytes that a kernel may touch: `begin` up to, not including, `begin + bytes`. Only simt looks at them.
struct Region {
  const void* begin;
  size_t bytes;
};

/// What a device has cost this process so far, in seconds.
struct Costs {
  std::string compiler;     // "NVRTC", "LLVM"; "" where there is none
  double context = 0;       // opening the driver and making the device's context
  double opening = 0;       // the compiler's library; 0: it has not been opened
  double compiling = 0;     // in the compiler, its opening included; compilations side by side count once
  double loading = 0;       // compiled code
};

class Backend : public Scheduler {
 public:
  /// "cpu", "cuda:0" …
  virtual const std::string& name() const = 0;
  /// For people: "NVIDIA H200, sm_90, 140 GB".
  virtual std::string description() const = 0;

  /// The kernel's code, from the cache or compiled, loaded. Thread-safe. Its artifact's schedule is the one that it was compiled
  /// with, which may differ from the one asked for (after spills); launch() wants that one.
  virtual Result<std::shared_ptr<const Loaded>> load(const Kernel& kernel, const Schedule& schedule, Cache& cache) const = 0;

  virtual Costs costs() const { return {}; }

  /// What the kernel becomes, for people: endings (".cu", ".ll") and texts. None where the device has no such form, or no compiler.
  virtual std::vector<std::pair<std::string, std::string>> texts(const Kernel& kernel, const Schedule& schedule) const = 0;

  /// May code be loaded and memory be allocated now? A stream that is being captured forbids it.
  virtual Status may_prepare(void* stream) const = 0;
  /// Is the stream being captured? Then a workspace of ours belongs to the captured graph from now on.
  virtual bool captured(void* stream) const = 0;

  /// Does start() look at regions?
  virtual bool wants_regions() const { return false; }
  /// Starts one launch: on a stream, or now. `args` is read before it returns.
  virtual Status start(const Loaded& code, const Launch& launch, std::span<const std::byte> args, std::span<const Region> regions,
                       void* stream) const = 0;

  /// Records what `enqueue` starts on the stream that it is given, without running it. Null: this device repeats the starts instead.
  virtual Result<std::shared_ptr<const Recorded>> record(const std::function<Status(void* stream)>& enqueue) const;
  virtual Status replay(const Recorded& recorded, void* stream) const;

  /// At least `bytes`, aligned to 256, zeroed.
  virtual Result<std::unique_ptr<Memory>> allocate(size_t bytes) const = 0;
  virtual Status upload(void* to, const void* from, size_t bytes) const = 0;
  virtual Status download(void* to, const void* from, size_t bytes) const = 0;
  /// Between two places of the device, in stream order; they do not overlap.
  virtual Status copy(void* to, const void* from, size_t bytes, void* stream) const = 0;
  /// Fills memory with a byte in stream order.
  virtual Status fill(void* data, uint8_t byte, size_t bytes, void* stream) const = 0;
  Status clear(void* data, size_t bytes, void* stream) const { return fill(data, 0, bytes, stream); }
  /// Waits for all that was started on the stream.
  virtual Status wait(void* stream) const = 0;

  // For measurements.

  /// Seconds that each of `count` calls takes, after `before` was done: between two events on a GPU, where the host enqueues all of them
  /// and waits once; by the clock elsewhere. Both enqueue on the default stream.
  virtual Result<std::vector<double>> time(int count, const std::function<Status()>& before, const std::function<Status()>& call) const;
  /// Reads memory and keeps nothing of it, in stream order. A multiple of 16 bytes, aligned to 16.
  virtual Status sweep(const void* data, size_t bytes, void* stream) const = 0;
  /// Bytes of the largest cache that a kernel shares with the one before it.
  virtual size_t cache_bytes() const = 0;
  /// Starts an empty kernel with that many bytes of arguments on the default stream by one bare call of the driver.
  /// Errors   environment: nothing is launched here (cpu, simt).
  virtual Result<std::function<Status()>> empty_launch(size_t argument_bytes) const;
  /// Makes the device current on this thread while the result lives: a loop of calls need not ask each time.
  virtual std::shared_ptr<void> enter() const { return nullptr; }
};

/// The back end of a device name: "auto", "cpu", "cuda", "cuda:1", "simt". One object a device in a process.
/// Errors   input: an unknown name; environment: not in this build, no driver, no such device.
Result<std::shared_ptr<const Backend>> backend(const std::string& device);

/// Devices that work here, for messages and lists: "cpu", "cuda:0" …; "reference" always.
std::vector<std::string> devices();

// One a back end; defined where it is built in.
Result<std::shared_ptr<const Backend>> cpu_backend();
Result<std::shared_ptr<const Backend>> cuda_backend(int index);
Result<std::shared_ptr<const Backend>> simt_backend();
/// How many CUDA devices there are; 0 without a driver.
int cuda_devices();

}  // namespace fusec
