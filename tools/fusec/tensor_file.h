#pragma once
// Tensors in files: .npy, .npz, .safetensors (read and write), ONNX TensorProto .pb (read). Sizes in files are not trusted: a
// header that promises more than the file holds is an input error.

#include <map>
#include <optional>
#include <string>

#include "fusec/graph.h"

namespace fusec::cli {

using Tensors = std::map<std::string, Tensor>;

/// All tensors of a file; one without a name of its own (.npy) is called "". `wanted` decides what bytes without a type of
/// numpy's are (bf16 and f8 are stored as void there).
Result<Tensors> read_tensors(const std::string& path, std::optional<DType> wanted = {});
/// One tensor: of "file.npz:name" or "file.safetensors:name" that one, else the only one of the file.
Result<Tensor> read_tensor(const std::string& path, std::optional<DType> wanted = {});

/// Whether write_tensors knows the ending: what can be asked before there is anything to write.
Status check_tensor_file(const std::string& path);
/// By the ending of the path: .npy takes one tensor, .npz and .safetensors any number.
Status write_tensors(const std::string& path, const Tensors& tensors);

// One format each, in memory.
Result<Tensor> parse_npy(std::string_view file, std::optional<DType> wanted);
std::string npy_bytes(const Tensor& tensor);
Result<Tensors> parse_npz(std::string_view file, std::optional<DType> wanted);
std::string npz_bytes(const Tensors& tensors);
Result<Tensors> parse_safetensors(std::string_view file);
std::string safetensors_bytes(const Tensors& tensors);
/// The same straight to a file, from where the tensors lie.
Status write_safetensors(const std::string& path, const Tensors& tensors);

}  // namespace fusec::cli
