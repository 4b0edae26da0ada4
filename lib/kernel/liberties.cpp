// fused:  v2 = mul v0, v1           v2 = fma v0, v1, v3
//         v4 = add v2, v3     →
//
// The product's place is taken by what the fma wants besides: in z - x * y and in x * y - z a negation, which is exact and which both
// back ends fold into the fma. Only f32 and f64 values exist here: f16, bf16 and f8 live in f32 registers.

#include "lib/kernel/liberties.h"

#include <algorithm>

#include "lib/ir/formula.h"
#include "lib/kernel/axes.h"

namespace fusec {
namespace {

/// Is there a form with fewer terms?
bool has_fewer_terms(const Inst& inst) {
  constexpr Op kOps[] = {Op::exp, Op::sigmoid, Op::silu, Op::div, Op::reciprocal};
  return compute_type(inst.type) == DType::f32 && std::find(std::begin(kOps), std::end(kOps), inst.op) != std::end(kOps);
}

/// How often each value is read; what reductions read counts twice, since they take it as it is.
std::vector<int> readers(const Kernel& kernel) {
  std::vector<int> out(kernel.values.size(), 0);
  auto reads = [&](Val v, int times) {
    if (v != kNoVal) out[v] += times;
  };
  for (const Inst& inst : kernel.values) {
    for (Val arg : inst.args) reads(arg, 1);
    for (Val extra : inst.map.extra) reads(extra, 1);
    reads(inst.map.guard, 1);
  }
  for (const Reduction& reduction : kernel.reductions)
    for (Val input : reduction.inputs) reads(input, 2);
  return out;
}

struct Contraction {
  Kernel& kernel;
  std::vector<int> read;
  std::vector<uint16_t> stage;

  bool granted(Val v, Op op) const {
    const Inst& inst = kernel.values[v];
    return inst.kind == Kind::compute && inst.op == op && (inst.relax & kContract) && is_float(inst.type);
  }
  /// A product that only the sum `v` reads, at the same place: rounded by nobody, computed as often, in the same sweep.
  bool is_product(Val x, Val v) const {
    const Inst& inst = kernel.values[x];
    return granted(x, Op::mul) && !inst.rounds && read[x] == 1 && inst.type == kernel.values[v].type && inst.varies == kernel.values[v].varies &&
           stage[x] == stage[v];
  }
  /// The value `slot`, a product that is about to go, becomes -x.
  Val negated(Val x, Val slot) {
    Inst inst = kernel.values[slot];
    inst.op = Op::neg;
    inst.args = {x};
    inst.varies = kernel.values[x].varies;
    kernel.values[slot] = std::move(inst);
    return slot;
  }

  void at(Val v) {
    const bool sum = granted(v, Op::add), difference = granted(v, Op::sub);
    if (!sum && !difference) return;
    const Val left = kernel.values[v].args[0], right = kernel.values[v].args[1];
    if (is_product(left, v)) {
      const std::vector<Val> factors = kernel.values[left].args;
      if (sum) return become(v, {factors[0], factors[1], right});
      if (right < left) return become(v, {factors[0], factors[1], negated(right, left)});
    }
    if (is_product(right, v)) {
      const std::vector<Val> factors = kernel.values[right].args;
      become(v, {sum ? factors[0] : negated(factors[0], right), factors[1], left});
    }
  }

  void become(Val v, std::vector<Val> args) {
    kernel.values[v].op = Op::fma;
    kernel.values[v].args = std::move(args);
  }
};

}  // namespace

namespace {

/// A formula of its own for a narrow result: it ends in the rounding, which makes the infinities and the zeros of what left the range.
bool has_narrow_form(const Inst& inst) {
  return inst.kind == Kind::compute && info(inst.op).form == Form::formula && is_float(inst.type) && compute_type(inst.type) != inst.type &&
         formula(inst.op, inst.type) != formula(inst.op, DType::f32);
}

}  // namespace

void relax_rounding(Kernel& kernel) {
  std::vector<char> seen(kernel.values.size(), false);
  for (const Inst& inst : kernel.values) {
    const bool looks = inst.kind == Kind::store ||
                       (inst.kind == Kind::compute && (inst.op == Op::cast || inst.op == Op::bitcast || info(inst.op).rule == Rule::compare));
    if (looks)
      for (Val arg : inst.args) seen[arg] = true;
  }
  for (size_t k = 0; k < kernel.values.size(); k++)
    if (!seen[k] && kernel.values[k].op != Op::cast && !has_narrow_form(kernel.values[k])) kernel.values[k].rounds = false;
}

void grant(Kernel& kernel, Numerics numerics) {
  if (numerics == Numerics::strict) return;
  for (Inst& inst : kernel.values) {
    if (inst.kind != Kind::compute || !is_float(inst.type)) continue;
    if (inst.op == Op::mul || inst.op == Op::add || inst.op == Op::sub) inst.relax |= kContract;
    if (numerics == Numerics::fast && inst.op == Op::div) inst.relax |= kReciprocal;
    if (numerics == Numerics::fast && has_fewer_terms(inst)) inst.relax |= kFewerTerms;
  }
}

void contract(Kernel& kernel) {
  Contraction contraction{kernel, readers(kernel), kernel.stages()};
  for (Val v = 0; v < kernel.values.size(); v++) contraction.at(v);
  // That was the last word: no back end contracts what is left by rules of its own, so that all give the same bits.
  for (Inst& inst : kernel.values)
    if (inst.op == Op::mul) inst.relax &= uint8_t(~kContract);
  drop_unused(kernel);
}

}  // namespace fusec
