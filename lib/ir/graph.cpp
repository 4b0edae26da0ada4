// Nodes, their identity, and the builder that finds equal ones again.
//
//   %a = add %x, %y          one node: `add` of the same operands is found by its hash,
//   %b = add %x, %y          so %b is %a and nothing downstream can tell them apart

#include "fusec/graph.h"

#include <algorithm>
#include <bit>
#include <set>
#include <stdexcept>

#include "lib/ir/convert.h"
#include "lib/support/hash.h"
#include "lib/support/limits.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

uint64_t hash_type(const Type& type) {
  Hasher h;
  h.add(static_cast<uint64_t>(type.dtype)).add(type.shape.size());
  for (const Dim& d : type.shape) h.add(d.hash());
  return h.value();
}

uint64_t hash_tensor(const Tensor& t) {
  Hasher h;
  h.add(static_cast<uint64_t>(t.dtype)).add(t.extents.size());
  for (int64_t e : t.extents) h.add(static_cast<uint64_t>(e));
  h.add(hash_bytes(t.data.data(), t.data.size()));
  return h.value();
}

/// Most nodes have no attributes: they share one, which saves a hash and 300 bytes each.
const std::shared_ptr<const Attrs>& no_attrs() {
  static const auto kNone = std::make_shared<const Attrs>();
  return kNone;
}

std::shared_ptr<const Attrs> share(Attrs attrs) {
  return attrs == *no_attrs() ? no_attrs() : std::make_shared<const Attrs>(std::move(attrs));
}

uint64_t hash_attrs(const std::shared_ptr<const Attrs>& attrs) {
  static const uint64_t kNone = Attrs{}.hash();
  return attrs == no_attrs() ? kNone : attrs->hash();
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

}  // namespace

int64_t Tensor::elements() const {
  uint64_t count = 1;
  for (int64_t e : extents)
    if (e == 0) return 0;
  for (int64_t e : extents) count *= static_cast<uint64_t>(e);
  return static_cast<int64_t>(count);
}

bool Attrs::operator==(const Attrs& o) const {
  return axes == o.axes && perm == o.perm && shape == o.shape && start == o.start && stop == o.stop && step == o.step &&
         low == o.low && high == o.high && axis == o.axis && groups == o.groups && ddof == o.ddof && parts == o.parts &&
         index == o.index && same_bits(alpha, o.alpha) && same_bits(beta, o.beta) && same_bits(eps, o.eps) && to == o.to &&
         keep == o.keep && last == o.last && exclusive == o.exclusive && reverse == o.reverse && relax == o.relax &&
         (value == o.value || (value && o.value && *value == *o.value));
}

uint64_t Attrs::hash() const {
  Hasher h;
  const auto numbers = [&](const std::vector<int64_t>& list) {
    h.add(list.size());
    for (int64_t n : list) h.add(static_cast<uint64_t>(n));
  };
  const auto dims = [&](const std::vector<Dim>& list) {
    h.add(list.size());
    for (const Dim& d : list) h.add(d.hash());
  };
  numbers(axes);
  numbers(perm);
  numbers(step);
  dims(shape);
  dims(start);
  dims(stop);
  dims(low);
  dims(high);
  for (int64_t n : {axis, groups, ddof, parts, index}) h.add(static_cast<uint64_t>(n));
  for (double x : {alpha, beta, eps}) h.add(std::bit_cast<uint64_t>(x));
  h.add(static_cast<uint64_t>(to ? int(*to) : kDTypes)).add(keep).add(last).add(exclusive).add(reverse).add(relax).add(value ? hash_tensor(*value) : 0);
  return h.value();
}

std::vector<uint32_t> Graph::use_counts() const {
  std::vector<uint32_t> counts(nodes_.size());
  for (const Node& n : nodes_)
    for (NodeId a : n.args) ++counts[a];
  for (const Port& p : outputs_) ++counts[p.node];
  return counts;
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> users(nodes_.size());
  for (NodeId id = 0; id < nodes_.size(); ++id)
    for (NodeId a : nodes_[id].args)
      if (users[a].empty() || users[a].back() != id) users[a].push_back(id);
  return users;
}

bool Graph::is_scalar_constant(NodeId id) const {
  return nodes_[id].op == Op::constant && nodes_[id].type.shape.empty();
}

std::vector<std::string> Graph::symbols() const {
  std::set<std::string> names;
  for (const Node& n : nodes_)
    for (const Dim& d : n.type.shape)
      if (!d.is_constant())
        for (std::string& s : d.symbols()) names.insert(std::move(s));
  return {names.begin(), names.end()};
}

uint64_t Graph::hash() const {
  // By structure, not by node number: where a builder put a constant makes no difference.
  std::vector<uint64_t> hashes(nodes_.size());
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const Node& n = nodes_[id];
    Hasher h;
    h.add(fusec::name(n.op)).add(hash_type(n.type)).add(hash_attrs(n.attrs)).add(n.args.size());
    for (NodeId a : n.args) h.add(hashes[a]);
    hashes[id] = h.value();
  }
  Hasher h;
  for (const auto* ports : {&inputs_, &outputs_}) {
    h.add(ports->size());
    for (const Port& p : *ports) h.add(p.name).add(hashes[p.node]);
  }
  return h.value();
}

GraphBuilder::GraphBuilder(std::string name) {
  if (name.size() > size_t{kMaxName}) fail(input_error(too_long(name)));
  graph_.name_ = std::move(name);
}

void GraphBuilder::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Value GraphBuilder::intern(Node node) {
  Hasher h;
  h.add(static_cast<uint64_t>(node.op)).add(hash_type(node.type)).add(hash_attrs(node.attrs));
  for (NodeId a : node.args) h.add(a);
  const auto [begin, end] = by_hash_.equal_range(h.value());
  for (auto it = begin; it != end; ++it) {
    const Node& other = graph_.nodes_[it->second];
    if (other.op == node.op && other.args == node.args && other.type == node.type &&
        (other.attrs == node.attrs || *other.attrs == *node.attrs))
      return {it->second};
  }
  const auto id = static_cast<NodeId>(graph_.nodes_.size());
  graph_.nodes_.push_back(std::move(node));
  graph_.labels_.emplace_back();
  by_hash_.emplace(h.value(), id);
  return {id};
}

Value GraphBuilder::input(std::string name, Type type) {
  if (name.size() > size_t{kMaxName}) fail(input_error(too_long(name)));
  if (error_) return {};
  if (!input_names_.insert(name).second) {
    fail(input_error("input " + quoted(name) + " is declared twice"));
    return {};
  }
  if (auto fits = check_type(type); !fits) {
    fail(fits.error().note("in input " + quoted(name)));
    return {};
  }
  // The position is part of the identity: two inputs of one type are two nodes.
  Attrs attrs;
  attrs.index = static_cast<int64_t>(graph_.inputs_.size());
  const Value value = intern({Op::input, std::move(type), {}, share(std::move(attrs))});
  graph_.labels_[value.id] = name;
  graph_.inputs_.push_back({std::move(name), value.id});
  return value;
}

Value GraphBuilder::constant(Tensor value) {
  Attrs attrs;
  attrs.value = std::make_shared<const Tensor>(std::move(value));
  return add(Op::constant, {}, std::move(attrs));
}

Value GraphBuilder::scalar(DType dtype, double number) {
  auto tensor = scalar_tensor(dtype, number);
  if (tensor) return constant(std::move(*tensor));
  fail(input_error(number_text(number) + " is no value of " + std::string(fusec::name(dtype))));
  return {};
}

Value GraphBuilder::add(Op op, std::vector<Value> args, Attrs attrs) {
  if (error_) return {};
  std::vector<Type> types;
  std::vector<NodeId> ids;
  for (Value v : args) {
    if (v.id >= graph_.nodes_.size()) {
      fail(input_error(std::string(fusec::name(op)) + ": an operand is no value of this graph"));
      return {};
    }
    types.push_back(type(v));
    ids.push_back(v.id);
  }
  if (op == Op::input) {
    fail(input_error("input: use GraphBuilder::input"));
    return {};
  }
  auto result = infer(op, types, attrs);
  if (!result) {
    fail(result.error());
    return {};
  }
  return intern({op, std::move(*result), std::move(ids), share(std::move(attrs))});
}

Value GraphBuilder::cast(Value x, DType to) {
  if (!error_ && x.valid() && type(x).dtype == to) return x;
  Attrs attrs;
  attrs.to = to;
  return add(Op::cast, {x}, std::move(attrs));
}

void GraphBuilder::label(Value value, std::string name) {
  if (name.size() > size_t{kMaxName}) fail(input_error(too_long(name)));
  if (value.id < graph_.labels_.size() && graph_.labels_[value.id].empty()) graph_.labels_[value.id] = std::move(name);
}

Result<Graph> GraphBuilder::finish(std::vector<Value> outputs, std::vector<std::string> names) && {
  if (error_) return *error_;
  const size_t size = graph_.nodes_.size();
  if (names.size() > outputs.size()) return input_error("more output names than outputs");
  names.resize(outputs.size());
  std::set<std::string> taken;
  std::vector<bool> live(size);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].id >= size) return input_error("output " + std::to_string(i) + " is no value of this graph");
    if (names[i].empty()) names[i] = std::to_string(i);
    if (names[i].size() > size_t{kMaxName}) return input_error(too_long(names[i]));
    if (!taken.insert(names[i]).second) return input_error("output " + quoted(names[i]) + " is named twice");
    live[outputs[i].id] = true;
  }
  for (size_t id = size; id-- > 0;)
    if (live[id])
      for (NodeId a : graph_.nodes_[id].args) live[a] = true;

  // Inputs first, then the nodes as they were added; a scalar constant stands before its first reader, as in the text form,
  // which writes it there. So a graph and its text number alike.
  Graph result;
  result.name_ = std::move(graph_.name_);
  constexpr NodeId kNone = ~NodeId{0};
  std::vector<NodeId> moved(size, kNone);
  const auto move = [&](NodeId id) {
    if (moved[id] != kNone) return;
    moved[id] = static_cast<NodeId>(result.nodes_.size());
    Node node = std::move(graph_.nodes_[id]);
    for (NodeId& a : node.args) a = moved[a];
    result.nodes_.push_back(std::move(node));
    result.labels_.push_back(std::move(graph_.labels_[id]));
  };
  const auto scalar = [&](NodeId id) { return graph_.nodes_[id].op == Op::constant && graph_.nodes_[id].type.shape.empty(); };
  for (const Port& p : graph_.inputs_) {
    move(p.node);
    result.inputs_.push_back({p.name, moved[p.node]});
  }
  for (NodeId id = 0; id < size; ++id) {
    if (!live[id] || moved[id] != kNone || scalar(id)) continue;
    for (NodeId a : graph_.nodes_[id].args)
      if (moved[a] == kNone) move(a);  // only a scalar constant can still be missing
    move(id);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    move(outputs[i].id);
    result.outputs_.push_back({std::move(names[i]), moved[outputs[i].id]});
  }
  return result;
}

}  // namespace fusec
