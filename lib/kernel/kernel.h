#pragma once
// The one description of a fused kernel, shared by every back end: Group → Kernel → (Schedule →) CUDA text | LLVM IR.
//
// Four rules carry everything.
//   1. Each value knows the domain axes it *varies* along; that alone says where it is computed: once a call (none), once a row
//      (kept axes only), once a column (reduced axes only), or for every element.
//   2. A row's work is a list of *sweeps* over the reduced axes; between two sweeps only row values survive, and whatever full
//      values the schedule chooses to keep. A sweep computes what its reductions and stores need.
//   3. The numerics mode is spent while the Kernel is built: it is in `rounds`, `relax` and the ops. No back end knows the mode.
//   4. Index arithmetic is values too: a coordinate that is not linear (an unaligned reshape, a gather) is an integer value
//      computed from `iota` by ordinary ops; a guard (pad, concat) is a bool value. Back ends need no second expression language.
//
// A *row* is one combination of kept-axis indices, numbered row-major over the kept axes; an *element* of a row is one combination
// of reduced-axis indices, numbered likewise. Without reductions every axis is kept and there is one sweep.

#include <cstdint>
#include <string>
#include <vector>

#include "fusec/graph.h"
#include "lib/fusion/group.h"

namespace fusec {

using Val = uint32_t;
inline constexpr Val kNoVal = ~Val{0};
using AxisSet = uint16_t;  // bit k = axis k of the kernel
inline constexpr size_t kMaxAxes = 16;

struct Axis {
  Dim extent;
  bool reduced;
};

/// sum over axes of factor[k] * index[k], plus offset. `factor` has one entry an axis of the kernel.
struct Linear {
  std::vector<Dim> factor;
  Dim offset;
};

/// Which dims of a buffer can be walked as one: joined bit k says stride[k] == stride[k+1] * extent[k+1]; unit: the last dim's
/// stride is 1. Dense row-major is everything joined and unit. This is the layout class of a call; a program compiles once a class.
struct Layout {
  uint16_t joined = 0xffff;
  bool unit = true;
  bool operator==(const Layout&) const = default;
};

/// A buffer the kernel reads or writes. Its dims fall into *blocks* of joined dims; the stride of a block is that of its last dim.
struct Operand {
  NodeId node;              // whose value it holds
  uint32_t index;           // position in group.inputs or group.outputs
  bool output;
  DType type;
  Shape extents;
  std::vector<uint8_t> block_end;  // index one past the last dim of each block; one entry for a dense operand, none for rank 0
  bool unit;                       // the last block's stride is 1; the other strides are launch arguments
};

/// Where an access reads or writes: element offset = sum over blocks of stride[b] * (at[b] + value of extra[b]).
/// With a guard, the access happens only where the guard is true; a guarded load gives zero bits elsewhere.
struct Map {
  std::vector<Linear> at;     // one a block of the operand
  std::vector<Val> extra;     // one a block; an index value (i64), or kNoVal
  Val guard = kNoVal;         // a bool value
};

enum class Kind : uint8_t {
  load,      // operand, map; converts from the storage type to the compute type
  store,     // args[0]; operand, map; converts to the storage type, rounding once
  iota,      // map.at[0] as an i64
  constant,  // bits (of compute_type(type); f16, bf16, f8 as the bits of their f32 value)
  dim,       // the value of `dim` as an i64: a size known at launch
  compute,   // op over args: exact or formula (never view, reduce or composite)
  result,    // result `index` of reduction `reduction`
};

/// One SSA value. It is held in compute_type(type): f8, f16 and bf16 live in f32 registers, integers and bool in their own type.
struct Inst {
  Kind kind;
  Op op = Op::constant;       // compute; its attributes follow
  DType type = DType::f32;
  std::vector<Val> args;
  AxisSet varies = 0;         // axes it depends on, through args and map
  bool rounds = false;        // narrow floats: the register is rounded to `type` here (cast always is)
  uint8_t relax = 0;          // set of Relax
  double alpha = 0, beta = 0; // scalars of a formula, in its card's order
  uint16_t operand = 0;       // load, store
  Map map;                    // load, store, iota
  uint64_t bits = 0;          // constant
  Dim dim;                    // dim
  uint16_t reduction = 0, index = 0;  // result
  NodeId origin = ~NodeId{0}; // graph node it computes, for explain, dumps and errors
};

/// How a reduction folds. `op` is the reduce card; pairs are what merge_sweeps puts in place of two reductions.
enum class Fold : uint8_t {
  op,       // sum prod reduce_min reduce_max any all; argmax, argmin: inputs {x, position}, results {index}
  online,   // inputs {x}: results {max, sum of exp(x - max)}, one sweep, rescaled
  welford,  // inputs {x}: results {mean, sum of squared deviations}, one sweep, Chan's merge
};

struct Reduction {
  Fold fold = Fold::op;
  Op op = Op::sum;
  std::vector<Val> inputs;   // element values; argmax, argmin: the second is the position within the reduced axes (i64)
  std::vector<Val> results;  // row values
  DType accumulate = DType::f32;  // type of the running value: f32 for f8, f16, bf16, f32; integers and bool their own
  bool last = false;         // argmax, argmin: of equal values the larger position wins
  /// A scan: its results are element values, the fold of all elements up to this one along the only reduced axis. They are known in the
  /// sweep that folds. A kernel's reductions are scans all or none, and all in one direction.
  bool scan = false, exclusive = false, reverse = false;
};

/// One pass over the reduced axes of a row: fold these, then (in the same pass) store those.
struct Sweep {
  std::vector<uint16_t> reductions;
  std::vector<Val> stores;   // stores whose value or map varies along a reduced axis
};

struct Kernel {
  std::vector<Axis> axes;       // outermost first; neighbours that every access walks alike are already one
  std::vector<Operand> operands;
  std::vector<Inst> values;     // topological
  std::vector<Reduction> reductions;
  std::vector<Sweep> sweeps;    // at least one
  std::vector<Val> row_stores;  // stores of row values: after the last sweep, once a row
  std::vector<std::pair<uint16_t, uint16_t>> in_place;  // (input operand, output operand) that may share memory exactly

  AxisSet reduced_axes() const;
  AxisSet kept_axes() const;
  bool has_reductions() const { return !reductions.empty(); }
  bool scans() const { return has_reductions() && reductions[0].scan; }
  /// First sweep in which a value can be computed: 0, or one more than the sweep of the last reduction it needs.
  std::vector<uint16_t> stages() const;
};

struct BuildOptions {
  Numerics numerics = Numerics::strict;
  std::vector<Layout> inputs, outputs;  // one a group input and output; empty = all dense
};

/// Group to Kernel.
/// Takes    a group of a verified, decomposed graph (no composites), dims static or symbolic.
/// Returns  axes, maps, sweeps and reductions; no target, no sizes.
/// Errors   a refusal (kind input) whose message begins with a stable code and a colon: "two-axis-sets: …", "not-one-domain: …",
///          "reduction-recomputed: …", "scan-…: …", "too-many-axes: …". The planner asks before it merges.
/// Source   index maps by pulling coordinates from outputs to inputs; reshapes by refining the domain's axes.
Result<Kernel> build(const Graph& graph, const Group& group, const BuildOptions& options = {});

/// Readable text of a kernel: axes, operands, values, sweeps. For `fusec emit --as plan`, tests and errors.
std::string print(const Kernel& kernel);

}  // namespace fusec
