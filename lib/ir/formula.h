#pragma once
// A formula: the straight-line steps over exact primitives that an op such as exp *is*. The reference evaluator and the
// folder interpret them, CUDA prints them, LLVM builds them, so all agree bit for bit.

#include <array>
#include <cstdint>
#include <vector>

#include "fusec/op.h"
#include "fusec/type.h"

namespace fusec {

struct Step {
  enum Kind : uint8_t { parameter, constant, compute } kind;
  Op op = Op::constant;           // compute: an exact primitive (cast and bitcast take their target from `type`)
  DType type = DType::f32;        // type of the result: f32, f64, i32, u32, i64, u64, bool … (compute types)
  std::array<uint16_t, 3> args{}; // earlier steps; as many as the op's arity
  uint64_t bits = 0;              // constant: its bits; parameter: its index
};

struct Formula {
  Op op;
  DType type;                // compute type: operands and result
  DType result;              // f16, bf16: as accurate as that needs; else `type`
  uint8_t operands;          // parameters 0 … operands-1 are the op's operands; then its scalars: alpha, beta
  uint8_t scalars;
  std::vector<Step> steps;   // the last one is the result
};

/// Steps of `op` for a result declared as `type`: f32, f64; f16, bf16 and f8 have a shorter form in f32 where one is worth it
/// (formulas_narrow.def), else the one of f32; pow also integers. Never null for Form::formula and an allowed type. Equal
/// forms are one object. Built once, thread-safe.
const Formula* formula(Op op, DType type);

}  // namespace fusec
