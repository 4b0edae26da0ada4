// From the importer's one graph with gaps to steps over tensors.
//
// The importer ends the graph at what boundaries read and begins it again at what they compute; partition() says which nodes
// stay together. Here each group becomes a graph, and everything that crosses between steps becomes a tensor. A reshape of
// something that crosses is no step: it is the same memory under other dims.

#include "lib/import/model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lib/import/onnx_importer.h"
#include "lib/import/onnx_tensor.h"

namespace fusec {
namespace {

class Cutter {
 public:
  Cutter(WholeModel& model, const Imported& imported) : model_(model), imported_(imported), graph_(imported.graph) {}

  Status run();

 private:
  void find_needed();
  Status add_region(uint32_t group, bool once, const std::vector<NodeId>& outputs);
  void add_boundary(const Boundary& boundary);

  size_t tensor(NodeId id);
  size_t add_tensor(ModelTensor tensor);
  std::optional<size_t> tensor(const Boundary::Operand& operand);
  NodeId root(NodeId id) const;
  bool is_input(NodeId id) const { return id < graph_.inputs().size(); }
  uint32_t group(NodeId id) const { return partition_.group[id]; }
  bool is_free(NodeId id) const { return group(id) == Partition::kNone && !is_input(id); }
  NodeId end(uint32_t output) const { return graph_.outputs()[output].node; }

  WholeModel& model_;
  const Imported& imported_;
  const Graph& graph_;
  Partition partition_;
  std::vector<bool> needed_;  // of each node: other steps see it
  std::unordered_map<NodeId, size_t> tensors_;
  std::unordered_map<const Tensor*, size_t> known_;
  std::unordered_map<std::string, size_t> unshaped_;
  std::unordered_set<std::string> names_;
};

size_t Cutter::add_tensor(ModelTensor tensor) {
  if (tensor.name.empty()) tensor.name = "v";
  std::string name = tensor.name;
  for (int k = 1; !names_.insert(name).second; ++k) name = tensor.name + "." + std::to_string(k);
  tensor.name = std::move(name);
  model_.tensors.push_back(std::move(tensor));
  return model_.tensors.size() - 1;
}

/// What a chain of reshapes starts from.
NodeId Cutter::root(NodeId id) const {
  while (!is_input(id) && graph_.node(id).op == Op::reshape) id = graph_.node(id).args[0];
  return id;
}

size_t Cutter::tensor(NodeId id) {
  if (const auto found = tensors_.find(id); found != tensors_.end()) return found->second;
  ModelTensor out;
  out.type = graph_.node(id).type;
  if (is_input(id)) {
    out.name = graph_.inputs()[id].name;
    out.data = imported_.defaults[id];
    if (id < imported_.file_inputs) out.kind = ModelTensor::input;
    else if (out.data) out.kind = ModelTensor::weight;
  } else {
    out.name = graph_.label(id);
    if (const NodeId from = root(id); from != id && (needed_[from] || is_input(from))) out.view_of = tensor(from);
  }
  return tensors_[id] = add_tensor(std::move(out));
}

std::optional<size_t> Cutter::tensor(const Boundary::Operand& operand) {
  if (operand.output) return tensor(end(*operand.output));
  if (operand.known) {
    const auto [at, fresh] = known_.emplace(operand.known.get(), 0);
    if (fresh)
      at->second = add_tensor({.kind = ModelTensor::weight,
                               .name = operand.name,
                               .type = onnx::type_of_data(*operand.known),
                               .data = operand.known});
    return at->second;
  }
  if (operand.name.empty()) return std::nullopt;
  const auto [at, fresh] = unshaped_.emplace(operand.name, 0);
  if (fresh) at->second = add_tensor({.name = operand.name});
  return at->second;
}

/// What others see of a group: what boundaries read, what another group reads, what is an output. Of a reshape that is only
/// seen from outside its source is needed too, when that is not computed on the way.
void Cutter::find_needed() {
  needed_.assign(graph_.size(), false);
  for (const Port& port : graph_.outputs()) needed_[port.node] = true;
  for (NodeId id = 0; id < graph_.size(); ++id)
    for (NodeId a : graph_.node(id).args)
      if (group(a) != group(id) && !is_free(a) && !is_free(id)) needed_[a] = true;
  for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;)
    if (const NodeId from = root(id); needed_[id] && from != id && group(from) != group(id)) needed_[from] = true;
}

Status Cutter::add_region(uint32_t group_, bool once, const std::vector<NodeId>& outputs) {
  std::vector<NodeId> open = outputs;
  std::set<NodeId> within(outputs.begin(), outputs.end()), from;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (NodeId a : graph_.node(id).args) {
      const bool inside = is_free(a) || (!is_input(a) && group(a) == group_);
      if (!inside) from.insert(a);
      else if (within.insert(a).second) open.push_back(a);
    }
  }
  ModelStep step;
  step.region = model_.regions.size();
  GraphBuilder b("r" + std::to_string(*step.region));
  std::unordered_map<NodeId, Value> values;
  std::vector<NodeId> order(from.begin(), from.end());  // weights last
  std::stable_partition(order.begin(), order.end(),
                        [&](NodeId id) { return model_.tensors[tensor(id)].kind != ModelTensor::weight; });
  for (NodeId id : order) {
    const size_t t = tensor(id);
    step.inputs.emplace_back(t);
    values[id] = b.input(model_.tensors[t].name, graph_.node(id).type);
  }
  for (NodeId id : within) {
    const Node& node = graph_.node(id);
    std::vector<Value> args;
    for (NodeId a : node.args) args.push_back(values[a]);
    values[id] =
        node.op == Op::constant ? b.constant(*node.attrs->value) : b.add(node.op, std::move(args), *node.attrs);
    if (values[id].valid() && !graph_.label(id).empty()) b.label(values[id], graph_.label(id));
  }
  std::vector<Value> results;
  std::vector<std::string> names;
  for (NodeId id : outputs) {
    const size_t t = tensor(id);
    step.outputs.emplace_back(t);
    results.push_back(values[id]);
    names.push_back(model_.tensors[t].name);
  }
  Result<Graph> graph = std::move(b).finish(std::move(results), std::move(names));
  if (!graph) return graph.error().note("while cutting region " + std::to_string(*step.region));
  model_.regions.push_back({std::move(*graph), once});
  model_.steps.push_back(std::move(step));
  return Done{};
}

void Cutter::add_boundary(const Boundary& boundary) {
  const onnx::NodeMessage& node = model_.file->message.nodes[boundary.node];
  ModelStep step;
  step.boundary = model_.boundaries.size();
  for (const Boundary::Operand& operand : boundary.operands) step.inputs.push_back(tensor(operand));
  for (const Boundary::Outcome& result : boundary.results)
    step.outputs.push_back(result.input ? std::optional(tensor(graph_.inputs()[*result.input].node))
                                        : tensor(Boundary::Operand{.name = result.name}));
  model_.boundaries.push_back({boundary.why, boundary.reason, std::string(node.op),
                               onnx::is_default_domain(node.domain) ? "" : std::string(node.domain),
                               std::string(node.name), boundary.node, &node});
  model_.steps.push_back(std::move(step));
}

Status Cutter::run() {
  std::vector<bool> weights;
  for (size_t i = 0; i < graph_.inputs().size(); ++i)
    weights.push_back(i >= imported_.file_inputs && imported_.defaults[i]);
  std::vector<Gap> gaps;
  for (const Boundary& boundary : imported_.boundaries) {
    Gap& gap = gaps.emplace_back();
    for (const Boundary::Operand& operand : boundary.operands)
      if (operand.output) gap.reads.push_back(end(*operand.output));
    for (const Boundary::Outcome& result : boundary.results)
      if (result.input) gap.writes.push_back(graph_.inputs()[*result.input].node);
  }
  partition_ = partition(graph_, gaps, weights);
  find_needed();

  for (size_t i = 0; i < imported_.file_inputs; ++i) model_.inputs.push_back(tensor(graph_.inputs()[i].node));
  std::vector<std::vector<NodeId>> outputs(partition_.groups);
  std::vector<NodeId> once;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!needed_[id] || is_input(id)) continue;
    if (model_.tensors[tensor(id)].view_of) continue;
    (is_free(id) ? once : outputs[group(id)]).push_back(id);
  }
  if (!once.empty())
    if (Status s = add_region(Partition::kNone, true, once); !s) return s;
  for (uint32_t piece : partition_.order) {
    if (piece >= partition_.groups) add_boundary(imported_.boundaries[piece - partition_.groups]);
    else if (!outputs[piece].empty())
      if (Status s = add_region(piece, false, outputs[piece]); !s) return s;
  }
  for (const Boundary::Operand& output : imported_.outputs) {
    model_.outputs.push_back(*tensor(output));
    model_.output_names.push_back(output.name);
  }
  for (size_t s = 0; s < model_.steps.size(); ++s) {
    for (const auto& t : model_.steps[s].outputs)
      if (t) model_.tensors[*t].producer = s;
    for (const auto& t : model_.steps[s].inputs)
      for (std::optional<size_t> at = t; at; at = model_.tensors[*at].view_of)
        if (std::vector<size_t>& readers = model_.tensors[*at].readers; readers.empty() || readers.back() != s)
          readers.push_back(s);
  }
  return Done{};
}

constexpr int kMostRounds = 64;  // as deep as Ifs may lie in each other, or hang on each other

/// Each round puts branches in place of the Ifs that the walk before could decide: with dims given, conditions on shapes are known.
Result<Imported> import_with_branches(ModelFile& file, onnx::TensorSource& source, const ImportOptions& options) {
  std::set<std::string> fixed;  // an input that decided a branch is none any more, though nobody reads it now
  for (int round = 0;; ++round) {
    onnx::Importer importer(file.message, source, options);
    importer.fix({fixed.begin(), fixed.end()});
    Result<Imported> imported = importer.run();
    if (imported) fixed.insert(imported->fixed.begin(), imported->fixed.end());
    bool again = false;
    const auto& decided = importer.decided();
    for (size_t k = decided.size(); imported && round < kMostRounds && k-- > 0;)  // from behind, so that indices stay
      again |= onnx::put_branch(file.message, decided[k].first, decided[k].second, file.names);
    if (!again) return imported;
  }
}

/// `keeper` keeps `bytes`.
Result<WholeModel> read(std::string_view bytes, std::shared_ptr<const void> keeper, const std::string& folder, const ImportOptions& options) {
  auto file = std::make_shared<ModelFile>();
  file->bytes = keeper;
  Result<onnx::ModelMessage> message = onnx::read_model(bytes);
  if (!message) return message.error();
  file->message = std::move(*message);
  ImportOptions with = options;
  with.boundaries = true;
  onnx::TensorSource source{std::move(keeper), onnx::DataFiles(folder)};
  Result<Imported> imported = import_with_branches(*file, source, with);
  if (!imported) return imported.error();
  WholeModel model;
  model.file = file;
  model.name = imported->graph.name(), model.operator_set = imported->operator_set,
  model.nodes = file->message.nodes.size();
  model.fixed = imported->fixed;
  model.quotients = imported->quotients;
  if (Status s = Cutter(model, *imported).run(); !s) return s.error();
  return model;
}

}  // namespace

Result<WholeModel> read_model_bytes(std::string bytes, const std::string& folder, const ImportOptions& options) {
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  return read(*kept, kept, folder, options);
}

Result<WholeModel> read_model_file(const std::string& path, const ImportOptions& options) {
  const Result<std::shared_ptr<const onnx::Mapping>> file = onnx::map_model(path);
  if (!file) return file.error();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Result<WholeModel> model = read((*file)->text(), *file, folder.empty() ? "." : folder.string(), options);
  if (!model) return model.error().note("while importing " + path);
  return model;
}

}  // namespace fusec
