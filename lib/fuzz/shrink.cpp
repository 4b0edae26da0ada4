#include "lib/fuzz/shrink.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "lib/ir/convert.h"

namespace fusec::fuzz {
namespace {

/// One smaller graph: what to leave out and what to put instead.
struct Move {
  size_t drop_output = ~size_t{0};
  size_t output = ~size_t{0};       // becomes what its node reads as operand number `by`
  NodeId node = ~NodeId{0};         // replaced by its operand number `by`, or, for -1, by a new input
  int by = -1;
  int64_t from = -1, to = -1;       // dims of this extent get that one
  NodeId constant = ~NodeId{0};     // all its elements become `fill`
  double fill = 1;
  std::string symbol = {};          // gets the size `to`; "*": every symbol becomes the number that it stands for
  bool saves_nodes = true;          // else it must only lead to another graph
};

struct Rewriter {
  const Failing& failing;
  const Move& move;

  Dim dim(const Dim& d) const {
    if (move.symbol == "*" && !d.is_constant())
      if (const auto value = d.value(failing.sizes)) return *value;
    return move.symbol.empty() && move.from >= 0 && d.is(move.from) ? Dim(move.to) : d;
  }
  Shape shape(Shape shape) const {
    for (Dim& d : shape) d = dim(d);
    return shape;
  }

  /// Its extents as those of every dim; elements that it lacks begin again at the first.
  Tensor constant(const Tensor& from, bool filled) const {
    Tensor out{from.dtype, {}, {}};
    for (int64_t e : from.extents) out.extents.push_back(shape({Dim(e)})[0].constant());
    const size_t size = bytes(from.dtype);
    out.data.resize(size_t(out.elements()) * size);
    for (size_t k = 0; k * size < out.data.size() && !from.data.empty(); ++k)
      if (filled) convert(DType::f64, reinterpret_cast<const std::byte*>(&move.fill), from.dtype, out.data.data() + k * size, 1);
      else std::memcpy(out.data.data() + k * size, from.data.data() + k % (from.data.size() / size) * size, size);
    return out;
  }

  /// nullopt: the move leads to no graph.
  std::optional<Graph> apply() const {
    const Graph& graph = failing.graph;
    GraphBuilder b(graph.name());
    std::vector<Value> values(graph.size());
    const std::vector<uint32_t> uses = graph.use_counts();
    for (const Port& port : graph.inputs())
      if (uses[port.node]) values[port.node] = b.input(port.name, {graph.node(port.node).type.dtype, shape(graph.node(port.node).type.shape)});
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op == Op::input) continue;
      std::vector<Value> args;
      for (NodeId arg : node.args) args.push_back(values[arg]);
      if (id == move.node && move.by >= 0) {
        values[id] = args[size_t(move.by)];
      } else if (id == move.node) {
        values[id] = b.input("r" + std::to_string(id), {node.type.dtype, shape(node.type.shape)});
      } else if (node.op == Op::constant) {
        values[id] = b.constant(constant(*node.attrs->value, id == move.constant));
      } else {
        Attrs attrs = *node.attrs;
        attrs.shape = shape(attrs.shape);
        for (std::vector<Dim>* dims : {&attrs.start, &attrs.stop, &attrs.low, &attrs.high}) *dims = shape(*dims);
        values[id] = b.add(node.op, std::move(args), std::move(attrs));
      }
      if (b.error()) return {};
      if (!graph.label(id).empty() && id != move.node) b.label(values[id], graph.label(id));
    }
    std::vector<Value> outputs;
    std::vector<std::string> names;
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      if (i != move.drop_output) {
        const NodeId id = graph.outputs()[i].node;
        outputs.push_back(values[i == move.output ? graph.node(id).args[size_t(move.by)] : id]);
        names.push_back(graph.outputs()[i].name);
      }
    Result<Graph> done = std::move(b).finish(std::move(outputs), std::move(names));
    if (!done || !verify(*done)) return {};
    const std::vector<uint32_t> left = done->use_counts();
    const bool unread = std::any_of(done->inputs().begin(), done->inputs().end(), [&](const Port& port) { return left[port.node] == 0; });
    if (unread) return Rewriter{{std::move(*done), {}}, Move{}}.apply();  // what made them is gone
    return std::move(*done);
  }
};

/// Smaller extents, the smallest first.
std::vector<int64_t> smaller(int64_t extent) {
  std::vector<int64_t> out;
  for (int64_t to : {int64_t{1}, int64_t{2}, extent / 2, extent - 1})
    if (to < extent && to >= 1 && (out.empty() || out.back() < to)) out.push_back(to);
  return out;
}

/// Largest savings first: outputs, then nodes from the end, then constants and dims.
std::vector<Move> moves(const Failing& failing) {
  const Graph& graph = failing.graph;
  std::vector<Move> out(1);  // the first only leaves out inputs that nobody reads
  for (size_t i = 0; graph.outputs().size() > 1 && i < graph.outputs().size(); ++i) out.push_back({.drop_output = i});
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    for (size_t k = 0; k < graph.node(graph.outputs()[i].node).args.size(); ++k) out.push_back({.output = i, .by = int(k)});
  std::set<int64_t> extents;
  for (NodeId id = NodeId(graph.size()); id-- > 0;) {
    const Node& node = graph.node(id);
    for (const Dim& dim : node.type.shape)
      if (dim.is_constant() && dim.constant() > 1) extents.insert(dim.constant());
    if (is_leaf(node.op)) continue;
    for (size_t k = 0; k < node.args.size(); ++k)
      if (graph.node(node.args[k]).type == node.type) out.push_back({.node = id, .by = int(k)});
    out.push_back({.node = id});
  }
  if (!graph.symbols().empty() && !failing.sizes.empty()) out.push_back({.symbol = "*", .saves_nodes = false});
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.node(id).op == Op::constant)
      for (double fill : {1.0, 0.0}) out.push_back({.constant = id, .fill = fill, .saves_nodes = false});
  for (const auto& [symbol, size] : failing.sizes)
    for (int64_t to : smaller(size)) out.push_back({.to = to, .symbol = symbol, .saves_nodes = false});
  for (int64_t extent : extents)
    for (int64_t to : smaller(extent)) out.push_back({.from = extent, .to = to, .saves_nodes = false});
  return out;
}

}  // namespace

Failing shrink(Failing best, const std::function<bool(const Failing&)>& fails, int most_tries, const std::function<void(const Failing&)>& progress) {
  std::set<uint64_t> seen{best.graph.hash()};  // that were tried with the best sizes: no move is tried twice, none goes back
  int tries = 0;
  for (bool again = true; again;) {
    again = false;
    for (const Move& move : moves(best)) {
      if (tries >= most_tries) return best;
      Failing next = best;
      const bool resizes = move.symbol.size() && move.symbol != "*";
      if (resizes) {
        next.sizes[move.symbol] = move.to;
      } else {
        std::optional<Graph> graph = Rewriter{best, move}.apply();
        if (!graph || !seen.insert(graph->hash()).second) continue;
        if (move.saves_nodes && graph->size() >= best.graph.size() && graph->outputs().size() >= best.graph.outputs().size()) continue;
        next.graph = std::move(*graph);
        const std::vector<std::string> left = next.graph.symbols();
        std::erase_if(next.sizes, [&](const auto& size) { return std::find(left.begin(), left.end(), size.first) == left.end(); });
      }
      ++tries;
      if (!fails(next)) continue;
      best = std::move(next);
      if (resizes) seen = {best.graph.hash()};
      if (progress) progress(best);
      again = true;
      break;
    }
  }
  return best;
}

}  // namespace fusec::fuzz
