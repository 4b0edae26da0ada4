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
#include <optional>
#include <span>
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
  /// Keep where each value comes from (Imported::sources), for import_text (onnx_text.h).
  bool sources = false;
  /// Nodes that the importer does not take are no errors: the graph ends at their operands and begins again at their
  /// results (Imported::boundaries). lib/import/model.h makes regions of what is left.
  bool boundaries = false;
};

/// A node of the file that is no part of the graph.
struct Boundary {
  enum Why : uint8_t {
    outside,   // an operator of the table of boundaries (onnx_boundary_shapes.cpp)
    form,      // an operator that the importer knows, in a form that it does not take
    unshaped,  // … with an operand whose shape is not known
    unknown,   // an operator of neither table
  } why = outside;
  size_t node = 0;     // index in the file
  std::string reason;  // of `form` and `unshaped`

  /// Where a value outside the graph comes from. None of the three: it is left out, or its shape is not known.
  struct Operand {
    std::string name;                     // the file's; "" = left out
    std::optional<uint32_t> output;       // it is this output of the graph
    std::shared_ptr<const Tensor> known;  // or it has these bits
  };
  struct Outcome {
    std::string name;               // the file's; "" = left out
    std::optional<uint32_t> input;  // it is this input of the graph; none: its shape is not known
  };
  std::vector<Operand> operands;
  std::vector<Outcome> results;
};

/// A dim that is no polynomial of others, of what a boundary computes: `of` / `by`, rounded down.
struct Quotient {
  std::string symbol;
  Dim of;  // may have symbols of quotients before it
  int64_t by;
};
/// The sizes of quotients that follow from those of other symbols.
void add_quotients(std::span<const Quotient> quotients, Sizes& sizes);

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
  /// With ImportOptions::sources: what the file says of itself, and the node that computes each value, by its name.
  std::string header;
  std::map<std::string, std::string, std::less<>> sources;
  /// With ImportOptions::boundaries: the nodes that are left out, in the file's order. Their results are inputs of the
  /// graph without a default, behind the weights; its outputs are then all values that are read outside, each once, and
  /// `outputs` says which of them the file's are.
  std::vector<Boundary> boundaries;
  std::vector<Boundary::Operand> outputs;
  std::vector<Quotient> quotients;
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
