#pragma once
// The LLVM column of the op cards: one builder call for each exact primitive, on scalars and vectors alike.
// No fast-math flag is ever set, and nothing is contracted: what the builder writes is what the card says.

#include <llvm/IR/IRBuilder.h>

#include "fusec/op.h"
#include "fusec/type.h"

namespace fusec::cpu {

using Builder = llvm::IRBuilder<>;

/// What a value of `type` is in a register: i1, iN, float or double; narrow floats are float.
llvm::Type* register_type(llvm::LLVMContext& context, DType type);
/// What it is in memory: i8 for bool and f8, half and bfloat as i16.
llvm::Type* memory_type(llvm::LLVMContext& context, DType type);
/// `scalar`, or a vector of it as long as the type `like` (which may be scalar).
llvm::Type* shaped(llvm::Type* scalar, llvm::Type* like);

/// Builder calls on operands of compute type `type`. A cell of ops.def reads e.add(x, y).
struct Cells {
  Builder& b;
  DType type;

  using V = llvm::Value*;
  V neg(V x);
  V abs(V x);
  V sign(V x);
  V ceil(V x);
  V floor(V x);
  V round_even(V x);
  V trunc(V x);
  V sqrt(V x);
  V reciprocal(V x);
  V relu(V x);
  V logical_not(V x);
  V bitwise_not(V x);
  V is_nan(V x);
  V is_inf(V x);
  V is_finite(V x);
  V add(V x, V y);
  V sub(V x, V y);
  V mul(V x, V y);
  V div(V x, V y);
  V floor_div(V x, V y);
  V trunc_div(V x, V y);
  V floor_mod(V x, V y);
  V trunc_mod(V x, V y);
  V min(V x, V y);
  V max(V x, V y);
  V copysign(V x, V y);
  V bit_and(V x, V y);
  V bit_or(V x, V y);
  V bit_xor(V x, V y);
  V shl(V x, V y);
  V shr(V x, V y);
  V eq(V x, V y);
  V ne(V x, V y);
  V lt(V x, V y);
  V le(V x, V y);
  V gt(V x, V y);
  V ge(V x, V y);
  V select(V x, V y, V z);
  V fma(V x, V y, V z);

  bool is_real() const { return is_float(type); }
  /// The number `value` as a constant shaped like x, or of a type.
  V number(V x, double value) { return number(x->getType(), value); }
  V number(llvm::Type* type, double value);

 private:
  V quotient(V x, V y);  // integers: truncated, with 0 for y = 0 and a wrapped MIN / -1
  V unary(llvm::Intrinsic::ID id, V x);
};

/// The cell of an exact primitive other than cast and bitcast; nullptr for any other op.
llvm::Value* cell(Op op, Cells e, llvm::Value* x, llvm::Value* y, llvm::Value* z);
/// A formula over `args` and its scalars, for a result declared as `type`; args are of its compute type.
llvm::Value* expand_formula(Builder& b, Op op, DType type, llvm::ArrayRef<llvm::Value*> args, double alpha,
                            double beta);

/// Storage and conversion. `native_half`: the target converts f16 in hardware.
struct Convert {
  Builder& b;
  bool native_half;

  using V = llvm::Value*;
  /// Memory bits to a register value, and back with one rounding. `exact`: x is known to be a value of the type
  /// already.
  V load(V bits, DType type);
  V store(V x, DType type, bool exact = false);
  /// Rounds a register value of f32 to the narrow type, staying in the register. `plain`: x comes from arithmetic on
  /// values of the type, so a NaN in it is the default one or one of theirs, whose low bits are zero and survive
  /// rounding up.
  V round(V x, DType type, bool plain = false);
  /// The `cast` op, register to register.
  V cast(V x, DType from, DType to);
  V bitcast(V x, DType from, DType to);
  /// f64 to f32 so that a later rounding to fewer bits is the only one.
  V round_to_odd(V x);

 private:
  V narrow(V x, int exponent_bits, int mantissa_bits, bool infinity);  // f32 to the low bits of an i32
  V widen(V bits, int exponent_bits, int mantissa_bits, bool infinity);
};

}  // namespace fusec::cpu
