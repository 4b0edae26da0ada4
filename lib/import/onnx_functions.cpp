// Calls of functions to their bodies.
//
//   y = local.Twice(x)  "t"        t.h = Add(x, x)
//   Twice(a) → b:                  y   = Identity(t.h)
//     h = Add(a, a)          →
//     b = Identity(h)
//
// A name of the body is the caller's where it is a formal input or output, and else new. An attribute that refers to the
// call's takes its value, or the function's default, or is left out.

#include "lib/import/onnx_functions.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace fusec::onnx {
namespace {

constexpr int kDeepest = 32;

using Key = std::tuple<std::string_view, std::string_view, std::string_view>;

std::string_view domain_key(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

struct Inliner {
  ModelMessage& model;
  size_t most;
  std::map<Key, const FunctionMessage*> functions{};
  std::unordered_set<std::string_view> taken{};
  std::unordered_map<std::string, size_t> last{};  // number of a name that is there already
  std::vector<NodeMessage> out{};

  std::string_view keep(std::string text) { return model.names->emplace_back(std::move(text)); }

  std::string_view fresh(const std::string& prefix, std::string_view name) {
    const std::string base = prefix + "." + std::string(name);
    std::string wanted = base;
    for (size_t& k = last[base]; taken.contains(wanted);) wanted = base + "." + std::to_string(++k);
    return *taken.insert(keep(std::move(wanted))).first;
  }

  const FunctionMessage* callee(const NodeMessage& node) const {
    const auto found = functions.find({domain_key(node.domain), node.op, node.overload});
    return found == functions.end() ? nullptr : found->second;
  }

  Status add(NodeMessage node, int depth) {
    if (const FunctionMessage* function = callee(node)) return expand(node, *function, depth + 1);
    if (out.size() >= most) return input_error("more than " + std::to_string(most) + " nodes, with functions expanded");
    out.push_back(std::move(node));
    return Done{};
  }

  Status expand(const NodeMessage& call, const FunctionMessage& function, int depth) {
    const std::string name = quote(function.name) + (function.domain.empty() ? "" : " of domain " + quote(function.domain));
    const std::string place = "node " + std::to_string(call.index) + (call.name.empty() ? "" : " " + quote(call.name));
    if (depth > kDeepest) return input_error(place + ": functions deeper than " + std::to_string(kDeepest) + " in one another, or in a circle: " + name);
    if (call.inputs.size() > function.inputs.size() || call.outputs.size() > function.outputs.size())
      return input_error(place + ": function " + name + " has " + std::to_string(function.inputs.size()) + " inputs and " +
                         std::to_string(function.outputs.size()) + " outputs, the call more");
    const std::string prefix = call.name.empty() ? std::string(call.op) + "_" + std::to_string(call.index) : std::string(call.name);
    const std::string_view within = keep("function " + name + " of " + place + (call.within.empty() ? "" : " of " + std::string(call.within)));
    std::unordered_map<std::string_view, std::string_view> names{{"", ""}};
    for (size_t k = 0; k < function.inputs.size(); ++k)
      names.emplace(function.inputs[k], k < call.inputs.size() ? call.inputs[k] : std::string_view());
    std::vector<std::pair<std::string_view, std::string_view>> passed;  // outputs that are inputs
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (call.outputs[k].empty()) continue;
      const auto [at, is_new] = names.emplace(function.outputs[k], call.outputs[k]);
      if (!is_new) passed.emplace_back(at->second, call.outputs[k]);
    }
    const auto mapped = [&](std::string_view& value) {
      const auto [at, is_new] = names.emplace(value, std::string_view());
      if (is_new) at->second = fresh(prefix, value);
      value = at->second;
    };
    int64_t operator_set = 0;
    for (const OperatorSet& set : function.operator_sets)
      if (domain_key(set.domain).empty()) operator_set = set.version;
    for (NodeMessage node : function.nodes) {
      for (std::string_view& value : node.inputs) mapped(value);
      for (std::string_view& value : node.outputs) mapped(value);
      node.attributes = resolved(node.attributes, call, function);
      node.within = within;
      node.operator_set = operator_set;
      if (auto done = add(std::move(node), depth); !done) return done;
    }
    for (const auto& [from, to] : passed)
      if (auto done = add({.op = "Identity", .inputs = {from}, .outputs = {to}, .within = within}, depth); !done) return done;
    return Done{};
  }

  static std::vector<Attribute> resolved(const std::vector<Attribute>& attributes, const NodeMessage& call, const FunctionMessage& function) {
    std::vector<Attribute> all;
    const auto take = [&](const std::vector<Attribute>& from, const Attribute& a) {
      for (const Attribute& value : from)
        if (value.name == a.ref) {
          all.push_back(value);
          all.back().name = a.name;
          return true;
        }
      return false;
    };
    for (const Attribute& a : attributes)
      if (a.ref.empty()) all.push_back(a);
      else if (!take(call.attributes, a)) take(function.defaults, a);
    return all;
  }
};

}  // namespace

Status inline_functions(ModelMessage& model, size_t most) {
  if (model.functions.empty()) return Done{};
  model.names = std::make_shared<std::deque<std::string>>();
  Inliner inliner{model, most};
  for (const FunctionMessage& f : model.functions)
    if (!inliner.functions.emplace(Key{domain_key(f.domain), f.name, f.overload}, &f).second)
      return input_error("function " + quote(f.name) + " of domain " + quote(f.domain) + " is there twice");
  for (const TensorMessage& t : model.initializers) inliner.taken.insert(t.name);
  for (const ValueInfo& v : model.inputs) inliner.taken.insert(v.name);
  for (const NodeMessage& node : model.nodes) inliner.taken.insert(node.outputs.begin(), node.outputs.end());
  for (const NodeMessage& node : model.nodes)
    if (auto done = inliner.add(node, 0); !done) return done;
  model.nodes = std::move(inliner.out);
  return Done{};
}

}  // namespace fusec::onnx
