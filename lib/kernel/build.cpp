// Group to Kernel.
//
//   y = x - max(x, axes=[1])   →   axes {i kept, j reduced}; load x[i,j]; sweep 0: max; sweep 1: store x[i,j] - max[i]
//
// An attempt walks the group backwards and asks at which coordinates each node is wanted (coordinates.cpp), then forwards and
// makes one value for each node and coordinate. A reshape that needs a finer axis, or a reduction that brings axes of its own,
// changes the domain, and the attempt starts over; each restart makes the domain strictly finer, so they end. Known limits:
// 16 axes; one set of reduced axes; a reduction's result is read one row for one row.

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "lib/ir/convert.h"
#include "lib/kernel/axes.h"
#include "lib/kernel/liberties.h"
#include "lib/kernel/builder.h"

namespace fusec {
namespace {

using index::Coord;
using index::Coords;

/// The output whose shape is the domain: the one with most elements among those that no other output needs.
NodeId root_of(const Graph& graph, const Group& group) {
  std::vector<char> needed(graph.size(), false);
  for (size_t n = group.nodes.size(); n-- > 0;) {
    const NodeId id = group.nodes[n];
    for (NodeId arg : graph.node(id).args) needed[arg] = true;
  }
  NodeId root = group.outputs.front();
  double most = -1;
  for (NodeId id : group.outputs) {
    const double size = index::guess(graph.node(id).type.shape) + (needed[id] ? 0 : 0.5);
    if (size > most) {
      most = size;
      root = id;
    }
  }
  return root;
}

/// A concat of equal pieces at the root is several stores into one buffer: the domain is one piece.
bool is_store_of_pieces(const Graph& graph, const Group& group, NodeId root) {
  const Node& node = graph.node(root);
  if (node.op != Op::concat || node.args.size() < 2 || group.outputs.size() != 1) return false;
  for (NodeId id : group.nodes)
    for (NodeId arg : graph.node(id).args)
      if (arg == root) return false;
  return std::all_of(node.args.begin(), node.args.end(),
                     [&](NodeId arg) { return graph.node(arg).type.shape == graph.node(node.args[0]).type.shape; });
}

/// Bits of what a fold begins with, as a register holds them.
uint64_t identity_bits(Op op, DType type) {
  const DType held = compute_type(type);
  const bool greatest = op == Op::reduce_min;
  if (op == Op::sum) return 0;
  if (is_float(held)) {
    const double value = op == Op::prod ? 1 : greatest ? INFINITY : -INFINITY;
    return held == DType::f64 ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(float(value));
  }
  if (op == Op::prod) return 1;
  const uint64_t all = ~uint64_t{0} >> (64 - 8 * bytes(held)), sign = all ^ all >> 1;
  return is_signed(held) ? (greatest ? all >> 1 : sign) : greatest ? all : 0;
}

/// Those bits once the type has rounded them: f8e4m3 has no infinity, only a NaN.
uint64_t rounded_bits(DType type, uint64_t bits) {
  if (!is_float(type) || compute_type(type) == type) return bits;
  float value = std::bit_cast<float>(uint32_t(bits));
  std::byte stored[2];
  narrow(type, &value, stored, 1);
  widen(type, stored, &value, 1);
  return std::bit_cast<uint32_t>(value);
}

struct Attempt : KernelBuilder {
  NodeId root;
  bool pieces;

  void make_domain() {
    for (bool reduced : {false, true}) {
      const auto& lists = reduced ? domain.reduced : domain.kept;
      for (size_t list = 0; list < lists.size(); list++)
        for (size_t position = 0; position < lists[list].size(); position++) {
          atoms.push_back(lists[list][position]);
          atom_reduced.push_back(reduced);
          atom_home.push_back({list + (reduced ? domain.kept.size() : 0), position});
        }
    }
    reduced_known = !domain.reduced.empty();
  }

  void run() {
    make_domain();
    demands.resize(graph.size());
    inside.assign(graph.size(), false);
    is_input = is_output = inside;
    for (NodeId id : group.nodes) inside[id] = true;
    for (NodeId id : group.inputs) is_input[id] = true;
    for (NodeId id : group.outputs) is_output[id] = true;
    make_operands();
    backward();
    if (failed()) return;
    forward();
    if (failed()) return;
    stores();
    if (failed()) return;
    finish();
  }

  void make_operands() {
    auto add = [&](NodeId node, uint32_t index, bool output, const std::vector<Layout>& layouts) {
      const Type& type = graph.node(node).type;
      Operand operand{node, index, output, type.dtype, type.shape, {}, true};
      const Layout layout = index < layouts.size() ? layouts[index] : Layout{};
      for (size_t k = 0; k < type.shape.size(); k++)
        if (k + 1 == type.shape.size() || !(layout.joined >> k & 1)) operand.block_end.push_back(uint8_t(k + 1));
      operand.unit = layout.unit;
      kernel.operands.push_back(std::move(operand));
    };
    for (uint32_t k = 0; k < group.inputs.size(); k++) add(group.inputs[k], k, false, options.inputs);
    for (uint32_t k = 0; k < group.outputs.size(); k++) add(group.outputs[k], k, true, options.outputs);
  }

  /// Where to compute an output that no consumer in the group asks for.
  void demand_output(NodeId id) {
    const Shape& shape = graph.node(id).type.shape;
    const Shape& domain_shape = pieces ? graph.node(graph.node(root).args[0]).type.shape : graph.node(root).type.shape;
    const Coords at = identity();
    if (shape == domain_shape) {
      demand(id, at, kNoVal);
      return;
    }
    // A row value beside full rows: the shape of some reduction's result whose operand is the domain.
    for (NodeId other : group.nodes) {
      const Node& node = graph.node(other);
      if (!is_reduce(node.op) || graph.node(node.args[0]).type.shape != domain_shape) continue;
      if (index::align(shape, node.type.shape).empty() && !shape.empty()) continue;
      const std::vector<bool> reduced = reduced_dims(node, domain_shape.size());
      Coords kept;
      Shape kept_shape;
      for (size_t k = 0; k < domain_shape.size(); k++)
        if (!reduced[k]) kept.push_back(at[k]), kept_shape.push_back(domain_shape[k]);
      if (!(elements(kept_shape) == elements(shape))) continue;
      if (auto through = through_reshape(kept, kept_shape, shape)) demand(id, *through, kNoVal);
      return;
    }
    if (elements(shape) == elements(domain_shape)) {
      if (auto through = through_reshape(at, domain_shape, shape)) demand(id, *through, kNoVal);
      return;
    }
    refuse("not-one-domain", "outputs " + text(graph.node(id).type) + " and " + text(graph.node(root).type) +
                                 " do not share one domain");
  }

  void backward() {
    if (pieces)
      for (NodeId arg : graph.node(root).args) demand(arg, identity(), kNoVal);
    else
      demand(root, identity(), kNoVal);
    for (size_t n = group.nodes.size(); n-- > 0;) {
      const NodeId id = group.nodes[n];
      if (pieces && id == root) continue;
      if (is_output[id] && demands[id].empty()) demand_output(id);
      for (size_t k = 0; k < demands[id].size(); k++) {
        if (failed()) return;
        pull(id, demands[id][k]);
      }
      if (failed()) return;
    }
  }

  void forward() {
    for (NodeId id : group.inputs)
      for (Demand& wanted : demands[id]) wanted.value = leaf_or_load(id, wanted);
    for (NodeId id = 0; id < graph.size(); id++)
      if (!inside[id] && !is_input[id])
        for (Demand& wanted : demands[id]) wanted.value = leaf_or_load(id, wanted);
    for (NodeId id : group.nodes) {
      if (pieces && id == root) continue;
      for (size_t k = 0; k < demands[id].size(); k++) {
        Demand& wanted = demands[id][k];
        wanted.value = is_reduce(graph.node(id).op) ? reduction(id, wanted) : is_scan(graph.node(id).op) ? scanned(id, wanted) : element(id, wanted);
        if (failed()) return;
      }
    }
  }

  Val reduction(NodeId id, const Demand& wanted) {
    const Node& node = graph.node(id);
    const Demand& operand = demands[node.args[0]][wanted.operands[0]];
    const DType from = graph.node(node.args[0]).type.dtype;
    Reduction reduction;
    reduction.op = node.op;
    reduction.inputs = {operand.value};
    reduction.accumulate = compute_type(from);
    reduction.last = node.attrs->last;
    if (node.op == Op::argmax || node.op == Op::argmin) {
      // Row-major position within the reduced dims of the graph's value, not of the kernel's axes: order never matters.
      const Shape& shape = graph.node(node.args[0]).type.shape;
      const std::vector<bool> reduced = reduced_dims(node, shape.size());
      Coord at{index::zero(atoms.size())};
      Dim inner = 1;
      for (size_t k = shape.size(); k-- > 0;)
        if (reduced[k]) {
          at.at = index::sum(at.at, index::scaled(operand.at[k].at, inner));
          inner = inner * shape[k];
        }
      reduction.inputs.push_back(position(at));
    }
    Inst inst{Kind::result, node.op, node.type.dtype};
    inst.reduction = uint16_t(kernel.reductions.size());
    inst.rounds = is_float(node.type.dtype) && compute_type(node.type.dtype) != node.type.dtype;
    inst.relax = node.attrs->relax;
    inst.origin = id;
    for (size_t k = 0; k < kernel.reductions.size(); k++)
      if (kernel.reductions[k].op == reduction.op && kernel.reductions[k].inputs == reduction.inputs &&
          kernel.reductions[k].last == reduction.last) {
        inst.reduction = uint16_t(k);
        return push(inst);
      }
    const Val value = push(inst);
    reduction.results = {value};
    kernel.reductions.push_back(std::move(reduction));
    return value;
  }

  /// The fold that a scan runs.
  static Op folded(Op scan) {
    return scan == Op::cumsum ? Op::sum : scan == Op::cumprod ? Op::prod : scan == Op::cummin ? Op::reduce_min : Op::reduce_max;
  }

  Val scanned(NodeId id, const Demand& wanted) {
    const Node& node = graph.node(id);
    const DType type = node.type.dtype;
    Reduction reduction;
    reduction.op = folded(node.op);
    reduction.inputs = {demands[node.args[0]][wanted.operands[0]].value};
    reduction.accumulate = compute_type(type);
    reduction.scan = true;
    reduction.exclusive = node.attrs->exclusive;
    reduction.reverse = node.attrs->reverse;
    if (node.type.shape[size_t(node.attrs->axis)].is(1)) return scan_of_one(reduction, type);
    if (depends_on_scan(reduction.inputs[0])) return refuse("scan-of-scan", "a running sum of another one"), Val{0};
    for (const Reduction& other : kernel.reductions)
      if (other.op == reduction.op && other.inputs == reduction.inputs && other.exclusive == reduction.exclusive) return other.results[0];
    Inst inst{Kind::result, node.op, type};
    inst.reduction = uint16_t(kernel.reductions.size());
    inst.rounds = is_float(type) && compute_type(type) != type;
    inst.origin = id;
    reduction.results = {push(inst)};
    kernel.reductions.push_back(reduction);
    return reduction.results[0];
  }

  /// Along an axis of one element: the identity, or the identity and the element.
  Val scan_of_one(const Reduction& reduction, DType type) {
    const Val identity = constant(type, identity_bits(reduction.op, type));
    if (reduction.exclusive) return constant(type, rounded_bits(type, identity_bits(reduction.op, type)));
    const Op op = reduction.op == Op::sum ? Op::add : reduction.op == Op::prod ? Op::mul : reduction.op == Op::reduce_min ? Op::min : Op::max;
    const Val value = compute(op, type, {identity, reduction.inputs[0]});
    kernel.values[value].rounds = is_float(type) && compute_type(type) != type;
    return value;
  }

  bool depends_on_scan(Val value) const {
    std::vector<char> does(kernel.values.size(), false);
    for (Val v = 0; v <= value; v++) {
      const Inst& inst = kernel.values[v];
      does[v] = inst.kind == Kind::result;
      for (Val arg : inst.args) does[v] = does[v] || does[arg];
    }
    return does[value];
  }

  void store(NodeId output, Val value, const Coords& at) {
    Inst inst{Kind::store};
    inst.type = graph.node(output).type.dtype;
    inst.args = {value};
    inst.operand = operand_of(output, true);
    inst.map = map_of(kernel.operands[inst.operand], at, kNoVal);
    inst.origin = output;
    kernel.values.push_back(inst);
  }

  void stores() {
    if (pieces) {
      const Node& node = graph.node(root);
      const size_t axis = size_t(node.attrs->axis);
      Dim before = 0;
      for (size_t k = 0; k < node.args.size(); k++) {
        Coords at = identity();
        at[axis].at.offset = before;
        store(root, demands[node.args[k]][0].value, at);
        before = before + graph.node(node.args[k]).type.shape[axis];
      }
      return;
    }
    for (NodeId id : group.outputs) {
      const Shape& shape = graph.node(id).type.shape;
      const Demand* chosen = nullptr;
      for (const Demand& wanted : demands[id])
        if (!chosen && wanted.guard == kNoVal && is_bijection(wanted.at, shape)) chosen = &wanted;
      if (!chosen) return refuse("not-one-domain", "an output is not computed once for each of its elements");
      store(id, chosen->value, chosen->at);
    }
  }

  /// One element of the output for each combination of the atoms it walks: all atoms, or all kept ones.
  bool is_bijection(const Coords& at, const Shape& shape) const {
    if (covers_kept_atoms(at, shape)) return true;
    std::vector<int> seen(atoms.size(), 0);
    for (size_t k = 0; k < at.size(); k++) {
      if (shape[k].is(1) && index::is_constant(at[k].at) && at[k].extra == kNoVal) continue;
      auto part = index::whole(at[k], shape[k], atoms);
      if (!part) return false;
      for (size_t atom : *part) seen[atom]++;
    }
    for (size_t k = 0; k < atoms.size(); k++)
      if (seen[k] != 1 && !atoms[k].is(1)) return false;
    return true;
  }

  /// What was folded is not used (by an exclusive running sum of one element). Axes that only the fold walked go; where some outputs walk one
  /// and others do not, these would be stored again for each element of it, or never.
  bool reduce_nothing() {
    for (size_t k = 0; k < kernel.axes.size(); k++) {
      if (!kernel.axes[k].reduced) continue;
      size_t stores = 0, along = 0;
      for (const Inst& inst : kernel.values) {
        if (inst.kind != Kind::store) continue;
        stores++;
        along += std::any_of(inst.map.at.begin(), inst.map.at.end(), [&](const Linear& form) { return k < form.factor.size() && !form.factor[k].is(0); });
      }
      if (along && along != stores) return false;
      kernel.axes[k].reduced = false;
      if (!along) kernel.axes[k].extent = 1;
    }
    return true;
  }

  void finish() {
    for (size_t k = 0; k < atoms.size(); k++) kernel.axes.push_back({atoms[k], atom_reduced[k]});
    drop_unused(kernel);
    if (kernel.reductions.empty() && !reduce_nothing())
      return refuse("not-one-domain", "an output does not walk the axes of a reduction that nothing needs, others do");
    arrange_axes(kernel);
    if (kernel.scans() && std::popcount(kernel.reduced_axes()) != 1)
      return refuse("scan-axis-split", "a view cuts the axis of a running sum");
    if (kernel.axes.size() > kMaxAxes) return refuse("too-many-axes", "more than 16 axes remain");
    find_varying_axes(kernel);
    if (options.numerics != Numerics::strict) {
      relax_rounding(kernel);
      grant(kernel, options.numerics);
      contract(kernel);
    }
    plan_sweeps(kernel);
    find_in_place(kernel);
  }
};

bool restart(DomainAxes& domain, const Split& split) {
  if (split.list == ~size_t{0}) return true;  // reduce_coords added the reduced lists already
  auto& lists = split.list < domain.kept.size() ? domain.kept : domain.reduced;
  auto& list = lists[split.list < domain.kept.size() ? split.list : split.list - domain.kept.size()];
  auto outer = exact_quotient(list[split.position], split.inner);
  if (!outer || split.inner.is(1) || outer->is(1)) return false;
  list[split.position] = *outer;
  list.insert(list.begin() + long(split.position) + 1, split.inner);
  return true;
}

}  // namespace

Result<Kernel> build(const Graph& graph, const Group& group, const BuildOptions& options) try {
  const NodeId root = root_of(graph, group);
  const bool pieces = is_store_of_pieces(graph, group, root);
  DomainAxes domain;
  for (const Dim& dim : graph.node(pieces ? graph.node(root).args[0] : root).type.shape) domain.kept.push_back({dim});
  for (int attempts = 0; attempts < 64; attempts++) {
    Attempt attempt{{graph, group, options, domain}, root, pieces};
    attempt.run();
    if (attempt.refusal) return *attempt.refusal;
    if (!attempt.split) return std::move(attempt.kernel);
    if (!restart(domain, *attempt.split)) break;
  }
  return input_error("too-many-axes: the reshapes of this group cut its axes too finely");
} catch (const std::overflow_error&) {
  return input_error("too-large: an extent leaves 64 bits");
}

}  // namespace fusec
