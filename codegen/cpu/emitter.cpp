// Functions, loops, call arguments; values in frames.
#include "codegen/cpu/emitter.h"

#include <algorithm>
#include <bit>

namespace fusec::cpu {

using V = llvm::Value*;

Emitter::Emitter(const Kernel& k, const Schedule& s, const Device& device, llvm::Module& m)
    : kernel(k),
      schedule(s),
      module(m),
      context(m.getContext()),
      b(context),
      vector_axis(s.vector_axis),
      vector_bit(k.axes.empty() ? 0 : AxisSet(1u << s.vector_axis)),
      width(k.axes.empty() ? 1 : std::max<unsigned>(1, s.lane[s.vector_axis])),
      side(std::max<unsigned>(1, s.steps)) {
  native_fma_ = device.features.find("+fma") != std::string::npos || device.features.find("+neon") != std::string::npos;
  native_half_ = device.features.find("+f16c") != std::string::npos ||
                 device.features.find("+fullfp16") != std::string::npos ||
                 device.features.find("+avx512fp16") != std::string::npos;
  ordinal_.assign(kernel.values.size(), ~0u);
  if (s.skeleton == Template::cpu_tile)
    for (size_t axis = 0; axis < k.axes.size(); ++axis)
      if (axis != vector_axis && s.lane[axis] && s.block[axis]) tile_bit = AxisSet(1u << axis);
  if (s.skeleton == Template::cpu_tile || s.skeleton == Template::cpu_column)
    for (size_t axis = 0; axis < k.axes.size(); ++axis)
      if (axis != vector_axis && s.lane[axis] && !s.block[axis]) {
        comb_axis = axis;
        comb = s.lane[axis];
      }
  if (s.skeleton == Template::cpu_flat)
    for (size_t axis = 0; axis < k.axes.size(); ++axis)
      if (axis != vector_axis && s.lane[axis]) {
        joint_axis = axis;
        joint = s.lane[axis];
        vector_bit |= AxisSet(1u << axis);
      }
  uint32_t accesses = 0;
  for (Val v = 0; v < kernel.values.size(); ++v)
    if (kernel.values[v].kind == Kind::load || kernel.values[v].kind == Kind::store) ordinal_[v] = accesses++;
}

// --- functions and control flow --------------------------------------------------------------------------------------

std::pair<V, V> Emitter::begin(const std::string& name) {
  llvm::Type* word = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), word, word}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  for (unsigned i = 0; i < 1; ++i) {
    function_->addParamAttr(i, llvm::Attribute::NoAlias);
    function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  args_ = function_->getArg(0);
  entry_ = llvm::BasicBlock::Create(context, "entry", function_);
  auto* body = llvm::BasicBlock::Create(context, "body", function_);
  b.SetInsertPoint(entry_);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  loaded_.clear();
  zeros_ = nullptr;
  return {function_->getArg(1), function_->getArg(2)};
}

void Emitter::end() { b.CreateRetVoid(); }

void Emitter::loop(V from, V to, V step, Body body) {
  if (auto* lo = llvm::dyn_cast<llvm::ConstantInt>(from))
    if (auto* hi = llvm::dyn_cast<llvm::ConstantInt>(to)) {
      if (lo->getSExtValue() >= hi->getSExtValue()) return;
      if (auto* by = llvm::dyn_cast<llvm::ConstantInt>(step);
          by && lo->getSExtValue() + by->getSExtValue() >= hi->getSExtValue())
        return body(from);
    }
  walk(from, to, [&](V i) {
    body(i);
    return b.CreateAdd(i, step, "", true, true);
  });
}

void Emitter::walk(V from, V to, llvm::function_ref<V(V)> body) {
  auto* before = b.GetInsertBlock();
  auto* top = llvm::BasicBlock::Create(context, "loop", function_);
  auto* done = llvm::BasicBlock::Create(context, "done", function_);
  b.CreateCondBr(b.CreateICmpSLT(from, to), top, done);
  b.SetInsertPoint(top);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(from, before);
  V next = body(i);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, to), top, done);
  b.SetInsertPoint(done);
}

void Emitter::when(V condition, llvm::function_ref<void()> body) {
  choose(condition, body, [] {});
}

void Emitter::choose(V condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(condition)) return c->isOne() ? yes() : no();
  auto* a = llvm::BasicBlock::Create(context, "yes", function_);
  auto* z = llvm::BasicBlock::Create(context, "no", function_);
  auto* join = llvm::BasicBlock::Create(context, "join", function_);
  b.CreateCondBr(condition, a, z);
  b.SetInsertPoint(a);
  yes();
  b.CreateBr(join);
  b.SetInsertPoint(z);
  no();
  b.CreateBr(join);
  b.SetInsertPoint(join);
}

V Emitter::variable(llvm::Type* type, const char* name) {
  Builder at(entry_, entry_->begin());
  return at.CreateAlloca(type, nullptr, name);
}

// --- call arguments --------------------------------------------------------------------------------------------------

V Emitter::slot(Slot want) {
  want.bytes = 8;
  size_t at = 0;
  while (at < slots.size() && !(slots[at].kind == want.kind && slots[at].a == want.a && slots[at].b == want.b &&
                                slots[at].size == want.size))
    ++at;
  if (at == slots.size()) slots.push_back(want);
  loaded_.resize(std::max(loaded_.size(), slots.size()));
  if (!loaded_[at]) {
    Builder in(entry_->getTerminator());
    llvm::Type* type = b.getInt64Ty();
    if (want.kind == Slot::pointer || want.kind == Slot::states || want.kind == Slot::counters) type = b.getPtrTy();
    auto* load = in.CreateAlignedLoad(type, in.CreateConstGEP1_64(b.getInt8Ty(), args_, at * 8), llvm::Align(8));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
    loaded_[at] = load;
  }
  return loaded_[at];
}

V Emitter::extent(size_t axis) {
  if (axis == joint_axis) return i64(joint);
  if (axis == comb_axis) return i64(comb);
  const Dim& dim = kernel.axes[axis].extent;
  if (dim.is_constant()) return i64(dim.constant());
  return slot({Slot::extent, 8, static_cast<uint32_t>(axis), 0, {}});
}

V Emitter::dim(const Dim& dim) {
  if (dim.is_constant()) return i64(dim.constant());
  return slot({Slot::dim, 8, 0, 0, dim});
}

V Emitter::step(Val v, size_t axis) {
  const Map& map = kernel.values[v].map;
  const Operand& operand = kernel.operands[kernel.values[v].operand];
  // A form that moves only the last block, whose stride is 1, has a step that is known now.
  bool last_only = operand.unit && !map.at.empty();
  for (size_t k = 0; last_only && k + 1 < map.at.size(); ++k) last_only = map.at[k].factor[axis].is(0);
  if (last_only) return dim(map.at.back().factor[axis]);
  return slot({Slot::step, 8, ordinal_[v], static_cast<uint32_t>(axis), {}});
}

// --- values ----------------------------------------------------------------------------------------------------------

Frame Emitter::root() {
  Frame f;
  f.index.assign(kernel.axes.size(), nullptr);
  f.value.assign(kernel.values.size(), nullptr);
  f.wide.assign(kernel.values.size(), nullptr);
  f.inverse.assign(kernel.values.size(), nullptr);
  f.address.resize(kernel.values.size());
  return f;
}

std::vector<Val> Emitter::needed(const std::vector<Val>& roots, Val given) const {
  std::vector<char> want(kernel.values.size(), 0);
  std::vector<Val> stack = roots, out;
  while (!stack.empty()) {
    const Val v = stack.back();
    stack.pop_back();
    if (v == kNoVal || want[v]) continue;
    want[v] = 1;
    if (v == given) continue;
    const Inst& inst = kernel.values[v];
    for (Val a : inst.args) stack.push_back(a);
    for (Val e : inst.map.extra) stack.push_back(e);
    stack.push_back(inst.map.guard);
  }
  for (Val v = 0; v < want.size(); ++v)
    if (want[v]) out.push_back(v);
  return out;
}

bool Emitter::ready(const Frame& frame, Val v) const {
  const Inst& inst = kernel.values[v];
  if (inst.kind == Kind::result || (inst.varies & ~frame.known)) return false;
  for (Val a : inst.args)
    if (!frame.value[a]) return false;
  for (Val e : inst.map.extra)
    if (e != kNoVal && !frame.value[e]) return false;
  return inst.map.guard == kNoVal || frame.value[inst.map.guard];
}

void Emitter::hoist(Frame& frame, const std::vector<Val>& list) {
  for (Val v : list) {
    const Inst& inst = kernel.values[v];
    if (inst.kind == Kind::load || inst.kind == Kind::store || inst.kind == Kind::iota) settle(frame, v);
    if (inst.kind != Kind::store && !frame.value[v] && ready(frame, v)) frame.value[v] = compute(frame, v);
  }
  // What vector code will read repeated is repeated here, outside its loop.
  for (Val v : list)
    if (is_vector(v) && !frame.value[v]) {
      for (Val a : kernel.values[v].args)
        if (frame.value[a] && !is_vector(a)) wide(frame, a);
      if (divides_by_row(v) && frame.value[kernel.values[v].args[1]]) inverse(frame, kernel.values[v].args[1]);
      for (Val e : kernel.values[v].map.extra)
        if (e != kNoVal && frame.value[e] && !is_vector(e)) wide(frame, e);
    }
}

void Emitter::evaluate(std::span<Frame> frames, size_t lanes, const std::vector<Val>& list) {
  AxisSet across_rows = kernel.kept_axes() & ~vector_bit;
  if (frames[0].comb) across_rows = AxisSet(1u << comb_axis);
  auto first_alike = [&](size_t f, AxisSet varies) {
    return (varies & across_rows ? f / lanes * lanes : 0) + (varies & vector_bit ? f % lanes : 0);
  };
  for (Val v : list) {
    const Inst& inst = kernel.values[v];
    if (inst.kind == Kind::store || frames[0].value[v] || !ready(frames[0], v)) continue;
    if (inst.kind == Kind::load && frames[0].comb && access(v).staged) {
      load_comb(frames, lanes, v);
      continue;
    }
    if (inst.kind == Kind::load && frames[0].tile && access(v).staged) {
      load_tile(frames, v);
      continue;
    }
    for (size_t f = 0; f < frames.size(); ++f) {
      const size_t same = first_alike(f, inst.varies);
      frames[f].value[v] = same == f ? compute(frames[f], v) : frames[same].value[v];
    }
  }
  for (Val v : list) {
    const Inst& inst = kernel.values[v];
    if (inst.kind != Kind::store) continue;
    if (frames[0].comb && access(v).staged) {
      store_comb(frames, lanes, v);
      continue;
    }
    if (frames[0].tile && access(v).staged) {
      store_tile(frames, v);
      continue;
    }
    for (size_t f = 0; f < frames.size(); ++f)
      if (first_alike(f, inst.varies) == f) store(frames[f], v);
  }
}

V Emitter::splat(V scalar) {
  if (width == 1 || scalar->getType()->isVectorTy()) return scalar;
  return b.CreateVectorSplat(width, scalar);
}

V Emitter::wide(Frame& frame, Val v) {
  V x = frame.value[v];
  if (x->getType()->isVectorTy() || !vector_bit) return x;
  if (!frame.wide[v]) frame.wide[v] = splat(x);
  return frame.wide[v];
}

bool Emitter::divides_by_row(Val v) const {
  const Inst& inst = kernel.values[v];
  return inst.kind == Kind::compute && inst.op == Op::div && (inst.relax & kReciprocal) && is_float(inst.type) &&
         is_vector(v) && !is_vector(inst.args[1]);
}

V Emitter::inverse(Frame& frame, Val v) {
  if (!frame.inverse[v]) {
    V one = llvm::ConstantFP::get(frame.value[v]->getType(), 1.0);
    frame.inverse[v] = splat(b.CreateFDiv(one, frame.value[v]));
  }
  return frame.inverse[v];
}

V Emitter::lanes(V first) {
  std::vector<uint64_t> n(width);
  for (unsigned i = 0; i < width; ++i) n[i] = i;
  return b.CreateAdd(splat(first), llvm::ConstantDataVector::get(context, n));
}

V Emitter::lane_index(const Frame& frame, size_t axis) {
  if (joint_axis == ~size_t{0}) return lanes(frame.index[vector_axis]);
  std::vector<uint64_t> n(width);
  for (unsigned i = 0; i < width; ++i) {
    const auto element = static_cast<uint64_t>(frame.unit) * width + i;
    n[i] = axis == joint_axis ? element % static_cast<uint64_t>(joint) : element / static_cast<uint64_t>(joint);
  }
  V offsets = llvm::ConstantDataVector::get(context, n);
  return axis == joint_axis ? offsets : b.CreateAdd(splat(frame.index[vector_axis]), offsets);
}

V Emitter::alive(V from, V to) {
  // In 32 bits: what is left is clamped to the width first, so no lane number wraps.
  V left = b.CreateSub(to, from);
  V few = b.CreateTrunc(b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, i64(width)), b.getInt32Ty());
  std::vector<uint32_t> n(width);
  for (unsigned i = 0; i < width; ++i) n[i] = i;
  return b.CreateICmpSLT(llvm::ConstantDataVector::get(context, n), b.CreateVectorSplat(width, few));
}

Emitter::Rounding Emitter::rounding(Val v) const {
  const Inst& inst = kernel.values[v];
  if (!inst.rounds) return Rounding::none;
  if (info(inst.op).form != Form::exact || inst.op == Op::bitcast) return Rounding::full;
  for (Val a : inst.args) {
    const Inst& arg = kernel.values[a];
    const bool of_type = arg.type == inst.type && (arg.rounds || arg.kind == Kind::load || arg.kind == Kind::constant ||
                                                   (arg.kind == Kind::compute && arg.op == Op::cast));
    if (!of_type && !(inst.op == Op::select && arg.type == DType::boolean)) return Rounding::full;
  }
  // What picks one of its operands, or an integer next to it, gives a value of their type.
  switch (inst.op) {
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::relu:
    case Op::min:
    case Op::max:
    case Op::clamp:
    case Op::select:
    case Op::copysign:
    case Op::ceil:
    case Op::floor:
    case Op::trunc:
    case Op::round_even: return Rounding::none;
    default: return Rounding::plain;
  }
}

V Emitter::compute(Frame& frame, Val v) {
  const Inst& inst = kernel.values[v];
  switch (inst.kind) {
    case Kind::load: return load(frame, v);
    case Kind::iota: return iota(frame, v);
    case Kind::dim: return dim(inst.dim);
    case Kind::constant: {
      llvm::Type* type = register_type(context, inst.type);
      if (type->isFloatTy())
        return llvm::ConstantFP::get(type, llvm::APFloat(std::bit_cast<float>(static_cast<uint32_t>(inst.bits))));
      if (type->isDoubleTy()) return llvm::ConstantFP::get(type, llvm::APFloat(std::bit_cast<double>(inst.bits)));
      const uint64_t mask = ~uint64_t{0} >> (64 - type->getIntegerBitWidth());
      return llvm::ConstantInt::get(type, inst.bits & mask);
    }
    case Kind::store:
    case Kind::result: return nullptr;
    case Kind::compute: break;
  }
  llvm::SmallVector<V, 4> args;
  for (Val a : inst.args) args.push_back(is_vector(v) ? wide(frame, a) : frame.value[a]);
  Convert convert{b, native_half_};
  const DType from = kernel.values[inst.args[inst.op == Op::select ? 1 : 0]].type;
  if (inst.op == Op::cast) return convert.cast(args[0], from, inst.type);
  V out;
  if (divides_by_row(v)) {
    // x * (1 / y), corrected by its remainder: the rounded quotient wherever nothing leaves the normal range, a fifth
    // of its cost.
    Cells c{b, compute_type(from)};
    V r = inverse(frame, inst.args[1]), q = c.mul(args[0], r);
    out = c.fma(c.fma(c.neg(q), args[1], args[0]), r, q);
  } else if (inst.op == Op::fma && (inst.relax & kContract)) {
    // A sum that may be contracted: without the instruction it stays a product and a sum.
    Cells c{b, compute_type(from)};
    out = native_fma_ ? c.fma(args[0], args[1], args[2]) : c.add(c.mul(args[0], args[1]), args[2]);
  } else if (inst.op == Op::bitcast) {
    out = convert.bitcast(args[0], from, inst.type);
  } else if (info(inst.op).form == Form::formula) {
    out = expand_formula(b, inst.op, from, args, inst.alpha, inst.beta);
  } else {
    out = cell(inst.op, Cells{b, compute_type(from)}, args[0], args.size() > 1 ? args[1] : nullptr,
               args.size() > 2 ? args[2] : nullptr);
  }
  if (!out) {
    // A gap in our tables; the value stands in until compile() reports it.
    if (fault.empty())
      fault =
          "the CPU back end has no cell for " + std::string(info(inst.op).name) + " on " + std::string(name(inst.type));
    out = llvm::Constant::getNullValue(shaped(register_type(context, inst.type), args[0]->getType()));
  }
  const Rounding rounds = rounding(v);
  return rounds == Rounding::none ? out : convert.round(out, inst.type, rounds == Rounding::plain);
}

}  // namespace fusec::cpu
