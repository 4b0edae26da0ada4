#pragma once
// Data that an ONNX model keeps in files beside it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fusec/result.h"
#include "lib/import/onnx_mapping.h"

namespace fusec::onnx {

/// What TensorProto.external_data says; text as in the file.
struct ExternalData {
  std::string location;               // relative to the model's folder, with forward slashes
  std::optional<std::string> offset;  // decimal, default 0
  std::optional<std::string> length;  // decimal, default to the end of the file
};

/// Files beside a model. Each is mapped once, whole, however many tensors lie in it.
class DataFiles final {
 public:
  /// `folder`: of the model; "" = there is none, and everything is refused.
  explicit DataFiles(std::string folder) : folder_(std::move(folder)) {}

  /// Exactly `bytes` bytes, where they lie; `keeper` is what keeps them. Refused, with nothing read: no folder, an absolute
  /// location, "..", NUL, anything that resolves (through symbolic links) to outside the folder or to something else than a
  /// regular file, a length other than `bytes`, an offset or length that is no decimal number below 2^63, a range beyond the
  /// end that the file had when it was opened.
  Result<std::span<const std::byte>> find(const ExternalData& data, uint64_t bytes, std::shared_ptr<const void>& keeper);

 private:
  Result<std::shared_ptr<const Mapping>> open(const std::string& location);

  std::string folder_;
  std::map<std::string, std::shared_ptr<const Mapping>> files_;  // by path, links resolved
};

}  // namespace fusec::onnx
