#pragma once
// A whole network, cut in pieces: what fusec computes is grouped into regions, what it leaves to others are boundaries.
//
//   Result<WholeModel> model = read_model_file("model.onnx", {.sizes = {{"batch", 1}}});
//   for (const ModelStep& step : model->steps)            // in an order in which operands come first
//     step.is_region() ? model->regions[*step.region].graph … : model->boundaries[*step.boundary].op …
//
// A region is a maximal convex group of nodes: no path leaves it through a boundary and comes back, and no two regions of
// which one reads the other can be joined without making one. So a region is one graph, with nothing to wait for inside.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/import/onnx.h"
#include "lib/import/onnx_model.h"

namespace fusec {

/// A value that steps hand to each other.
struct ModelTensor {
  enum Kind : uint8_t { input, weight, computed } kind = computed;
  std::string name;                    // the file's where it has one; no two tensors share a name
  std::optional<Type> type;            // none: its shape is not known
  std::shared_ptr<const Tensor> data;  // of weights; of inputs their default, if they have one
  std::optional<size_t> view_of;       // the same memory as that tensor with other dims: nobody computes it
  std::optional<size_t> producer;      // step
  std::vector<size_t> readers;         // steps, ascending; those of its views too
};

/// The graph's inputs and outputs are those of its step, in that order and under the tensors' names.
struct ModelRegion {
  Graph graph;
  bool once = false;  // reads weights only: its results can be kept
};

struct ModelBoundary {
  Boundary::Why why;
  std::string reason;                // of `form` and `unshaped`
  std::string op, domain, name;      // of the node; domain "" is ONNX's own
  size_t node = 0;                   // index in the file
  const onnx::NodeMessage* message;  // attributes; lives as long as WholeModel::file
};

struct ModelStep {
  std::optional<size_t> region, boundary;              // one of the two
  std::vector<std::optional<size_t>> inputs, outputs;  // tensors; none = left out
  bool is_region() const { return region.has_value(); }
};

/// The file, read: what messages point into. An If whose condition is known has been replaced by its branch; nodes are counted as
/// they are then.
struct ModelFile {
  std::shared_ptr<const void> bytes;  // keeps what `message` points into
  std::deque<std::string> names;  // new ones, of what comes from branches
  onnx::ModelMessage message;
};

struct WholeModel {
  std::shared_ptr<const ModelFile> file;
  std::string name;
  int64_t operator_set = 0;
  size_t nodes = 0;  // of the file
  std::vector<ModelTensor> tensors;
  std::vector<ModelRegion> regions;
  std::vector<ModelBoundary> boundaries;
  std::vector<ModelStep> steps;
  std::vector<size_t> inputs, outputs;    // tensors, in the file's order
  std::vector<std::string> output_names;  // the file's; a tensor may be two outputs, or an output and an input
  std::vector<Quotient> quotients;        // of the tensors' dims
  std::vector<std::string> fixed;         // inputs whose given values shaped the model
};

/// Reads a file and cuts it. Operators that the importer does not take are no errors (Boundary says why each is left out);
/// otherwise as import_onnx.
Result<WholeModel> read_model_file(const std::string& path, const ImportOptions& options = {});
/// The same from memory; `folder` is where external data may lie, "" = nowhere.
Result<WholeModel> read_model_bytes(std::string bytes, const std::string& folder = "",
                                    const ImportOptions& options = {});

/// Where a graph's nodes go. Pieces are the groups, then the boundaries.
struct Partition {
  static constexpr uint32_t kNone = ~uint32_t{0};
  std::vector<uint32_t> group;  // of each node; kNone: inputs, and what hangs on no input but weights
  uint32_t groups = 0;
  std::vector<uint32_t> order;  // pieces, operands first: g is a group, groups + b a boundary
};

/// What lies between parts of a graph: it reads some nodes and computes some inputs.
struct Gap {
  std::vector<NodeId> reads, writes;
};

/// Maximal convex groups of a graph with gaps. `weights`: inputs with known data, which hold nobody back and tie nobody
/// together. Takes about the nodes times the depth in gaps; beyond a fixed amount of work groups stay smaller, not wrong.
Partition partition(const Graph& graph, const std::vector<Gap>& gaps, const std::vector<bool>& weights);

}  // namespace fusec
