#pragma once
// What the emitter and the schedule both read off a kernel: accesses, spaces of axes, steps, levels of values.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule.h"

namespace fusec::cuda {

/// a / b rounded up, of what is not negative; 0 for b = 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return b ? (a + b - 1) / b : 0; }

/// Where a value lives: known in the text, once a row (for pointwise: once a call), or for every lane step.
enum class Level : uint8_t { constant, row, element };

/// A kernel seen through a vector axis and a template.
struct View {
  const Kernel& kernel;
  unsigned vector_axis = 0;
  AxisSet row_axes = 0;             // axes whose values are computed once a row
  std::vector<uint32_t> access_of;  // value → number of its load or store; ~0u for others
  std::vector<Val> accesses;        // number → value
  std::vector<uint16_t> stages;
  bool flat = false;                // pointwise: a lane's vector runs on across the ends of the vector axis

  explicit View(const Kernel& kernel, unsigned vector_axis = 0);

  Level level(Val v) const;
  /// Does it differ between the elements of a lane's vector?
  bool wide(Val v) const {
    const Inst& inst = kernel.values[v];
    return inst.kind != Kind::constant && (flat ? inst.varies != 0 : inst.varies >> vector_axis & 1);
  }
  /// Step of an access per step of the linear number of a space, when it walks all of the space's axes as that number does.
  std::optional<Dim> linear(const Inst& access, bool reduced) const;
  /// Axes of the kept or reduced space, outermost first, the vector axis last where it belongs to the space.
  std::vector<unsigned> space(bool reduced) const;
  /// Everything `targets` need, ascending; walks args, guards and extras. Values for which `stop` holds are left out; what only a
  /// `leaf` needs is left out too.
  template <class Stop, class Leaf> std::vector<Val> needed(const std::vector<Val>& targets, Stop stop, Leaf leaf) const;
  template <class Stop> std::vector<Val> needed(const std::vector<Val>& targets, Stop stop) const {
    return needed(targets, stop, [](Val) { return false; });
  }
  /// Element values a fold sweep works on: inputs of its reductions.
  std::vector<Val> fold_inputs(size_t sweep) const;
  /// All stores of the sweeps that vary along a lane's steps (for pointwise: all stores), and the others.
  std::vector<Val> element_stores() const, row_stores() const;
  size_t folds() const;             // sweeps that reduce
};

/// Elements an access moves for one step of an axis: 0, a Dim, or (nullopt) a stride that only the call knows.
std::optional<Dim> step(const Kernel& kernel, const Inst& access, unsigned axis);

/// The length of a row where the kernel's text knows it, else 0.
int64_t known_columns(const Kernel& kernel);
/// Value → is it read behind the stage that computes it: by an element, by a store, by a reduction or in a later sweep? Of row values these are the
/// ones that a row keeps; a result that varies within a lane's vector is one.
std::vector<char> outlives_stage(const View& view);

/// Numbers of the loads that vary along all axes.
std::vector<size_t> element_loads(const View& view);

/// A load that varies along the vector axis alone: a parameter of the columns.
bool is_parameter(const View& view, Val load);

/// Is its place computed (a gather)? Does a guard say for each element of a vector whether it is there?
bool is_computed(const Inst& access);
bool is_guarded(const View& view, const Inst& access);

/// Bytes of the largest piece in which a lane may take its vector of an access, by itself and in every row: 16 at most, the element's size
/// at least. What travels through slots or tiles is not bound by it.
int64_t largest_piece(const View& view, const Schedule& schedule, const Facts& facts, size_t access);

/// Type in which a value of the cut is kept: a load as it is stored; a value that is rounded to its narrow type is exact in it.
DType kept_type(const Kernel& kernel, Val v);

/// Does an element go through a formula, of however few terms?
bool takes_formulas(const View& view);

/// Rows in registers: are they unpacked again in each sweep, rather than kept as what a sweep computed of them? Short rows keep it (exp of each
/// element is then taken once); where no formula is taken a block does not: registers for another block beside it are worth more (layer_norm bf16
/// [12288], 3 blocks: 80 bytes of spills).
bool unpacks_again(const View& view, const Schedule& schedule);

/// Transpose: the axis that staged operands are contiguous along, and bytes of shared memory of one staged operand.
inline int tile_axis(const Schedule& s) {
  for (int k = 0; k < int(kMaxAxes); ++k)
    if (k != s.vector_axis && s.block[k]) return k;
  return -1;
}
inline size_t stage_bytes(size_t tile, size_t size) {
  const size_t per_unit = size < 4 ? 4 / size : 1, unit = size == 8 ? 8 : 4;
  return (tile * (tile / per_unit + 1) * unit + 15) / 16 * 16;
}

/// The load of bytes that a reduction sums as f32: whole numbers, so a vector's words are added as they are (sum_bytes of cells.cuh). kNoVal: it sums
/// something else.
Val summed_bytes(const Kernel& kernel, const Reduction& reduction);
/// Does the kernel do nothing else than that, in one sweep?
bool sums_bytes(const Kernel& kernel);

/// Would the access walk this axis with step 1 in a dense call? From the kernel alone: strides of one call must not decide who owns which
/// element.
bool walks(const Inst& access, unsigned axis);

/// Rows in aligned windows: what they are aligned to, in elements. In the ring, and where lanes take a word of memory at a time, lines of 128 bytes,
/// so that a warp's loads and stores are whole lines; else vectors. 1: rows begin where they begin.
int64_t window_of(const View& view, const Schedule& schedule);
/// Rows in aligned windows, in registers or the ring: do lanes take a word at a time?
bool by_words(const View& view, const Schedule& schedule);

/// Columns in windows (edges=window): aligned pieces of memory go to a lane as they lie, whatever column they begin with, and are put into place once a
/// part; so a block's last lane belongs to the next block as well. Blocks of a run of columns.
inline int64_t column_blocks(const Schedule& s, int64_t columns) {
  const int64_t V = std::max<int>(1, s.lane[s.vector_axis]), X = s.lanes_per_row;
  return s.edges == Edges::window ? std::max<int64_t>(1, ceil_div(columns - 1, (X - 1) * V)) : ceil_div(columns, X * V);
}
/// May a kernel's columns be taken so, by V a lane? From types and constant extents alone: one run of columns, one sweep into running states, vectors of
/// 16 bytes, and nothing that was loaded for the lane's own columns.
bool may_slide(const View& view, unsigned V);
/// Are all vectors of elements fetched so in this call?
bool slides(const View& view, const Schedule& schedule);

/// Threads of a block: those of the schedule, and the ring's helpers (producer, publisher; gatherer in clusters and teams; parameters that come again).
inline int block_threads(const Schedule& s) {
  if (s.skeleton != Template::ring) return s.threads;
  return s.threads + 64 + (s.cluster > 1 || s.team ? 32 : 0) + (s.slots && s.column_slots && s.column_slots < s.slices ? 32 : 0);
}

/// Calls `f` with every value that `inst` reads: arguments, extras, guard.
template <class F> void each_operand(const Inst& inst, F f) {
  for (Val v : inst.args) f(v);
  for (Val v : inst.map.extra)
    if (v != kNoVal) f(v);
  if (inst.map.guard != kNoVal) f(inst.map.guard);
}

template <class Stop, class Leaf>
std::vector<Val> View::needed(const std::vector<Val>& targets, Stop stop, Leaf leaf) const {
  std::vector<char> seen(kernel.values.size(), 0);
  std::vector<Val> stack = targets, out;
  while (!stack.empty()) {
    const Val v = stack.back();
    stack.pop_back();
    if (seen[v] || stop(v)) continue;
    seen[v] = 1;
    if (leaf(v)) continue;
    each_operand(kernel.values[v], [&](Val w) { stack.push_back(w); });
    // A reduction's result is a row value: its inputs belong to an earlier sweep.
  }
  for (Val v = 0; v < seen.size(); ++v)
    if (seen[v]) out.push_back(v);
  return out;
}

}  // namespace fusec::cuda
