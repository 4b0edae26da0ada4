// What each reduction does to its state.
//   sum prod min max any all   {value}
//   argmax argmin              {value, position}; position -1 = nothing yet
//   online                     {max, sum of exp(x - max)}, the sum rescaled when the max grows
//   welford                    {mean, sum of squared deviations, count}; merge after Chan, Golub, LeVeque (1983)
#include "codegen/cpu/reduce.h"

#include <cmath>
#include <limits>

namespace fusec::cpu {

using V = llvm::Value*;

Folder::Folder(Emitter& emitter, uint16_t reduction)
    : e_(emitter),
      number_(reduction),
      reduction_(emitter.kernel.reductions[reduction]),
      fold_(reduction_.fold),
      type_(compute_type(fold_ == Fold::op && index() ? emitter.kernel.values[reduction_.inputs[0]].type
                                                      : reduction_.accumulate)),
      cells_{emitter.b, type_} {}

DType Folder::field_type(size_t field) const { return fold_ == Fold::op && index() && field == 1 ? DType::i64 : type_; }

llvm::SmallVector<llvm::Type*, 4> Folder::fields() const {
  const size_t n = fold_ == Fold::welford ? 3 : fold_ == Fold::online || index() ? 2 : 1;
  llvm::SmallVector<llvm::Type*, 4> out;
  for (size_t i = 0; i < n; ++i) out.push_back(register_type(e_.context, field_type(i)));
  return out;
}

State Folder::zero(unsigned lanes) const {
  State out;
  for (llvm::Type* scalar : fields()) {
    llvm::Type* type = lanes ? llvm::FixedVectorType::get(scalar, lanes) : scalar;
    out.push_back(llvm::Constant::getNullValue(type));
  }
  llvm::Type* t = out[0]->getType();
  const bool real = is_float(type_);
  auto least = [&](bool greatest) -> V {  // the identity of max, or of min
    if (real) return llvm::ConstantFP::get(t, greatest ? INFINITY : -INFINITY);
    const unsigned bits = t->getScalarSizeInBits();
    if (type_ == DType::boolean) return llvm::ConstantInt::get(t, greatest ? 1 : 0);
    if (!is_signed(type_))
      return llvm::ConstantInt::get(t, greatest ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getMinValue(bits));
    return llvm::ConstantInt::get(
        t, greatest ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getSignedMinValue(bits));
  };
  if (fold_ == Fold::online) {
    out[0] = least(false);
  } else if (fold_ == Fold::op) {
    if (reduction_.op == Op::prod) out[0] = Cells(cells_).number(t, 1);
    if (reduction_.op == Op::reduce_max || reduction_.op == Op::argmax) out[0] = least(false);
    if (reduction_.op == Op::reduce_min || reduction_.op == Op::argmin) out[0] = least(true);
    if (reduction_.op == Op::all) out[0] = llvm::Constant::getAllOnesValue(t);
    if (index()) out[1] = llvm::Constant::getAllOnesValue(out[1]->getType());
  }
  return out;
}

llvm::SmallVector<V, 2> Folder::inputs(Frame& frame, bool vector) const {
  llvm::SmallVector<V, 2> out;
  for (size_t i = 0; i < reduction_.inputs.size(); ++i) {
    const Val v = reduction_.inputs[i];
    const DType from = e_.kernel.values[v].type, to = index() && i == 1 ? DType::i64 : type_;
    V x = frame.value[v];
    if (compute_type(from) != to) x = e_.cast(x, from, to);
    out.push_back(vector ? e_.splat(x) : x);
  }
  return out;
}

V Folder::exp(V x) const {
  if (V out = expand_formula(e_.b, Op::exp, type_, {x}, 0, 0)) return out;
  e_.fault = "the CPU back end has no formula for exp";
  return x;
}

State Folder::fold(const State& state, llvm::ArrayRef<V> inputs, V mask) const {
  Builder& b = e_.b;
  Cells c = cells_;
  State element;
  if (fold_ == Fold::op && !index()) {
    element = {inputs[0]};
  } else if (fold_ == Fold::op) {
    element = {inputs[0], inputs[1]};
  } else if (fold_ == Fold::online) {
    element = {inputs[0], c.number(inputs[0], 1)};
  }
  State out;
  if (fold_ == Fold::welford) {
    V x = inputs[0], count = c.add(state[2], c.number(x, 1));
    V delta = c.sub(x, state[0]);
    V mean = c.add(state[0], c.div(delta, count));
    out = {mean, c.add(state[1], c.mul(delta, c.sub(x, mean))), count};
  } else {
    out = merge(state, element);
  }
  if (mask)
    for (size_t i = 0; i < out.size(); ++i) out[i] = b.CreateSelect(mask, out[i], state[i]);
  return out;
}

State Folder::merge(const State& a, const State& z) const {
  Builder& b = e_.b;
  Cells c = cells_;
  if (fold_ == Fold::online) {
    V most = c.max(a[0], z[0]), one = c.number(most, 1);
    auto scale = [&](V old) { return b.CreateSelect(c.eq(old, most), one, exp(c.sub(old, most))); };
    return {most, c.add(c.mul(a[1], scale(a[0])), c.mul(z[1], scale(z[0])))};
  }
  if (fold_ == Fold::welford) {
    V count = c.add(a[2], z[2]), delta = c.sub(z[0], a[0]), zero = c.number(count, 0);
    V share = c.div(z[2], count);
    V mean = c.add(a[0], c.mul(delta, share));
    V squares = c.add(c.add(a[1], z[1]), c.mul(c.mul(delta, delta), c.mul(a[2], share)));
    V first = c.eq(a[2], zero), second = c.eq(z[2], zero);  // a state of nothing leaves the other as it is
    auto pick = [&](V merged, size_t i) { return b.CreateSelect(second, a[i], b.CreateSelect(first, z[i], merged)); };
    return {pick(mean, 0), pick(squares, 1), count};
  }
  if (!index()) {
    switch (reduction_.op) {
      case Op::prod: return {c.mul(a[0], z[0])};
      case Op::reduce_max: return {c.max(a[0], z[0])};
      case Op::reduce_min: return {c.min(a[0], z[0])};
      case Op::any: return {b.CreateOr(a[0], z[0])};
      case Op::all: return {b.CreateAnd(a[0], z[0])};
      default: return {c.add(a[0], z[0])};
    }
  }
  // Which of two wins: something over nothing, a NaN over a number, the better value, then the position.
  V none = llvm::ConstantInt::get(a[1]->getType(), 0);
  V better = reduction_.op == Op::argmax ? c.gt(z[0], a[0]) : c.lt(z[0], a[0]);
  V same = c.eq(z[0], a[0]);
  V later = reduction_.last ? b.CreateICmpSGT(z[1], a[1]) : b.CreateICmpSLT(z[1], a[1]);
  V take = b.CreateOr(better, b.CreateAnd(same, later));
  if (is_float(type_)) {
    // Of several NaNs the first wins, whichever end `last` prefers among numbers.
    V nan_a = c.is_nan(a[0]), nan_z = c.is_nan(z[0]);
    V first = b.CreateICmpSLT(z[1], a[1]);
    take = b.CreateOr(take, b.CreateAnd(nan_z, b.CreateOr(b.CreateNot(nan_a), first)));
  }
  take = b.CreateOr(take, b.CreateICmpSLT(a[1], none));
  take = b.CreateAnd(take, b.CreateICmpSGE(z[1], none));
  return {b.CreateSelect(take, z[0], a[0]), b.CreateSelect(take, z[1], a[1])};
}

State Folder::across(State state) const {
  Builder& b = e_.b;
  unsigned n = llvm::cast<llvm::FixedVectorType>(state[0]->getType())->getNumElements();
  for (; n > 1; n /= 2) {
    State low, high;
    llvm::SmallVector<int, 64> a, z;
    for (unsigned i = 0; i < n / 2; ++i) a.push_back(i), z.push_back(i + n / 2);
    for (V field : state)
      low.push_back(b.CreateShuffleVector(field, a)), high.push_back(b.CreateShuffleVector(field, z));
    state = merge(low, high);
  }
  for (V& field : state) field = b.CreateExtractElement(field, uint64_t{0});
  return state;
}

void Folder::finish(const State& state, Frame& frame) const {
  Builder& b = e_.b;
  Cells c = cells_;
  std::vector<std::pair<V, DType>> out;
  if (fold_ == Fold::op) {
    const size_t field = index() ? 1 : 0;
    out = {{state[field], field_type(field)}};
  } else if (fold_ == Fold::online) {
    // exp(x - max) of an infinite maximum is a NaN, as in two sweeps.
    V lost = b.CreateAnd(c.is_inf(state[0]), c.ne(state[1], c.number(state[1], 0)));
    out = {{state[0], type_}, {b.CreateSelect(lost, c.number(state[1], NAN), state[1]), type_}};
  } else {
    V none = c.eq(state[2], c.number(state[2], 0));
    out = {{b.CreateSelect(none, c.number(state[0], NAN), state[0]), type_}, {state[1], type_}};
  }
  for (Val v = 0; v < e_.kernel.values.size(); ++v) {
    const Inst& inst = e_.kernel.values[v];
    if (inst.kind != Kind::result || inst.reduction != number_) continue;
    auto [x, from] = out[inst.index];
    // Where no element varies along a kept vector axis, the lanes are all alike and the result is one number.
    if (x->getType()->isVectorTy() && !e_.is_vector(v)) x = b.CreateExtractElement(x, uint64_t{0});
    frame.value[v] = e_.narrowed(x, from, inst);
  }
}

}  // namespace fusec::cpu
