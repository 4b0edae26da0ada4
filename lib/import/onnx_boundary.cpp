// Whole models: what happens at a node that the importer does not take.
//
//   y = MatMul(x, w)     x becomes an output of the graph, y an input of it, and the node a Boundary
//
// A node is left out when its operator is in the table of boundaries, when there is no row for it at all, when an operand
// has no known shape, or when its row refuses it: Gather by indices that are not known over a long axis, say. Whether a
// row refuses is found out by importing the node into a graph of its own, since a builder keeps its first error.

#include "lib/import/onnx_boundary.h"

#include <stdexcept>

#include "lib/import/onnx_importer.h"
#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

constexpr int64_t kChoice = 16;  // elements of an input that a condition may be decided by: a rate, a mode; no data

bool has_quotient(const Type& type, const Quotients& quotients) {
  for (const Dim& d : type.shape)
    for (const std::string& symbol : d.symbols())
      if (quotients.has(symbol)) return true;
  return false;
}

bool shaped(const Item& item) { return item.value.valid() || item.known || item.dims; }

/// Operands as inputs of a builder of their own; what is known stays known.
std::vector<Item> copies(GraphBuilder& to, const GraphBuilder& from, const std::vector<Item*>& inputs) {
  std::vector<Item> out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    out[i] = *inputs[i];
    out[i].value = {};
    if (!out[i].known && !out[i].dims && inputs[i]->value.valid())
      out[i].value = to.input(std::to_string(i), from.type(inputs[i]->value));
  }
  return out;
}

std::vector<Item*> pointers(std::vector<Item>& items, const std::vector<Item*>& like) {
  std::vector<Item*> out;
  for (size_t i = 0; i < items.size(); ++i) out.push_back(like[i] ? &items[i] : nullptr);
  return out;
}

}  // namespace

Result<std::string> Importer::refusal(const NodeMessage& node, const OpRow& row, const std::vector<Item*>& inputs) {
  if (auto fits = check_attributes(node, row); !fits) return fits.error().message;
  if (auto fits = check_counts(node, row, inputs.size()); !fits) return fits.error().message;
  if (auto fits = check_narrow(row, inputs); !fits) return fits.error().message;
  GraphBuilder trial("");
  std::vector<Item> items = copies(trial, *b_, inputs);
  Call call(trial, node, row, static_cast<int>(opset_of(node)), source_, pointers(items, inputs));
  try {
    if (!import_dims(call)) row.import(call);
  } catch (const std::overflow_error&) {
    return std::string("sizes beyond 64 bits");
  }
  if (call.needed()) {
    const Error error = explain_need(node.inputs[*call.needed()], *trial.error());
    if (again_) return error;
  }
  if (trial.error()) return trial.error()->message;
  for (size_t k = 0; k < call.outputs.size(); ++k)
    if (call.wants(k) && !shaped(call.outputs[k])) return "output " + std::to_string(k) + " is not supported";
  return std::string();
}

Result<std::optional<bool>> Importer::decide(const NodeMessage& node, const std::vector<Item*>& inputs) {
  if (inputs.size() != 1 || !inputs[0]) return std::optional<bool>();
  if (const Tensor* known = inputs[0]->known.get())
    return known->dtype == DType::boolean && known->data.size() == 1 ? std::optional(known->data[0] != std::byte{0})
                                                                     : std::optional<bool>();
  std::set<std::string_view> given;
  for (std::string_view leaf : leaves_of(node.inputs[0]).value_or(std::set<std::string_view>{""})) {
    const auto value = options_.values.find(leaf);
    if (value != options_.values.end() && value->second->elements() <= kChoice) given.insert(leaf);
    else if (!initializers_.contains(leaf) || inputs_.contains(leaf)) return std::optional<bool>();
  }
  fix(given);
  if (again_) return input_error("a choice by " + quote(*given.begin()));  // the walk begins again
  return std::optional<bool>();
}

Result<std::optional<Boundary>> Importer::outside(size_t index, const OpRow* row, const std::vector<Item*>& inputs) {
  const NodeMessage& node = model_.nodes[index];
  Boundary out{.node = index};
  if (!row) {
    out.why = is_boundary(node.op, node.domain) ? Boundary::outside : Boundary::unknown;
    if (is_default_domain(node.domain) && node.op == "If") {
      Result<std::optional<bool>> condition = decide(node, inputs);
      if (!condition) return condition.error();
      if (*condition) decided_.emplace_back(index, **condition);
    }
    return std::optional(std::move(out));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || shaped(*inputs[i])) continue;
    out.why = Boundary::unshaped;
    out.reason = "an operand's shape is not known";
    return std::optional(std::move(out));
  }
  Result<std::string> reason = refusal(node, *row, inputs);
  if (!reason) return reason.error();
  if (reason->empty()) return std::optional<Boundary>();
  out.why = Boundary::form;
  out.reason = std::move(*reason);
  return std::optional(std::move(out));
}

/// Types by the operator's rule, else what the file states of the result where that leaves nothing open.
Result<std::vector<std::optional<Type>>> Importer::result_types(const NodeMessage& node,
                                                                const std::vector<Item*>& inputs) {
  std::vector<std::optional<Type>> out(node.outputs.size());
  bool all = true;
  for (const Item* item : inputs) all &= !item || shaped(*item);
  if (all && is_boundary(node.op, node.domain)) {
    GraphBuilder scratch("");
    std::vector<Item> items = copies(scratch, *b_, inputs);
    static const OpRow kNoRow{};
    Call call(scratch, node, kNoRow, static_cast<int>(opset_of(node)), source_, pointers(items, inputs));
    call.quotients = &quotients_;
    out = boundary_types(call);
    if (call.needed()) {
      const Error error = explain_need(node.inputs[*call.needed()], *scratch.error());
      if (again_) return error;
    }
  }
  for (size_t k = 0; k < out.size(); ++k) {
    const auto stated = stated_.find(node.outputs[k]);
    if (stated == stated_.end() || (out[k] && !has_quotient(*out[k], quotients_))) continue;
    bool open = false;
    for (const DimMessage& d : stated->second->dims)
      open |= !d.value && (d.name.empty() || !options_.sizes.contains(d.name));
    if (open) continue;
    if (Result<Type> type = type_of(*stated->second)) out[k] = std::move(*type);
  }
  return out;
}

Boundary::Operand Importer::operand(std::string_view name, Item* item) {
  Boundary::Operand out{.name = std::string(name)};
  if (!item || !shaped(*item)) return out;
  if (item->known) {
    out.known = item->known;
    return out;
  }
  const Value value = value_of(*b_, *item);
  const auto [at, fresh] = end_of_.emplace(value.id, static_cast<uint32_t>(ends_.size()));
  if (fresh) ends_.push_back(value);
  out.output = at->second;
  return out;
}

Status Importer::add_boundary(Boundary boundary, const NodeMessage& node, const std::vector<Item*>& inputs) {
  const Result<std::vector<std::optional<Type>>> types = result_types(node, inputs);
  if (!types) return types.error();
  for (size_t i = 0; i < inputs.size(); ++i) boundary.operands.push_back(operand(node.inputs[i], inputs[i]));
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const std::string_view name = node.outputs[k];
    Boundary::Outcome& result = boundary.results.emplace_back();
    result.name = std::string(name);
    if (name.empty()) continue;
    Item& item = items_[name];
    const std::optional<Type>& type = (*types)[k];
    if (!type || !check_type(*type)) continue;
    item.value = b_->input(std::string(name), *type);
    result.input = static_cast<uint32_t>(defaults_.size());
    defaults_.push_back(nullptr);
  }
  boundaries_.push_back(std::move(boundary));
  return Done{};
}

}  // namespace fusec::onnx
