// Text of a kernel: what `fusec emit --as plan` shows.
//
//   axes      i0 N kept, i1 4096 reduced
//   operand   p0 in f32[N,4096] (input 0)
//   sweep 0   sum v1
//   v0 = load p0[4096*i0 + i1] f32 · row, element

#include <bit>
#include <locale>
#include <sstream>

#include "lib/kernel/kernel.h"

namespace fusec {
namespace {

std::string text(const Linear& form) {
  std::string out;
  for (size_t k = 0; k < form.factor.size(); k++) {
    if (form.factor[k].is(0)) continue;
    if (!out.empty()) out += " + ";
    if (!form.factor[k].is(1)) {
      const std::string factor = form.factor[k].text();
      out += form.factor[k].is_constant() ? factor + "*" : "(" + factor + ")*";
    }
    out += "i" + std::to_string(k);
  }
  if (out.empty()) return form.offset.text();
  if (!form.offset.is(0)) out += " + " + form.offset.text();
  return out;
}

std::string text(const Map& map) {
  std::string out = "[";
  for (size_t block = 0; block < map.at.size(); block++) {
    if (block) out += ", ";
    out += text(map.at[block]);
    if (block < map.extra.size() && map.extra[block] != kNoVal) out += " + v" + std::to_string(map.extra[block]);
  }
  out += "]";
  if (map.guard != kNoVal) out += " where v" + std::to_string(map.guard);
  return out;
}

std::string level(const Kernel& kernel, AxisSet varies) {
  const bool kept = varies & kernel.kept_axes(), reduced = varies & kernel.reduced_axes();
  return kept && reduced ? "element" : kept ? (kernel.has_reductions() ? "row" : "element") : reduced ? "column" : "call";
}

std::string text(const Inst& inst) {
  auto args = [&] {
    std::string out;
    for (Val arg : inst.args) out += (out.empty() ? " v" : ", v") + std::to_string(arg);
    return out;
  };
  const std::string operand = " p" + std::to_string(inst.operand);
  switch (inst.kind) {
    case Kind::load: return "load" + operand + text(inst.map);
    case Kind::store: return "store" + operand + text(inst.map) + args();
    case Kind::iota: return "iota " + text(inst.map.at[0]);
    case Kind::constant: {
      std::ostringstream bits;
      bits.imbue(std::locale::classic());
      bits << "constant 0x" << std::hex << inst.bits;
      return bits.str();
    }
    case Kind::dim: return "dim " + inst.dim.text();
    case Kind::compute: {
      std::string out = std::string(name(inst.op)) + args();
      if (!info(inst.op).attributes.empty() && inst.op != Op::cast && inst.op != Op::bitcast)
        out += " {alpha bits " + std::to_string(std::bit_cast<uint64_t>(inst.alpha)) + ", beta bits " +
               std::to_string(std::bit_cast<uint64_t>(inst.beta)) + "}";
      return out;
    }
    case Kind::result:
      return "result " + std::to_string(inst.index) + " of reduction " + std::to_string(inst.reduction);
  }
  return "";
}

}  // namespace

std::string print(const Kernel& kernel) {
  std::string out;
  for (size_t k = 0; k < kernel.axes.size(); k++)
    out += "axis i" + std::to_string(k) + ": " + kernel.axes[k].extent.text() + (kernel.axes[k].reduced ? " reduced\n" : " kept\n");
  for (size_t k = 0; k < kernel.operands.size(); k++) {
    const Operand& operand = kernel.operands[k];
    out += "operand p" + std::to_string(k) + ": " + (operand.output ? "output " : "input ") + std::to_string(operand.index) + " " +
           text(Type{operand.type, operand.extents});
    if (operand.block_end.size() > 1 || !operand.unit) {
      out += ", stride blocks end at";
      for (uint8_t end : operand.block_end) out += " " + std::to_string(end);
      if (!operand.unit) out += ", no unit stride";
    }
    out += "\n";
  }
  for (auto [in, result] : kernel.in_place)
    out += "in place: p" + std::to_string(result) + " may be p" + std::to_string(in) + "\n";
  const std::vector<uint16_t> stages = kernel.stages();
  for (size_t k = 0; k < kernel.values.size(); k++) {
    const Inst& inst = kernel.values[k];
    out += "v" + std::to_string(k) + ": " + std::string(name(inst.type)) + " = " + text(inst) +
           (inst.rounds ? " rounded" : "") + (inst.relax ? " relax " + std::to_string(inst.relax) : "") + "  ; " +
           level(kernel, inst.varies);
    if (stages[k]) out += ", after sweep " + std::to_string(stages[k] - 1);
    out += "\n";
  }
  for (size_t k = 0; k < kernel.reductions.size(); k++) {
    const Reduction& reduction = kernel.reductions[k];
    const char* folds[] = {"", " online", " welford"};
    out += "reduction " + std::to_string(k) + ": " + std::string(name(reduction.op)) + folds[int(reduction.fold)] + " of";
    for (Val input : reduction.inputs) out += " v" + std::to_string(input);
    out += " in " + std::string(name(reduction.accumulate)) + (reduction.last ? ", last wins" : "");
    if (reduction.scan) out += std::string(", at each element") + (reduction.exclusive ? ", exclusive" : "") + (reduction.reverse ? ", from the end" : "");
    out += "\n";
  }
  for (size_t k = 0; k < kernel.sweeps.size(); k++) {
    out += "sweep " + std::to_string(k) + ":";
    for (uint16_t reduction : kernel.sweeps[k].reductions) out += " reduction " + std::to_string(reduction);
    for (Val store : kernel.sweeps[k].stores) out += " v" + std::to_string(store);
    out += "\n";
  }
  if (!kernel.row_stores.empty()) {
    out += "row:";
    for (Val store : kernel.row_stores) out += " v" + std::to_string(store);
    out += "\n";
  }
  return out;
}

}  // namespace fusec
