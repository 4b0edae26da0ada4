#pragma once
// TensorProto to Tensor: every place where ONNX keeps numbers (raw_data, the typed fields, a file beside the model).

#include <string>
#include <string_view>

#include "fusec/graph.h"
#include "fusec/result.h"

namespace fusec::onnx {

/// TensorProto.DataType to DType; an error that names the type when fusec has no such one (string, complex, int4,
/// fnuz …).
Result<DType> dtype_of(int32_t data_type);
/// The same; narrow types give the type that they are held in (onnx_narrow.h).
Result<DType> held_type(int32_t data_type);
/// And back.
int32_t data_type_of(DType dtype);

/// The tensor of one TensorProto; narrow types as they are held, or, with `packed`, as the u8 that they lie in memory.
/// `folder` is where external data may lie ("" = nowhere); nothing outside it is opened.
/// Memory: no more than the bytes that the message or the external file really has.
/// Errors: no name of the tensor in them; the caller adds it.
Result<Tensor> read_tensor(std::string_view message, const std::string& folder, bool packed = false);

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
/// A file that holds one TensorProto, such as input_0.pb of ONNX's test data.
Result<NamedTensor> read_tensor_file(const std::string& path);

/// A TensorProto with raw_data: what read_tensor reads back.
/// `data_type`: the type to write, when it is not that of the dtype.
std::string write_tensor(std::string_view name, const Tensor& tensor, int32_t data_type = 0);

/// All bytes of a file; an error when it cannot be read or is larger than 2 GiB, protobuf's own limit.
Result<std::string> read_file(const std::string& path);

}  // namespace fusec::onnx
