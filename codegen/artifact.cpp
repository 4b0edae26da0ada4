// The argument block: fields one after another, each aligned to its own size, like a C struct.

#include "codegen/artifact.h"

#include <algorithm>

namespace fusec {

size_t args_bytes(const std::vector<Slot>& slots) {
  size_t at = 0, widest = 1;
  for (const Slot& slot : slots) {
    at = (at + slot.bytes - 1) / slot.bytes * slot.bytes + slot.bytes;
    widest = std::max<size_t>(widest, slot.bytes);
  }
  return (at + widest - 1) / widest * widest;
}

}  // namespace fusec
