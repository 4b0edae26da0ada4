#pragma once
// Extern operators on a GPU's own memory, through NVIDIA's libraries, which are opened at run time.

#include <memory>

#include "runtime/extern.h"

namespace fusec {

class DeviceOps {
 public:
  virtual ~DeviceOps() = default;
  /// Can the call be done there? Otherwise its operands go to the host and back.
  virtual bool takes(const ExternCall& call) const = 0;
  /// Enqueues it on the default stream; all values are in the device's memory.
  virtual Status run(const ExternCall& call) = 0;
};

/// MatMul and Gemm through cuBLASLt, Conv through cuDNN, each where its library is found (libcublasLt.so.13, .12 and
/// libcudnn.so.9: the loader's path, $CUDA_PATH/lib64, /usr/local/cuda/lib64). Sums are of f32 without TF32.
/// Errors   environment: this build has no CUDA, or no such device.
Result<std::shared_ptr<DeviceOps>> cuda_extern(int index);

}  // namespace fusec
