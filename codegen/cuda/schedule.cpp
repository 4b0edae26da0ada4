// Choosing a schedule: pure, from extents, strides and alignment. The figures behind the choices were measured on an H200
// (docs/cuda.md): what matters is that every access is wide, that a multiprocessor has ~48 KiB outstanding, that a row is read
// once, and that nothing spills.

#include <algorithm>
#include <bit>

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/ring.h"
#include "codegen/cuda/shape.h"
#include "codegen/cuda/states.h"
#include "codegen/cuda/tiles.h"
#include "lib/kernel/merge_sweeps.h"

namespace fusec::cuda {
namespace {

int64_t pow2_floor(int64_t n) { return n < 1 ? 1 : int64_t(std::bit_floor(uint64_t(n))); }
int64_t pow2_ceil(int64_t n) { return n < 1 ? 1 : int64_t(std::bit_ceil(uint64_t(n))); }

/// Everything that the choices below look at.
struct Scene {
  const Kernel& kernel;
  const Facts& facts;
  const Device& device;
  View view;
  Schedule s;
  unsigned V = 1;
  int64_t loaded = 0;   // bytes a lane step loads that vary with everything: what has to be in flight
  int64_t stored = 0;   // bytes a lane step stores
  int heavy = 0;        // arithmetic an element, in adds
  bool formulas = false;  // some element goes through a formula, not only through an exp of few terms
  bool reduces = false;
  bool column = false;

  size_t size(Val access) const { return bytes(kernel.operands[kernel.values[access].operand].type); }
};

/// The axis along which most bytes are neighbours; stores count twice, since scattered stores cost more than scattered loads.
unsigned choose_vector_axis(const Kernel& kernel, const Facts& facts) {
  double best = -1;
  unsigned axis = 0;
  for (unsigned k = 0; k < kernel.axes.size(); ++k) {
    double weight = 0;
    for (const Inst& inst : kernel.values) {
      if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
      // A batch of one row is a batch: its axis stays in the choice.
      const bool batch = kernel.has_reductions() && !kernel.axes[k].reduced && !kernel.axes[k].extent.is_constant();
      if (!walks(inst, k) || (facts.extents[k] < 2 && !batch)) continue;
      double image = double(bytes(kernel.operands[inst.operand].type)) * (inst.kind == Kind::store ? 2 : 1);
      for (unsigned j = 0; j < kernel.axes.size(); ++j)
        if (inst.varies >> j & 1) image *= double(facts.extents[j]);
      weight += image;
    }
    // Ties and scalars: the innermost axis, reduced ones first.
    const bool later = weight == best && (kernel.axes[k].reduced || !kernel.axes[axis].reduced);
    if (weight > best || later) best = weight, axis = k;
  }
  return axis;
}

int64_t vector_extent(const Scene& c) { return c.kernel.axes.empty() ? 1 : c.facts.extents[c.s.vector_axis]; }

/// Bytes of the widest element that a lane's vector moves.
int64_t widest_size(const Scene& c) {
  int64_t size = 1;
  for (Val v : c.view.accesses)
    if (c.kernel.values[v].varies >> c.s.vector_axis & 1) size = std::max(size, int64_t(c.size(v)));
  return size;
}

/// Elements of a lane's vector: 16 bytes of the widest store, at most 32 of the widest load.
void choose_vector(Scene& c) {
  int64_t most = 16, least = 16;
  for (Val v : c.view.accesses) {
    const Inst& inst = c.kernel.values[v];
    if (!(inst.varies >> c.s.vector_axis & 1)) continue;
    const int64_t size = int64_t(c.size(v));
    // A store of row values comes once a row: it takes what the loads give it.
    if (inst.kind == Kind::store && c.reduces && !(inst.varies & c.kernel.reduced_axes())) continue;
    least = std::min(least, size);
    most = std::min<int64_t>(most, inst.kind == Kind::store || c.column ? 16 / size : 32 / size);
  }
  int64_t V = std::clamp<int64_t>(std::min(most, 16 / least), 1, 16);
  // More live values than registers: 30 operands of 16 bytes each do not fit.
  int64_t words = 0;
  for (Val v : c.view.accesses)
    if (c.kernel.values[v].kind == Kind::load && c.view.wide(v)) words += ceil_div(V * int64_t(c.size(v)), 4);
  while (V > 1 && words > 48) V /= 2, words /= 2;
  const int64_t extent = vector_extent(c);
  int64_t others = 1;
  if (!c.kernel.axes.empty())
    for (unsigned k = 0; k < c.kernel.axes.size(); ++k)
      if (k != c.s.vector_axis && c.kernel.axes[k].reduced == c.kernel.axes[c.s.vector_axis].reduced) others *= c.facts.extents[k];
  bool alone = true;  // there is one row, in every call
  for (const Axis& axis : c.kernel.axes) alone &= axis.reduced || axis.extent.is(1);
  const bool single = c.kernel.axes.empty() || (others == 1 && (!c.reduces || c.column || alone));
  c.s.edges = Edges::full;
  if (extent % V) {
    // Vectors never cross the end of a run: either there is one run, with a short last vector, or V divides the run.
    int64_t dividing = V;
    while (extent % dividing) dividing /= 2;
    // Or they are aligned within the whole: a row of odd length begins and ends inside a vector (held rows), or a vector runs on
    // into the next row (pointwise).
    const bool windows = dividing * widest_size(c) < (c.reduces && extent * widest_size(c) > 32 * 1024 ? 16 : 8) && (c.reduces ? !c.column && others == 1 && extent >= 16 * V : c.facts.rows >= 16 * V);
    if (single && extent > V) c.s.edges = Edges::tail;
    else if (windows) c.s.edges = Edges::window, c.view.flat = !c.reduces;
    else V = dividing;
  }
  c.V = unsigned(V);
  if (!c.kernel.axes.empty()) c.s.lane[c.s.vector_axis] = uint16_t(V);
}

/// What every value of an index is a multiple of: row i of 1024 columns begins at i * 1024.
int64_t factor_of(const Kernel& kernel, Val index) {
  const Inst& inst = kernel.values[index];
  if (inst.kind == Kind::constant) return int64_t(inst.bits);
  if (inst.kind != Kind::compute || inst.op != Op::mul) return 1;
  for (Val arg : inst.args)
    if (kernel.values[arg].kind == Kind::constant) return int64_t(kernel.values[arg].bits);
  return 1;
}

/// Width of the pieces each access is fetched in: what this call's address and strides allow.
void choose_pieces(Scene& c) {
  const unsigned axis = c.s.vector_axis;
  for (size_t i = 0; i < c.view.accesses.size(); ++i) {
    const Val v = c.view.accesses[i];
    const Inst& inst = c.kernel.values[v];
    const int64_t size = int64_t(c.size(v));
    Access a;
    int64_t piece = size;
    const bool computed = std::any_of(inst.map.extra.begin(), inst.map.extra.end(), [](Val x) { return x != kNoVal; });
    // A gathered row: one index for the whole vector, which moves it by so many elements.
    const bool row = computed && inst.map.extra.size() == 1 && c.kernel.operands[inst.operand].unit && !c.view.wide(inst.map.extra[0]) &&
                     c.s.edges != Edges::window;
    const int64_t moved = row ? factor_of(c.kernel, inst.map.extra[0]) * size : 0;
    const bool guarded = inst.map.guard != kNoVal && c.view.wide(inst.map.guard);
    const Facts::Access& f = c.facts.access[i];
    const bool neighbours = c.view.flat ? c.view.linear(inst, false) == Dim(1) : f.step[axis] == 1;
    if (c.view.wide(v) && (!computed || row) && !guarded && neighbours) {
      piece = std::min<int64_t>(16, size * c.V);
      auto fits = [&](int64_t p) {
        if (f.align % p || moved % p) return false;
        if (c.view.flat) return true;
        // Windows move against the rows: a row's start is a multiple of V when rows follow each other without gaps.
        int64_t row = c.s.edges == Edges::window ? c.facts.columns : 0;
        const std::vector<unsigned> kept = c.view.space(false);
        std::vector<int64_t> against(c.kernel.axes.size(), 0);
        for (size_t n = kept.size(); n-- > 0;) against[kept[n]] = row, row *= c.facts.extents[kept[n]];
        for (unsigned k = 0; k < c.kernel.axes.size(); ++k)
          if (k != axis && c.facts.extents[k] > 1 && (f.step[k] - against[k]) * size % p) return false;
        return true;
      };
      while (piece > size && !fits(piece)) piece /= 2;
    }
    a.bytes = uint8_t(piece);
    const AxisSet all = AxisSet((1u << c.kernel.axes.size()) - 1);
    a.streamed = inst.kind == Kind::load && c.view.wide(v) && inst.varies == all && piece >= 4 && !computed && !guarded;
    c.s.access.push_back(a);
  }
}

/// Is the formula of this op a few instructions (body.cpp)? A composite grants it.
bool has_few_terms(const Inst& inst) {
  return (inst.op == Op::exp && (inst.relax & (kFewerTerms | kNear))) ||
         ((inst.op == Op::sigmoid || inst.op == Op::silu) && (inst.relax & kFewerTerms));
}

/// Loads, stores and arithmetic of a lane step.
void measure(Scene& c) {
  const AxisSet all = AxisSet((1u << c.kernel.axes.size()) - 1);
  for (Val v = 0; v < c.kernel.values.size(); ++v) {
    const Inst& inst = c.kernel.values[v];
    const int64_t lane = c.view.wide(v) ? c.V : 1;
    if (inst.kind == Kind::load && inst.varies == all) c.loaded += lane * int64_t(c.size(v));
    if (inst.kind == Kind::store && (inst.varies == all || !c.reduces)) c.stored += lane * int64_t(c.size(v));
    if (inst.kind != Kind::compute || c.view.level(v) != Level::element) continue;
    // Liberties of composites (body.cpp): exp in hardware, a division by a row value as a multiplication.
    const bool few = has_few_terms(inst);
    const bool reciprocal = inst.op == Op::div && (inst.relax & kReciprocal) && c.view.level(inst.args[1]) == Level::row;
    c.formulas |= !few && info(inst.op).form == Form::formula;
    c.heavy += few ? 3 : reciprocal ? 1 : info(inst.op).cost;
  }
}

/// Blocks a multiprocessor holds when a thread takes about `registers`.
uint16_t blocks_for(int threads, int64_t registers) {
  const int64_t rounded = std::clamp<int64_t>((registers + 7) / 8 * 8, 24, 255);
  return uint16_t(std::clamp<int64_t>(65536 / (threads * rounded), 1, std::min(16, 2048 / threads)));
}

void pointwise(Scene& c) {
  c.s.skeleton = Template::pointwise;
  c.s.threads = 256;
  // 2048 threads that move 32 bytes each reach the copy rate; with more arithmetic a byte fewer threads fit and each needs more in flight
  // (gelu, silu: 2 vectors; int8 dequantise and requantise: 4).
  const int64_t moved = std::max<int64_t>(1, c.loaded + c.stored);
  const bool arithmetic = c.formulas || c.heavy * int64_t(c.V) >= 3 * moved;
  int64_t U = std::clamp<int64_t>(pow2_ceil(ceil_div(arithmetic ? 64 : 32, moved)), 1, 8);
  while (U > 1 && U * c.stored > 32) U /= 2;  // stores leave at their own pace: u8 images to f32 0.96 with 2 vectors, 0.94 with 4
  c.s.rows_in_flight = uint16_t(U);
  // Much in flight of little arithmetic a byte is asked for by smaller blocks, which come and go more evenly (int8 dequantise: 1.04 of the copy
  // rate, by blocks of 256 1.02).
  if (U >= 4) c.s.threads = 128;
  const int64_t registers = 20 + U * ceil_div(c.loaded, 4) + c.V * 2 + (c.heavy > 8 ? 14 : 0) + int64_t(c.view.accesses.size()) * 2;
  c.s.min_blocks = blocks_for(c.s.threads, registers);
  // One load of 16 bytes a vector: full occupancy costs no spills and is worth it (gelu of bf16: 32 registers 1.006 of the copy rate, 36 0.964).
  if (c.formulas && U * c.loaded <= 32) c.s.min_blocks = uint16_t(2048 / c.s.threads);
}

/// Loads that are contiguous along another axis than the vector axis are staged through shared memory, when both axes are long
/// enough for tiles. False: none is.
bool transpose(Scene& c) {
  Schedule& s = c.s;
  const unsigned j = s.vector_axis;
  if (c.kernel.axes.size() < 2 || c.facts.extents[j] < 16) return false;
  auto fits = [&](Val v, unsigned axis) {
    const Inst& inst = c.kernel.values[v];
    if (inst.kind != Kind::load || inst.map.guard != kNoVal || !(inst.varies >> j & 1) || walks(inst, j)) return false;
    for (Val x : inst.map.extra)
      if (x != kNoVal) return false;
    return walks(inst, axis);
  };
  double most = 0;
  unsigned best = j;
  size_t smallest = 8, largest = 1;
  for (unsigned i = 0; i < c.kernel.axes.size(); ++i) {
    if (i == j || c.facts.extents[i] < 16) continue;
    double weight = 0;
    for (Val v : c.view.accesses)
      if (fits(v, i)) weight += double(c.size(v));
    if (weight > most) most = weight, best = i;
  }
  if (best == j) return false;
  std::vector<size_t> staged;
  for (size_t n = 0; n < c.view.accesses.size(); ++n) {
    const Val v = c.view.accesses[n];
    if (fits(v, best)) staged.push_back(n);
    if (c.kernel.values[v].varies >> j & 1) smallest = std::min(smallest, c.size(v)), largest = std::max(largest, c.size(v));
  }
  // Both sides of a tile are at least 128 contiguous bytes; wide types take smaller tiles, or registers run out.
  size_t T = largest == 8 ? 32 : smallest == 1 && largest <= 2 ? 128 : 64;
  size_t bytes = 0;
  for (size_t n : staged) bytes += stage_bytes(T, c.size(c.view.accesses[n]));
  while (bytes > 40 * 1024 && staged.size() > 1) bytes -= stage_bytes(T, c.size(c.view.accesses[staged.back()])), staged.pop_back();
  // Vectors along j end where the axis ends: a short one is masked.
  size_t widest_store = 1;
  for (Val v : c.view.accesses)
    if (c.kernel.values[v].kind == Kind::store) widest_store = std::max(widest_store, c.size(v));
  c.V = unsigned(std::min<size_t>({16 / widest_store, 16, 32 / largest}));
  s.lane[j] = uint16_t(c.V);
  c.view.flat = false;
  s.edges = c.facts.extents[j] % c.V ? Edges::tail : Edges::full;
  s.access.clear();
  choose_pieces(c);
  for (size_t n : staged) {
    Access& a = s.access[n];
    const int64_t size = int64_t(c.size(c.view.accesses[n]));
    const Facts::Access& f = c.facts.access[n];
    int64_t piece = f.step[best] == 1 ? 16 : size;
    auto aligned = [&](int64_t p) {
      for (unsigned k = 0; k < c.kernel.axes.size(); ++k)
        if (k != best && c.facts.extents[k] > 1 && f.step[k] * size % p) return false;
      return f.align % p == 0;
    };
    while (piece > size && !aligned(piece)) piece /= 2;
    a.bytes = uint8_t(piece);
    a.staged = 1;
    a.streamed = piece >= 4;
  }
  s.skeleton = Template::transpose;
  s.threads = 256;
  s.block[j] = s.block[best] = uint16_t(T);
  int64_t words = 0;
  for (size_t n = 0; n < c.view.accesses.size(); ++n)
    if (c.kernel.values[c.view.accesses[n]].kind == Kind::load) words += int64_t(T * T * c.size(c.view.accesses[n])) / 4 / s.threads;
  s.min_blocks = std::min<uint16_t>(blocks_for(s.threads, 30 + words + c.V * 2 + (c.heavy > 8 ? 14 : 0)), 6);
  return true;
}

/// One element value that every later one can be computed from without a streamed load, and that is smaller than those loads:
/// after x + residual rounded to bf16, the sum is kept, not its operands.
std::vector<Val> choose_cut(const Scene& c) {
  const AxisSet all = AxisSet((1u << c.kernel.axes.size()) - 1);
  std::vector<Val> targets = c.view.element_stores();
  for (size_t i = 0; i < c.view.folds(); ++i)
    for (Val v : c.view.fold_inputs(i)) targets.push_back(v);
  auto streams = [&](const std::vector<Val>& values) {
    std::vector<Val> out;
    for (Val v : values)
      if (c.kernel.values[v].kind == Kind::load && c.kernel.values[v].varies == all) out.push_back(v);
    return out;
  };
  auto element = [&](Val v) { return c.view.level(v) != Level::element; };
  const std::vector<Val> needed = c.view.needed(targets, element);
  const std::vector<Val> loads = streams(needed);
  int64_t cost = 0;
  for (Val v : loads) cost += int64_t(c.size(v));
  if (loads.size() < 2) return loads;
  for (Val h : needed) {
    const Inst& inst = c.kernel.values[h];
    if (inst.kind != Kind::compute || inst.varies != all || c.view.stages[h] != 0) continue;
    if (int64_t(bytes(kept_type(c.kernel, h))) >= cost) continue;
    const std::vector<Val> rest = c.view.needed(targets, element, [&](Val v) { return v == h; });
    if (streams(rest).empty()) return {h};
  }
  return loads;
}

/// A row in the shared memory of a block or a cluster: about 64 KiB a block, so that several blocks of a multiprocessor overlap
/// their loads and stores; more where the cluster would be too large. False: it does not fit.
bool shared_rows(Scene& c, const std::vector<Val>& cut, int64_t bytes) {
  Schedule& s = c.s;
  const int64_t room = c.device.shared_per_block - 8 * 1024;
  int64_t cluster = 1;
  const int64_t portable = std::min(8, c.device.max_cluster);
  while (cluster < portable && bytes > cluster * 72 * 1024) cluster *= 2;
  while (cluster < c.device.max_cluster && bytes > cluster * room) cluster *= 2;
  if (bytes > cluster * room || bytes / cluster < 4096) return false;
  s.keep = cluster > 1 ? Keep::cluster : Keep::shared;
  s.cut = cut;
  s.cluster = uint16_t(cluster);
  s.threads = 512;
  s.lanes_per_row = 512;
  const int64_t U = pow2_floor(std::clamp<int64_t>(64 / std::max<int64_t>(c.loaded, 4), 1, 4));
  s.rows_in_flight = uint16_t(U);
  s.min_blocks = uint16_t(std::clamp<int64_t>(room / std::max<int64_t>(1, bytes / cluster), 1, 2));
  return true;
}

/// Do elements go through a formula, in all its terms, before they are reduced?
bool folds_formulas(const Scene& c) {
  for (size_t i = 0; i < c.view.folds(); ++i)
    for (Val v : c.view.needed(c.view.fold_inputs(i), [&](Val v) { return c.view.level(v) != Level::element; }))
      if (c.kernel.values[v].kind == Kind::compute && info(c.kernel.values[v].op).form == Form::formula && !has_few_terms(c.kernel.values[v])) return true;
  return false;
}

/// A row as its lanes see it.
struct Row {
  int64_t vectors;     // of all lanes together
  int64_t kept, held;  // 32-bit words of a vector: of the cut, and of its loads where these are more
  int64_t steps(int64_t lanes) const { return ceil_div(vectors, lanes); }
};

Row row_of(const Scene& c, const std::vector<Val>& cut) {
  int64_t words = 0, raw = 0;
  auto in_words = [&](int64_t size, Val v) { return ceil_div(size * (c.view.wide(v) ? c.V : 1), 4); };
  for (Val v : cut) words += in_words(int64_t(bytes(kept_type(c.kernel, v))), v);
  for (Val v : c.view.needed(cut, [&](Val v) { return c.view.level(v) != Level::element; }))
    if (c.kernel.values[v].kind == Kind::load) raw += in_words(int64_t(c.size(v)), v);
  const int64_t kept = std::max<int64_t>(1, words), columns = c.facts.columns + (c.s.edges == Edges::window ? c.V - 1 : 0);
  return {std::max<int64_t>(1, ceil_div(columns, c.V)), kept, std::max(kept, raw)};
}

/// Lanes of one block that hold a row in their registers; 0: it does not fit. From the row alone: who adds what must not depend on how
/// many rows there are.
int64_t lanes_of(const Scene& c, const Row& row) {
  // Up to a warp: two vectors a lane, several rows a warp, for fewer shuffles; or fewer lanes of up to four vectors where an eighth of them
  // would have nothing to do (192 of bf16: 8 lanes of three vectors 1.01 of the copy rate, 16 of two 0.89). Neighbours of one lane alone would
  // leave half of each sector to the next access (softmax bf16 [16]: 0.80, by two lanes 1.01).
  const bool once = c.view.folds() == 1 && c.view.element_stores().empty();
  const int64_t most = once ? 64 : 32;  // elements a lane; who only sums keeps none
  if (row.vectors <= 32 || (row.steps(32) * row.held <= 24 && row.steps(32) * c.V <= 48)) {
    int64_t lanes = row.vectors <= 32 ? std::max<int64_t>(pow2_ceil(ceil_div(row.vectors, 2)), std::min<int64_t>(row.vectors, 2)) : 32;
    auto idle = [&](int64_t l) { return l * row.steps(l) - row.vectors; };
    for (int64_t l = lanes / 2; l >= 2 && row.steps(l) <= 4 && row.steps(l) * row.held <= 16 && row.steps(l) * c.V <= most; l /= 2)
      if (8 * idle(lanes) > row.vectors && idle(l) < idle(lanes) + (row.held < c.V)) lanes = l;  // of narrow rows also as many
    return lanes;
  }
  // Four vectors of 16 bytes a lane: more lanes of fewer vectors wait longer at barriers (layer_norm f32 4096 by 1024 lanes of
  // one vector ran at 0.74 of the copy rate, by 256 or 512 lanes at 1.00). Long ones by up to 32 words a lane, two blocks of 512 lanes (f32
  // [16384]: 0.99 to 1.00) or four of 256 (layer_norm bf16 [16384]: 1.00).
  // Where each element goes through a formula on its way to a sum, blocks of 256 lanes and twice the row, so that some load while others
  // calculate (softmax f32 [8192], written out: 512 lanes 0.75 of the copy rate, 256 lanes 0.99).
  const bool formulas = folds_formulas(c), pairs = row.held < c.V && c.V > 4;
  for (int64_t l : {64, 128, 256, 512}) {
    if (once && c.V > 4 && row.steps(l) * row.held <= 24 && l >= 128) return l;  // u8 [10240]: 128 lanes 1.05 of the copy rate, 512 lanes 0.87
    if (pairs && !formulas && l == 256 && row.steps(l) > 4 && row.steps(l) * row.held <= 36) return l;
    if (row.steps(l) * row.held <= (formulas && l >= 256 ? 32 : l == 512 && c.V <= 4 ? 32 : 16) && row.steps(l) * c.V <= 32) return l;
  }
  // More than 32 elements a lane do not fit beside what exp needs (bf16 [65536]: 392 bytes of spills).
  return row.steps(1024) * row.held <= 32 && row.steps(1024) * c.V <= 32 ? 1024 : 0;
}

/// Much arithmetic behind the reductions of a row too long for a block: the registers of a cluster of blocks of 256 lanes, several
/// clusters a multiprocessor, so that some load while others calculate (group_norm + silu of bf16: 103 us, through the ring 113). 1: no.
int64_t cluster_of(const Scene& c, const Row& row) {
  if (!c.formulas || folds_formulas(c)) return 1;
  int64_t cluster = 1;
  while (cluster < std::min(8, c.device.max_cluster) && row.steps(256 * cluster) > 8) cluster *= 2;
  return row.steps(256 * cluster) * std::max<int64_t>(row.held, 4) <= 32 ? cluster : 1;
}

/// How many loads are parameters of the columns (scale, bias)?
int64_t parameters_of(const Scene& c) {
  return std::count_if(c.view.accesses.begin(), c.view.accesses.end(), [&](Val v) {
    const Inst& inst = c.kernel.values[v];
    return inst.kind == Kind::load && c.view.level(v) == Level::element && inst.map.guard == kNoVal && !(inst.varies & c.view.row_axes);
  });
}

/// Words a lane takes for the parameters of the columns. They are asked for before the reductions where they fit beside
/// the row: `early`.
int64_t parameters(Scene& c, const std::vector<Val>& cut, const Row& row, bool few, bool& early) {
  int64_t words = 0;
  std::vector<size_t> found;
  for (size_t i = 0; i < c.view.accesses.size(); ++i) {
    const Val v = c.view.accesses[i];
    const Inst& inst = c.kernel.values[v];
    if (inst.kind != Kind::load || c.view.level(v) != Level::element || std::count(cut.begin(), cut.end(), v)) continue;
    if (inst.map.guard != kNoVal || (inst.varies & c.view.row_axes)) continue;
    found.push_back(i);
    words += c.s.steps * ceil_div(int64_t(c.size(v)) * (c.view.wide(v) ? c.V : 1), 4);
  }
  early = words > 0 && words + c.s.steps * row.held <= (few ? 96 : 24);
  if (early)
    for (size_t i : found) c.s.access[i].early = 1;
  return words;
}

/// Rows in flight and blocks a multiprocessor of rows in registers.
void occupy(Scene& c, const std::vector<Val>& cut, const Row& row) {
  Schedule& s = c.s;
  const int64_t lanes = s.lanes_per_row, arithmetic = c.heavy > 8 ? 16 : 4;
  bool fixed = true;  // the number of rows, in every call
  for (const Axis& axis : c.kernel.axes) fixed &= axis.reduced || axis.extent.is_constant();
  const int64_t alone = ceil_div(c.facts.rows, s.threads / lanes) * s.cluster;  // blocks, of a row for each lane
  // So few rows that each has a multiprocessor to itself: nothing hides a trip to memory, and registers are free (layer_norm of 8 rows of
  // 4096: parameters behind the row 6.2 us, with it 5.4).
  const bool few = fixed && alone <= c.device.multiprocessors;
  bool early = false;
  const int64_t late = parameters(c, cut, row, few, early);
  // Rows of a few bytes a lane: several at once, until a lane has 64 bytes in flight and its set-up is shared.
  const int64_t bytes = std::max<int64_t>(1, s.steps * c.loaded);
  int64_t R = lanes > 32 ? 1 : pow2_floor(std::clamp<int64_t>((lanes < 32 ? 64 : 32) / bytes, 1, 8));
  while (R > 1 && R * s.steps * c.stored > 192) R /= 2;  // stores leave at their own pace: u8 to f32 [64] 0.92 with 8 rows, 0.94 with 4
  s.rows_in_flight = uint16_t(R);
  // What a row takes: its words; of bytes, which a word holds four of, the values.
  const int64_t values = s.steps * (c.V > 4 ? row.held : std::max<int64_t>(row.held, c.V));
  s.min_blocks = blocks_for(s.threads, 26 + s.rows_in_flight * values + (early ? late : 0) + c.V * 3 + arithmetic + int64_t(c.view.accesses.size()) * 2);
  if (few) {
    s.min_blocks = 1;
    for (Access& a : s.access) a.streamed = 0;  // a call this small has no cache policy: nothing is asked for in front of the first load
    return;
  }
  // A cluster's blocks take the row, and 32 registers besides: what counts is how many clusters load while others calculate.
  if (s.cluster > 1) s.min_blocks = std::max(s.min_blocks, blocks_for(s.threads, 32 + values));
  // A formula on the way to a sum is as much arithmetic as a copy leaves time for: whoever calculates should not be alone.
  if (late == 0 && folds_formulas(c))
    s.min_blocks = std::max(s.min_blocks, blocks_for(s.threads, 16 + 4 * c.V + s.rows_in_flight * values + (s.edges == Edges::window ? 8 : 0)));
  // For large blocks without parameters of the columns that is too careful: ptxas does with the row and some 24 more, and 1,536 threads
  // instead of 1,024 are worth it (softmax f32 [8192]: 1.00 of the copy rate against 0.89).
  const int64_t least = (c.formulas ? 40 : c.V > 4 ? 28 : 24) + (s.edges == Edges::window ? 8 : 0);
  if (late == 0 && (lanes >= 512 || (lanes >= 256 && (arithmetic > 4 || (c.V > 4 && c.view.folds() > 1)))))
    s.min_blocks = std::max(s.min_blocks, blocks_for(s.threads, least + values));
  // Rows for a wave and a half: a wave of two rows a block asks for everything at once (layer_norm f32 [1024,4096]: 12.5 us, 11.8).
  const int64_t of_two = blocks_for(s.threads, 32 + 2 * values), wave = c.device.multiprocessors;
  const bool plain = lanes > 32 && s.cluster == 1 && values <= 16 && !c.formulas && s.edges == Edges::full;
  if (fixed && plain && alone > wave * s.min_blocks && ceil_div(alone, 2) <= wave * of_two) {
    s.rows_in_flight = 2;
    s.min_blocks = uint16_t(of_two);
    return;
  }
  // Rows wait at barriers and for their parameters while others have to move: 160 KiB of rows, read and written, in the blocks of a
  // multiprocessor (layer_norm f32 [4096]: 3 blocks of 66 registers 0.95 of the copy rate, 5 of 48 1.00; layer_norm bf16 [12288]: 2 blocks 0.85,
  // f32 [10240]: 1 block 0.70). Of narrow rows ptxas takes the words, and the values once where they are not unpacked again.
  if (c.formulas || s.cluster > 1) return;
  const int64_t moved = std::max<int64_t>(1, s.threads * s.rows_in_flight * s.steps * (c.loaded + c.stored));
  const int64_t wanted = ceil_div(160 * 1024, moved);
  int64_t taken = s.rows_in_flight * s.steps * row.held + (row.held < c.V ? 36 - c.V : least);
  if (lanes == 512 && row.held < c.V) taken = std::min<int64_t>(taken, 40);  // three blocks (layer_norm bf16 [14336]: 1.00, two 0.86)
  if (s.rows_in_flight > 1 || !(s.baked >> s.vector_axis & 1)) taken += 4;  // sizes in the text save registers
  if (row.held < c.V && lanes <= 32 && !unpacks_again(c.view, s)) taken += s.steps * (c.V - row.held);
  const int64_t without = std::min<int64_t>(wanted, blocks_for(s.threads, taken)), with = early ? std::min<int64_t>(wanted, blocks_for(s.threads, taken + late)) : without;
  if (lanes > 32 && with < without && 5 * with < 4 * wanted)  // parameters later, but more rows
    for (Access& a : s.access) a.early = 0;
  s.min_blocks = std::max(s.min_blocks, uint16_t(lanes > 32 ? std::max(with, 5 * with < 4 * wanted ? without : with) : with));
}

/// The same kernel with V elements a lane step.
Scene with_vector(const Scene& c, unsigned V) {
  Scene out = c;
  out.V = V;
  out.loaded = out.stored = out.heavy = 0;
  out.formulas = false;
  out.s.edges = Edges::full;
  out.s.lane[c.s.vector_axis] = uint16_t(V);
  out.s.access.clear();
  choose_pieces(out);
  measure(out);
  return out;
}

/// Lanes of a row that is taken by elements, and so its steps; words of the parameters of the columns, and whether they stay in registers. 0: it
/// does not fit.
int64_t tile_lanes(Scene& c, const std::vector<Val>& cut, const Row& row, int64_t& late, bool& early) {
  // 9 to 17 elements a lane: few lanes are idle, few steps of shuffles. Rather 33 than a barrier of the block, or one of more warps (softmax
  // bf16 [4097]: 128 lanes 0.93 of the copy rate, 256 lanes 0.90).
  const int64_t most = 33 / row.kept, few = std::min<int64_t>(17, most);
  int64_t lanes = 1;
  while (lanes < 32 && row.steps(lanes) > few) lanes *= 2;
  if (row.steps(lanes) > most) lanes = 128;
  while (lanes < 512 && row.steps(lanes) > most) lanes *= 2;
  // Parameters stay in registers where a block takes row after row, or they are few (layer_norm bf16 [4097]: 0.88 of the copy rate, with two
  // loads an element 0.61).
  for (;; lanes *= 2) {
    c.s.steps = uint16_t(row.steps(lanes));
    late = parameters(c, cut, row, false, early);
    early = late > 0 && c.s.steps * row.kept + late <= (lanes > 32 && widest_size(c) <= 2 ? 100 : 52);
    if (lanes <= 32 || lanes >= 512 || early || !late) break;
  }
  return row.steps(lanes) > most ? 0 : lanes;
}

/// Rows that begin between the 16-byte pieces of memory: runs of whole rows travel through shared memory, and lanes take single elements from
/// there. False: others, and rows so long that few blocks fit (softmax bf16 [16385]: 0.88 of the copy rate by aligned windows, 0.56 here).
bool tiles(Scene& whole) {
  const int64_t columns = whole.facts.columns;
  const int64_t piece = int64_t(whole.V) * widest_size(whole);
  // Vectors of 8 bytes that leave an eighth of their lanes idle: words (softmax bf16 [100]: 0.99 of the copy rate, 0.86 held).
  const int64_t vectors = columns / whole.V, lanes_of_two = pow2_ceil(ceil_div(vectors, 2));
  const bool words = whole.s.edges == Edges::full && piece == 8 && widest_size(whole) < 4 && vectors <= 32 && 8 * (2 * lanes_of_two - vectors) > vectors;
  // Longer rows are better read in aligned windows: sums from 4 KiB on (bf16 [2049]: 1.03 of the copy rate, in tiles 0.94), others from 6 Ki
  // elements (rms_norm bf16 [8191]: 0.99, 0.87) unless two parameters of 16-bit elements have to be shifted into place (layer_norm: 0.69, 0.79).
  const bool once = whole.view.folds() == 1 && whole.view.element_stores().empty();
  if (whole.s.edges == Edges::window && (once ? columns * widest_size(whole) >= 4096 : columns > 6144 && (whole.V <= 4 || parameters_of(whole) < 2))) return false;
  const bool anywhere = whole.s.edges == Edges::window || (whole.s.edges == Edges::full && piece < 8) || words;
  if (!anywhere || columns < 1 || columns > 17 * 512 || !tileable(whole.view, whole.device)) return false;
  Scene c = with_vector(whole, words ? unsigned(4 / widest_size(whole)) : 1);
  Schedule& s = c.s;
  const std::vector<Val> cut = choose_cut(c);
  const Row row = row_of(c, cut);
  bool early = false;
  int64_t late = 0;
  const int64_t lanes = tile_lanes(c, cut, row, late, early);
  if (!lanes) return false;
  s.keep = Keep::registers;
  s.cut = cut;
  s.lanes_per_row = uint16_t(lanes);
  s.threads = uint16_t(std::max<int64_t>(128, lanes));
  if (s.steps * lanes == columns) s.block[s.vector_axis] = uint16_t(columns);
  const int64_t sizes = s.baked >> s.vector_axis & 1 ? 0 : c.device.sm >= 100 ? 60 : 20;  // in the text they save registers
  s.min_blocks = blocks_for(s.threads, 16 + sizes + (words ? 12 : 0) + s.steps * row.kept + (early ? late : 0) + (c.heavy > 8 ? 6 : 4) + int64_t(c.view.accesses.size()));
  if (late > 0 && !early) s.min_blocks = uint16_t(std::max(1, s.min_blocks * 3 / 4));  // loads of them ahead want registers
  fit_tiles(c.view, c.facts, c.device, s);
  for (size_t i = 0; i < c.view.accesses.size(); ++i) {
    const Inst& inst = c.kernel.values[c.view.accesses[i]];
    s.access[i].early = early && inst.kind == Kind::load && c.view.level(c.view.accesses[i]) == Level::element && !(inst.varies & c.view.row_axes);
  }
  whole.s = s;
  return true;
}

void rows(Scene& c) {
  Schedule& s = c.s;
  s.skeleton = Template::rows;
  if (tiles(c)) return;
  const std::vector<Val> cut = choose_cut(c);
  const Row row = row_of(c, cut);
  // One sweep without element stores reads the row once whatever it does; else a long row waits on chip for the next sweep.
  const bool once = c.view.folds() == 1 && c.view.element_stores().empty();
  int64_t lanes = lanes_of(c, row), cluster = 1;
  if (!lanes && !once) cluster = cluster_of(c, row);
  if (cluster > 1) lanes = 256;
  // Beyond 64 KiB (32 KiB of narrow types, 28 where exp is taken) the ring is faster than registers: softmax bf16 [24576] ran at 0.68 of the copy
  // rate there, f32 [32768] at 0.78. Not so where elements are summed through a formula: registers keep its results, the ring's slots the operands,
  // for a second time.
  const int64_t most = folds_formulas(c) || c.V <= 4 ? 64 : takes_formulas(c.view) ? 29 : 33;
  const bool long_row = !lanes || (cluster == 1 && c.facts.columns * widest_size(c) > most * 1024);
  if (long_row && !once) {
    if (auto chosen = ring_schedule(c.kernel, c.facts, c.device, s)) {
      s = *chosen;
      return;
    }
  }
  if (!lanes && !once && shared_rows(c, cut, row.vectors * row.kept * 4)) return;
  if (!lanes) {
    s.keep = Keep::reload;
    s.threads = s.lanes_per_row = 512;
    const int64_t U = pow2_floor(std::clamp<int64_t>(ceil_div(64, std::max<int64_t>(c.loaded, 4)), 1, 8));
    s.rows_in_flight = uint16_t(U);
    s.min_blocks = blocks_for(s.threads, 24 + U * ceil_div(c.loaded, 4));
    return;
  }
  s.keep = Keep::registers;
  s.cut = cut;
  s.lanes_per_row = uint16_t(lanes);
  s.cluster = uint16_t(cluster);
  s.steps = uint16_t(row.steps(lanes * cluster));
  s.threads = uint16_t(std::max<int64_t>(128, lanes));
  const bool exact = s.steps * lanes * cluster * c.V == c.facts.columns && s.edges != Edges::window;
  if (exact) s.block[s.vector_axis] = uint16_t(std::min<int64_t>(c.facts.columns, 65535));
  shift_parameters(c.view, c.facts, s);
  occupy(c, cut, row);
}

/// Do its positions follow each other without gaps, columns innermost?
bool dense_columns(const Scene& c, size_t access) {
  const Facts::Access& f = c.facts.access[access];
  int64_t size = 1;
  for (bool reduced : {false, true}) {
    const std::vector<unsigned> axes = c.view.space(reduced);
    for (size_t k = axes.size(); k-- > 0; size *= c.facts.extents[axes[k]])
      if (c.facts.extents[axes[k]] > 1 && f.step[axes[k]] != size) return false;
  }
  return true;
}

/// Vectors of columns that begin anywhere between 16-byte pieces come as the two pieces that they lie in.
void shift_columns(Scene& c) {
  for (size_t i = 0; i < c.view.accesses.size(); ++i) {
    const Val v = c.view.accesses[i];
    const Inst& inst = c.kernel.values[v];
    Access& a = c.s.access[i];
    const bool computed = std::any_of(inst.map.extra.begin(), inst.map.extra.end(), [](Val x) { return x != kNoVal; }) || inst.map.guard != kNoVal;
    if (inst.kind != Kind::load || computed || inst.varies != AxisSet((1u << c.kernel.axes.size()) - 1)) continue;
    if (c.s.edges == Edges::window || int64_t(c.V) * int64_t(c.size(v)) != 16 || c.facts.access[i].align % 16 || !dense_columns(c, i)) continue;
    a.staged = a.bytes < 16;
    a.streamed |= a.staged;
  }
}

/// Lanes along the columns, of `across` vectors, and threads of a column.
struct Across {
  int64_t X, Y;
  int64_t warps() const { return X * Y / 32; }
  int64_t blocks() const { return std::max<int64_t>(1, 16 / warps()); }  // 16 warps with 128 bytes a thread: 64 KiB in flight
};

/// Few lanes without columns (129 of f32, 33 vectors: 3 blocks of 11 lanes 0.93 of the copy rate, two of 32 0.77); few blocks, since each shares
/// sectors with its neighbours ([100] of f32 in 5 blocks 0.70); 16 warps of a multiprocessor; few trips of the last block, which merges the parts
/// alone (u8 [512]: 264 parts by 8 threads of a column 0.87, 132 by 16 0.95).
Across columns_across(int64_t across, bool shifted, int64_t multiprocessors) {
  auto cost = [&](const Across& a) {
    const int64_t blocks = ceil_div(across, a.X);
    const double trips = double(multiprocessors * a.blocks()) / double(blocks * a.Y) / (shifted ? 1 : 2);
    return double(blocks * a.X) / double(across) + (blocks > 1 ? 2.0 / double(a.X) : 0) + std::abs(1 - double(a.warps() * a.blocks()) / 16) + 0.0028 * trips;
  };
  const int64_t first = std::min<int64_t>(32, pow2_ceil(across));
  Across best{first, 256 / first};
  for (int64_t X = std::min<int64_t>(32, across); X >= 1; --X)
    for (int64_t Y = 1; X * Y <= 576; Y *= 2)
      if (X * Y % 32 == 0 && cost({X, Y}) < cost(best) - 0.005) best = {X, Y};
  return best;
}

void column(Scene& c) {
  Schedule& s = c.s;
  s.skeleton = Template::column;
  shift_columns(c);
  s.keep = c.kernel.sweeps.size() > 1 ? Keep::reload : Keep::none;
  // From one run of columns, not from how many runs there are, and a run that differs from call to call is taken for long: who adds
  // what must not depend on the batch.
  const bool known = !c.kernel.axes.empty() && c.kernel.axes[s.vector_axis].extent.is_constant();
  const int64_t across = known ? std::max<int64_t>(1, ceil_div(vector_extent(c), c.V)) : 32;
  bool shifted = false;
  for (const Access& a : s.access) shifted |= a.staged;
  const Across chosen = known ? columns_across(across, shifted, c.device.multiprocessors) : Across{32, 8};
  const int64_t X = chosen.X;
  int64_t Y = std::min<int64_t>(chosen.Y, pow2_ceil(std::max<int64_t>(1, c.facts.columns)));
  size_t state = 16;
  for (size_t i = 0; i < c.view.folds(); ++i) state = std::max(state, state_layout(c.kernel, i, c.V).bytes);
  while (Y > 1 && X * (Y / 2) * int64_t(state) > 40 * 1024) Y /= 2;
  while (X * Y % 32) Y *= 2;
  const int64_t U = pow2_floor(std::clamp<int64_t>(128 / std::max<int64_t>(c.loaded, 4), 1, 8));
  s.lanes_per_row = uint16_t(X);
  s.threads = uint16_t(X * Y);
  s.rows_in_flight = uint16_t(U);
  // Two blocks with 128 bytes a thread: 64 KiB in flight (column sums: 1.03 of the copy rate; 3 blocks 0.98).
  s.min_blocks = std::min<uint16_t>(blocks_for(s.threads, 20 + U * ceil_div(c.loaded, 4) + int64_t(state) / 4 * 2 + (c.heavy > 8 ? 16 : 4)), uint16_t(std::max(1, 512 / s.threads)));
  if (c.view.folds() == 1 && c.view.element_stores().empty() && ceil_div(across, X) < 2 * c.device.multiprocessors &&
      c.facts.columns >= 4 * Y * U)
    s.finish = Finish::last_block;
}

/// Long rows, reduced once: each is cut into parts, so that all multiprocessors read also when rows are few.
bool split(Scene& c) {
  if (c.view.folds() != 1 || !c.view.element_stores().empty()) return false;
  if (ceil_div(c.facts.columns, c.V) < 4096) return false;
  // A kernel for one number of rows, and that a large one, needs no parts: a block a row (logsumexp bf16 [8192,131072]: 1.08, in parts 0.88).
  bool fixed = true;
  for (const Axis& axis : c.kernel.axes) fixed &= axis.reduced || axis.extent.is_constant();
  if (fixed && c.facts.rows >= 8 * c.device.multiprocessors) return false;
  Schedule& s = c.s;
  s.skeleton = Template::split;
  s.finish = Finish::last_block;
  // 1024 threads with 128 bytes each, in two blocks (sum of 2^28 floats: 1.017 of the copy rate, in four blocks 1.003).
  s.threads = s.lanes_per_row = 512;
  s.min_blocks = 2;
  s.rows_in_flight = uint16_t(pow2_floor(std::clamp<int64_t>(128 / std::max<int64_t>(c.loaded, 4), 1, 8)));
  return true;
}

/// A scan's order follows from the row alone: lanes, vectors a lane and positions a thread.
void scan(Scene& c) {
  Schedule& s = c.s;
  s.skeleton = Template::scan;
  int64_t words = 0;  // of a lane's running values
  for (const Reduction& r : c.kernel.reductions) words += ceil_div(int64_t(bytes(compute_type(r.accumulate))), 4);
  int64_t steps = 1, held = 0;
  if (c.column) {
    steps = pow2_floor(std::clamp<int64_t>(64 / std::max<int64_t>(c.loaded, 4), 1, 8));
    int64_t Y = std::min<int64_t>(8, pow2_ceil(ceil_div(std::max<int64_t>(1, c.facts.columns), steps))), X = 256 / Y;
    // Long columns in parts of many positions, so that their chain is short; whatever the number of columns, but of a run of few.
    if (c.facts.columns >= 16 * Y * steps) {
      const bool known = c.kernel.axes[s.vector_axis].extent.is_constant();
      X = known ? std::clamp<int64_t>(pow2_ceil(ceil_div(vector_extent(c), c.V)), 1, 8) : 8;
      Y = std::min<int64_t>(256 / X, 64);
      s.finish = Finish::last_block;
    }
    s.threads = uint16_t(X * Y);
    s.lanes_per_row = uint16_t(X);
    held = 3 * words * c.V;
  } else {
    const int64_t vectors = std::max<int64_t>(1, ceil_div(c.facts.columns, c.V));
    const int64_t most = std::clamp<int64_t>(pow2_floor(64 / std::max<int64_t>(c.loaded, 4)), 1, 4);
    steps = std::clamp<int64_t>(pow2_ceil(ceil_div(vectors, 32)), 1, most);
    s.threads = 256;
    s.lanes_per_row = uint16_t(std::min<int64_t>(256, pow2_ceil(ceil_div(vectors, steps))));
    held = (4 + steps) * words;
    // Long rows in parts, a block each, whatever the number of rows.
    if (vectors >= 16 * int64_t{256} * steps) s.finish = Finish::last_block;
  }
  s.steps = uint16_t(steps);
  s.min_blocks = blocks_for(s.threads, 24 + steps * (ceil_div(c.loaded, 4) + c.V * words) + held + (c.heavy > 8 ? 14 : 0));
}

Schedule plan(const Kernel& kernel, const Facts& facts, const Device& device) {
  const unsigned axis = kernel.axes.empty() ? 0 : choose_vector_axis(kernel, facts);
  Scene c{kernel, facts, device, View(kernel, axis), {}};
  c.s.vector_axis = uint8_t(axis);
  c.reduces = kernel.has_reductions();
  c.column = c.reduces && !(kernel.reduced_axes() >> axis & 1);
  int64_t total = 1;
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    if (__builtin_mul_overflow(total, std::max<int64_t>(1, facts.extents[k]), &total)) total = INT64_MAX;
    if (kernel.axes[k].extent.is_constant()) c.s.baked |= uint16_t(1u << k);
  }
  // Loops step past the end by up to a grid: half of the 32-bit range is left for that.
  c.s.wide_index = facts.wide || total > (int64_t{1} << 30);
  choose_vector(c);
  // Odd rows of a scan: single elements, neighbours by neighbouring lanes.
  if (kernel.scans() && c.s.edges == Edges::window) c.V = 1, c.s.lane[axis] = 1, c.s.edges = Edges::full;
  choose_pieces(c);
  measure(c);
  if (kernel.scans()) {
    scan(c);
  } else if (!c.reduces) {
    if (!transpose(c)) pointwise(c);
  }
  else if (c.column) column(c);
  else if (!split(c)) rows(c);
  return c.s;
}

/// Where a row is not kept between its sweeps, max with sum of exp, and mean with squares, are better taken in one.
bool gains_from_merging(const Kernel& kernel, const Schedule& s) {
  if (s.skeleton == Template::column || s.skeleton == Template::ring || s.keep == Keep::reload) return true;
  if (s.keep == Keep::registers) return s.cluster > 1;  // a cluster meets once
  return View(kernel).element_stores().empty();         // read once, never kept
}

/// So do the lanes of a block that take mean and squares together, each from a pivot of its own (layer_norm of 8 rows of 4096 floats 4.9 us for
/// 5.2, the chain behind it 5.5 for 6.1; long batches alike). Not max with sum of exp, which would be taken twice.
bool meets_once(const Kernel& paired, const Schedule& s) {
  if (!alike(s) || s.lanes_per_row <= 32 || s.lane[s.vector_axis] == 1) return false;
  for (size_t i = 0; i < paired.sweeps.size(); ++i)
    for (uint16_t j : paired.sweeps[i].reductions) {
      const Reduction& r = paired.reductions[j];
      if (r.fold == Fold::online || (r.fold == Fold::welford && r.results.size() > 2 && !keeps_rest(paired, s, i))) return false;
    }
  return true;
}

}  // namespace

Schedule schedule(const Kernel& kernel, const Facts& facts, const Device& device) {
  Schedule apart = plan(kernel, facts, device);
  const size_t folds = View(kernel).folds();
  if (folds < 2) return apart;
  const Kernel paired = merge_sweeps(kernel);
  if (View(paired).folds() == folds) return apart;
  Schedule together = plan(paired, facts, device);
  together.merged = true;
  const bool better = gains_from_merging(kernel, apart) || together.skeleton == Template::split || (alike(apart) && meets_once(paired, together));
  return better ? together : apart;
}

std::optional<Schedule> relieve(const Schedule& schedule) {
  if (schedule.min_blocks <= 1) return std::nullopt;
  Schedule out = schedule;
  out.min_blocks = uint16_t(std::max(1, schedule.min_blocks * 2 / 3));
  return out;
}

}  // namespace fusec::cuda
