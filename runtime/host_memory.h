#pragma once
// Memory of devices that share the host's: cpu and simt.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/backend.h"

namespace fusec {

struct HostMemory final : Memory {
  ~HostMemory() override { std::free(data); }
};

/// At least `bytes` of zeros, aligned to 256.
inline Result<std::unique_ptr<Memory>> allocate_host(size_t bytes) {
  auto memory = std::make_unique<HostMemory>();
  memory->bytes = (std::max<size_t>(bytes, 1) + 255) / 256 * 256;
  memory->data = std::aligned_alloc(256, memory->bytes);
  if (!memory->data) return environment_error("out of memory: " + std::to_string(bytes) + " bytes");
  std::memset(memory->data, 0, memory->bytes);
  return std::unique_ptr<Memory>(std::move(memory));
}

/// Zero bytes may come with null pointers.
inline Status copy_host(void* to, const void* from, size_t bytes) {
  if (bytes) std::memcpy(to, from, bytes);
  return Done{};
}

}  // namespace fusec
