// A GPU as a device: cubins from the cache or from NVRTC, loaded once, launched on the caller's stream.

#include "codegen/cuda/plain.h"
#include "lib/support/stopwatch.h"
#include "runtime/backend.h"
#include "runtime/cuda/driver.h"
#include "runtime/log.h"

namespace fusec {
namespace {

using cuda::check;
using cuda::Current;
using cuda::Gpu;

struct GpuCode final : Loaded {
  cuda::Function function;
};

struct GpuMemory final : Memory {
  const Gpu* gpu;
  ~GpuMemory() override {
    Current current(*gpu);
    if (current.status()) gpu->driver->cuMemFree_(reinterpret_cast<CUdeviceptr>(data));
  }
};

struct GpuGraph final : Recorded {
  const Gpu* gpu;
  CUgraphExec exec = nullptr;
  ~GpuGraph() override {
    Current current(*gpu);
    if (current.status() && exec) gpu->driver->cuGraphExecDestroy_(exec);  // one that still runs is freed when it is done
  }
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const Gpu& gpu)
      : gpu_(gpu), name_("cuda:" + std::to_string(gpu.index)), target_("sm_" + std::to_string(gpu.properties.sm)), compiler_(cuda::compiler_identity()) {}

  const std::string& name() const override { return name_; }
  std::string description() const override {
    return gpu_.name + ", " + target_ + ", " + std::to_string(gpu_.properties.multiprocessors) + " multiprocessors, " +
           std::to_string(gpu_.memory >> 30) + " GiB, driver " + std::to_string(gpu_.driver->version / 1000) + "." +
           std::to_string(gpu_.driver->version % 1000 / 10);
  }
  Schedule schedule(const Kernel& kernel, const Facts& facts) const override { return cuda::schedule(kernel, facts, gpu_.properties); }
  Launch launch(const Kernel& kernel, const Schedule& schedule, const Facts& facts) const override {
    return cuda::launch(kernel, schedule, facts, gpu_.properties);
  }
  std::string settle(const Kernel& kernel, const Facts& facts, Schedule& schedule) const override {
    return cuda::settle(kernel, facts, gpu_.properties, schedule);
  }
  std::string_view fields(const Schedule& s) const override { return cuda::fields(s); }
  std::vector<Candidate> candidates(const Kernel& kernel, const Facts& facts) const override { return cuda::candidates(*this, kernel, facts); }
  void follow(Schedule& schedule) const override { cuda::follow(schedule, gpu_.properties); }
  Occupancy occupancy(const Artifact& artifact, const Launch& launch) const override { return cuda::occupancy(artifact, launch, gpu_.properties); }
  std::string device_key() const override { return gpu_.name; }
  std::string target_key() const override { return "sm_" + std::to_string(gpu_.properties.sm); }

  Result<std::shared_ptr<const Loaded>> load(const Kernel& kernel, const Schedule& schedule, Cache& cache) const override {
    // The text follows from what the key holds (and the generator, which every key holds); writing it takes longer than reading the cubin.
    const Digest key = cache_key({"cuda", print(kernel), bytes(schedule), target_, compiler_});
    Result<Cache::Shared> artifact = cache.get(key, [&] {
      const Stopwatch::Running running(compiling_);
      return compile(kernel, cuda::emit(kernel, schedule));
    });
    if (!artifact) return artifact.error();
    const Stopwatch::Running running(loading_);
    Result<cuda::Function> function = cuda::load(gpu_, **artifact);
    if (!function) return function.error().note("while loading a kernel on " + name_);
    auto loaded = std::make_shared<GpuCode>();
    loaded->artifact = *artifact;
    loaded->function = std::move(*function);
    return std::shared_ptr<const Loaded>(std::move(loaded));
  }

  Costs costs() const override { return {"NVRTC", gpu_.opening, cuda::compiler_opening(), compiling_.seconds(), loading_.seconds()}; }

  std::vector<std::pair<std::string, std::string>> texts(const Kernel& kernel, const Schedule& schedule) const override {
    const Code code = cuda::emit(kernel, schedule);
    std::vector<std::pair<std::string, std::string>> out{{".cu", code.text}};
    if (Result<std::string> text = cuda::ptx(code, gpu_.properties.sm)) out.emplace_back(".ptx", std::move(*text));
    return out;
  }

  Status may_prepare(void* stream) const override {
    const Result<bool> now = capturing(stream);
    if (!now) return now.error();
    if (!*now) return Done{};
    return input_error("the stream is being captured, and this call needs code or memory that is not there yet: make the same call once "
                       "before the capture");
  }
  bool captured(void* stream) const override {
    const Result<bool> now = capturing(stream);
    return !now || *now;  // not known: as if it were
  }

  Status start(const Loaded& loaded, const Launch& launch, std::span<const std::byte> args, std::span<const Region>, void* stream) const override {
    const GpuCode& code = static_cast<const GpuCode&>(loaded);
    Current current(gpu_);
    if (Status s = current.status(); !s) return s;
    void* block = const_cast<std::byte*>(args.data());  // one parameter: the struct, by value
    // Older drivers cannot capture such launches; without the attribute the kernel's wait waits for nothing.
    const bool dependent = code.artifact->schedule.dependent_launch && !launch.together && gpu_.driver->version >= 12030;
    if (launch.cluster <= 1 && !dependent && !launch.together) {
      const CUresult result = gpu_.driver->cuLaunchKernel_(code.function.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block, 1, 1,
                                                           launch.shared, static_cast<CUstream>(stream), &block, nullptr);
      return result == CUDA_SUCCESS ? Status(Done{}) : check(*gpu_.driver, result, "cuLaunchKernel");
    }
    CUlaunchAttribute attributes[3];
    CUlaunchConfig config{};
    config.gridDimX = launch.grid[0], config.gridDimY = launch.grid[1], config.gridDimZ = launch.grid[2];
    config.blockDimX = launch.block, config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = launch.shared;
    config.hStream = static_cast<CUstream>(stream);
    config.attrs = attributes;
    if (launch.cluster > 1) {
      CUlaunchAttribute& a = attributes[config.numAttrs++];
      a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      a.value.clusterDim.x = launch.cluster, a.value.clusterDim.y = a.value.clusterDim.z = 1;
    }
    if (launch.together) {
      CUlaunchAttribute& a = attributes[config.numAttrs++];
      a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      a.value.cooperative = 1;
    }
    if (dependent) {
      CUlaunchAttribute& a = attributes[config.numAttrs++];
      a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      a.value.programmaticStreamSerializationAllowed = 1;
    }
    return check(*gpu_.driver, gpu_.driver->cuLaunchKernelEx_(&config, code.function.function, &block, nullptr), "cuLaunchKernelEx");
  }

  Result<std::shared_ptr<const Recorded>> record(const std::function<Status(void*)>& enqueue) const override;
  Status replay(const Recorded& recorded, void* stream) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s) return s;
    return check(*gpu_.driver, gpu_.driver->cuGraphLaunch_(static_cast<const GpuGraph&>(recorded).exec, static_cast<CUstream>(stream)), "cuGraphLaunch");
  }

  Result<std::unique_ptr<Memory>> allocate(size_t bytes) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s) return s.error();
    auto memory = std::make_unique<GpuMemory>();
    CUdeviceptr data = 0;
    const size_t size = std::max<size_t>(bytes, 256);
    memory->gpu = &gpu_;
    if (Status s = check(*gpu_.driver, gpu_.driver->cuMemAlloc_(&data, size), "cuMemAlloc"); !s)
      return s.error().note("while allocating " + std::to_string(bytes) + " bytes on " + name_);
    memory->data = reinterpret_cast<void*>(data);
    memory->bytes = size;
    if (Status s = check(*gpu_.driver, gpu_.driver->cuMemsetD8_(data, 0, size), "cuMemsetD8"); !s) return s.error();
    if (Status s = wait(nullptr); !s) return s.error();  // another stream may be the first to use it
    return std::unique_ptr<Memory>(std::move(memory));
  }
  Status upload(void* to, const void* from, size_t bytes) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s || !bytes) return s;
    return check(*gpu_.driver, gpu_.driver->cuMemcpyHtoD_(reinterpret_cast<CUdeviceptr>(to), from, bytes), "cuMemcpyHtoD");
  }
  Status download(void* to, const void* from, size_t bytes) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s || !bytes) return s;
    return check(*gpu_.driver, gpu_.driver->cuMemcpyDtoH_(to, reinterpret_cast<CUdeviceptr>(from), bytes), "cuMemcpyDtoH");
  }
  Status copy(void* to, const void* from, size_t bytes, void* stream) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s || !bytes) return s;
    return check(*gpu_.driver,
                 gpu_.driver->cuMemcpyDtoDAsync_(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes,
                                                 static_cast<CUstream>(stream)),
                 "cuMemcpyDtoDAsync");
  }
  Status fill(void* data, uint8_t byte, size_t bytes, void* stream) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s || !bytes) return s;
    return check(*gpu_.driver, gpu_.driver->cuMemsetD8Async_(reinterpret_cast<CUdeviceptr>(data), byte, bytes, static_cast<CUstream>(stream)),
                 "cuMemsetD8Async");
  }
  Status wait(void* stream) const override {
    Current current(gpu_);
    if (Status s = current.status(); !s) return s;
    return check(*gpu_.driver, gpu_.driver->cuStreamSynchronize_(static_cast<CUstream>(stream)), "cuStreamSynchronize");
  }

  Result<std::vector<double>> time(int count, const std::function<Status()>& before, const std::function<Status()>& call) const override;
  Status sweep(const void* data, size_t bytes, void* stream) const override;
  size_t cache_bytes() const override { return size_t(gpu_.properties.l2_bytes); }
  Result<std::function<Status()>> empty_launch(size_t argument_bytes) const override;
  std::shared_ptr<void> enter() const override { return std::make_shared<Current>(gpu_); }

 private:
  Result<bool> capturing(void* stream) const {
    if (!stream) return false;  // the legacy stream cannot be captured
    Current current(gpu_);
    if (Status s = current.status(); !s) return s.error();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (Status s = check(*gpu_.driver, gpu_.driver->cuStreamIsCapturing_(static_cast<CUstream>(stream), &status), "cuStreamIsCapturing"); !s) return s.error();
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  /// When registers spill, the schedule is chosen again, once; the better of the two stays, and the artifact says which.
  Result<Artifact> compile(const Kernel& kernel, const Code& code) const {
    Result<Artifact> first = cuda::compile_for_gpu(code, gpu_.properties.sm);
    if (!first || first->facts["spill_bytes"] == 0) return first;
    const std::optional<Schedule> relieved = cuda::relieve(code.schedule, first->facts["spill_bytes"]);
    if (!relieved) return first;
    log_info(name_ + ": " + std::to_string(first->facts["spill_bytes"]) + " bytes spill, trying " + print(*relieved));
    Result<Artifact> second = cuda::compile_for_gpu(cuda::emit(kernel, *relieved), gpu_.properties.sm);
    return second && second->facts["spill_bytes"] < first->facts["spill_bytes"] ? std::move(second) : std::move(first);
  }

  /// A kernel written by hand (codegen/cuda/plain.h), compiled once a process.
  Result<cuda::Function> plain(const Code& code) const {
    Result<Artifact> artifact = cuda::compile_for_gpu(code, gpu_.properties.sm);
    if (!artifact) return artifact.error();
    return cuda::load(gpu_, *artifact);
  }

  const Gpu& gpu_;
  std::string name_, target_, compiler_;
  mutable Stopwatch compiling_, loading_;
  mutable std::mutex mutex_;
  mutable std::optional<cuda::Function> reader_;
  mutable std::unique_ptr<Memory> sink_;
};

Result<std::shared_ptr<const Recorded>> CudaBackend::record(const std::function<Status(void*)>& enqueue) const {
  const cuda::Driver& d = *gpu_.driver;
  Current current(gpu_);
  if (Status s = current.status(); !s) return s.error();
  CUstream stream = nullptr;
  if (Status s = check(d, d.cuStreamCreate_(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"); !s) return s.error();
  const std::shared_ptr<void> owner(stream, [&d](void* s) { d.cuStreamDestroy_(static_cast<CUstream>(s)); });
  // Only this thread's calls belong to it; those of others go on.
  if (Status s = check(d, d.cuStreamBeginCapture_(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture"); !s) return s.error();
  const Status enqueued = enqueue(stream);
  CUgraph graph = nullptr;
  const Status ended = check(d, d.cuStreamEndCapture_(stream, &graph), "cuStreamEndCapture");
  const std::shared_ptr<void> graph_owner(graph, [&d](void* g) {
    if (g) d.cuGraphDestroy_(static_cast<CUgraph>(g));
  });
  if (!enqueued) return enqueued.error();
  if (!ended) return ended.error();
  auto out = std::make_shared<GpuGraph>();
  out->gpu = &gpu_;
  if (Status s = check(d, d.cuGraphInstantiateWithFlags_(&out->exec, graph, 0), "cuGraphInstantiateWithFlags"); !s) return s.error();
  return std::shared_ptr<const Recorded>(std::move(out));
}

Result<std::vector<double>> CudaBackend::time(int count, const std::function<Status()>& before, const std::function<Status()>& call) const {
  const cuda::Driver& d = *gpu_.driver;
  Current current(gpu_);
  if (Status s = current.status(); !s) return s.error();
  struct Events {
    const cuda::Driver& driver;
    std::vector<CUevent> all;
    ~Events() {
      for (CUevent event : all) driver.cuEventDestroy_(event);
    }
  } events{d, {}};
  for (int i = 0; i < 2 * count; ++i) {
    CUevent event = nullptr;
    if (Status s = check(d, d.cuEventCreate_(&event, CU_EVENT_DEFAULT), "cuEventCreate"); !s) return s.error();
    events.all.push_back(event);
  }
  for (int i = 0; i < count; ++i) {
    if (Status s = before(); !s) return s.error();
    if (Status s = check(d, d.cuEventRecord_(events.all[2 * i], nullptr), "cuEventRecord"); !s) return s.error();
    if (Status s = call(); !s) return s.error();
    if (Status s = check(d, d.cuEventRecord_(events.all[2 * i + 1], nullptr), "cuEventRecord"); !s) return s.error();
  }
  if (Status s = wait(nullptr); !s) return s.error();
  std::vector<double> out;
  for (int i = 0; i < count; ++i) {
    float milliseconds = 0;
    if (Status s = check(d, d.cuEventElapsedTime_(&milliseconds, events.all[2 * i], events.all[2 * i + 1]), "cuEventElapsedTime"); !s) return s.error();
    out.push_back(double(milliseconds) * 1e-3);
  }
  return out;
}

Status CudaBackend::sweep(const void* data, size_t bytes, void* stream) const {
  {
    std::lock_guard lock(mutex_);
    if (!reader_) {
      Result<cuda::Function> made = plain(cuda::plain_read());
      if (!made) return made.error();
      Result<std::unique_ptr<Memory>> sink = allocate(16);
      if (!sink) return sink.error();
      reader_ = std::move(*made), sink_ = std::move(*sink);
    }
  }
  Current current(gpu_);
  if (Status s = current.status(); !s) return s;
  struct {
    const void* from;
    uint64_t count;
    void* sink;
  } args{data, bytes / 16, sink_->data};
  void* block = &args;
  return check(*gpu_.driver,
               gpu_.driver->cuLaunchKernel_(reader_->function, unsigned(gpu_.properties.multiprocessors) * 8, 1, 1, 256, 1, 1, 0,
                                            static_cast<CUstream>(stream), &block, nullptr),
               "cuLaunchKernel");
}

Result<std::function<Status()>> CudaBackend::empty_launch(size_t argument_bytes) const {
  Result<cuda::Function> made = plain(cuda::plain_empty(argument_bytes));
  if (!made) return made.error();
  return std::function<Status()>([this, function = std::move(*made), args = std::vector<std::byte>(argument_bytes + 8)]() mutable -> Status {
    Current current(gpu_);
    if (Status s = current.status(); !s) return s;
    void* block = args.data();
    const CUresult result = gpu_.driver->cuLaunchKernel_(function.function, 1, 1, 1, 32, 1, 1, 0, nullptr, &block, nullptr);
    return result == CUDA_SUCCESS ? Status(Done{}) : check(*gpu_.driver, result, "cuLaunchKernel");
  });
}

}  // namespace

Result<std::shared_ptr<const Backend>> cuda_backend(int index) {
  Result<const Gpu*> gpu = cuda::gpu(index);
  if (!gpu) return gpu.error();
  static std::mutex mutex;
  static auto* const kBackends = new std::unordered_map<int, std::shared_ptr<const Backend>>;
  std::lock_guard lock(mutex);
  std::shared_ptr<const Backend>& slot = (*kBackends)[index];
  if (!slot) slot = std::make_shared<CudaBackend>(**gpu);
  return slot;
}

int cuda_devices() { return cuda::count(); }

}  // namespace fusec
