#pragma once
// TensorProto to Tensor: every place where ONNX keeps numbers (raw_data, the typed fields, a file beside the model).

#include <string>
#include <string_view>

#include "fusec/graph.h"
#include "fusec/result.h"
#include "lib/import/onnx_external.h"

namespace fusec::onnx {

/// TensorProto.DataType to DType; an error that names the type when fusec has no such one (string, complex, int4,
/// fnuz …).
Result<DType> dtype_of(int32_t data_type);
/// The same; narrow types give the type that they are held in (onnx_narrow.h).
Result<DType> held_type(int32_t data_type);
/// And back.
int32_t data_type_of(DType dtype);

/// Where a model's numbers lie: in its own bytes, and in files beside it.
struct TensorSource {
  std::shared_ptr<const void> keeper;  // of the model's bytes; null: of those nothing can be kept
  DataFiles files;
};
/// Data of this many bytes and more is not copied: it stays where it lies, and keeps its file. Smaller data is, since constants
/// of a graph should not hold a file open.
constexpr size_t kLeastView = 64 * 1024;

/// The tensor of one TensorProto; narrow types as they are held, or, with `packed`, as the u8 that they lie in memory.
/// Large raw or external data is a view (TensorData) where it is aligned for its type; otherwise it is copied once. So is a
/// bool that is neither 0 nor 1, and what typed fields hold.
/// Memory: no more than the bytes that the message or the external file really has.
/// Errors: no name of the tensor in them; the caller adds it.
Result<Tensor> read_tensor(std::string_view message, TensorSource& source, bool packed = false);
/// Its type, narrow ones as they are held, without looking at the data.
Result<Type> read_tensor_type(std::string_view message);

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
