#include "codegen/cpu/cells.h"

#include <bit>
#include <cmath>

#include "lib/ir/formula.h"

namespace fusec::cpu {

llvm::Type* register_type(llvm::LLVMContext& context, DType type) {
  if (type == DType::boolean) return llvm::Type::getInt1Ty(context);
  if (type == DType::f64) return llvm::Type::getDoubleTy(context);
  if (is_float(type)) return llvm::Type::getFloatTy(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(bytes(type) * 8));
}

llvm::Type* memory_type(llvm::LLVMContext& context, DType type) {
  if (type == DType::f32 || type == DType::f64) return register_type(context, type);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(bytes(type) * 8));
}

llvm::Type* shaped(llvm::Type* scalar, llvm::Type* like) {
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like))
    return llvm::FixedVectorType::get(scalar, v->getNumElements());
  return scalar;
}

using V = llvm::Value*;

V Cells::number(llvm::Type* shape, double value) {
  if (is_real()) return llvm::ConstantFP::get(shape, value);
  return llvm::ConstantInt::get(shape, llvm::APInt(64, static_cast<uint64_t>(static_cast<int64_t>(value)), true)
                                           .sextOrTrunc(shape->getScalarSizeInBits()));
}

V Cells::unary(llvm::Intrinsic::ID id, V x) { return b.CreateUnaryIntrinsic(id, x); }

V Cells::neg(V x) { return is_real() ? b.CreateFNeg(x) : b.CreateNeg(x); }
V Cells::abs(V x) {
  if (is_real()) return unary(llvm::Intrinsic::fabs, x);
  if (!is_signed(type)) return x;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse());  // false: MIN wraps instead of poison
}
V Cells::sign(V x) {
  V zero = number(x, 0), one = number(x, 1);
  if (type == DType::boolean || (!is_real() && !is_signed(type)))
    return b.CreateSelect(b.CreateIsNotNull(x), one, zero);
  V minus = number(x, -1);
  if (!is_real())
    return b.CreateSelect(b.CreateICmpSGT(x, zero), one, b.CreateSelect(b.CreateICmpSLT(x, zero), minus, zero));
  V rest = b.CreateSelect(b.CreateFCmpOEQ(x, zero), zero, x);  // a NaN stays
  return b.CreateSelect(b.CreateFCmpOGT(x, zero), one, b.CreateSelect(b.CreateFCmpOLT(x, zero), minus, rest));
}
V Cells::ceil(V x) { return unary(llvm::Intrinsic::ceil, x); }
V Cells::floor(V x) { return unary(llvm::Intrinsic::floor, x); }
V Cells::round_even(V x) { return unary(llvm::Intrinsic::roundeven, x); }
V Cells::trunc(V x) { return unary(llvm::Intrinsic::trunc, x); }
V Cells::sqrt(V x) { return unary(llvm::Intrinsic::sqrt, x); }
V Cells::reciprocal(V x) { return b.CreateFDiv(number(x, 1), x); }
V Cells::relu(V x) {
  // 0 > x ? 0 : x keeps a NaN and is one instruction.
  V zero = number(x, 0);
  if (is_real()) return b.CreateSelect(b.CreateFCmpOGT(zero, x), zero, x);
  return is_signed(type) ? max(x, zero) : x;
}
V Cells::logical_not(V x) { return b.CreateNot(x); }
V Cells::bitwise_not(V x) { return b.CreateNot(x); }
V Cells::is_nan(V x) { return b.CreateFCmpUNO(x, x); }
V Cells::is_inf(V x) { return b.CreateFCmpOEQ(abs(x), number(x, INFINITY)); }
V Cells::is_finite(V x) { return b.CreateFCmpOLT(abs(x), number(x, INFINITY)); }

V Cells::add(V x, V y) { return is_real() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y); }
V Cells::sub(V x, V y) { return is_real() ? b.CreateFSub(x, y) : b.CreateSub(x, y); }
V Cells::mul(V x, V y) { return is_real() ? b.CreateFMul(x, y) : b.CreateMul(x, y); }
V Cells::div(V x, V y) { return is_real() ? b.CreateFDiv(x, y) : quotient(x, y); }

V Cells::quotient(V x, V y) {
  V zero = number(x, 0), one = number(x, 1);
  V by_zero = b.CreateICmpEQ(y, zero);
  V special = by_zero, negates = nullptr;
  if (is_signed(type)) {
    negates = b.CreateICmpEQ(y, number(x, -1));
    special = b.CreateOr(by_zero, negates);
  }
  V divisor = b.CreateSelect(special, one, y), q;
  if (bytes(type) <= 4 && x->getType()->isVectorTy()) {
    // The truncated double quotient of 32-bit integers is exact, and doubles divide as vectors.
    llvm::Type* real = shaped(b.getDoubleTy(), x->getType());
    q = is_signed(type)
            ? b.CreateFPToSI(b.CreateFDiv(b.CreateSIToFP(x, real), b.CreateSIToFP(divisor, real)), x->getType())
            : b.CreateFPToUI(b.CreateFDiv(b.CreateUIToFP(x, real), b.CreateUIToFP(divisor, real)), x->getType());
  } else {
    q = is_signed(type) ? b.CreateSDiv(x, divisor) : b.CreateUDiv(x, divisor);
  }
  if (negates) q = b.CreateSelect(negates, b.CreateNeg(x), q);
  return b.CreateSelect(by_zero, zero, q);
}

V Cells::trunc_mod(V x, V y) {
  if (is_real()) return b.CreateFRem(x, y);
  V r = b.CreateSub(x, b.CreateMul(quotient(x, y), y));
  return b.CreateSelect(b.CreateICmpEQ(y, number(x, 0)), number(x, 0), r);
}

V Cells::floor_mod(V x, V y) {
  V r = trunc_mod(x, y), zero = number(x, 0);
  if (!is_real() && !is_signed(type)) return r;
  V wrong = b.CreateAnd(ne(r, zero), b.CreateXor(lt(r, zero), lt(y, zero)));
  V fixed = b.CreateSelect(wrong, add(r, y), r);
  // A zero remainder takes the sign of y.
  return is_real() ? b.CreateSelect(b.CreateFCmpOEQ(fixed, zero), copysign(zero, y), fixed) : fixed;
}

V Cells::trunc_div(V x, V y) {
  if (!is_real()) return quotient(x, y);
  // x - fmod(x, y) is a multiple of y up to one rounding, so the quotient rounds to the integer that is meant.
  V exact = round_even(b.CreateFDiv(b.CreateFSub(x, b.CreateFRem(x, y)), y));
  V plain = b.CreateFDiv(x, y);
  V special = b.CreateOr(b.CreateNot(is_finite(plain)), b.CreateFCmpOEQ(plain, number(x, 0)));
  V infinite = b.CreateNot(is_finite(y));
  return b.CreateSelect(b.CreateOr(special, infinite), trunc(plain), copysign(exact, plain));
}

V Cells::floor_div(V x, V y) {
  V zero = number(x, 0);
  if (!is_real()) {
    V q = quotient(x, y);
    if (!is_signed(type)) return q;
    V r = b.CreateSub(x, b.CreateMul(q, y));
    V below = b.CreateAnd(b.CreateAnd(ne(r, zero), ne(y, zero)), b.CreateXor(lt(r, zero), lt(y, zero)));
    return b.CreateSelect(below, b.CreateSub(q, number(x, 1)), q);
  }
  // As Python: the remainder is exact, the quotient is rounded from it.
  V r = b.CreateFRem(x, y);
  V wrong = b.CreateAnd(ne(r, zero), b.CreateXor(lt(r, zero), lt(y, zero)));
  V q = b.CreateFDiv(b.CreateFSub(x, r), y);
  q = b.CreateSelect(wrong, b.CreateFSub(q, number(x, 1)), q);
  V down = floor(q);
  down = b.CreateSelect(b.CreateFCmpOGT(b.CreateFSub(q, down), number(x, 0.5)), b.CreateFAdd(down, number(x, 1)), down);
  V plain = b.CreateFDiv(x, y);
  down = b.CreateSelect(b.CreateFCmpOEQ(q, zero), copysign(zero, plain), down);
  return b.CreateSelect(b.CreateFCmpOEQ(y, zero), plain, down);
}

// A comparison that fails for a NaN leaves x; then a NaN in y replaces it.
V Cells::min(V x, V y) {
  if (type == DType::boolean) return b.CreateAnd(x, y);
  if (!is_real()) return b.CreateBinaryIntrinsic(is_signed(type) ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x, y);
  return b.CreateSelect(is_nan(y), y, b.CreateSelect(b.CreateFCmpOLT(y, x), y, x));
}
V Cells::max(V x, V y) {
  if (type == DType::boolean) return b.CreateOr(x, y);
  if (!is_real()) return b.CreateBinaryIntrinsic(is_signed(type) ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
  return b.CreateSelect(is_nan(y), y, b.CreateSelect(b.CreateFCmpOGT(y, x), y, x));
}
V Cells::copysign(V x, V y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, y); }
V Cells::bit_and(V x, V y) { return b.CreateAnd(x, y); }
V Cells::bit_or(V x, V y) { return b.CreateOr(x, y); }
V Cells::bit_xor(V x, V y) { return b.CreateXor(x, y); }

V Cells::shl(V x, V y) {
  V inside =
      b.CreateICmpULT(y, number(x, static_cast<double>(bytes(type) * 8)));  // a negative count is a large unsigned one
  V shifted = b.CreateShl(x, b.CreateSelect(inside, y, number(x, 0)));
  return b.CreateSelect(inside, shifted, number(x, 0));
}
V Cells::shr(V x, V y) {
  const double width = static_cast<double>(bytes(type) * 8);
  V inside = b.CreateICmpULT(y, number(x, width));
  if (is_signed(type)) return b.CreateAShr(x, b.CreateSelect(inside, y, number(x, width - 1)));
  V shifted = b.CreateLShr(x, b.CreateSelect(inside, y, number(x, 0)));
  return b.CreateSelect(inside, shifted, number(x, 0));
}

V Cells::eq(V x, V y) { return is_real() ? b.CreateFCmpOEQ(x, y) : b.CreateICmpEQ(x, y); }
V Cells::ne(V x, V y) { return is_real() ? b.CreateFCmpUNE(x, y) : b.CreateICmpNE(x, y); }
V Cells::lt(V x, V y) {
  return is_real() ? b.CreateFCmpOLT(x, y) : is_signed(type) ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
}
V Cells::le(V x, V y) {
  return is_real() ? b.CreateFCmpOLE(x, y) : is_signed(type) ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
}
V Cells::gt(V x, V y) { return lt(y, x); }
V Cells::ge(V x, V y) { return le(y, x); }
V Cells::select(V x, V y, V z) { return b.CreateSelect(x, y, z); }
V Cells::fma(V x, V y, V z) { return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z}); }

llvm::Value* cell(Op op, Cells e, [[maybe_unused]] V x, [[maybe_unused]] V y, [[maybe_unused]] V z) {
  constexpr llvm::Value* NONE = nullptr;
  switch (op) {
#define OP(name, form, arity, optional, rule, domain, traits, cost, attributes, summary, reference, cuda, llvm) \
  case Op::name: return llvm;
#include "fusec/ops.def"
#undef OP
  }
  return nullptr;
}

namespace {

V constant_bits(Builder& b, DType type, uint64_t bits) {
  llvm::Type* t = register_type(b.getContext(), type);
  if (t->isFloatTy()) return llvm::ConstantFP::get(t, llvm::APFloat(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  if (t->isDoubleTy()) return llvm::ConstantFP::get(t, llvm::APFloat(std::bit_cast<double>(bits)));
  return llvm::ConstantInt::get(t, llvm::APInt(64, bits).zextOrTrunc(t->getIntegerBitWidth()));
}

V match(Builder& b, V x, llvm::Type* like) {
  if (x->getType()->isVectorTy() || !like->isVectorTy()) return x;
  return b.CreateVectorSplat(llvm::cast<llvm::FixedVectorType>(like)->getNumElements(), x);
}

}  // namespace

llvm::Value* expand_formula(Builder& b, Op op, DType type, llvm::ArrayRef<V> args, double alpha, double beta) {
  const Formula* f = formula(op, type);
  if (!f) return nullptr;
  llvm::Type* like = args[0]->getType();
  const double scalars[] = {alpha, beta};
  std::vector<V> value(f->steps.size());
  Convert convert{b, false};
  for (size_t i = 0; i < f->steps.size(); ++i) {
    const Step& step = f->steps[i];
    if (step.kind == Step::parameter) {
      if (step.bits < f->operands) value[i] = args[step.bits];
      else
        value[i] =
            llvm::ConstantFP::get(shaped(register_type(b.getContext(), f->type), like), scalars[step.bits - f->operands]);
    } else if (step.kind == Step::constant) {
      value[i] = match(b, constant_bits(b, step.type, step.bits), like);
    } else {
      const DType from = f->steps[step.args[step.op == Op::select ? 1 : 0]].type;
      V x = value[step.args[0]], y = nullptr, z = nullptr;
      const int arity = info(step.op).arity;
      if (arity > 1) y = value[step.args[1]];
      if (arity > 2) z = value[step.args[2]];
      if (step.op == Op::cast) value[i] = convert.cast(x, from, step.type);
      else if (step.op == Op::bitcast) value[i] = convert.bitcast(x, from, step.type);
      else value[i] = cell(step.op, Cells{b, from}, x, y, z);
    }
  }
  return value.back();
}

}  // namespace fusec::cpu
