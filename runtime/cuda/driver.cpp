#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "lib/support/stopwatch.h"

namespace fusec::cuda {
namespace {

// Set in a child of a process that had initialised CUDA: every call of the driver would fail or hang there.
std::atomic<bool> forked = false;
// Of the driver and of all contexts.
Stopwatch opening;

Result<Driver> open() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = ::dlerror();
    return environment_error(std::string("no CUDA driver: ") + (why ? why : "libcuda.so.1 cannot be opened"));
  }
  const auto get = reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(library, "cuGetProcAddress_v2"));
  if (!get) return environment_error("the CUDA driver is too old: it has no cuGetProcAddress_v2 (12.0 or newer is needed)");
  Driver driver;
  std::string missing;
  auto find = [&](const char* name, int version, auto& entry) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    if (get(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS || !address) {
      if (std::string_view(name) != "cuFuncLoad") missing += (missing.empty() ? "" : ", ") + std::string(name);
      return;
    }
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(address);
  };
#define FUSEC_DRIVER_FIND(name, version) find(#name, version, driver.name##_);
  FUSEC_DRIVER_ENTRIES(FUSEC_DRIVER_FIND)
#undef FUSEC_DRIVER_FIND
  if (!missing.empty()) return environment_error("the CUDA driver is too old: it has no " + missing);
  if (Status s = check(driver, driver.cuInit_(0), "cuInit"); !s) return s.error();
  if (Status s = check(driver, driver.cuDriverGetVersion_(&driver.version), "cuDriverGetVersion"); !s) return s.error();
  ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
  return driver;
}

/// Attributes of the device over the defaults of its architecture. The architecture must be known; what else a driver does not tell stays.
Result<Device> properties(const Driver& d, CUdevice device) {
  auto get = [&](CUdevice_attribute attribute) {
    int value = 0;
    return d.cuDeviceGetAttribute_(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
  };
  int major = 0, minor = 0;
  for (auto [value, attribute] : {std::pair{&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR}, {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR}})
    if (Status s = check(d, d.cuDeviceGetAttribute_(value, attribute, device), "cuDeviceGetAttribute"); !s) return s.error();
  Device out = cuda::device(major * 10 + minor);
  auto take = [](auto& field, int64_t value) {
    if (value > 0) field = static_cast<std::remove_reference_t<decltype(field)>>(value);
  };
  take(out.multiprocessors, get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  take(out.shared_per_block, get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  take(out.l2_bytes, get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  // Two transfers a clock; a copy reaches about 87 % of that (4.25 of 4.9 TB/s on an H200).
  const double peak = 2e3 * get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  if (peak > 0) out.copy_rate = 0.87 * peak;
  return out;
}

Result<std::unique_ptr<Gpu>> open_gpu(const Driver& d, int index) {
  auto gpu = std::make_unique<Gpu>();
  gpu->driver = &d;
  gpu->index = index;
  if (Status s = check(d, d.cuDeviceGet_(&gpu->device, index), "cuDeviceGet"); !s) return s.error();
  char name[256] = "";
  if (Status s = check(d, d.cuDeviceGetName_(name, sizeof(name), gpu->device), "cuDeviceGetName"); !s) return s.error();
  gpu->name = name;
  if (Status s = check(d, d.cuDeviceTotalMem_(&gpu->memory, gpu->device), "cuDeviceTotalMem"); !s) return s.error();
  if (Status s = check(d, d.cuDevicePrimaryCtxRetain_(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain"); !s) return s.error();
  Result<Device> known = properties(d, gpu->device);
  if (!known) return known.error();
  gpu->properties = std::move(*known);
  return gpu;
}

}  // namespace

Result<const Driver*> driver() {
  static const Result<Driver> kDriver = [] {
    const Stopwatch::Running running(opening);
    return open();
  }();
  if (forked)
    return environment_error("this process was forked after its parent had initialised CUDA: the driver cannot be used here; fork first, "
                             "or start a new process");
  if (!kDriver) return kDriver.error();
  return &*kDriver;
}

Status check(const Driver& driver, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return Done{};
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName_(result, &name);
  driver.cuGetErrorString_(result, &text);
  return environment_error(std::string(call) + ": " + (name ? name : "error " + std::to_string(int(result))) + (text ? std::string(": ") + text : ""));
}

namespace {
Result<int> counted() {
  Result<const Driver*> d = driver();
  if (!d) return d.error();
  int n = 0;
  if (Status s = check(**d, (*d)->cuDeviceGetCount_(&n), "cuDeviceGetCount"); !s) return s.error();
  return n;
}
}  // namespace

int count() {
  const Result<int> n = counted();
  return n ? *n : 0;
}

Result<const Gpu*> gpu(int index) {
  Result<const Driver*> d = driver();
  if (!d) return d.error();
  static std::mutex mutex;
  static auto* const kGpus = new std::map<int, std::unique_ptr<Gpu>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<Gpu>& slot = (*kGpus)[index];
  if (!slot) {
    const Result<int> devices = counted();
    if (!devices) return devices.error();
    if (index < 0 || index >= *devices)
      return environment_error("no device cuda:" + std::to_string(index) + ": there are " + std::to_string(*devices) + " CUDA devices");
    Result<std::unique_ptr<Gpu>> opened = [&] {
      const Stopwatch::Running running(opening);
      return open_gpu(**d, index);
    }();
    if (!opened) return opened.error();
    slot = std::move(*opened);
    slot->opening = opening.seconds();
  }
  return slot.get();
}

Current::Current(const Gpu& gpu) : gpu_(gpu) {
  CUcontext now = nullptr;
  if (forked) status_ = driver().error();
  else if (status_ = check(*gpu.driver, gpu.driver->cuCtxGetCurrent_(&now), "cuCtxGetCurrent"); status_ && now != gpu.context) {
    status_ = check(*gpu.driver, gpu.driver->cuCtxPushCurrent_(gpu.context), "cuCtxPushCurrent");
    pushed_ = bool(status_);
  }
}

Current::~Current() {
  CUcontext ours;
  if (pushed_) gpu_.driver->cuCtxPopCurrent_(&ours);
}

Result<Function> load(const Gpu& gpu, const Artifact& artifact) {
  const Driver& d = *gpu.driver;
  Current current(gpu);
  if (Status s = current.status(); !s) return s.error();
  Function out;
  // A library belongs to no context; a module is what drivers take that refuse one.
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (d.cuLibraryLoadData_(&library, artifact.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS) {
    // A program may go while its last call still runs: the code goes after that.
    const Gpu* owner = &gpu;
    out.owner = std::shared_ptr<void>(library, [owner](void* l) {
      Current context(*owner);
      if (!context.status()) return;
      owner->driver->cuCtxSynchronize_();
      owner->driver->cuLibraryUnload_(static_cast<CUlibrary>(l));
    });
    if (Status s = check(d, d.cuLibraryGetKernel_(&kernel, library, artifact.entry.c_str()), "cuLibraryGetKernel"); !s) return s.error();
    if (Status s = check(d, d.cuKernelGetFunction_(&out.function, kernel), "cuKernelGetFunction"); !s) return s.error();
  } else {
    CUmodule module = nullptr;
    if (Status s = check(d, d.cuModuleLoadDataEx_(&module, artifact.bytes.data(), 0, nullptr, nullptr), "cuModuleLoadDataEx"); !s) return s.error();
    const Gpu* owner = &gpu;
    out.owner = std::shared_ptr<void>(module, [owner](void* m) {
      Current context(*owner);
      if (!context.status()) return;
      owner->driver->cuCtxSynchronize_();
      owner->driver->cuModuleUnload_(static_cast<CUmodule>(m));
    });
    if (Status s = check(d, d.cuModuleGetFunction_(&out.function, module, artifact.entry.c_str()), "cuModuleGetFunction"); !s) return s.error();
  }
  if (d.cuFuncLoad_)
    if (Status s = check(d, d.cuFuncLoad_(out.function), "cuFuncLoad"); !s) return s.error();
  // All the shared memory that a launch may ask for, and clusters beyond the portable 8: allowed once, here.
  int fixed = 0;
  if (Status s = check(d, d.cuFuncGetAttribute_(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, out.function), "cuFuncGetAttribute"); !s) return s.error();
  const int most = int(gpu.properties.shared_per_block) - fixed;
  if (most > 48 * 1024)
    if (Status s = check(d, d.cuFuncSetAttribute_(out.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most), "cuFuncSetAttribute"); !s)
      return s.error();
  if (artifact.schedule.cluster > 8)
    if (Status s = check(d, d.cuFuncSetAttribute_(out.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), "cuFuncSetAttribute"); !s)
      return s.error();
  return out;
}

}  // namespace fusec::cuda
