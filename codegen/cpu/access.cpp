// Loads, stores and index values: addresses grow from the outermost level inwards, so that the innermost loop adds one
// index.
#include "codegen/cpu/emitter.h"

namespace fusec::cpu {

using V = llvm::Value*;

bool Emitter::contiguous(Val v) const {
  const Inst& inst = kernel.values[v];
  for (Val e : inst.map.extra)
    if (e != kNoVal && is_vector(e)) return false;
  return is_vector(v) && !access(v).staged && access(v).bytes > bytes(kernel.operands[inst.operand].type);
}

void Emitter::settle(Frame& frame, Val v) {
  const Inst& inst = kernel.values[v];
  Frame::Address& address = frame.address[v];
  const bool iota = inst.kind == Kind::iota;
  llvm::Type* element = iota ? nullptr : memory_type(context, kernel.operands[inst.operand].type);
  if (!address.at) address.at = iota ? dim(inst.map.at[0].offset) : slot({Slot::pointer, 8, ordinal_[v], 0, {}});
  auto grow = [&](V elements) {
    address.at = iota ? b.CreateAdd(address.at, elements) : b.CreateGEP(element, address.at, elements);
  };
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    const AxisSet bit = AxisSet(1u << k);
    if ((address.axes & bit) || !(frame.known & bit) || (bit & vector_bit)) continue;
    address.axes |= bit;
    bool moves = false;
    for (const Linear& at : inst.map.at) moves |= !at.factor[k].is(0);
    if (moves) grow(b.CreateMul(frame.index[k], iota ? dim(inst.map.at[0].factor[k]) : step(v, k)));
  }
  for (size_t e = 0; e < inst.map.extra.size(); ++e) {
    const Val extra = inst.map.extra[e];
    if (extra == kNoVal || is_vector(extra) || (address.extras >> e & 1) || !frame.value[extra]) continue;
    address.extras |= 1u << e;
    grow(b.CreateMul(frame.value[extra], slot({Slot::stride, 8, ordinal_[v], static_cast<uint32_t>(e), {}})));
  }
}

V Emitter::address(Frame& frame, Val v) {
  settle(frame, v);
  V element = frame.index[vector_axis];
  if (joint > 1) element = b.CreateAdd(b.CreateMul(element, i64(joint)), i64(static_cast<int64_t>(frame.unit) * width));
  return b.CreateGEP(memory_type(context, kernel.operands[kernel.values[v].operand].type), frame.address[v].at,
                     element);
}

V Emitter::pointers(Frame& frame, Val v) {
  settle(frame, v);
  const Inst& inst = kernel.values[v];
  V elements = splat(i64(0));
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    bool moves = false;
    for (const Linear& at : inst.map.at) moves |= !at.factor[axis].is(0);
    if (moves && (vector_bit >> axis & 1))
      elements = b.CreateAdd(elements, b.CreateMul(lane_index(frame, axis), splat(step(v, axis))));
  }
  for (size_t e = 0; e < inst.map.extra.size(); ++e)
    if (inst.map.extra[e] != kNoVal && is_vector(inst.map.extra[e]))
      elements =
          b.CreateAdd(elements, b.CreateMul(frame.value[inst.map.extra[e]],
                                            splat(slot({Slot::stride, 8, ordinal_[v], static_cast<uint32_t>(e), {}}))));
  return b.CreateGEP(memory_type(context, kernel.operands[inst.operand].type), frame.address[v].at, elements);
}

V Emitter::live(Frame& frame, Val v) {
  const Val guard = kernel.values[v].map.guard;
  V mask = frame.mask;
  if (guard == kNoVal) return mask;
  V open = wide(frame, guard);
  return mask ? b.CreateAnd(mask, open) : open;
}

V Emitter::zeros() {
  if (!zeros_) {
    zeros_ = variable(b.getInt64Ty(), "zeros");
    Builder in(entry_->getTerminator());
    in.CreateStore(in.getInt64(0), zeros_);
  }
  return zeros_;
}

V Emitter::iota(Frame& frame, Val v) {
  settle(frame, v);
  V at = frame.address[v].at;
  if (!is_vector(v)) return at;
  const Linear& form = kernel.values[v].map.at[0];
  V out = splat(at);
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if ((vector_bit >> axis & 1) && !form.factor[axis].is(0))
      out = b.CreateAdd(out, b.CreateMul(lane_index(frame, axis), splat(dim(form.factor[axis]))));
  return out;
}

V Emitter::load(Frame& frame, Val v) {
  const Inst& inst = kernel.values[v];
  const DType type = kernel.operands[inst.operand].type;
  llvm::Type* element = memory_type(context, type);
  const llvm::Align align(bytes(type));
  Convert convert{b, native_half_};
  if (!is_vector(v)) {
    settle(frame, v);
    V at = frame.address[v].at;
    if (inst.map.guard != kNoVal) at = b.CreateSelect(frame.value[inst.map.guard], at, zeros());
    return convert.load(b.CreateAlignedLoad(element, at, align), type);
  }
  auto* vector = llvm::FixedVectorType::get(element, width);
  V mask = live(frame, v), bits;
  if (contiguous(v)) {
    V at = address(frame, v);
    if (access(v).prefetch && fetch_reads) prefetch(frame, v, false);
    bits = mask ? b.CreateMaskedLoad(vector, at, align, mask, llvm::Constant::getNullValue(vector))
                : static_cast<V>(b.CreateAlignedLoad(vector, at, align));
  } else {
    V all = mask ? mask : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), width));
    bits = b.CreateMaskedGather(vector, pointers(frame, v), align, all, llvm::Constant::getNullValue(vector));
  }
  return convert.load(bits, type);
}

V Emitter::stored_bits(Frame& frame, Val v) {
  const Inst& inst = kernel.values[v];
  const Inst& source = kernel.values[inst.args[0]];
  const DType type = kernel.operands[inst.operand].type;
  // A value that is already one of the narrow type needs no second rounding.
  const bool exact = source.type == type && (source.rounds || source.kind == Kind::load ||
                                             (source.kind == Kind::compute && source.op == Op::cast));
  Convert convert{b, native_half_};
  V x = frame.value[inst.args[0]];
  if (compute_type(source.type) != compute_type(type)) x = convert.cast(x, source.type, type);
  return convert.store(is_vector(v) ? splat(x) : x, type, exact);
}

void Emitter::store(Frame& frame, Val v) {
  const Inst& inst = kernel.values[v];
  const DType type = kernel.operands[inst.operand].type;
  const llvm::Align align(bytes(type));
  V bits = stored_bits(frame, v);
  if (!is_vector(v)) {
    settle(frame, v);
    auto write = [&] { b.CreateAlignedStore(bits, frame.address[v].at, align); };
    return inst.map.guard == kNoVal ? write() : when(frame.value[inst.map.guard], write);
  }
  V mask = live(frame, v);
  if (!contiguous(v)) {
    b.CreateMaskedScatter(bits, pointers(frame, v), align, mask);
    return;
  }
  V at = address(frame, v);
  const bool around = bypass && access(v).bypass;
  if (access(v).prefetch && !around) prefetch(frame, v, true);
  if (mask) {
    b.CreateMaskedStore(bits, at, align, mask);
  } else if (around) {
    auto* out = b.CreateAlignedStore(bits, at, llvm::Align(bytes(type) * width));
    out->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(b.getInt32(1))));
  } else {
    b.CreateAlignedStore(bits, at, align);
  }
}

// --- tiles: `width` rows along another axis, turned in registers -----------------------------------------------------

std::vector<V> Emitter::tile_rows(Frame& first, Val v) {
  settle(first, v);
  llvm::Type* element = memory_type(context, kernel.operands[kernel.values[v].operand].type);
  V by = step(v, vector_axis);
  V row = b.CreateGEP(element, first.address[v].at, b.CreateMul(first.index[vector_axis], by));
  std::vector<V> out;
  for (unsigned r = 0; r < width; ++r) out.push_back(b.CreateGEP(element, row, b.CreateMul(i64(r), by)));
  return out;
}

/// Interleaving row k with row k + width/2, log2(width) times, transposes.
void Emitter::transpose(std::vector<V>& rows) {
  llvm::SmallVector<int, 64> low, high;
  const int w = static_cast<int>(width);
  for (int i = 0; i < w / 2; ++i) {
    low.push_back(i), low.push_back(i + w);
    high.push_back(w / 2 + i), high.push_back(w / 2 + i + w);
  }
  for (unsigned done = 1; done < width; done *= 2) {
    std::vector<V> next;
    for (unsigned k = 0; k < width / 2; ++k) {
      next.push_back(b.CreateShuffleVector(rows[k], rows[k + width / 2], low));
      next.push_back(b.CreateShuffleVector(rows[k], rows[k + width / 2], high));
    }
    rows = std::move(next);
  }
}

void Emitter::load_tile(std::span<Frame> frames, Val v) {
  const DType type = kernel.operands[kernel.values[v].operand].type;
  auto* vector = llvm::FixedVectorType::get(memory_type(context, type), width);
  std::vector<V> rows;
  for (V at : tile_rows(frames[0], v)) rows.push_back(b.CreateAlignedLoad(vector, at, llvm::Align(bytes(type))));
  transpose(rows);
  for (unsigned u = 0; u < width; ++u) frames[u].value[v] = Convert{b, native_half_}.load(rows[u], type);
}

void Emitter::store_tile(std::span<Frame> frames, Val v) {
  const DType type = kernel.operands[kernel.values[v].operand].type;
  std::vector<V> rows, at = tile_rows(frames[0], v);
  for (Frame& frame : frames) rows.push_back(stored_bits(frame, v));
  transpose(rows);
  for (unsigned r = 0; r < width; ++r) b.CreateAlignedStore(rows[r], at[r], llvm::Align(bytes(type)));
}

// --- combs: `comb` whole vectors hold `width` indices of the vector axis, each with all indices of the short axis ----

V Emitter::comb_mask(const Frame& frame, size_t k) {
  if (!frame.left) return nullptr;
  return alive(i64(static_cast<int64_t>(k) * width), b.CreateMul(frame.left, i64(comb)));
}

/// Tooth c, lane l is element l * comb + c of the run. A tooth takes its lanes from one whole vector after another.
void Emitter::load_comb(std::span<Frame> frames, size_t lanes, Val v) {
  const DType type = kernel.operands[kernel.values[v].operand].type;
  llvm::Type* element = memory_type(context, type);
  auto* vector = llvm::FixedVectorType::get(element, width);
  const llvm::Align align(bytes(type));
  const auto teeth = static_cast<size_t>(comb);
  for (size_t u = 0; u < lanes; ++u) {
    Frame& first = frames[u];  // of index 0 along the comb axis
    settle(first, v);
    V run = b.CreateGEP(element, first.address[v].at, b.CreateMul(first.index[vector_axis], i64(comb)));
    std::vector<V> whole;
    for (size_t k = 0; k < teeth; ++k) {
      V at = b.CreateConstGEP1_64(element, run, k * width), mask = comb_mask(first, k);
      whole.push_back(mask ? b.CreateMaskedLoad(vector, at, align, mask, llvm::Constant::getNullValue(vector))
                           : static_cast<V>(b.CreateAlignedLoad(vector, at, align)));
    }
    for (size_t c = 0; c < teeth; ++c) {
      V tooth = whole[0];
      for (size_t k = 0; k < teeth; ++k) {
        llvm::SmallVector<int, 64> pick;
        for (unsigned l = 0; l < width; ++l) {
          const size_t at = l * teeth + c;
          const int own = static_cast<int>(at % width);
          pick.push_back(k == 0            ? (at / width == 0 ? own : -1)
                         : at / width == k ? static_cast<int>(width) + own
                                           : static_cast<int>(l));
        }
        tooth = b.CreateShuffleVector(tooth, whole[k], pick);
      }
      frames[c * lanes + u].value[v] = Convert{b, native_half_}.load(tooth, type);
    }
  }
}

void Emitter::store_comb(std::span<Frame> frames, size_t lanes, Val v) {
  const DType type = kernel.operands[kernel.values[v].operand].type;
  llvm::Type* element = memory_type(context, type);
  const llvm::Align align(bytes(type));
  const auto teeth = static_cast<size_t>(comb);
  for (size_t u = 0; u < lanes; ++u) {
    settle(frames[u], v);
    V run = b.CreateGEP(element, frames[u].address[v].at, b.CreateMul(frames[u].index[vector_axis], i64(comb)));
    std::vector<V> tooth;
    for (size_t c = 0; c < teeth; ++c) tooth.push_back(stored_bits(frames[c * lanes + u], v));
    for (size_t k = 0; k < teeth; ++k) {
      V whole = tooth[0];
      for (size_t c = 0; c < teeth; ++c) {
        llvm::SmallVector<int, 64> pick;
        for (unsigned l = 0; l < width; ++l) {
          const size_t at = k * width + l;
          const int own = static_cast<int>(at / teeth);
          pick.push_back(c == 0            ? (at % teeth == 0 ? own : -1)
                         : at % teeth == c ? static_cast<int>(width) + own
                                           : static_cast<int>(l));
        }
        whole = b.CreateShuffleVector(whole, tooth[c], pick);
      }
      V at = b.CreateConstGEP1_64(element, run, k * width);
      if (V mask = comb_mask(frames[u], k)) b.CreateMaskedStore(whole, at, align, mask);
      else b.CreateAlignedStore(whole, at, align);
    }
  }
}

void Emitter::prefetch(Frame& frame, Val v, bool write) {
  // One line of 64 bytes for each line that is used, this many lines ahead.
  constexpr int64_t kAhead = 64;
  if (frame.mask) return;
  const size_t size = bytes(kernel.operands[kernel.values[v].operand].type);
  for (size_t line = 0; line * 64 < size * width; ++line) {
    V at = b.CreateConstGEP1_64(b.getInt8Ty(), address(frame, v), kAhead * 64 + line * 64);
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()}, {at, b.getInt32(write), b.getInt32(3), b.getInt32(1)});
  }
}

}  // namespace fusec::cpu
