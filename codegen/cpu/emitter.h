#pragma once
// From kernel values to LLVM values, wherever the skeletons want them: a Frame says which indices are known at a place
// of the loop nest and which values have been computed there; `hoist` computes what already can be, `evaluate` the
// rest. So each value is computed at the outermost level that knows its axes, and no back-end pass has to find that out
// again.

#include <span>

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Module.h>

#include "codegen/cpu/cells.h"
#include "codegen/cpu/cpu.h"

namespace fusec::cpu {

/// Values and addresses known at one place of the loop nest. Inner frames are copies of outer ones.
struct Frame {
  AxisSet known = 0;                  // axes with an index; the vector axis: the lanes are known too
  std::vector<llvm::Value*> index;    // one an axis: i64, of the vector axis that of lane 0
  std::vector<llvm::Value*> value;    // one a kernel value; a vector when it varies along the vector axis
  std::vector<llvm::Value*> wide;     // the same, repeated into a vector where that was needed
  std::vector<llvm::Value*> inverse;  // 1 / value, repeated, of row values that divide
  struct Address {
    llvm::Value* at = nullptr;  // load, store: pointer; iota: i64. Holds the contribution of these axes and extras:
    AxisSet axes = 0;
    uint16_t extras = 0;
  };
  std::vector<Address> address;  // one a kernel value: loads, stores, iota
  llvm::Value* mask = nullptr;   // lanes that are alive; null = all
  unsigned unit = 0;             // joint lanes: which vector of its group this is
  bool comb = false;             // one of the indices of a comb axis, all evaluated together
  llvm::Value* left = nullptr;   // comb, masked: indices of the vector axis from this vector's first to the end
  bool tile = false;             // one of `width` neighbours along the tile axis, all evaluated together
};

class Emitter {
 public:
  Emitter(const Kernel& kernel, const Schedule& schedule, const Device& device, llvm::Module& module);

  using V = llvm::Value*;
  using Body = llvm::function_ref<void(V)>;

  // --- functions and control flow ---
  /// Starts a function with the entry ABI; leaves the builder behind its entry block. Returns (begin, end).
  std::pair<V, V> begin(const std::string& name);
  void end();
  void loop(V from, V to, V step, Body body);              // while (i < to)
  void walk(V from, V to, llvm::function_ref<V(V)> body);  // the same; body gives the next index
  void when(V condition, llvm::function_ref<void()> body);
  void choose(V condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no);
  /// A variable of the current function, in its entry block; becomes a register.
  V variable(llvm::Type* type, const char* name);

  // --- call arguments ---
  V slot(Slot slot);
  V extent(size_t axis);  // a literal where the kernel knows it
  V dim(const Dim& dim);

  // --- values ---
  Frame root();
  /// What `roots` need, in order; results of reductions are taken as given, and so is `given`.
  std::vector<Val> needed(const std::vector<Val>& roots, Val given = kNoVal) const;
  /// Computes all values of `list` that can be computed where `frame` stands, and prepares addresses of its accesses.
  void hoist(Frame& frame, const std::vector<Val>& list);
  /// Computes `list` at each frame, side by side, and performs its stores last. Frames are rows of `lanes` vectors
  /// each: what does not vary along a kept axis is computed once for all rows, what does not vary along the vector axis
  /// once a row.
  void evaluate(std::span<Frame> frames, size_t lanes, const std::vector<Val>& list);
  /// The value as a vector.
  V wide(Frame& frame, Val v);
  V splat(V scalar);
  V inverse(Frame& frame, Val v);
  /// `value`, computed in the compute type of `from`, in the register type of `to`.
  V cast(V value, DType from, DType to) { return Convert{b, native_half_}.cast(value, from, to); }
  /// `value`, of compute type `from`, as the register of `inst`: cast, and rounded where it says so.
  V narrowed(V value, DType from, const Inst& inst) {
    Convert convert{b, native_half_};
    if (compute_type(inst.type) != compute_type(from)) value = convert.cast(value, from, inst.type);
    return inst.rounds ? convert.round(value, inst.type) : value;
  }
  bool is_vector(Val v) const { return kernel.values[v].varies & vector_bit; }
  /// Address of lane 0 of a contiguous access at `frame`.
  V address(Frame& frame, Val v);
  bool differs(Val v, AxisSet axes) const { return kernel.values[v].varies & axes; }
  V step(Val v, size_t axis);  // elements from one index of an axis to the next
  bool contiguous(Val v) const;
  const Access& access(Val v) const { return schedule.access[ordinal_[v]]; }
  uint32_t ordinal(Val v) const { return ordinal_[v]; }  // of a load or store among all
  V lanes(V first);                                      // first + <0, 1, 2 …>, i64
  V lane_index(const Frame& frame, size_t axis);         // of each lane along an axis of vector_bit
  V alive(V from, V to);                                 // lanes below to
  V i64(int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); }

  const Kernel& kernel;
  const Schedule& schedule;
  llvm::Module& module;
  llvm::LLVMContext& context;
  Builder b;
  size_t vector_axis;
  AxisSet vector_bit;  // axes that lanes differ in; 0 when the kernel has no axes
  // Joint lanes: a short inner axis of this known extent is walked together with the vector axis, as if they were one.
  // A group of `side` vectors covers whole indices of the vector axis, so lane l of vector u always has the same index
  // along the short one.
  size_t joint_axis = ~size_t{0};
  int64_t joint = 1;
  AxisSet tile_bit = 0;  // second axis of a square tile (cpu_tile); frames of a tile differ in its index
  // Comb: a short inner axis of this known extent, all of whose indices are evaluated together. What lies in memory
  // with that axis innermost is read as whole vectors and combed apart in registers.
  size_t comb_axis = ~size_t{0};
  int64_t comb = 1;
  unsigned width;           // lanes of a vector
  unsigned side;            // vectors side by side
  bool bypass = false;      // stores that may go around the cache do so
  bool fetch_reads = true;  // loads that ask for prefetching get it
  std::string fault;        // what could not be emitted; "" = nothing
  std::vector<Slot> slots;  // in the order of the argument block

 private:
  enum class Rounding : uint8_t { none, plain, full };
  Rounding rounding(Val v) const;    // what rounding a compute value to its own type takes
  bool divides_by_row(Val v) const;  // a division by a row value that may use its reciprocal
  bool ready(const Frame& frame, Val v) const;
  void settle(Frame& frame, Val v);  // folds known axes and extras into the address
  V compute(Frame& frame, Val v);
  V load(Frame& frame, Val v);
  V iota(Frame& frame, Val v);
  void store(Frame& frame, Val v);
  void prefetch(Frame& frame, Val v, bool write);
  V pointers(Frame& frame, Val v);  // one a lane
  void load_tile(std::span<Frame> frames, Val v);
  void store_tile(std::span<Frame> frames, Val v);
  std::vector<V> tile_rows(Frame& first, Val v);  // where each row of the tile begins
  void transpose(std::vector<V>& rows);
  void load_comb(std::span<Frame> frames, size_t lanes, Val v);
  void store_comb(std::span<Frame> frames, size_t lanes, Val v);
  V comb_mask(const Frame& frame, size_t k);  // live elements of the k-th whole vector; null = all
  V stored_bits(Frame& frame, Val v);         // what a store writes, as memory bits
  V live(Frame& frame, Val v);                // mask and guard together; null = all
  V zeros();                                  // memory that holds zero bits, for loads whose guard is false

  bool native_half_;
  bool native_fma_;
  std::vector<uint32_t> ordinal_;  // of a load or store
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;  // arguments and variables; ends in a jump to the body
  V args_ = nullptr, zeros_ = nullptr;
  std::vector<V> loaded_;  // of each slot, in the current function
};

}  // namespace fusec::cpu
