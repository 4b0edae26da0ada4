#pragma once
// Data that an ONNX model keeps in files beside it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusec/result.h"

namespace fusec::onnx {

/// What TensorProto.external_data says; text as in the file.
struct ExternalData {
  std::string location;               // relative to the model's folder, with forward slashes
  std::optional<std::string> offset;  // decimal, default 0
  std::optional<std::string> length;  // decimal, default to the end of the file
};

/// Reads exactly `bytes` bytes. Refused, with nothing read: no folder, an absolute location, "..", NUL, anything that
/// resolves (through symbolic links) to outside `folder` or to something else than a regular file, a length other
/// than `bytes`, an offset or length that is no decimal number below 2^63, a range beyond the end of the file.
Result<std::vector<std::byte>> read_external(const ExternalData& data, const std::string& folder, uint64_t bytes);

}  // namespace fusec::onnx
