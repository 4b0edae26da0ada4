// Rows, which fold along their vectors: in registers, in shared memory, through tiles or a ring. The figures are of an H200 (docs/cuda.md).

#include "codegen/cuda/ring.h"
#include "codegen/cuda/scene.h"
#include "codegen/cuda/tiles.h"

namespace fusec::cuda {
namespace {

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
  const int64_t kept = std::max<int64_t>(1, words), columns = c.facts.columns + window_of(c.view, c.s) - 1;
  return {std::max<int64_t>(1, ceil_div(columns, c.V)), kept, std::max(kept, raw)};
}

/// How many loads are parameters of the columns (scale, bias)?
int64_t parameters_of(const Scene& c) {
  return std::count_if(c.view.accesses.begin(), c.view.accesses.end(), [&](Val v) {
    const Inst& inst = c.kernel.values[v];
    return inst.kind == Kind::load && c.view.level(v) == Level::element && inst.map.guard == kNoVal && !(inst.varies & c.view.row_axes);
  });
}

/// Four words and eight vectors of them a lane, and nothing beside: two rows a warp (softmax bf16 [32768,1024]: 33.2 to 33.3 us, a row a warp 33.7 to 33.9).
bool half_a_warp(const Scene& c, const Row& row) {
  if (c.device.sm >= 100) return false;  // whose code takes more than 64 registers
  return c.V > 4 && row.held == 4 && row.vectors == 128 && parameters_of(c) == 0 && !folds_formulas(c) && !c.view.element_stores().empty();
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
    return half_a_warp(c, row) ? 16 : lanes;
  }
  // Four vectors of 16 bytes a lane: more lanes of fewer vectors wait longer at barriers (layer_norm f32 4096 by 1024 lanes of
  // one vector ran at 0.74 of the copy rate, by 256 or 512 lanes at 1.00). Long ones by up to 32 words a lane, two blocks of 512 lanes (f32
  // [16384]: 0.99 to 1.00) or four of 256 (layer_norm bf16 [16384]: 1.00).
  // Where each element goes through a formula on its way to a sum, blocks of 256 lanes and twice the row, so that some load while others
  // calculate (softmax, written out: f32 [8192] by 512 lanes 0.75 of the copy rate, by 256 0.99; bf16 [16384] 0.82 and 1.00).
  const bool formulas = folds_formulas(c), pairs = row.held < c.V && c.V > 4;
  for (int64_t l : {64, 128, 256, 512}) {
    if (once && c.V > 4 && row.steps(l) * row.held <= 24 && l >= 128) return l;  // u8 [10240]: 128 lanes 1.05 of the copy rate, 512 lanes 0.87
    if (pairs && l == 256 && row.steps(l) > 4 && row.steps(l) * row.held <= (formulas ? 32 : 36)) return l;
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

/// Is the number of rows a constant?
bool fixed_rows(const Scene& c) {
  return std::all_of(c.kernel.axes.begin(), c.kernel.axes.end(), [](const Axis& axis) { return axis.reduced || axis.extent.is_constant(); });
}

/// Formulas behind the reductions of so few rows that most multiprocessors would have none: a cluster a row, which shares the arithmetic (add +
/// layer_norm + gelu of 8 rows of 4096: a block of 512 lanes 5.6 to 5.8 us, clusters of 2, 4 and 8 blocks 5.4, 5.1 and 5.0; of 8192: 6.9, 5.2).
void share_few(const Scene& c, const Row& row, int64_t& lanes, int64_t& cluster) {
  if (!c.formulas || folds_formulas(c) || c.s.edges != Edges::full || lanes < 128 || !fixed_rows(c) || c.facts.rows < 1) return;
  const int64_t share = c.device.multiprocessors / c.facts.rows, most = std::min<int64_t>({8, c.device.max_cluster, share, row.vectors / 128});
  if (share < 4 || most < 2) return;  // (64 rows: clusters of two 6.4 us, blocks 6.0)
  cluster = pow2_floor(most);
  lanes = std::clamp<int64_t>(pow2_ceil(ceil_div(row.vectors, cluster)), 128, 512);
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
  const bool fixed = fixed_rows(c);
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
  if (early && c.V > 4 && lanes >= 8 && parameters_of(c) > 1) R = 1;  // whose registers are parameters (layer_norm bf16 [128]: two rows 0.97, one 1.01)
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
  if (half_a_warp(c, row)) s.min_blocks = std::max<uint16_t>(s.min_blocks, 8);  // 64 registers; in 80, six blocks, as a row a warp
  // A formula on the way to a sum is as much arithmetic as a copy leaves time for: whoever calculates should not be alone.
  // Four blocks of 256 lanes even of 32 words of pairs a lane (softmax bf16 [16384], written out: 1.00, by three 0.94).
  if (late == 0 && folds_formulas(c)) {
    const int64_t registers = 16 + 4 * c.V + s.rows_in_flight * values + (s.edges == Edges::window ? 8 : 0);
    s.min_blocks = std::max(s.min_blocks, blocks_for(s.threads, row.held < c.V && lanes == 256 ? std::min<int64_t>(registers, 64) : registers));
  }
  // For large blocks without parameters of the columns that is too careful: ptxas does with the row and some 24 more, and 1,536 threads
  // instead of 1,024 are worth it (softmax f32 [8192]: 1.00 of the copy rate against 0.89).
  const int64_t least = (c.formulas ? 40 : c.V > 4 ? 28 : 24) + (s.edges == Edges::window ? 8 : 0);
  if (late == 0 && (lanes >= 512 || (lanes >= 256 && (arithmetic > 4 || (c.V > 4 && c.view.folds() > 1)))))
    s.min_blocks = std::max(s.min_blocks, blocks_for(s.threads, least + values));
  // Rows for a wave and a half: a wave of two rows a block asks for everything at once, without a cache policy (layer_norm f32 [1024,4096]: 12.5 us,
  // 12.0 so, 11.6 without a policy; bf16 [2048,4096] 12.7, 11.7). Of f32 rows go past the L1, which the parameters are brought into meanwhile (11.4).
  const int64_t of_two = blocks_for(s.threads, 32 + 2 * values), wave = c.device.multiprocessors;
  const bool plain = lanes > 32 && s.cluster == 1 && values <= 16 && !c.formulas && s.edges == Edges::full;
  if (fixed && plain && alone > wave * s.min_blocks && ceil_div(alone, 2) <= wave * of_two) {
    s.rows_in_flight = 2;
    s.min_blocks = uint16_t(of_two);
    const bool past = widest_size(c) == 4 && c.V == 4 && parameters_of(c) > 0;
    for (size_t i = 0; i < s.access.size(); ++i) {
      const Inst& inst = c.kernel.values[c.view.accesses[i]];
      s.access[i].bypass = past && s.access[i].streamed;
      s.access[i].prefetch = past && inst.kind == Kind::load && !s.access[i].early && c.view.level(c.view.accesses[i]) == Level::element && !(inst.varies & c.view.row_axes);
      s.access[i].streamed = 0;
    }
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
Scene with_vector(const Scene& c, unsigned V, Edges edges = Edges::full) {
  Scene out = c;
  out.V = V;
  out.loaded = out.stored = out.heavy = 0;
  out.formulas = false;
  out.s.edges = edges;
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
  // Longer rows are better read in aligned windows: sums from 4 KiB on (bf16 [2049]: 1.03 of the copy rate, in tiles 0.94), of bytes also those of a warp
  // (u8 [257] 1.01, in tiles 0.95; [2049] by 128 lanes 0.78, in tiles 0.96), others from 6 Ki
  // elements (rms_norm bf16 [8191]: 0.99, 0.87) unless two parameters of 16-bit elements have to be shifted into place (layer_norm: 0.69, 0.79).
  const bool once = whole.view.folds() == 1 && whole.view.element_stores().empty();
  if (whole.s.edges == Edges::window && (once ? columns * widest_size(whole) >= 4096 || (sums_bytes(whole.kernel) && columns <= 1500) : columns > 6144 && (whole.V <= 4 || parameters_of(whole) < 2))) return false;
  const bool anywhere = whole.s.edges == Edges::window || (whole.s.edges == Edges::full && piece < 8) || words;
  if (!anywhere || columns < 1 || columns > 17 * 512 || !tileable(whole.view, whole.device)) return false;
  // Sums of bytes take whole words of a tile, and cut the first and the last one of a row.
  const bool bytes = sums_bytes(whole.kernel);
  Scene c = bytes ? with_vector(whole, 4, Edges::window) : with_vector(whole, words ? unsigned(4 / widest_size(whole)) : 1);
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
  if (s.steps * lanes == columns && !bytes) s.block[s.vector_axis] = uint16_t(columns);
  const int64_t sizes = s.baked >> s.vector_axis & 1 ? 0 : c.device.sm >= 100 ? 60 : 20;  // in the text they save registers
  s.min_blocks = blocks_for(s.threads, 16 + sizes + (words ? 12 : 0) + s.steps * row.kept + (early ? late : 0) + (c.heavy > 8 ? 6 : 4) + int64_t(c.view.accesses.size()));
  // Loads of them ahead want registers, but beside rows of bytes (layer_norm u8 [1025]: eight blocks 0.84, six 0.79).
  if (late > 0 && !early && c.loaded > 1) s.min_blocks = uint16_t(std::max(1, s.min_blocks * 3 / 4));
  for (size_t i = 0; i < c.view.accesses.size(); ++i) {
    const Inst& inst = c.kernel.values[c.view.accesses[i]];
    s.access[i].early = early && inst.kind == Kind::load && c.view.level(c.view.accesses[i]) == Level::element && !(inst.varies & c.view.row_axes);
  }
  fit_tiles(c.view, c.facts, c.device, s);
  if (bytes && !s.slots) return false;  // in any order the sum is the same
  whole.s = s;
  return true;
}

/// Rows that begin anywhere, taken a word a lane step in windows of a line of memory (window_of), in registers: which ones. Longer ones take the ring, in
/// vectors. Figures: fractions of the copy rate of softmax (no parameters), rms_norm (one) and layer_norm (two), and of what they took before.
struct WordRows {
  size_t loaded, widest;     // bytes of an element
  int64_t parameters;        // of the columns; two: and more
  int64_t from, to;          // elements
};
constexpr WordRows kWordRows[] = {
    {4, 4, 0, 128, 16864},   // [257] 1.01 (0.95), [8191] 1.00 (0.93), [16385] 1.00 (0.96)
    {4, 4, 1, 128, 16864},   // [257] 1.01 (0.96), [8191] 0.99 (0.95)
    {4, 4, 2, 224, 14336},   // [257] 0.99 (0.95), [4097] 0.99 (0.92), [8191] 0.99 (0.77); [129] 0.88
    {2, 2, 0, 1024, 33728},  // [1025] 1.00 (0.96), [16385] 0.99 (0.82), [32769] 0.98 (0.88)
    {2, 2, 1, 1024, 33728},  // [2049] 0.99 (0.90), [32769] 0.99 (0.85)
    {2, 2, 2, 1900, 28672},  // [2049] 0.89 (0.79), [8193] 0.96, the ring 0.73, [16385] 0.95, [24577] 0.85; [1025] 0.85 (0.89)
    {1, 4, 1, 1024, 8704},   // [2049] 0.93 (0.89)
    {1, 4, 2, 4096, 12000},  // [4097] 0.92 (0.74), [8191] 0.86 (0.62)
};

/// Beside two parameters, rows of 16-bit types of so many elements are faster through the ring, where there is one (layer_norm bf16 [12001] 0.95, by words
/// 0.93; [16385] 0.98, 0.95; [24577] 0.96, 0.85). With formulas behind the reductions nothing was measured.
constexpr int64_t kLongWords = 10241;
bool long_words(const Scene& c) {
  return c.s.edges == Edges::window && widest_size(c) == 2 && parameters_of(c) > 1 && !c.formulas && c.facts.columns >= kLongWords && c.device.bulk_copies;
}

/// The registers of a block: up to 34 words a lane, and as many blocks as 26 registers besides allow.
bool words_in_registers(Scene& c) {
  Schedule& s = c.s;
  s.skeleton = Template::rows;
  s.keep = Keep::registers;
  s.cut = choose_cut(c);
  const Row row = row_of(c, s.cut);
  auto fits = [&](int64_t lanes) { return row.steps(lanes) * row.held <= 34 && row.steps(lanes) * c.V <= 68; };
  int64_t lanes = 32;
  while (lanes < 512 && !fits(lanes)) lanes *= 2;
  // Two parameters of pairs take registers of their own where no barrier keeps their loads behind the sums (layer_norm bf16 [4097]: 64 lanes 0.85, 128
  // lanes 0.92).
  const int64_t parameters = c.V > 1 ? parameters_of(c) : 0;
  if (parameters > 1 && lanes == 64) lanes = 128;
  if (!fits(lanes)) return false;
  s.lanes_per_row = uint16_t(lanes);
  s.cluster = 1;
  s.steps = uint16_t(row.steps(lanes));
  s.threads = uint16_t(std::max<int64_t>(128, lanes));
  occupy(c, s.cut, row);
  s.min_blocks = blocks_for(s.threads, 26 + (parameters > 1 && lanes == 32 ? 16 : 0) + s.steps * row.held);
  return true;
}

bool words(Scene& whole) {
  const bool once = whole.view.folds() == 1 && whole.view.element_stores().empty();
  const int64_t widest = widest_size(whole), columns = whole.facts.columns, parameters = std::min<int64_t>(parameters_of(whole), 2);
  if (whole.s.edges != Edges::window || once || widest > 4 || long_words(whole)) return false;
  size_t loaded = 0;
  for (Val v : whole.view.accesses) {
    const Inst& inst = whole.kernel.values[v];
    if (inst.varies != AxisSet((1u << whole.kernel.axes.size()) - 1)) continue;
    const size_t size = whole.size(v);
    if (inst.kind == Kind::store ? int64_t(size) != widest : loaded && size != loaded) return false;  // mixtures of types were not measured
    if (inst.kind == Kind::load) loaded = size;
  }
  for (const WordRows& w : kWordRows) {
    if (w.loaded != loaded || int64_t(w.widest) != widest || w.parameters != parameters || columns < w.from || columns >= w.to) continue;
    Scene c = with_vector(whole, unsigned(4 / widest), Edges::window);
    if (!words_in_registers(c)) continue;
    whole.s = c.s;
    return true;
  }
  return false;
}

}  // namespace

void rows(Scene& c) {
  Schedule& s = c.s;
  s.skeleton = Template::rows;
  if (words(c)) return;
  if (tiles(c)) return;
  const std::vector<Val> cut = choose_cut(c);
  const Row row = row_of(c, cut);
  // One sweep without element stores reads the row once whatever it does; else a long row waits on chip for the next sweep.
  const bool once = c.view.folds() == 1 && c.view.element_stores().empty();
  int64_t lanes = lanes_of(c, row), cluster = 1;
  if (!lanes && !once) cluster = cluster_of(c, row);
  if (cluster > 1) lanes = 256;
  else share_few(c, row, lanes, cluster);
  // Beyond 64 KiB (32 KiB of narrow types, 28 where exp is taken) the ring is faster than registers: softmax bf16 [24576] ran at 0.68 of the copy
  // rate there, f32 [32768] at 0.78. Not so where elements are summed through a formula: registers keep its results, the ring's slots the operands,
  // for a second time. Of odd rows beside two parameters, which lanes would load between two pieces, from 56 KiB on (layer_norm f32 [16381]: 0.78,
  // [16385] through the ring 0.97).
  const int64_t odd = s.edges == Edges::window && parameters_of(c) > 1 ? 56 : 64;
  const int64_t most = folds_formulas(c) ? 64 : c.V <= 4 ? odd : takes_formulas(c.view) ? 29 : 33;
  const bool long_row = !lanes || long_words(c) || (cluster == 1 && c.facts.columns * widest_size(c) > most * 1024);
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

}  // namespace fusec::cuda
