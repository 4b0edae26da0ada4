// The importer: one walk over the file's nodes, in the file's order (which ONNX requires to be topological).
//
// Each node looks up its row by operator and version and lets it build. Before that, two shortcuts keep shapes static:
//   all operands known       evaluate the node now, in a graph of its own, with the reference evaluator
//   an operand made of dims  compute with dims (onnx_ops_shape.cpp)
// Where a row needs bits that only an input has (Reshape's shape as an input with a default), the walk stops, that
// input is fixed to its value, and the walk starts again.

#include "lib/import/onnx.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "lib/import/onnx_importer.h"
#include "lib/import/onnx_mapping.h"
#include "lib/import/onnx_model.h"
#include "lib/import/onnx_narrow.h"
#include "lib/import/onnx_ops.h"
#include "lib/import/onnx_tensor.h"
#include "lib/support/limits.h"
#include "lib/support/text.h"

namespace fusec {
namespace onnx {
namespace {

constexpr int64_t kFoldElements = 4096;  // what is worth evaluating here: shapes, axes, small tables
constexpr int kMostWalks = 64;
constexpr size_t kMostSearched = 4096;  // values that a shape is computed from

std::string count_of(size_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

}  // namespace

bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

// --- the file as a whole
// ------------------------------------------------------------------------------------------------

static std::string describe(const ModelMessage& model, size_t index, int64_t opset) {
  const NodeMessage& node = model.nodes[index];
  std::string out = "node " + std::to_string(node.index);
  if (!node.name.empty()) out += " " + quote(node.name);
  const std::string domain = is_default_domain(node.domain) ? "" : quote(node.domain) + " ";
  return out + " (" + domain + (node.op.size() <= 80 ? std::string(node.op) : quote(node.op)) + ", operator set " +
         std::to_string(opset) + ")" + (node.within.empty() ? "" : " of " + std::string(node.within));
}

Error Importer::at(size_t node, Error error) const {
  error.message = describe(model_, node, opset_of(model_.nodes[node])) + ": " + error.message;
  return error;
}

Status Importer::check_model() {
  opset_ = -1;
  for (const OperatorSet& set : model_.operator_sets)
    if (is_default_domain(set.domain)) opset_ = std::max(opset_, set.version);
  const bool needs = std::any_of(model_.nodes.begin(), model_.nodes.end(),
                                 [](const NodeMessage& n) { return is_default_domain(n.domain) && !n.operator_set; });
  if (opset_ < 0 && !needs) opset_ = kNewestOpset;  // foreign operators only, which check_operators names
  if (opset_ < 0) return input_error("the model names no operator set of the default domain");
  if (opset_ < kOldestOpset || opset_ > kNewestOpset)
    return input_error("operator set " + std::to_string(opset_) + ": " + std::to_string(kOldestOpset) + " to " +
                       std::to_string(kNewestOpset) + " are supported");
  for (const NodeMessage& node : model_.nodes)
    if (node.operator_set && (node.operator_set < kOldestOpset || node.operator_set > kNewestOpset))
      return input_error("operator set " + std::to_string(node.operator_set) + ", of " + std::string(node.within) + ": " +
                         std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset) + " are supported");
  if (model_.has_sparse_initializers) return input_error("sparse initialisers are not supported");
  if (model_.outputs.empty()) return input_error("the graph has no outputs");
  return Done{};
}

/// Every value has one source; every reader is noted.
Status Importer::check_names() {
  for (const TensorMessage& t : model_.initializers) {
    if (t.name.empty()) return input_error("an initialiser without a name");
    if (!initializers_.emplace(t.name, &t).second)
      return input_error("initialiser " + quote(t.name) + " is there twice");
  }
  for (const ValueInfo& v : model_.inputs) {
    if (v.name.empty()) return input_error("an input without a name");
    if (!inputs_.emplace(v.name, &v).second) return input_error("input " + quote(v.name) + " is there twice");
  }
  for (size_t n = 0; n < model_.nodes.size(); ++n) {
    for (std::string_view name : model_.nodes[n].outputs) {
      if (name.empty()) continue;
      if (inputs_.contains(name) || initializers_.contains(name) || !producers_.emplace(name, n).second)
        return at(n, input_error("output " + quote(name) + " is there already: each value has one source"));
    }
    used_.insert(model_.nodes[n].inputs.begin(), model_.nodes[n].inputs.end());
  }
  for (const ValueInfo& v : model_.values) stated_.emplace(v.name, &v);
  std::set<std::string_view> outputs;
  for (const ValueInfo& v : model_.outputs) {
    if (!outputs.insert(v.name).second) return input_error("output " + quote(v.name) + " is there twice");
    used_.insert(v.name);
  }
  return Done{};
}

/// All operators that there is no row for: the first in the message, the others in notes.
Status Importer::check_operators() {
  if (options_.boundaries) return Done{};
  std::vector<std::string> order;
  std::unordered_map<std::string, size_t> counts;
  size_t first = 0;
  for (size_t n = 0; n < model_.nodes.size(); ++n) {
    const NodeMessage& node = model_.nodes[n];
    if (is_default_domain(node.domain) && find_row(node.op, opset_of(node))) continue;
    std::string what = quote(node.op);
    if (!is_default_domain(node.domain)) what += " of domain " + quote(node.domain);
    else if (find_row(node.op, kNewestOpset))
      what += ", which operator set " + std::to_string(opset_of(node)) + " does not have";
    if (counts[what]++ == 0) {
      if (order.empty()) first = n;
      if (order.size() < 100) order.push_back(what);
    }
  }
  if (order.empty()) return Done{};
  Error error = at(first, input_error("not supported: " + order[0]));
  if (counts[order[0]] > 1) error = error.note(count_of(counts[order[0]], "node") + " of it");
  for (size_t k = 1; k < order.size(); ++k)
    error = error.note("also not supported: " + order[k] + " (" + count_of(counts[order[k]], "node") + ")");
  return error;
}

// --- inputs and weights
// ---------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const Tensor>> Importer::initializer(std::string_view name) {
  std::shared_ptr<const Tensor>& cached = decoded_[name];
  if (cached) return cached;
  Result<Tensor> tensor = read_tensor(initializers_.at(name)->message, source_);
  if (!tensor) {
    Error error = tensor.error();
    error.message = "initialiser " + quote(name) + ": " + error.message;
    return error;
  }
  cached = std::make_shared<const Tensor>(std::move(*tensor));
  return cached;
}

Result<Type> Importer::type_of(const ValueInfo& info) const {
  const std::string named = "input " + quote(info.name);
  if (info.kind == ValueInfo::other)
    return input_error(named + " is no dense tensor: sequences, maps, optional and sparse values are not supported");
  if (info.kind == ValueInfo::none) return input_error(named + " has no type");
  Result<DType> dtype = held_type(info.data_type);
  if (!dtype) return input_error(named + ": " + dtype.error().message);
  if (!info.has_shape) return input_error(named + " has no shape: its rank has to be known");
  Type type{*dtype, {}};
  for (size_t a = 0; a < info.dims.size(); ++a) {
    const DimMessage& d = info.dims[a];
    if (d.value && !(options_.boundaries && *d.value == -1)) {  // -1: how PaddlePaddle's exporter says "not known"
      if (*d.value < 0) return input_error(named + ": axis " + std::to_string(a) + " is " + std::to_string(*d.value));
      type.shape.push_back(*d.value);
      continue;
    }
    const std::string symbol = d.name.empty() || d.name == "?" ? std::string(info.name) + "." + std::to_string(a) : std::string(d.name);
    if (symbol.size() > size_t{kMaxName}) return input_error(named + ": " + too_long(symbol));
    const auto fixed = options_.sizes.find(symbol);
    type.shape.push_back(fixed == options_.sizes.end() ? Dim::symbol(symbol) : Dim(fixed->second));
  }
  if (auto fits = check_type(type); !fits) return input_error(named + ": " + fits.error().message);
  return type;
}

/// Does data fit a type? Symbols take any size.
static bool fits(const Tensor& data, const Type& type) {
  if (data.dtype != type.dtype || data.extents.size() != type.shape.size()) return false;
  for (size_t a = 0; a < type.shape.size(); ++a)
    if (type.shape[a].is_constant() && !type.shape[a].is(data.extents[a])) return false;
  return true;
}

Type type_of_data(const Tensor& t) { return {t.dtype, {t.extents.begin(), t.extents.end()}}; }

Status Importer::add_input(const ValueInfo& info) {
  std::shared_ptr<const Tensor> data;
  if (const auto given = options_.values.find(info.name); given != options_.values.end()) data = given->second;
  std::shared_ptr<const Tensor> fallback;
  if (initializers_.contains(info.name)) {
    Result<std::shared_ptr<const Tensor>> tensor = initializer(info.name);
    if (!tensor) return tensor.error();
    fallback = *tensor;
    if (!data) data = fallback;
  }
  // Files of IR version 3 list every initialiser as an input, sometimes without saying its type again.
  Result<Type> type = info.kind == ValueInfo::none && fallback ? Result<Type>(type_of_data(*fallback)) : type_of(info);
  if (!type) return type.error();
  const bool fixed = fixed_.contains(info.name);
  for (const Tensor* t : {fixed ? data.get() : nullptr, fallback.get()})
    if (t && !fits(*t, *type))
      return input_error("input " + quote(info.name) + " is " + text(*type) + ", but its data is " +
                         text(type_of_data(*t)));
  Item& item = items_[info.name];
  if (narrow_type(info.data_type)) item.narrow = info.data_type;
  if (fixed) {
    item.known = data;
    return Done{};
  }
  item.value = b_->input(std::string(info.name), *type);
  defaults_.push_back(fallback);
  return Done{};
}

void Importer::add_weight(std::string_view name, std::shared_ptr<const Tensor> data, Item& item) {
  if (is_small(*data) || fixed_.contains(name)) {
    item.known = std::move(data);
    return;
  }
  item.known = nullptr;
  item.value = b_->input(std::string(name), type_of_data(*data));
  defaults_.push_back(std::move(data));
}

Status Importer::add_initializer(const TensorMessage& message) {
  if (inputs_.contains(message.name) || !used_.contains(message.name)) return Done{};
  const auto fault = [&](const Error& error) { return input_error("initialiser " + quote(message.name) + ": " + error.message); };
  const Result<Type> type = read_tensor_type(message.message);
  if (!type) return fault(type.error());
  if (auto fit = check_type(*type); !fit) return fault(fit.error());
  Item& item = items_[message.name];
  const NarrowType* narrow = narrow_type(message.data_type);
  if (narrow) item.narrow = message.data_type;
  const auto size = static_cast<uint64_t>(elements(type->shape).constant()) * bytes(type->dtype);
  if (!narrow || size <= options_.largest_constant || fixed_.contains(message.name)) {
    Result<std::shared_ptr<const Tensor>> data = initializer(message.name);
    if (!data) return data.error();
    add_weight(message.name, *data, item);
    return Done{};
  }
  Result<Tensor> packed = read_tensor(message.message, source_, true);
  if (!packed) return fault(packed.error());
  add_weight(message.name, std::make_shared<const Tensor>(std::move(*packed)), item);
  item.value = unpacked(*b_, *narrow, value_of(*b_, item), type->shape);
  item.known = nullptr;
  return Done{};
}

// --- nodes
// ------------------------------------------------------------------------------------------------------------------

/// Attributes that this version of the operator has, each once.
Status check_attributes(const NodeMessage& node, const OpRow& row) {
  std::set<std::string_view> seen;
  for (const Attribute& a : node.attributes) {
    const std::string known = " " + std::string(row.attributes) + " ";
    const bool plain = !a.name.empty() && a.name.find(' ') == std::string_view::npos;
    if (!plain || known.find(" " + std::string(a.name) + " ") == std::string::npos)
      return input_error("attribute " + quote(a.name) +
                         ": the operator has none of that name in this version, which stands since " +
                         std::to_string(row.since));
    if (!seen.insert(a.name).second) return input_error("attribute " + quote(a.name) + " is there twice");
  }
  return Done{};
}

/// Narrow types go only where a row takes them.
Status check_narrow(const OpRow& row, const std::vector<Item*>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || !inputs[i]->narrow || row.narrow == Narrow::handle) continue;
    if (row.narrow == Narrow::refuse)
      return input_error("input " + std::to_string(i) + " is " + dtype_name(inputs[i]->narrow) +
                         ", which conversions and movement of data take, and no other operator");
    if (!inputs[0] || inputs[0]->narrow != inputs[i]->narrow)
      return input_error("inputs 0 and " + std::to_string(i) + " differ in type");
  }
  return Done{};
}

Status check_counts(const NodeMessage& node, const OpRow& row, size_t inputs) {
  if (static_cast<int>(std::min<size_t>(inputs, kAny)) > row.max_inputs)
    return input_error(count_of(inputs, "input") + ", at most " + std::to_string(row.max_inputs) + " expected");
  for (int i = 0; i < row.min_inputs; ++i)
    if (static_cast<size_t>(i) >= inputs || node.inputs[static_cast<size_t>(i)].empty())
      return input_error("input " + std::to_string(i) + " is missing");
  if (node.outputs.empty()) return input_error("no outputs");
  if (node.outputs.size() > static_cast<size_t>(row.max_outputs))
    return input_error(count_of(node.outputs.size(), "output") + ", at most " + std::to_string(row.max_outputs) +
                       " expected");
  return Done{};
}

/// A node whose operands are all known becomes known; false when it is too large for that, or fails (the caller then
/// finds the error where it belongs).
bool Importer::evaluate_node(const NodeMessage& node, const OpRow& row, const std::vector<Item*>& inputs,
                             std::vector<Item>& outputs) {
  std::vector<Item> copies(inputs.size());
  std::vector<Item*> operands;
  int64_t elements_in = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] && !inputs[i]->known) return false;
    if (inputs[i]) copies[i].known = inputs[i]->known, copies[i].narrow = inputs[i]->narrow, elements_in += inputs[i]->known->elements();
    operands.push_back(inputs[i] ? &copies[i] : nullptr);
  }
  if (elements_in > kFoldElements || folded_ > size_t{kMaxModelFolds}) return false;

  GraphBuilder b("");
  Call call(b, node, row, static_cast<int>(opset_of(node)), source_, std::move(operands));
  row.import(call);
  std::vector<Value> values;
  std::vector<Item*> computed;
  for (Item& item : call.outputs) {
    if (item.known || !item.value.valid()) continue;
    const Dim n = elements(b.type(item.value).shape);
    if (!n.is_constant() || n.constant() > kFoldElements) return false;
    values.push_back(item.value);
    computed.push_back(&item);
  }
  if (call.failed()) return false;
  if (!values.empty()) {
    Result<Graph> graph = std::move(b).finish(values);
    if (!graph) return false;
    Result<std::vector<Tensor>> results = evaluate(*graph, {});
    if (!results) return false;
    for (size_t k = 0; k < computed.size(); ++k) {
      computed[k]->known = std::make_shared<const Tensor>(std::move((*results)[k]));
      computed[k]->value = {};
    }
  }
  for (Item& item : call.outputs) {
    item.value = {};
    if (item.known) folded_ += item.known->data.size();
  }
  outputs = std::move(call.outputs);
  return true;
}

std::optional<std::set<std::string_view>> Importer::leaves_of(std::string_view name) const {
  std::vector<std::string_view> open{name};
  std::set<std::string_view> seen{name}, leaves;
  while (!open.empty()) {
    const std::string_view at = open.back();
    open.pop_back();
    const auto producer = producers_.find(at);
    if (producer == producers_.end()) {
      leaves.insert(at);
      continue;
    }
    const auto left_out = std::lower_bound(boundaries_.begin(), boundaries_.end(), producer->second,
                                           [](const Boundary& b, size_t node) { return b.node < node; });
    if (left_out != boundaries_.end() && left_out->node == producer->second) return std::nullopt;
    if (options_.boundaries && seen.size() > kMostSearched) return std::nullopt;  // each node that is refused may ask
    for (std::string_view in : model_.nodes[producer->second].inputs)
      if (!in.empty() && seen.insert(in).second) open.push_back(in);
  }
  return leaves;
}

void Importer::fix(const std::set<std::string_view>& inputs) {
  const size_t before = fixed_.size();
  fixed_.insert(inputs.begin(), inputs.end());
  again_ = fixed_.size() > before;
}

/// The operand `name` has to be known: fixes the inputs that it depends on when all of them have values, and asks for
/// another walk.
Error Importer::explain_need(std::string_view name, Error error) {
  const std::optional<std::set<std::string_view>> leaves = leaves_of(name);
  if (!leaves) return error;
  for (std::string_view leaf : *leaves)
    if (!initializers_.contains(leaf) && !options_.values.contains(leaf))
      return error.note("it depends on input " + quote(leaf) + ", whose value is not given");
  fix(*leaves);
  return error;
}

Result<std::vector<Item*>> Importer::operands(const NodeMessage& node) {
  size_t count = node.inputs.size();
  while (count > 0 && node.inputs[count - 1].empty()) --count;
  std::vector<Item*> inputs;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = node.inputs[i];
    const auto found = items_.find(name);
    if (!name.empty() && found == items_.end())
      return input_error("input " + quote(name) +
                         (producers_.contains(name)
                              ? " is computed by a later node: nodes have to be in order, without cycles"
                              : " is no input, initialiser or output of any node"));
    inputs.push_back(name.empty() ? nullptr : &found->second);
  }
  return inputs;
}

Status Importer::add_node(size_t index) {
  const NodeMessage& node = model_.nodes[index];
  const OpRow* found = is_default_domain(node.domain) ? find_row(node.op, opset_of(node)) : nullptr;
  Result<std::vector<Item*>> given = operands(node);
  if (!given) return given.error();
  const std::vector<Item*>& inputs = *given;
  if (options_.boundaries) {
    Result<std::optional<Boundary>> boundary = outside(index, found, inputs);
    if (!boundary) return boundary.error();
    if (*boundary) return add_boundary(std::move(**boundary), node, inputs);
  }
  const OpRow& row = *found;
  if (auto fits = check_attributes(node, row); !fits) return fits;
  if (auto fits = check_counts(node, row, inputs.size()); !fits) return fits;

  if (auto fits = check_narrow(row, inputs); !fits) return fits;

  std::vector<Item> outputs;
  if (!evaluate_node(node, row, inputs, outputs)) {
    Call call(*b_, node, row, static_cast<int>(opset_of(node)), source_, inputs);
    if (!import_dims(call)) row.import(call);
    if (b_->error()) {
      const Error error = *b_->error();
      return call.needed() ? explain_need(node.inputs[*call.needed()], error) : error;
    }
    outputs = std::move(call.outputs);
    if (b_->size() > size_t{kMaxNodes}) return input_error("a graph of more than " + std::to_string(size_t{kMaxNodes}) + " nodes");
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const std::string_view name = node.outputs[k];
    if (name.empty()) continue;
    Item& item = items_[name];
    item = std::move(outputs[k]);
    if (row.narrow == Narrow::pass && !inputs.empty() && inputs[0]) item.narrow = inputs[0]->narrow;
    if (!item.known && !item.dims && !item.value.valid())
      return input_error("output " + std::to_string(k) + " is not supported");
    if (item.known) add_weight(name, item.known, item);
    if (item.value.valid()) b_->label(item.value, std::string(name));
  }
  return Done{};
}

// --- the walk
// ---------------------------------------------------------------------------------------------------------------

void Importer::describe_sources(Imported& out) const {
  out.header = "ONNX, operator set " + std::to_string(opset_);
  if (!model_.producer.empty()) out.header += ", made by " + std::string(model_.producer.substr(0, 80));
  if (!model_.producer_version.empty()) out.header += " " + std::string(model_.producer_version.substr(0, 80));
  for (const NodeMessage& node : model_.nodes) {
    std::string text = "node " + std::to_string(node.index) + " " + std::string(node.op.substr(0, 80));
    if (!node.name.empty()) text += " " + quote(node.name);
    if (!node.within.empty()) text += " of " + std::string(node.within);
    for (std::string_view name : node.outputs) out.sources.emplace(name, text);
  }
}

Result<Imported> Importer::walk() {
  b_.emplace(model_.graph_name.empty() ? "onnx" : std::string(model_.graph_name));
  items_.clear();
  defaults_.clear();
  boundaries_.clear();
  decided_.clear();
  ends_.clear();
  end_of_.clear();
  folded_ = 0;
  Imported out{.operator_set = opset_};
  std::set<std::string> symbols;
  for (const ValueInfo& info : model_.inputs) {
    if (auto done = add_input(info); !done) return done.error();
    if (const Value v = items_[info.name].value; v.valid())
      for (const Dim& d : b_->type(v).shape)
        for (std::string& symbol : d.symbols()) symbols.insert(std::move(symbol));
  }
  out.file_inputs = defaults_.size();
  quotients_.begin(std::move(symbols));
  for (const TensorMessage& message : model_.initializers)
    if (auto done = add_initializer(message); !done) return done.error();
  for (size_t n = 0; n < model_.nodes.size(); ++n) {
    try {
      if (auto done = add_node(n); !done) return at(n, done.error());
    } catch (const std::overflow_error&) {
      return at(n, input_error("sizes beyond 64 bits"));
    }
  }
  std::vector<Value> outputs;
  std::vector<std::string> names;
  for (const ValueInfo& info : model_.outputs) {
    const auto found = items_.find(info.name);
    if (found == items_.end()) return input_error("output " + quote(info.name) + " is computed by no node");
    if (options_.boundaries) {
      out.outputs.push_back(operand(info.name, &found->second));
      continue;
    }
    outputs.push_back(value_of(*b_, found->second));
    names.emplace_back(info.name);
  }
  if (options_.boundaries) outputs = ends_;
  out.boundaries = std::move(boundaries_);
  out.quotients = quotients_.all();
  Result<Graph> graph = std::move(*b_).finish(std::move(outputs), std::move(names));
  if (!graph) return graph.error();
  out.graph = std::move(*graph);
  out.defaults = std::move(defaults_);
  if (options_.sources) describe_sources(out);
  for (const ValueInfo& info : model_.inputs)
    if (fixed_.contains(info.name)) out.fixed.emplace_back(info.name);
  return out;
}

Result<Imported> Importer::run() {
  for (auto check : {&Importer::check_model, &Importer::check_names, &Importer::check_operators})
    if (auto done = (this->*check)(); !done) return done.error();
  for (int k = 0;; ++k) {
    again_ = false;
    Result<Imported> result = walk();
    if (result || !again_ || k == kMostWalks) return result;
  }
}

}  // namespace onnx

using namespace onnx;

Result<Imported> import_onnx_bytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  Result<ModelMessage> model = read_model(bytes);
  if (!model) return model.error();
  TensorSource source{nullptr, DataFiles(folder)};
  return Importer(*model, source, options).run();
}

Result<Imported> import_onnx(const std::string& path, const ImportOptions& options) {
  Result<std::shared_ptr<const Mapping>> file = map_model(path);
  if (!file) return file.error();
  Result<ModelMessage> model = read_model((*file)->text());
  if (!model) return model.error().note("while importing " + path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  TensorSource source{*file, DataFiles(folder.empty() ? "." : folder.string())};
  Result<Imported> imported = Importer(*model, source, options).run();
  if (!imported) return imported.error().note("while importing " + path);
  return imported;
}

}  // namespace fusec
