#pragma once
// Buffers in global memory: each has a name, red zones on both sides, a map of what was written, and, once races are
// looked for, a shadow.

#include <memory>
#include <string>
#include <vector>

#include "test/simt/shadow.h"

namespace fusec::simt {

struct Buffer {
  std::string name;
  char* begin = nullptr;
  char* end = nullptr;
  char* zone_begin = nullptr;  // the red zones around it; equal to begin and end for memory that is not ours
  char* zone_end = nullptr;
  bool owned = false;
  std::vector<u8> written;  // for each byte; empty: all counts as written
  Cell* shadow = nullptr;   // for each 4 bytes
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// New memory, aligned to 256 bytes, filled with 0xff (a NaN in every float type). unwritten: reading a byte that no
  /// kernel wrote is a fault.
  void* allocate(uint64_t bytes, const std::string& name, bool unwritten);
  /// Memory of the caller. Neighbouring memory has no red zone here. What overlaps known memory joins it: an access
  /// belongs to one buffer.
  void add(void* begin, uint64_t bytes, const std::string& name, bool unwritten);
  bool remove(void* begin);

  /// The buffer that holds the address or, with `zones`, whose red zone does.
  Buffer* find(const void* at, bool zones);
  Cell* shadow(Buffer& buffer);

 private:
  void insert(Buffer buffer);
  void release(Buffer& buffer);

  std::vector<Buffer> buffers_;  // sorted by begin
  size_t last_ = 0;
};

}  // namespace fusec::simt
