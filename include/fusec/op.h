#pragma once
// Op and OpInfo, generated from the cards of ops.def: code asks for a trait of an op, seldom for an op by name.

#include <cstdint>
#include <optional>
#include <string_view>

#include "fusec/type.h"

namespace fusec {

enum class Op : uint8_t {
#define OP(name, ...) name,
#include "fusec/ops.def"
#undef OP
};

inline constexpr int kOps = 0
#define OP(name, ...) +1
#include "fusec/ops.def"
#undef OP
    ;

/// What an op is made of.
enum class Form : uint8_t {
  leaf,       ///< input, constant, iota: no computed operand
  exact,      ///< elementwise primitive with a reference, a CUDA and an LLVM cell; same bits everywhere
  formula,    ///< elementwise, straight-line steps over exact primitives (lib/ir/formula.h); same bits everywhere
  reduce,     ///< folds the axes of its `axes` attribute
  scan,       ///< running fold along its `axis`: a value for each element
  view,       ///< moves data, computes nothing
  composite,  ///< is its decomposition (lib/ir/decompose.h)
  reserved,   ///< named, refused by the builder with "not supported yet"
};

/// How the result type follows from the operands. Elementwise rules broadcast (type.h).
enum class Rule : uint8_t {
  leaf,     ///< given by attributes
  same,     ///< operands of one dtype; the result has it too
  compare,  ///< operands of one dtype; the result is bool
  test,     ///< one operand; the result is bool
  select,   ///< bool, T, T → T
  cast,     ///< dtype from the attribute `to`
  bitcast,  ///< dtype from `to`, same size
  reduce,   ///< dims of `axes` removed, or 1 with `keep`
  index,    ///< as reduce; dtype from `to` (i64 when absent)
  shape,    ///< the dims follow from the attributes: view ops and scans (infer.cpp)
  keep,     ///< type of the first operand: composites that normalise
};

/// dtypes an op accepts for its (first data) operand.
enum class Domain : uint8_t { any, numbers, floats, integers, bits /* bool and integers */, boolean };
bool accepts(Domain domain, DType type);

enum Trait : uint16_t {
  kCommutes = 1,      // op(x, y) == op(y, x)
  kIdempotent = 2,    // op(x, x) == x
  kAssociates = 4,    // on integers and bool
  kMonotone = 8,      // non-decreasing in its operand, so it moves through max and min
  kInvolution = 16,   // op(op(x)) == x
  kHeavy = 32,        // arithmetic worth not repeating: never duplicated into several consumers
  kProjection = 64,   // op(op(x)) == op(x)
};

struct OpInfo {
  std::string_view name;
  Form form;
  int arity;          // -1 = any number
  int optional_args;  // trailing operands that may be absent
  Rule rule;
  Domain domain;
  uint16_t traits;
  int cost;           // arithmetic per element, in units of one add (about one instruction)
  std::string_view attributes;  // names it takes, separated by spaces, in print order
  std::string_view summary;     // one line for `fusec ops`
};

const OpInfo& info(Op op);
inline std::string_view name(Op op) { return info(op).name; }
std::optional<Op> op(std::string_view name);

inline bool has(Op op, Trait trait) { return info(op).traits & trait; }
inline bool commutes(Op op) { return has(op, kCommutes); }
inline bool is_elementwise(Op op) { return info(op).form == Form::exact || info(op).form == Form::formula; }
inline bool is_reduce(Op op) { return info(op).form == Form::reduce; }
inline bool is_scan(Op op) { return info(op).form == Form::scan; }
inline bool is_view(Op op) { return info(op).form == Form::view; }
inline bool is_composite(Op op) { return info(op).form == Form::composite; }
inline bool is_leaf(Op op) { return info(op).form == Form::leaf; }

}  // namespace fusec
