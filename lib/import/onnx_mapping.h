#pragma once
// Files in memory without a copy. What is read while somebody else shortens the file ends the process with SIGBUS, as
// with every mapped file: models are replaced by renaming, not written over.

#include <memory>
#include <string>
#include <string_view>

#include "fusec/result.h"

namespace fusec::onnx {

/// A regular file, readable as long as somebody holds the object.
class Mapping {
 public:
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::string_view text() const { return text_; }

  /// The first `size` bytes of an open file that has them; null when the system refuses.
  static std::shared_ptr<const Mapping> of(int fd, uint64_t size);

 private:
  Mapping() = default;

  std::string_view text_;
};

/// A whole file. Errors: it is not there, no regular file, or larger than 2 GiB, protobuf's own limit.
Result<std::shared_ptr<const Mapping>> map_model(const std::string& path);

}  // namespace fusec::onnx
