#pragma once
// An ONNX file as plain structs: what its protobuf messages say, read without copying. Nothing here knows what an
// operator means. Field numbers are those of onnx/onnx.proto (onnx 1.23, IR version 13).

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/result.h"

namespace fusec::onnx {

/// A name from a file, for an error message: quoted, odd bytes escaped, at most 80 bytes of it.
std::string quote(std::string_view name);

/// TensorProto.DataType; the values that are named are those that an error wants to name.
std::string dtype_name(int32_t data_type);

/// A TensorProto: its name, and the message itself, decoded on demand (onnx_tensor.h).
struct TensorMessage {
  std::string_view name;
  int32_t data_type = 0;
  std::string_view message;
};

struct Attribute {
  // The numbers are those of AttributeProto.AttributeType.
  enum Kind : int32_t { undefined, real, integer, string, tensor, graph, reals, integers, strings };
  std::string_view name;
  std::string_view ref;  // in a function: the attribute of the call whose value this is; "" = its own
  int32_t kind = undefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  TensorMessage t;
  std::string_view g;  // a GraphProto, not read (read_graph)
  std::vector<float> floats;
  std::vector<int64_t> ints;
};

struct NodeMessage {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // "" = left out
  std::vector<Attribute> attributes;
  /// Names of an enclosing graph that have others here (onnx_branches.cpp); null: none.
  std::shared_ptr<const std::map<std::string_view, std::string_view>> scope;
  size_t index = 0;         // in the graph, or in its function
  std::string_view within;  // of a node that a call became: which function, and whose; "" = the graph's own
  int64_t operator_set = 0;  // of a function's node: what the function says; 0 = the model's
};

struct OperatorSet {
  std::string_view domain;
  int64_t version = 0;
};

/// An operator that the model brings with it.
struct FunctionMessage {
  std::string_view domain, name, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> defaults;
  std::vector<NodeMessage> nodes;
  std::vector<OperatorSet> operator_sets;
};

/// A dim: a number, a name, or (neither) unknown.
struct DimMessage {
  std::optional<int64_t> value;
  std::string_view name;
};

struct ValueInfo {
  std::string_view name;
  enum Kind : uint8_t { none, tensor, other } kind = none;  // other: sequence, map, optional, sparse
  int32_t data_type = 0;
  bool has_shape = false;
  std::vector<DimMessage> dims;
};


struct ModelMessage {
  int64_t ir_version = 0;
  std::string_view producer, producer_version;
  std::vector<OperatorSet> operator_sets;
  bool has_graph = false;
  std::string_view graph_name;
  std::vector<NodeMessage> nodes;  // calls of functions are their bodies already (onnx_functions.h)
  std::vector<FunctionMessage> functions;
  std::shared_ptr<std::deque<std::string>> names;  // that are not in the file: what functions' values became
  std::vector<TensorMessage> initializers;
  bool has_sparse_initializers = false;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<ValueInfo> values;  // types that the file states of what its nodes compute
};

/// Reads a ModelProto. Views point into `bytes`, which must outlive the result. Memory is bounded by a fixed multiple
/// of the bytes and by a limit on the number of items, so a hostile file cannot ask for more. Errors: damaged
/// protobuf, no graph.
Result<ModelMessage> read_model(std::string_view bytes);
/// Reads a GraphProto, such as a branch of If: only what belongs to a graph is set.
Result<ModelMessage> read_graph(std::string_view bytes);

/// Puts one branch of an If in the node's place: its nodes, under names that are new where they have to be, and an Identity for
/// each result. `names` keeps new names. False, and nothing is changed, when the node has no such branch or one that cannot be read.
bool put_branch(ModelMessage& model, size_t node, bool then_branch, std::deque<std::string>& names);  // onnx_branches.cpp

}  // namespace fusec::onnx
