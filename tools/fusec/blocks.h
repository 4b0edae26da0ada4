#pragma once
// The memory of a call whose tensors lie in blocks of their own: on a device, or on the host, where it is aligned as malloc likes.

#include <memory>
#include <vector>

#include "fusec/fusec.h"
#include "lib/fuzz/random_input.h"
#include "runtime/backend.h"

namespace fusec::cli {

class Blocks {
 public:
  /// Null: the host. `most`: how many blocks there will be.
  Blocks(const Backend* device, size_t most) : device_(device) { placed_.reserve(most); }

  /// Puts a block there: the buffer of what lies in it, good as long as this is. Blocks are numbered in the order in which they were added.
  Result<Buffer> add(fuzz::Placed given);
  /// Waits until calls are done.
  Status wait() const { return device_ ? device_->wait(nullptr) : Status(Done{}); }
  /// What block k holds now.
  Result<std::vector<std::byte>> read(size_t k) const;

 private:
  const Backend* device_;
  std::vector<fuzz::Placed> placed_;  // on a device their blocks are what it was given
  std::vector<std::unique_ptr<Memory>> memory_;
};

}  // namespace fusec::cli
