// If with a known condition: the branch instead of the node.
//
//   y = If(c) {then: t = Add(x, w); t} {else: …}     c is true     t = Add(x, w); y = Identity(t)
//
// Exporters write such Ifs about shapes ("is this axis 1?"), which are decided once dims are numbers. A branch reads the names
// around it; what it defines gets a new name where the model has that one already. A branch within the branch still speaks of the
// old one: its node remembers the change (NodeMessage::scope).

#include <unordered_set>

#include "lib/import/onnx_model.h"

namespace fusec::onnx {
namespace {

using Scope = std::map<std::string_view, std::string_view>;

std::unordered_set<std::string_view> defined(const ModelMessage& model) {
  std::unordered_set<std::string_view> out;
  for (const TensorMessage& t : model.initializers) out.insert(t.name);
  for (const ValueInfo& v : model.inputs) out.insert(v.name);
  for (const NodeMessage& n : model.nodes) out.insert(n.outputs.begin(), n.outputs.end());
  return out;
}

/// New names for those that a branch defines and the model has already.
void rename_taken(const ModelMessage& model, const ModelMessage& branch, std::deque<std::string>& names, Scope& scope) {
  std::unordered_set<std::string_view> taken = defined(model);
  const auto add = [&](std::string_view name) {
    scope.erase(name);  // the branch's own, not the one around it
    std::string_view now = name;
    for (int k = 2; !now.empty() && !taken.insert(now).second; ++k)
      now = names.emplace_back(std::string(name) + "." + std::to_string(k));
    if (now != name) scope[name] = now;
  };
  for (const TensorMessage& t : branch.initializers) add(t.name);
  for (const NodeMessage& n : branch.nodes)
    for (std::string_view name : n.outputs) add(name);
}

std::string_view found(const Scope& scope, std::string_view name) {
  const auto at = scope.find(name);
  return at == scope.end() ? name : at->second;
}

}  // namespace

bool put_branch(ModelMessage& model, size_t node, bool then_branch, std::deque<std::string>& names) {
  const NodeMessage old = model.nodes[node];
  const Attribute* chosen = nullptr;
  for (const Attribute& a : old.attributes)
    if (a.name == (then_branch ? "then_branch" : "else_branch") && a.kind == Attribute::graph) chosen = &a;
  if (!chosen) return false;
  Result<ModelMessage> branch = read_graph(chosen->g);
  if (!branch || branch->has_sparse_initializers || branch->outputs.size() < old.outputs.size()) return false;
  auto scope = std::make_shared<Scope>(old.scope ? *old.scope : Scope());
  rename_taken(model, *branch, names, *scope);
  for (TensorMessage& t : branch->initializers) t.name = found(*scope, t.name);
  const std::string_view within = names.emplace_back("a branch of node " + std::to_string(old.index) + (old.within.empty() ? "" : " of " + std::string(old.within)));
  for (NodeMessage& n : branch->nodes) {
    n.within = within;
    n.operator_set = old.operator_set;
    for (auto* side : {&n.inputs, &n.outputs})
      for (std::string_view& name : *side) name = found(*scope, name);
    n.scope = scope;
  }
  for (size_t k = 0; k < old.outputs.size(); ++k)
    if (!old.outputs[k].empty())
      branch->nodes.push_back(
          {.op = "Identity", .inputs = {found(*scope, branch->outputs[k].name)}, .outputs = {old.outputs[k]}});
  model.initializers.insert(model.initializers.end(), branch->initializers.begin(), branch->initializers.end());
  model.nodes.erase(model.nodes.begin() + static_cast<std::ptrdiff_t>(node));
  model.nodes.insert(model.nodes.begin() + static_cast<std::ptrdiff_t>(node), branch->nodes.begin(),
                     branch->nodes.end());
  return true;
}

}  // namespace fusec::onnx
