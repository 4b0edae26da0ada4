#pragma once
// The walk over a file's nodes, as a class: onnx.cpp has what every model needs, onnx_boundary.cpp what models need that do
// not lie in the field as a whole. Nobody else includes this.

#include <optional>
#include <set>
#include <unordered_map>

#include "lib/import/onnx.h"
#include "lib/import/onnx_call.h"
#include "lib/import/onnx_model.h"
#include "lib/import/onnx_quotients.h"

namespace fusec::onnx {

class Importer {
 public:
  Importer(const ModelMessage& model, TensorSource& source, const ImportOptions& options)
      : model_(model), source_(source), options_(options) {}

  Result<Imported> run();
  /// Makes inputs with values known from the next walk on. The names have to outlive the importer.
  void fix(const std::set<std::string_view>& inputs);
  /// If nodes whose condition the last walk knew, and its value.
  const std::vector<std::pair<size_t, bool>>& decided() const { return decided_; }

 private:
  Status check_model();
  Status check_names();
  Status check_operators();
  Error at(size_t node, Error error) const;
  int64_t opset_of(const NodeMessage& node) const { return node.operator_set ? node.operator_set : opset_; }

  // One walk.
  Result<Imported> walk();
  void describe_sources(Imported& out) const;
  Status add_input(const ValueInfo& info);
  Status add_initializer(const TensorMessage& message);
  Status add_node(size_t index);
  /// A node's operands; null = left out.
  Result<std::vector<Item*>> operands(const NodeMessage& node);
  bool evaluate_node(const NodeMessage& node, const OpRow& row, const std::vector<Item*>& inputs,
                     std::vector<Item>& outputs);
  Result<Type> type_of(const ValueInfo& info) const;
  bool is_small(const Tensor& t) const { return t.data.size() <= options_.largest_constant; }
  void add_weight(std::string_view name, std::shared_ptr<const Tensor> data, Item& item);

  Result<std::shared_ptr<const Tensor>> initializer(std::string_view name);
  /// What a value is computed from; nullopt when a node that was left out lies between.
  std::optional<std::set<std::string_view>> leaves_of(std::string_view name) const;
  Error explain_need(std::string_view name, Error error);

  // Whole models (onnx_boundary.cpp).
  /// Why a node is left out of the graph; nullopt when the importer takes it.
  Result<std::optional<Boundary>> outside(size_t index, const OpRow* row, const std::vector<Item*>& inputs);
  /// The same for a node of the field: it is imported on trial.
  Result<std::string> refusal(const NodeMessage& node, const OpRow& row, const std::vector<Item*>& inputs);
  /// The value of an If's condition, where it is known; where given values of small inputs decide it, those get fixed.
  Result<std::optional<bool>> decide(const NodeMessage& node, const std::vector<Item*>& inputs);
  /// The graph ends at its operands and begins again at its results.
  Status add_boundary(Boundary boundary, const NodeMessage& node, const std::vector<Item*>& inputs);
  Result<std::vector<std::optional<Type>>> result_types(const NodeMessage& node, const std::vector<Item*>& inputs);
  Boundary::Operand operand(std::string_view name, Item* item);

  const ModelMessage& model_;
  TensorSource& source_;
  const ImportOptions& options_;
  int64_t opset_ = 0;  // of the graph's nodes

  std::unordered_map<std::string_view, const TensorMessage*> initializers_;
  std::unordered_map<std::string_view, const ValueInfo*> inputs_;
  std::unordered_map<std::string_view, size_t> producers_;  // node index by output name
  std::unordered_map<std::string_view, std::shared_ptr<const Tensor>> decoded_;
  std::set<std::string_view> used_;
  std::set<std::string_view> fixed_;
  bool again_ = false;  // the walk failed, but an input was fixed

  std::optional<GraphBuilder> b_;
  std::unordered_map<std::string_view, Item> items_;
  std::unordered_map<std::string_view, const ValueInfo*> stated_;  // types that the file states of values within
  std::vector<Boundary> boundaries_;
  Quotients quotients_;
  std::vector<std::pair<size_t, bool>> decided_;
  std::vector<Value> ends_;  // outputs of the graph, one a value that is read outside
  std::unordered_map<NodeId, uint32_t> end_of_;
  std::vector<std::shared_ptr<const Tensor>> defaults_;
  size_t folded_ = 0;  // bytes
};

/// Has the operator set these attributes and that many operands?
Status check_attributes(const NodeMessage& node, const OpRow& row);
Status check_counts(const NodeMessage& node, const OpRow& row, size_t inputs);
Status check_narrow(const OpRow& row, const std::vector<Item*>& inputs);
bool is_default_domain(std::string_view domain);
Type type_of_data(const Tensor& tensor);

}  // namespace fusec::onnx
