// Storage formats and casts as vector code. f16 uses the processor's conversions where it has them; bf16 and f8 are
// integer arithmetic, since the instructions for them flush denormals (AVX512-BF16) or need a runtime library.
#include <bit>

#include "codegen/cpu/cells.h"

namespace fusec::cpu {

using V = llvm::Value*;

namespace {

llvm::Type* i32_like(Builder& b, V x) { return shaped(b.getInt32Ty(), x->getType()); }
llvm::Type* f32_like(Builder& b, V x) { return shaped(b.getFloatTy(), x->getType()); }
V word(V like, uint32_t value) { return llvm::ConstantInt::get(like->getType(), value); }

struct Format {
  int exponent_bits, mantissa_bits;
  bool infinity;
};
Format format(DType type) {
  if (type == DType::f16) return {5, 10, true};
  if (type == DType::bf16) return {8, 7, true};
  if (type == DType::f8e4m3) return {4, 3, false};
  return {5, 2, true};
}
bool is_narrow(DType type) { return is_float(type) && bytes(type) < 4; }

}  // namespace

V Convert::narrow(V x, int exponent_bits, int mantissa_bits, bool infinity) {
  const uint32_t bias = (1u << (exponent_bits - 1)) - 1;
  const uint32_t mask = (1u << (exponent_bits + mantissa_bits)) - 1;
  const uint32_t top = infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : mask;
  const int drop = 23 - mantissa_bits;
  V bits = b.CreateBitCast(x, i32_like(b, x));
  V magnitude = b.CreateAnd(bits, word(bits, 0x7fffffff));
  V sign = b.CreateShl(b.CreateLShr(bits, word(bits, 31)), word(bits, exponent_bits + mantissa_bits));
  // Normal results: add half a unit less one, plus the last bit that stays; a carry moves into the exponent by itself.
  V odd = b.CreateAnd(b.CreateLShr(magnitude, word(bits, drop)), word(bits, 1));
  V rounded =
      b.CreateLShr(b.CreateAdd(b.CreateAdd(magnitude, word(bits, (1u << (drop - 1)) - 1)), odd), word(bits, drop));
  V result = b.CreateSub(rounded, word(bits, (127 - bias) << mantissa_bits));
  if (exponent_bits < 8) {
    // Subnormal results: adding 2^k, whose last place is the format's smallest step, rounds in the adder.
    const float magic = std::bit_cast<float>((127 - bias + 1 + drop) << 23);
    V sum = b.CreateFAdd(b.CreateBitCast(magnitude, x->getType()), llvm::ConstantFP::get(x->getType(), magic));
    V small = b.CreateSub(b.CreateBitCast(sum, bits->getType()), word(bits, std::bit_cast<uint32_t>(magic)));
    V normal = b.CreateICmpUGE(magnitude, word(bits, (127 - bias + 1) << 23));
    result = b.CreateSelect(normal, result, small);
    result = b.CreateSelect(b.CreateICmpUGT(result, word(bits, top)), word(bits, top), result);
  }
  V nan = word(bits, mask);
  if (infinity) {
    V payload = b.CreateAnd(b.CreateLShr(magnitude, word(bits, drop)), word(bits, (1u << mantissa_bits) - 1));
    nan = b.CreateOr(payload, word(bits, top | 1u << (mantissa_bits - 1)));
  }
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, word(bits, 0x7f800000)), nan, result);
  return b.CreateOr(result, sign);
}

V Convert::widen(V bits, int exponent_bits, int mantissa_bits, bool infinity) {
  const uint32_t bias = (1u << (exponent_bits - 1)) - 1;
  const uint32_t mask = (1u << (exponent_bits + mantissa_bits)) - 1;
  const int drop = 23 - mantissa_bits;
  V w = b.CreateZExt(bits, i32_like(b, bits));
  V magnitude = b.CreateAnd(w, word(w, mask));
  V sign = b.CreateShl(b.CreateLShr(w, word(w, exponent_bits + mantissa_bits)), word(w, 31));
  // The bits in place, as a float, are the value times 2^(bias-127): one exact product sets exponent and subnormals
  // right.
  llvm::Type* real = f32_like(b, bits);
  V placed = b.CreateBitCast(b.CreateShl(magnitude, word(w, drop)), real);
  const float scale = std::bit_cast<float>((127 + 127 - bias) << 23);
  V value = b.CreateBitCast(b.CreateFMul(placed, llvm::ConstantFP::get(real, scale)), w->getType());
  if (infinity) {
    V special = b.CreateICmpUGE(magnitude, word(w, ((1u << exponent_bits) - 1) << mantissa_bits));
    value = b.CreateSelect(special, b.CreateOr(b.CreateShl(magnitude, word(w, drop)), word(w, 0x7f800000)), value);
  } else {
    value = b.CreateSelect(b.CreateICmpEQ(magnitude, word(w, mask)), word(w, 0x7fc00000), value);
  }
  return b.CreateBitCast(b.CreateOr(value, sign), real);
}

V Convert::load(V bits, DType type) {
  if (type == DType::boolean) return b.CreateIsNotNull(bits);
  if (!is_narrow(type)) return bits;
  if (type == DType::bf16) {
    V w = b.CreateShl(b.CreateZExt(bits, i32_like(b, bits)), llvm::ConstantInt::get(i32_like(b, bits), 16));
    return b.CreateBitCast(w, f32_like(b, bits));
  }
  if (type == DType::f16 && native_half)
    return b.CreateFPExt(b.CreateBitCast(bits, shaped(b.getHalfTy(), bits->getType())), f32_like(b, bits));
  const Format f = format(type);
  return widen(bits, f.exponent_bits, f.mantissa_bits, f.infinity);
}

V Convert::store(V x, DType type, bool exact) {
  if (type == DType::boolean) return b.CreateZExt(x, shaped(b.getInt8Ty(), x->getType()));
  if (!is_narrow(type)) return x;
  llvm::Type* memory = shaped(memory_type(b.getContext(), type), x->getType());
  if (type == DType::bf16 && exact) {
    V w = b.CreateBitCast(x, i32_like(b, x));
    return b.CreateTrunc(b.CreateLShr(w, word(w, 16)), memory);
  }
  if (type == DType::f16 && native_half)
    return b.CreateBitCast(b.CreateFPTrunc(x, shaped(b.getHalfTy(), x->getType())), memory);
  const Format f = format(type);
  return b.CreateTrunc(narrow(x, f.exponent_bits, f.mantissa_bits, f.infinity), memory);
}

V Convert::round(V x, DType type, bool plain) {
  if (!is_narrow(type)) return x;
  if (type != DType::bf16) return load(store(x, type), type);
  // Stays in place: the low half is cleared instead of being shifted out and in.
  V bits = b.CreateBitCast(x, i32_like(b, x));
  // A masked add of one where the last bit that stays is set: four instructions with AVX-512.
  V odd = b.CreateIsNotNull(b.CreateAnd(bits, word(bits, 0x10000)));
  V half = b.CreateAdd(bits, word(bits, 0x7fff));
  V result = b.CreateSelect(odd, b.CreateAdd(half, word(bits, 1)), half);
  if (!plain) result = b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(bits, word(bits, 0x400000)), result);
  return b.CreateBitCast(b.CreateAnd(result, word(bits, 0xffff0000)), x->getType());
}

V Convert::round_to_odd(V x) {
  llvm::Type* single = f32_like(b, x);
  V near = b.CreateFPTrunc(x, single);
  V back = b.CreateFPExt(near, x->getType());
  V away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                           b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  V bits = b.CreateBitCast(near, i32_like(b, x));
  V down = b.CreateSub(bits, b.CreateZExt(away, bits->getType()));  // towards zero
  V odd = b.CreateOr(down, word(bits, 1));
  return b.CreateSelect(b.CreateFCmpONE(back, x), b.CreateBitCast(odd, single), near);
}

V Convert::cast(V x, DType from, DType to) {
  llvm::Type* target = shaped(register_type(b.getContext(), to), x->getType());
  if (to == DType::boolean)
    return from == DType::boolean ? x
           : is_float(from)       ? b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()))
                                  : b.CreateIsNotNull(x);
  if (!is_float(from) && !is_float(to))
    return from != DType::boolean && is_signed(from) ? b.CreateSExtOrTrunc(x, target) : b.CreateZExtOrTrunc(x, target);
  if (is_float(from) && !is_float(to))
    return b.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                             {target, x->getType()}, {x});
  if (!is_float(from)) {
    const bool sign = from != DType::boolean && is_signed(from);
    if (to != DType::bf16 || bytes(from) < 4) {
      // An integer that f32 cannot hold is beyond the largest f16 and f8, so rounding twice is rounding once.
      V real = sign ? b.CreateSIToFP(x, target) : b.CreateUIToFP(x, target);
      return round(real, to);
    }
    if (bytes(from) == 8) {
      // 53 bits with a sticky last one, from floor and remainder in two's complement.
      auto constant = [&](uint64_t n) { return llvm::ConstantInt::get(x->getType(), n); };
      V low = b.CreateAnd(x, constant(0x7ff));
      V sticky = b.CreateSelect(b.CreateIsNull(low), constant(0), constant(0x800));
      V cut = b.CreateOr(b.CreateAnd(x, constant(~uint64_t{0x7ff})), sticky);
      V magnitude = sign ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse()) : x;
      x = b.CreateSelect(b.CreateIsNull(b.CreateLShr(magnitude, constant(53))), x, cut);
    }
    llvm::Type* wide = shaped(b.getDoubleTy(), x->getType());
    return round(round_to_odd(sign ? b.CreateSIToFP(x, wide) : b.CreateUIToFP(x, wide)), to);
  }
  if (from == DType::f64) {
    if (to == DType::f64) return x;
    return to == DType::f32 ? b.CreateFPTrunc(x, target) : round(round_to_odd(x), to);
  }
  return to == DType::f64 ? b.CreateFPExt(x, target) : round(x, to);
}

V Convert::bitcast(V x, DType from, DType to) {
  V bits = store(x, from);
  bits = b.CreateBitCast(bits, shaped(memory_type(b.getContext(), to), x->getType()));
  return load(bits, to);
}

}  // namespace fusec::cpu
