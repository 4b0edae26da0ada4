#pragma once
// The CUDA driver API, opened at run time: libcuda.so.1 through dlopen, each entry through cuGetProcAddress. Without a driver
// everything here is an environment error that says so.
//
//   Result<const Driver*> d = driver();
//   if (Status s = check(**d, (*d)->cuMemFree_(p), "cuMemFree"); !s) return s;

#include <cuda.h>

#include <memory>
#include <string>

#include "codegen/cuda/cuda.h"
#include "fusec/result.h"

namespace fusec::cuda {

// Entry and the version of its signature that we call.
#define FUSEC_DRIVER_ENTRIES(X)                                                                                                   \
  X(cuInit, 2000) X(cuDriverGetVersion, 2020) X(cuGetErrorName, 6000) X(cuGetErrorString, 6000)                                   \
  X(cuDeviceGetCount, 2000) X(cuDeviceGet, 2000) X(cuDeviceGetName, 2000) X(cuDeviceGetAttribute, 2000)                           \
  X(cuDeviceTotalMem, 3020) X(cuDevicePrimaryCtxRetain, 7000)                                                                     \
  X(cuCtxGetCurrent, 4000) X(cuCtxPushCurrent, 4000) X(cuCtxPopCurrent, 4000) X(cuCtxSynchronize, 2000)                            \
  X(cuMemAlloc, 3020) X(cuMemFree, 3020) X(cuMemsetD8, 3020) X(cuMemsetD8Async, 3020)                                             \
  X(cuMemcpyHtoD, 3020) X(cuMemcpyDtoH, 3020) X(cuMemcpyDtoDAsync, 3020)                                                          \
  X(cuStreamCreate, 2000) X(cuStreamDestroy, 4000) X(cuStreamSynchronize, 2000) X(cuStreamIsCapturing, 10000)                     \
  X(cuEventCreate, 2000) X(cuEventDestroy, 4000) X(cuEventRecord, 2000) X(cuEventSynchronize, 2000) X(cuEventElapsedTime, 2000)   \
  X(cuLibraryLoadData, 12000) X(cuLibraryUnload, 12000) X(cuLibraryGetKernel, 12000) X(cuKernelGetFunction, 12000)                \
  X(cuModuleLoadDataEx, 2010) X(cuModuleUnload, 2000) X(cuModuleGetFunction, 2000) X(cuFuncLoad, 12040)                           \
  X(cuFuncSetAttribute, 9000) X(cuFuncGetAttribute, 2020) X(cuLaunchKernelEx, 11060) X(cuLaunchKernel, 4000)                                                  \
  X(cuStreamBeginCapture, 10010) X(cuStreamEndCapture, 10000) X(cuGraphInstantiateWithFlags, 11040)                               \
  X(cuGraphLaunch, 10000) X(cuGraphExecDestroy, 10000) X(cuGraphDestroy, 10000)

struct Driver {
#define FUSEC_DRIVER_FIELD(name, version) decltype(&::name) name##_ = nullptr;
  FUSEC_DRIVER_ENTRIES(FUSEC_DRIVER_FIELD)
#undef FUSEC_DRIVER_FIELD
  int version = 0;  // 13000
};

/// Opened and initialised once. Errors   environment: no driver library, an entry that it lacks, cuInit's fault, or a process that was
/// forked after the parent had initialised CUDA (the driver cannot be used there).
Result<const Driver*> driver();

/// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory", an environment error.
Status check(const Driver& driver, CUresult result, const char* call);

/// One GPU with its primary context, retained for the life of the process.
struct Gpu {
  const Driver* driver;
  int index;
  CUdevice device;
  CUcontext context;
  std::string name;       // "NVIDIA H200"
  size_t memory;          // bytes
  Device properties;      // for schedules
  double opening = 0;     // seconds that the driver and the context took
};
/// The GPU of that index, opened once.
Result<const Gpu*> gpu(int index);
/// How many there are; 0 without a driver.
int count();

/// Makes a GPU's context current for its lifetime, then puts back what was current.
class Current {
 public:
  explicit Current(const Gpu& gpu);
  ~Current();
  Current(const Current&) = delete;
  Status status() const { return status_; }

 private:
  const Gpu& gpu_;
  bool pushed_ = false;
  Status status_ = Done{};
};

/// A cubin loaded for a GPU, its code on the device before the first launch.
struct Function {
  CUfunction function = nullptr;
  std::shared_ptr<void> owner;  // unloads with the last copy
};
/// Errors   environment: the driver refuses the cubin.
Result<Function> load(const Gpu& gpu, const Artifact& artifact);

}  // namespace fusec::cuda
