// What every graph promises between passes. A builder keeps these promises; this finds the pass that went around it.

#include "fusec/graph.h"
#include "lib/support/caught.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

std::string place(const Graph& g, NodeId id) {
  const std::string label = g.label(id).empty() ? std::to_string(id) : quoted(g.label(id));
  return "node " + label + " (" + std::string(name(g.node(id).op)) + ")";
}

Status verify_node(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (!n.attrs) return internal_error("has no attributes");
  for (NodeId a : n.args)
    if (a >= id) return internal_error("reads node " + std::to_string(a) + ", which is not before it");
  if (auto fits = check_type(n.type); !fits) return fits;
  if (n.op == Op::input) {
    const auto port = static_cast<uint64_t>(n.attrs->index);
    if (port >= g.inputs().size() || g.inputs()[port].node != id) return internal_error("is no input of the graph's header");
    return Done{};
  }
  std::vector<Type> args;
  for (NodeId a : n.args) args.push_back(g.node(a).type);
  Attrs attrs = *n.attrs;
  auto type = infer(n.op, args, attrs);
  if (!type) return type.error();
  if (!(*type == n.type)) return internal_error("has type " + text(n.type) + ", its rule gives " + text(*type));
  if (!(attrs == *n.attrs)) return internal_error("has attributes that are not in normal form");
  return Done{};
}

}  // namespace

namespace {

Status verify_all(const Graph& g) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (auto fits = verify_node(g, id); !fits) return fits.error().note("at " + place(g, id) + " of graph " + quoted(g.name()));
  for (const auto& ports : {g.inputs(), g.outputs()}) {
    std::unordered_set<std::string_view> names;
    for (const Port& p : ports) {
      if (p.node >= g.size()) return internal_error("port " + quoted(p.name) + " refers to no node");
      if (!names.insert(p.name).second) return internal_error("port " + quoted(p.name) + " is there twice");
    }
  }
  for (const Port& p : g.inputs())
    if (g.node(p.node).op != Op::input) return internal_error("input " + quoted(p.name) + " refers to a computed node");
  return Done{};
}

}  // namespace

Status verify(const Graph& g) {
  return caught("verifying stopped", [&] { return verify_all(g); });
}

}  // namespace fusec
