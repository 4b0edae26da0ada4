// Values of a kernel under construction: equal ones are one.

#include "lib/kernel/builder.h"

#include <bit>

namespace fusec {
namespace {

void append(std::string& key, const Dim& dim) { (key += dim.text()) += ';'; }

void append(std::string& key, const Linear& form) {
  for (const Dim& factor : form.factor) append(key, factor);
  append(key, form.offset);
}

/// Bytes that are equal exactly when two values are.
std::string key(const Inst& inst) {
  std::string key;
  auto number = [&](uint64_t n) { (key += std::to_string(n)) += ','; };
  number(uint64_t(inst.kind)), number(uint64_t(inst.op)), number(uint64_t(inst.type)), number(inst.bits);
  number(inst.operand), number(inst.reduction), number(inst.index), number(inst.rounds), number(inst.relax);
  number(std::bit_cast<uint64_t>(inst.alpha)), number(std::bit_cast<uint64_t>(inst.beta));
  number(inst.map.guard);
  for (Val arg : inst.args) number(arg);
  key += '|';
  for (const Linear& form : inst.map.at) append(key, form);
  for (Val extra : inst.map.extra) number(extra);
  append(key, inst.dim);
  return key;
}

}  // namespace

Val KernelBuilder::push(Inst inst) {
  auto [found, fresh] = known.emplace(key(inst), Val(kernel.values.size()));
  if (fresh) kernel.values.push_back(std::move(inst));
  return found->second;
}

Val KernelBuilder::constant(DType type, uint64_t bits) {
  Inst inst{Kind::constant};
  inst.type = type;
  inst.bits = bits;
  return push(inst);
}

Val KernelBuilder::size_of(const Dim& dim) {
  if (dim.is_constant()) return integer(dim.constant());
  Inst inst{Kind::dim};
  inst.type = DType::i64;
  inst.dim = dim;
  return push(inst);
}

Val KernelBuilder::compute(Op op, DType type, std::vector<Val> args) {
  Inst inst{Kind::compute};
  inst.op = op;
  inst.type = type;
  inst.args = std::move(args);
  return push(inst);
}

Val KernelBuilder::position(const index::Coord& coord) {
  Val out = coord.extra;
  if (!index::is_constant(coord.at) || !coord.at.offset.is(0) || out == kNoVal) {
    Val linear;
    if (index::is_constant(coord.at)) {
      linear = size_of(coord.at.offset);
    } else {
      Inst inst{Kind::iota};
      inst.type = DType::i64;
      inst.map.at = {coord.at};
      linear = push(inst);
    }
    out = out == kNoVal ? linear : compute(Op::add, DType::i64, {linear, out});
  }
  return out;
}

Val KernelBuilder::both(Val a, Val b) {
  if (a == kNoVal || a == b) return b;
  if (b == kNoVal) return a;
  return compute(Op::and_, DType::boolean, {a, b});
}

/// low <= coordinate < high, as a bool value.
Val KernelBuilder::inside_range(const index::Coord& coord, const Dim& low, const Dim& high) {
  const Val at = position(coord);
  return both(compute(Op::ge, DType::boolean, {at, size_of(low)}), compute(Op::lt, DType::boolean, {at, size_of(high)}));
}

}  // namespace fusec
