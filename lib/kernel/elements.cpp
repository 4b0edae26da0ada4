// Values of nodes at coordinates: loads, leaves, elementwise ops; views are their operand at other coordinates.

#include <bit>
#include <cstring>

#include "lib/ir/convert.h"
#include "lib/kernel/builder.h"

namespace fusec {

using index::Coords;

namespace {

/// Bits of a rank-0 constant as a register holds them.
uint64_t register_bits(const Tensor& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, value.data.data(), bytes(value.dtype));
  if (is_float(value.dtype) && compute_type(value.dtype) != value.dtype) {
    float wide;
    widen(value.dtype, value.data.data(), &wide, 1);
    return std::bit_cast<uint32_t>(wide);
  }
  return bits;
}

}  // namespace

uint16_t KernelBuilder::operand_of(NodeId node, bool output) const {
  for (size_t k = 0; k < kernel.operands.size(); k++)
    if (kernel.operands[k].node == node && kernel.operands[k].output == output) return uint16_t(k);
  return 0;
}

/// The access map of an operand at some coordinates: one linear form a block of joined dims.
Map KernelBuilder::map_of(const Operand& operand, const Coords& at, Val guard) {
  Map map;
  map.guard = guard;
  size_t dim = 0;
  for (uint8_t end : operand.block_end) {
    Linear form = index::zero(atoms.size());
    Val extra = kNoVal;
    for (; dim < end; dim++) {
      Dim inner = 1;
      for (size_t k = dim + 1; k < end; k++) inner = inner * operand.extents[k];
      form = index::sum(form, index::scaled(at[dim].at, inner));
      if (at[dim].extra == kNoVal) continue;
      Val part = at[dim].extra;
      if (!inner.is(1)) part = compute(Op::mul, DType::i64, {part, size_of(inner)});
      extra = extra == kNoVal ? part : compute(Op::add, DType::i64, {extra, part});
    }
    map.at.push_back(std::move(form));
    map.extra.push_back(extra);
  }
  return map;
}

Val KernelBuilder::leaf_or_load(NodeId id, const Demand& wanted) {
  const Node& node = graph.node(id);
  if (is_input[id]) {
    Inst inst{Kind::load};
    inst.type = node.type.dtype;
    inst.operand = operand_of(id, false);
    inst.map = map_of(kernel.operands[inst.operand], wanted.at, wanted.guard);
    inst.origin = id;
    return push(inst);
  }
  if (node.op == Op::constant && node.type.shape.empty()) return constant(node.type.dtype, register_bits(*node.attrs->value));
  if (node.op == Op::iota) {
    const Val at = position(wanted.at[size_t(node.attrs->axis)]);
    return node.type.dtype == DType::i64 ? at : compute(Op::cast, node.type.dtype, {at});
  }
  if (node.op == Op::size) return size_of(node.attrs->shape[0]);
  refuse("no-kernel", std::string(name(node.op)) + " is neither in the group nor one of its inputs");
  return 0;
}

Val KernelBuilder::element(NodeId id, const Demand& wanted) {
  const Node& node = graph.node(id);
  auto arg = [&](size_t k) { return demands[node.args[k]][wanted.operands[k]].value; };
  if (is_elementwise(node.op)) {
    Inst inst{Kind::compute, node.op, node.type.dtype};
    for (size_t k = 0; k < node.args.size(); k++) inst.args.push_back(arg(k));
    inst.rounds = is_float(node.type.dtype) && compute_type(node.type.dtype) != node.type.dtype;
    inst.relax = node.attrs->relax;
    inst.alpha = node.attrs->alpha;
    inst.beta = node.attrs->beta;
    inst.origin = id;
    return push(inst);
  }
  if (node.op == Op::pad || node.op == Op::concat) {
    const bool is_pad = node.op == Op::pad;
    Val value = is_pad ? constant(node.type.dtype, register_bits(*node.attrs->value)) : arg(node.args.size() - 1);
    for (size_t k = node.args.size() - (is_pad ? 0 : 1); k-- > 0;)
      if (wanted.within[k] == kNoVal) value = arg(k);
      else value = compute(Op::select, node.type.dtype, {wanted.within[k], arg(k), value});
    return value;
  }
  if (node.op == Op::gather) {
    // A guarded load is zero outside already; what was computed from one may be anything there.
    const Inst& data = kernel.values[arg(0)];
    if (data.kind == Kind::load && data.map.guard != kNoVal) return arg(0);
    return compute(Op::select, node.type.dtype, {wanted.within[0], arg(0), constant(node.type.dtype, 0)});
  }
  return arg(0);  // views: the operand, at other coordinates
}

/// Walks what the value needs, operands first, without recursion: groups may be 400 nodes deep.
Val KernelBuilder::value_now(NodeId id, uint32_t demand) {
  std::vector<std::pair<NodeId, uint32_t>> open{{id, demand}};
  while (!open.empty() && !failed()) {
    const auto [at, k] = open.back();
    const Node& node = graph.node(at);
    if (demands[at][k].value != kNoVal) {
      open.pop_back();
    } else if (!inside[at]) {
      demands[at][k].value = leaf_or_load(at, demands[at][k]);
    } else if (is_reduce(node.op) || is_scan(node.op)) {
      refuse("gather-of-reduction", "an index that a reduction gives has to be in memory first");
    } else {
      pull(at, demands[at][k]);
      const size_t before = open.size();
      for (size_t n = 0; n < demands[at][k].operands.size(); n++)
        if (const uint32_t operand = demands[at][k].operands[n]; demands[node.args[n]][operand].value == kNoVal)
          open.push_back({node.args[n], operand});
      if (open.size() == before && !failed()) demands[at][k].value = element(at, demands[at][k]);
    }
  }
  return failed() ? kNoVal : demands[id][demand].value;
}

}  // namespace fusec
