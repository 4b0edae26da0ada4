// Graph to text, exactly: every type, every bit of every constant, names that read back as the same graph.
//
//   graph @scale(%x: f32[N,4]) -> f32[N,4] {
//     %0: f32[N,4] = mul %x, 0.5
//     return %0
//   }
//
// A value without a label is numbered; a scalar constant is written where it is used when another operand tells its type.

#include <bit>
#include <unordered_set>

#include "fusec/graph.h"
#include "lib/ir/literal.h"
#include "lib/ir/text_form.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

std::string name_text(const std::string& name) { return is_plain_name(name) ? name : quoted(name); }

template <class T, class F>
std::string list_text(const std::vector<T>& items, F one) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i > 0 ? "," : "") + one(items[i]);
  return out + "]";
}

std::string list_text(const std::vector<int64_t>& items) {
  return list_text(items, [](int64_t n) { return std::to_string(n); });
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

std::string double_text(double value) { return element_text(DType::f64, reinterpret_cast<const std::byte*>(&value)); }

/// Text of one attribute, or "" where the parser's default is the same. `x` is the first operand's type, if any.
std::string attribute_text(Op op, std::string_view field, const Attrs& a, const Type* x) {
  const size_t rank = x ? x->shape.size() : 0;
  const Attrs d;
  const auto all = [](const auto& list, auto value) {
    for (const auto& item : list)
      if (!(item == value)) return false;
    return true;
  };
  if (field == "axes") return rank == 0 ? "" : list_text(a.axes);
  if (field == "perm") return rank == 0 ? "" : list_text(a.perm);
  if (field == "shape") return text(a.shape);
  if (field == "start") return all(a.start, Dim(0)) ? "" : text(a.start);
  if (field == "stop") return x && a.stop == x->shape ? "" : text(a.stop);
  if (field == "step") return all(a.step, 1) ? "" : list_text(a.step);
  if (field == "low") return all(a.low, Dim(0)) ? "" : text(a.low);
  if (field == "high") return all(a.high, Dim(0)) ? "" : text(a.high);
  if (field == "axis") return a.axis == d.axis ? "" : std::to_string(a.axis);
  if (field == "groups") return a.groups == d.groups ? "" : std::to_string(a.groups);
  if (field == "ddof") return a.ddof == d.ddof ? "" : std::to_string(a.ddof);
  if (field == "parts") return a.parts == d.parts ? "" : std::to_string(a.parts);
  if (field == "index") return a.index == d.index ? "" : std::to_string(a.index);
  if (field == "alpha") return same_bits(a.alpha, d.alpha) ? "" : double_text(a.alpha);
  if (field == "beta") return same_bits(a.beta, d.beta) ? "" : double_text(a.beta);
  if (field == "eps") return same_bits(a.eps, d.eps) ? "" : double_text(a.eps);
  if (field == "to") return info(op).rule == Rule::index && a.to == DType::i64 ? "" : std::string(name(*a.to));
  if (field == "keep") return a.keep ? "true" : "";
  if (field == "exclusive") return a.exclusive ? "true" : "";
  if (field == "reverse") return a.reverse ? "true" : "";
  if (field == "last") return a.last ? "true" : "";
  if (field == "value" && op == Op::pad) {
    for (std::byte b : a.value->data)
      if (b != std::byte{0}) return element_text(a.value->dtype, a.value->data.data());
    return "";
  }
  if (field == "value") return text(*a.value);
  return "";
}

std::string relax_text(uint8_t relax) {
  std::string out;
  for (const RelaxName& r : kRelaxNames)
    if (relax & r.flag) out += (out.empty() ? "" : ",") + std::string(r.name);
  return "[" + out + "]";
}

std::string attributes_text(const Graph& g, const Node& n) {
  std::string out;
  const auto put = [&](std::string_view field, const std::string& value) {
    if (value.empty()) return;
    out += (out.empty() ? " {" : ", ") + std::string(field) + "=" + value;
  };
  std::string_view fields = info(n.op).attributes;
  while (!fields.empty()) {
    const size_t end = std::min(fields.find(' '), fields.size());
    const std::string_view field = fields.substr(0, end);
    put(field, attribute_text(n.op, field, *n.attrs, n.args.empty() ? nullptr : &g.node(n.args[0]).type));
    fields.remove_prefix(std::min(end + 1, fields.size()));
  }
  if (n.attrs->relax) put("relax", relax_text(n.attrs->relax));
  return out.empty() ? out : out + "}";
}

/// Which scalar constants are written in place: unlabelled ones, each of whose readers tells the type by another operand.
std::vector<bool> inlined(const Graph& g) {
  std::vector<bool> in(g.size());
  for (NodeId id = 0; id < g.size(); ++id) in[id] = g.is_scalar_constant(id) && g.label(id).empty();
  for (const Port& p : g.outputs()) in[p.node] = false;
  for (const Node& n : g.nodes()) {
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (!in[n.args[i]]) continue;
      bool told = false;
      for (size_t j = 0; j < n.args.size(); ++j) told |= types_literal(n.op, i, j) && !g.is_scalar_constant(n.args[j]);
      if (!told) in[n.args[i]] = false;
    }
  }
  return in;
}

/// One name a node, none twice: the label, with a suffix where another node has it; a number where there is none.
std::vector<std::string> names(const Graph& g, const std::vector<bool>& in) {
  std::unordered_set<std::string> taken;
  std::vector<std::string> result(g.size());
  for (const Port& p : g.inputs()) {
    taken.insert(p.name);
    result[p.node] = name_text(p.name);
  }
  for (NodeId id = 0; id < g.size(); ++id)
    if (!g.label(id).empty()) taken.insert(g.label(id));
  std::unordered_set<std::string> first;  // labels that their first node already has
  std::unordered_map<std::string, size_t> suffix;
  for (const Port& p : g.inputs()) first.insert(p.name);
  size_t number = 0;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g.node(id).op == Op::input || in[id]) continue;
    if (g.label(id).empty()) {
      result[id] = std::to_string(number++);
      continue;
    }
    std::string name = g.label(id);
    if (!first.insert(name).second) {
      size_t& n = suffix[g.label(id)];
      do name = g.label(id).substr(0, kMaxName - 32) + "." + std::to_string(++n);
      while (!taken.insert(name).second);
    }
    result[id] = name_text(name);
  }
  return result;
}

}  // namespace

std::string print(const Graph& g) {
  const std::vector<bool> in = inlined(g);
  const std::vector<std::string> name = names(g, in);
  std::string out = "graph @" + name_text(g.name()) + "(";
  for (size_t i = 0; i < g.inputs().size(); ++i) {
    const Port& p = g.inputs()[i];
    out += (i > 0 ? ", %" : "%") + name[p.node] + ": " + text(g.node(p.node).type);
  }
  out += ") -> ";
  const bool one = g.outputs().size() == 1;
  if (!one) out += "(";
  for (size_t i = 0; i < g.outputs().size(); ++i) out += (i > 0 ? ", " : "") + text(g.node(g.outputs()[i].node).type);
  out += one ? " {\n" : ") {\n";

  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g.node(id);
    if (n.op == Op::input || in[id]) continue;
    out += "  %" + name[id] + ": " + text(n.type) + " = ";
    out += fusec::name(n.op);
    for (size_t i = 0; i < n.args.size(); ++i) {
      const NodeId a = n.args[i];
      out += i > 0 ? ", " : " ";
      if (in[a])
        out += element_text(g.node(a).type.dtype, g.node(a).attrs->value->data.data());
      else
        out += "%" + name[a];
    }
    out += attributes_text(g, n) + "\n";
  }

  out += "  return";
  std::set<std::string> taken;
  for (size_t i = 0; i < g.outputs().size(); ++i) {
    const Port& p = g.outputs()[i];
    // A number is no label: the parser gives such an output its position. A quoted name is read back first.
    std::string label = name[p.node];
    if (label[0] >= '0' && label[0] <= '9') label.clear();
    std::string_view rest = label;
    if (auto bytes = take_quoted(rest)) label = *bytes;
    out += i > 0 ? ", " : " ";
    if (p.name != default_output_name(label, i, taken)) out += name_text(p.name) + "=";
    taken.insert(p.name);
    out += "%" + name[p.node];
  }
  return out + "\n}\n";
}

}  // namespace fusec
