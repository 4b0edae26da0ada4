#pragma once
// ONNX file to Graph, by operator version; anything it cannot take is named, with its node.
//
//   Result<Imported> model = import_onnx("model.onnx", {.sizes = {{"batch", 8}}});
//   if (!model) return model.error().note("while loading the model");
//   Result<Program> program = compile(model->graph, target);
//
// Operator sets 7 to 28 of the default domain (and what has not changed since an older one); docs/onnx.md lists the
// operators and what is not taken.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/graph.h"
#include "fusec/result.h"

namespace fusec {

struct ImportOptions {
  /// Values for named dims of the file. A dim without a name is called "INPUT.AXIS", as in "x.0".
  Sizes sizes;
  /// Values of inputs that the caller knows. One is used where a shape, axes or the like have to be known while the
  /// graph is built (Reshape's shape, say); such an input is then no input of the graph any more (Imported::fixed).
  std::map<std::string, std::shared_ptr<const Tensor>, std::less<>> values;
  /// Larger weights do not go into the graph as constants: they become inputs with a default.
  size_t largest_constant = 64 * 1024;  // bytes
};

struct Imported {
  /// Its first inputs are those of the file, in the file's order, under the file's names (without the fixed ones); then
  /// come the large weights. Values of the file that nodes compute keep their names as labels. Outputs as in the file.
  Graph graph;
  /// How many of the graph's inputs are the file's own.
  size_t file_inputs = 0;
  /// One for each of the graph's inputs: the data to use when the caller gives none. Null: the caller has to give some.
  std::vector<std::shared_ptr<const Tensor>> defaults;
  /// Inputs of the file whose values (from ImportOptions::values, or their own defaults) shaped the graph.
  std::vector<std::string> fixed;
  int64_t operator_set = 0;
};

/// Reads a file; external data may lie in the file's own folder only.
/// Errors (all `input`): located by node index, name, operator and operator set. When operators are missing, the
/// first one is the message and the notes list every other one, with its count. Hostile files cost time and memory in
/// proportion to their size.
Result<Imported> import_onnx(const std::string& path, const ImportOptions& options = {});
/// The same from memory; `folder` is where external data may lie, "" = nowhere.
Result<Imported> import_onnx_bytes(std::string_view bytes, const std::string& folder = "",
                                   const ImportOptions& options = {});

}  // namespace fusec
