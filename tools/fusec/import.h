#pragma once
// Graphs and tensors from ONNX files: the one place of the command line that knows lib/import.

#include "fusec/graph.h"
#include "tools/fusec/tensor_file.h"

namespace fusec::cli {

/// A graph, and what its inputs are when nobody gives them: the large weights of an ONNX model.
struct Model {
  Graph graph;
  Tensors defaults;
};

/// `given`: inputs whose values may be needed to build the graph (a shape, say); those that were are no inputs of it any more.
/// `text`: the graph as text that reads well, with the file's names in comments.
Result<Model> import_model(const std::string& path, const Tensors& given = {}, const Sizes& sizes = {}, std::string* text = nullptr);
/// Names of the model's inputs, in the file's order.
Result<std::vector<std::string>> model_inputs(const std::string& path);
/// A TensorProto, with its name.
Result<Tensors> parse_tensor_proto(const std::string& path);

}  // namespace fusec::cli
