#include "codegen/cuda/ring.h"

#include <algorithm>

#include "codegen/cuda/states.h"

namespace fusec::cuda {
namespace {

constexpr int64_t KiB = 1024;
constexpr int64_t kMostSlots = 24;        // the row queue of ring.cuh holds the rows of as many
constexpr int64_t kMostThreads = 896;     // besides up to 128 helpers
constexpr int64_t kMostAhead = 7;         // rows of a team: a board waits for twice as many and two (team.cuh)

/// States in flight, and boards of a team (ring.cuh).
int64_t results(const Schedule& s) { return s.ahead > 3 ? 16 : 8; }

bool streams(const View& view, Val v) {
  const Inst& inst = view.kernel.values[v];
  return inst.kind == Kind::load && inst.varies == AxisSet((1u << view.kernel.axes.size()) - 1);
}

int64_t size_of(const View& view, Val access) { return int64_t(bytes(view.kernel.operands[view.kernel.values[access].operand].type)); }

/// Loads that the ring copies: all that vary with everything. Empty: there is none, or one has no runs that bulk copies could take.
std::vector<Val> ring_loads(const View& view, const Facts& facts) {
  const int64_t run = facts.extents[view.vector_axis];
  std::vector<Val> out;
  for (Val v : view.accesses) {
    if (!streams(view, v)) continue;
    const Inst& inst = view.kernel.values[v];
    if (is_computed(inst) || inst.map.guard != kNoVal || !walks(inst, view.vector_axis)) return {};
    if (run != facts.columns && run * size_of(view, v) % 16) return {};
    out.push_back(v);
  }
  return out;
}

/// Does every run of this load begin and end between 16-byte pieces of memory?
bool in_pieces(const View& view, const Schedule& s, const Facts& facts, Val load) {
  const Facts::Access& f = facts.access[view.access_of[load]];
  const int64_t size = size_of(view, load);
  if (s.edges != Edges::full || f.align % 16 || f.step[s.vector_axis] != 1 || facts.extents[s.vector_axis] * size % 16) return false;
  for (size_t k = 0; k < facts.extents.size(); ++k)
    if (k != s.vector_axis && facts.extents[k] > 1 && f.step[k] * size % 16) return false;
  return true;
}

/// Bytes of a parameter in a slot: a slice, where rows begin anywhere a granule on both sides, and a piece where the operand does.
int64_t column_bytes(const View& view, const Schedule& s, const RingShape& shape, Val v) {
  return (shape.slice + (s.edges == Edges::window ? 2 * shape.granule : 0)) * size_of(view, v) + 16;
}

int64_t largest_state(const Kernel& kernel) {
  size_t state = 16;
  for (size_t i = 0; i < View(kernel).folds(); ++i) state = std::max(state, state_layout(kernel, i, 1).bytes);
  return int64_t(state);
}

/// Bytes of what is calculated once a row for its elements, its stores and later sweeps, each with a reciprocal.
int64_t row_values(const View& view) {
  int64_t out = 0;
  for (const Reduction& r : view.kernel.reductions)
    if (r.fold == Fold::online) out += 16;  // RowExp
  const std::vector<char> kept = outlives_stage(view);
  for (Val v = 0; v < kept.size(); ++v)
    if (kept[v] && view.level(v) == Level::row) out += 2 * int64_t(bytes(compute_type(view.kernel.values[v].type)));
  return out;
}

/// Shared memory beside the slots: states, rows and barriers, for as many warps as there may be.
int64_t states_and_barriers(const View& view, const Schedule& s) {
  const int64_t warps = (s.ahead > 3 ? s.threads : kMostThreads) / 32, state = largest_state(view.kernel);
  return 2 * KiB + results(s) * ((warps + std::max<int>(1, s.cluster)) * state + std::max(state, row_values(view)));
}

/// Where vectors may be short, a warp apart takes those of a row, and what is beyond whole steps of the others (ring.cuh).
bool has_apart(const Schedule& s) { return s.edges == Edges::window && s.lane[s.vector_axis] > 1; }
int64_t lanes_apart(const Schedule& s) { return has_apart(s) ? 32 : 0; }
/// Of a slice's vectors, those of the other warps: whole steps.
int64_t vectors_of_main(const Schedule& s, int64_t vectors) { return has_apart(s) ? vectors / 32 * 32 : vectors; }

int64_t blocks_of_row(const Schedule& s) { return std::max<int>({1, s.cluster, s.team}); }

/// Shared memory that slots of parameters take, also where this call's strides keep them out.
int64_t columns_held(const Kernel& kernel, const Schedule& s, const RingShape& shape) {
  const View view(kernel, s.vector_axis);
  int64_t out = 0;
  for (Val v : ring_columns(view, s)) out += column_bytes(view, s, shape, v);
  return out * s.column_slots;
}

/// Does a sweep that folds need parameters of the columns?
bool folds_columns(const View& view, const Schedule& s) {
  const std::vector<Val> columns = ring_columns(view, s);
  for (size_t i = 0; i < view.folds(); ++i)
    for (Val v : view.needed(view.fold_inputs(i), [&](Val v) { return view.level(v) != Level::element; }))
      if (std::count(columns.begin(), columns.end(), v)) return true;
  return false;
}

/// The same for calls that differ in alignment: with the space for pieces at both ends of a slice.
int64_t slots_that_fit(const Kernel& kernel, const Schedule& s, const RingShape& shape, size_t loads, const Device& device) {
  const int64_t beside = states_and_barriers(View(kernel, s.vector_axis), s);
  if (beside > 46 * KiB) return 0;
  const int64_t room = device.shared_per_block / std::max<int>(1, s.min_blocks) - 1 * KiB - beside - columns_held(kernel, s, shape);
  return std::clamp<int64_t>(room / (shape.slice * shape.row_bytes + 16 * int64_t(loads)), 0, kMostSlots);
}

/// Parameters of the columns that stand in no slots stay in registers where a block has one slice of whole vectors, and lanes have the registers: 128
/// where warps and helpers are 16, 96 otherwise.
void hold_columns(const View& view, Schedule& s) {
  if (s.slices != 1 || s.edges != Edges::full || s.column_slots || view.element_stores().empty()) return;
  Schedule in_slots = s;
  in_slots.column_slots = 1;
  const int64_t V = std::max<int>(1, s.lane[s.vector_axis]);
  int64_t words = 0;
  for (Val v : ring_columns(view, in_slots)) words += ceil_div(size_of(view, v) * V, 4);
  if ((words + V) * s.steps > (s.threads <= 416 ? 64 : 48) || folds_columns(view, in_slots)) return;
  for (Val v : ring_columns(view, in_slots)) s.access[view.access_of[v]].early = 1;
}

}  // namespace

bool dense_rows(const View& view, const Schedule& s, const Facts& facts, Val access) {
  const Facts::Access& f = facts.access[view.access_of[access]];
  if (facts.extents[s.vector_axis] != facts.columns || f.step[s.vector_axis] != 1) return false;
  int64_t row = facts.columns;
  const std::vector<unsigned> kept = view.space(false);
  for (size_t k = kept.size(); k-- > 0; row *= facts.extents[kept[k]])
    if (facts.extents[kept[k]] > 1 && f.step[kept[k]] != row) return false;
  return true;
}

bool ring_leads(const View& view, const Schedule& s) {
  return std::any_of(s.cut.begin(), s.cut.end(), [&](Val v) { return s.access[view.access_of[v]].bytes < 16; });
}

bool ring_windowed(const View& view, const Schedule& s) { return s.edges == Edges::window || ring_leads(view, s); }

std::vector<Val> ring_columns(const View& view, const Schedule& s) {
  std::vector<Val> out;
  if (!s.column_slots) return out;
  for (Val v : view.accesses) {
    const Inst& inst = view.kernel.values[v];
    if (inst.kind != Kind::load) continue;
    if (!view.wide(v) || (inst.varies & view.row_axes) || is_computed(inst) || inst.map.guard != kNoVal || view.linear(inst, true) != Dim(1)) continue;
    out.push_back(v);
  }
  return out;
}

RingShape ring_shape(const Kernel& kernel, const Schedule& s, int64_t columns) {
  const View view(kernel, s.vector_axis);
  const int64_t V = std::max<int>(1, s.lane[s.vector_axis]);
  RingShape out;
  const int64_t window = window_of(view, s);
  out.granule = std::max(V, window);
  int64_t loads = 0;
  for (Val v : view.accesses) {
    if (!streams(view, v)) continue;
    out.granule = std::max(out.granule, 16 / size_of(view, v));
    out.row_bytes += size_of(view, v), ++loads;
  }
  int64_t smallest = 16;  // bytes of an element of what is read or written
  for (Val v : view.accesses)
    if (view.wide(v)) smallest = std::min(smallest, size_of(view, v));
  const std::vector<Val> columns_of = ring_columns(view, s);
  for (Val v : columns_of) out.granule = std::max(out.granule, 16 / size_of(view, v));
  const int64_t slices = std::max<int>(1, s.slices), least = out.granule;
  auto cut = [&](int64_t granule) {
    auto whole = [&](int64_t n, int64_t by) { return ceil_div(ceil_div(n, by), granule) * granule; };
    out.granule = granule;
    out.part = whole(columns + window - 1, blocks_of_row(s));
    out.slice = whole(out.part, slices);
  };
  cut(least);
  // Blocks of rows of a known length begin with a line of memory, or with as much of one as rows are multiples of, where this leaves the last slice so
  // long that lanes miss no vector but their last one: what begins inside a sector costs both of its blocks a part of one.
  if (s.edges == Edges::full && known_columns(kernel))
    for (int64_t line = 128; line > 16; line /= 2) {
      const int64_t elements = line / smallest, step = V * std::max<int>(32, s.threads);
      if (elements <= least || columns % elements) continue;
      cut(elements);
      if (columns - out.part * (blocks_of_row(s) - 1) - out.slice * (slices - 1) >= (ceil_div(out.slice, step) - 1) * step) break;
      cut(least);
    }
  out.slot_bytes = out.slice * out.row_bytes + (ring_leads(view, s) ? 16 * loads : 0);
  for (Val v : columns_of)
    if (s.access[view.access_of[v]].staged) out.column_slot_bytes += column_bytes(view, s, out, v);
  return out;
}

int64_t team_words(const Kernel& kernel, const Schedule& s) {
  const int64_t words = largest_state(kernel) / 4;
  return results(s) * ceil_div(words * s.team, 16) * 16;
}

std::string fit_ring(const Kernel& kernel, const Facts& facts, const Device& device, Schedule& s) {
  const View view(kernel, s.vector_axis);
  if (!device.bulk_copies) return "skeleton=ring: the device has no bulk copies";
  if (!kernel.has_reductions() || !(kernel.reduced_axes() >> s.vector_axis & 1)) return "skeleton=ring: the vector axis must be reduced";
  if (s.edges != Edges::full && s.edges != Edges::window) return "skeleton=ring: edges=full or window is expected";
  if (view.folds() > 4) return "skeleton=ring: at most 4 folding sweeps are expected";
  if (facts.rows >= int64_t{1} << 31) return "skeleton=ring: 2^31 rows and more are not counted";
  const std::vector<Val> loads = ring_loads(view, facts);
  if (loads.empty()) return "skeleton=ring: a load has no runs for bulk copies";
  if (s.threads > kMostThreads) return "threads=" + std::to_string(s.threads) + ": at most 896 besides the ring's helpers";
  if (!s.slices) return "slices: 1 to 255 are expected";
  if (s.team == 1 || s.team > device.multiprocessors)
    return "team=" + std::to_string(s.team) + ": 2 to " + std::to_string(device.multiprocessors) + " blocks, one a multiprocessor, are expected";
  if (s.team) s.cluster = s.min_blocks = 1;
  s.skeleton = Template::ring;
  s.cut = loads;
  s.column_slots = std::min(s.column_slots, s.slices);
  if (ring_columns(view, s).empty()) s.column_slots = 0;
  if (s.column_slots < s.slices && folds_columns(view, s)) s.column_slots = 0;  // only the last sweep uses what does not stay
  if (s.column_slots > kMostSlots) return "column_slots: at most " + std::to_string(kMostSlots) + " are expected";
  const RingShape shape = ring_shape(kernel, s, facts.columns);
  const int64_t fit = slots_that_fit(kernel, s, shape, loads.size(), device);
  if (!s.slots || s.slots > fit) s.slots = uint8_t(std::max<int64_t>(fit, 0));
  if (!s.slots) return "slices: a slot of " + std::to_string(shape.slot_bytes) + " bytes does not fit into shared memory";
  if (s.keep != Keep::reload) s.keep = s.slots >= s.slices ? Keep::shared : Keep::reload;
  if (s.keep == Keep::reload || view.folds() > 1) s.ahead = 0;
  else s.ahead = uint8_t(std::min<int64_t>({s.ahead, s.slots / s.slices - 1, kMostAhead}));
  s.lanes_per_row = s.threads;
  const int64_t vectors = ceil_div(shape.slice, std::max<int>(1, s.lane[s.vector_axis])), lanes = s.threads - lanes_apart(s);
  if (lanes < 1) return "threads=" + std::to_string(s.threads) + ": a warp apart and others are expected";
  s.steps = uint16_t(std::clamp<int64_t>(ceil_div(vectors_of_main(s, vectors), lanes), 1, 1024));
  if (s.steps > 32) return "threads=" + std::to_string(s.threads) + ": slices of so many vectors a lane do not fit into registers";
  s.rows_in_flight = 1;
  s.block[s.vector_axis] = 0;
  s.dynamic_rows = !s.team;
  s.finish = Finish::none;
  for (Access& a : s.access) a.early = a.staged = 0;
  for (size_t i = 0; i < s.access.size(); ++i) s.access[i].bytes = uint8_t(std::min<int64_t>(s.access[i].bytes, largest_piece(view, s, facts, i)));
  for (Val v : ring_columns(view, s)) {
    Access& a = s.access[view.access_of[v]];
    const Facts::Access& f = facts.access[view.access_of[v]];
    a.staged = f.step[s.vector_axis] == 1;
    if (a.staged && s.edges == Edges::window && f.align % 16 == 0) a.bytes = 16;  // it begins with a piece, wherever a lane's vector does
  }
  hold_columns(view, s);
  bool exact = true, all_dense = true;
  for (Val v : loads) {
    exact &= in_pieces(view, s, facts, v);
    all_dense &= dense_rows(view, s, facts, v);
  }
  // In slots, 16 says that slices begin with whole pieces, however little of one a lane takes.
  for (Val v : loads)
    if (exact || (s.edges == Edges::window && all_dense && facts.access[view.access_of[v]].align % 16 == 0)) s.access[view.access_of[v]].bytes = 16;
  if (!exact && !all_dense) {
    s.keep = Keep::reload, s.slots = s.ahead = 0, s.cut.clear();
    for (size_t i = 0; i < s.access.size(); ++i) s.access[i].staged = s.access[i].early = 0, s.access[i].bytes = uint8_t(std::min<int64_t>(s.access[i].bytes, largest_piece(view, s, facts, i)));
  }
  return "";
}

// Measured (docs/cuda.md): up to 68 KiB of a row a block, in clusters of up to 4 rather 28 to 34; slices of up to 34 KiB, so that the next
// row is folded while this one waits for its peers. Where a row does not fit beside the copies under way it is copied again for each sweep, in slices of
// 16 KiB. Parameters of the columns stay in shared memory where a cluster holds them beside two rows; others come again for each row.
std::optional<Schedule> ring_schedule(const Kernel& kernel, const Facts& facts, const Device& device, const Schedule& start) {
  Schedule s = start;
  const View view(kernel, s.vector_axis);
  const int64_t V = std::max<int>(1, s.lane[s.vector_axis]), row_bytes = ring_shape(kernel, s, facts.columns).row_bytes;
  s.column_slots = 1;
  int64_t words = 1, beside = 0;  // a lane step of all that a sweep may load; of the parameters of the columns
  const std::vector<Val> columns_of = ring_columns(view, s);
  for (Val v : columns_of) beside += ceil_div(size_of(view, v) * V, 4);
  for (Val v : view.accesses)
    if (kernel.values[v].kind == Kind::load && view.level(v) == Level::element && !std::count(columns_of.begin(), columns_of.end(), v))
      words += ceil_div(size_of(view, v) * (view.wide(v) ? V : 1), 4);
  s.column_slots = 0;
  const bool folds = folds_columns(view, s), window = s.edges == Edges::window;
  bool deviations = false;
  for (const Reduction& r : kernel.reductions) deviations |= r.fold == Fold::welford;
  const bool full = s.edges == Edges::full;
  int64_t stored = 0;
  for (Val v : view.element_stores()) stored += size_of(view, v);
  const bool narrow = full && stored > row_bytes;   // bytes that become floats: what is written bounds a row, and slots are small
  const bool grows = stored > 2 * row_bytes;        // it is most of what a row moves
  const bool small = narrow || (grows && (!beside || deviations));  // slots of a team
  // Code for sm_100 takes more registers (rows of unknown length, bf16: softmax, odd, 36 bytes of spills in 96; layer_norm 16).
  const int64_t few = V > 4 ? (device.sm >= 100 && (window || deviations) ? 3 : 4) : window && grows && deviations ? 9 : 8, most_threads = 544;
  auto steps_of = [&](int64_t taken) { return std::clamp<int64_t>(33 / taken, 1, few); };
  int64_t most_steps = steps_of(words);
  const int64_t row = facts.columns * row_bytes, most_lanes = most_threads - lanes_apart(s);
  // Odd rows of 16-bit types: 12 warps, three for each scheduler, in 128 registers, take up to six vectors a lane, or 16 warps four in 96 (layer_norm bf16
  // [24577]: 12 of four vectors 0.96, 16 of three 0.94; [50257]: 12 in clusters of 3 0.88, 13 of four in clusters of 4 0.79; [65537]: 11 of six 0.89, 16 0.97).
  constexpr int64_t kFewLanes = 12 * 32;
  auto few_warps = [&] { return window && deviations && V > 4 && most_steps == 4; };
  const size_t loads = ring_loads(view, facts).size();
  if (!loads) return std::nullopt;  // all of a row is repeated
  // Slices that hold at most so many bytes, and what else follows from cluster and slices; the slots that then fit.
  auto cut_up = [&](int64_t cluster, int64_t slice_bytes, int64_t least) {
    s.cluster = uint16_t(cluster), s.slices = s.min_blocks = 1;
    const int64_t part = ring_shape(kernel, s, facts.columns).part;
    const int64_t slices = std::max({least, ceil_div(part * row_bytes, slice_bytes), ceil_div(part, (std::max(most_lanes * most_steps, few_warps() ? 6 * kFewLanes : 0) + (window ? 31 : 0)) * V)});
    s.slices = uint8_t(std::min<int64_t>(slices, 255));
    return slices <= 255;
  };
  // Lanes for so many vectors. Squared deviations of whole vectors are bound by instructions: the fewest that one of four schedulers has to issue, then
  // the fewest warps, each of which merges its states (layer_norm bf16 [50256], clusters of 3: 384 lanes 0.97, 512 0.90, 288 0.89).
  auto threads_of = [&](int64_t vectors) {
    int64_t best = std::max<int64_t>(128, ceil_div(ceil_div(vectors, ceil_div(vectors, most_threads)), 32) * 32), least = 1 << 20;
    // Where no registers hold the parameters: layer_norm f32 [786432] by 512 lanes of three vectors 0.79, so 0.83.
    if (s.team > 96 && beside && deviations && full && V <= 4 && vectors <= 4 * 416) return int64_t{416};
    if (deviations && full && (V > 4 || narrow))
      for (int64_t threads = 512; threads >= (s.team ? 384 : 320); threads -= 32) {
        const int64_t steps = ceil_div(vectors, threads), cost = steps * ceil_div(threads, 128);
        if (steps <= (narrow ? 12 : 6) && steps > 1 && cost <= least) best = threads, least = cost;
      }
    return best;
  };
  auto fitting = [&] {
    s.ahead = 0;  // what take() chooses by the slots
    return slots_that_fit(kernel, s, ring_shape(kernel, s, facts.columns), loads, device);
  };
  auto take = [&] {
    const RingShape shape = ring_shape(kernel, s, facts.columns);
    const int64_t vectors = ceil_div(shape.slice, V), others = std::max<int64_t>(1, vectors_of_main(s, vectors));
    auto evenly = [&](int64_t most) { return ceil_div(ceil_div(others, ceil_div(others, most)), 32) * 32; };
    const int64_t lanes = !few_warps() ? evenly(most_lanes) : others > 4 * most_lanes ? kFewLanes : evenly(others <= 4 * kFewLanes ? kFewLanes : most_lanes);
    s.threads = uint16_t(window ? std::max<int64_t>(128, lanes + lanes_apart(s)) : threads_of(vectors));
    const int64_t slots = fitting(), rows = slots / s.slices;
    s.keep = slots >= s.slices ? Keep::shared : Keep::reload;
    // Copies far ahead are rows that no other cluster takes any more, and a row folded ahead is one whose stores wait (rms_norm u8 [262144]: three rows ahead
    // and nine slots 0.91, one and nine 0.92, one and four 0.94).
    const bool few = grows && !deviations && !s.team && s.slices == 1 && slots > 4;
    if (s.team) s.ahead = uint8_t(small ? 4 : s.team > 33 ? 3 : std::clamp<int64_t>(rows - 3, 3, 5));
    else if (few) s.ahead = 1;
    else if (deviations && window && V <= 4 && s.slices == 1 && slots >= (grows ? 5 : 6)) s.ahead = 2;
    else if ((deviations || narrow) && full && s.slices == 1 && slots >= 5) s.ahead = uint8_t(std::min<int64_t>(slots - 3, s.cluster >= 16 ? 3 : 2));
    else s.ahead = slots >= 2 * s.slices + (s.column_slots == s.slices ? 1 : 2);
    int64_t wanted = 0;  // all that fit
    if (few) wanted = std::max<int64_t>(64 * KiB / shape.slot_bytes, 4);
    else if (s.team > 33 && !small) wanted = 7;           // layer_norm f32 [393216]: nine 0.92, seven 0.93
    else if (few_warps() && s.slices == 1) wanted = 4;    // layer_norm bf16 [12001]: seven 0.94, four 0.96
    s.slots = uint8_t(std::min(wanted, slots));
    return fit_ring(kernel, facts, device, s).empty();
  };
  // The smallest team that holds a row, three that are folded ahead, one that comes, and the parameters (layer_norm f32 [1048576], one, two and three
  // rows ahead: 0.37, 0.67, 0.87; four slots of 32 KiB instead of five, [131072]: 0.62, 0.89 with two ahead). Where registers hold the parameters there
  // are two slots more, and of teams of 33 a fourth row ahead ([262144]: 0.96, 0.93 without; of 66 [393216]: 0.82, three 0.92, [524288]: 0.94, three
  // 0.96). What moves less is over before the blocks have met.
  auto team_up = [&] {
    if (view.folds() > 1) return false;
    for (int64_t teams = device.multiprocessors / 2; teams > 0; --teams) {
      s.team = uint16_t(device.multiprocessors / teams), s.column_slots = 0;
      if (!cut_up(1, 34 * KiB, 1)) continue;
      if (ring_shape(kernel, s, facts.columns).part * (small ? row_bytes + stored : 2 * row_bytes) < 40 * KiB) break;
      if (small && s.slices > 1) continue;
      if (deviations && full && beside && s.slices == 1 && s.team <= 96 && fitting() >= 6 && take() && std::any_of(s.access.begin(), s.access.end(), [](const Access& a) { return a.early; }))
        return true;
      s.column_slots = beside ? s.slices : 0;
      if (fitting() >= (small ? 6 : 5) * s.slices && take()) return true;
    }
    s.team = 0;
    return false;
  };
  if (beside) {
    // They stay beside two rows in the smallest cluster whose slices are no less than 20 KiB (layer_norm f32 [65536], one slice of 32 KiB 1.00, four of
    // 8 KiB 0.76), with two slots for the row behind; at last with one (layer_norm f32 [196608]: two slices 0.85, four 0.83) or in smaller slices
    // (rms_norm f32 [262144]: five slices 0.94, three 0.91).
    for (bool last : {false, true}) {
      if (last && team_up()) return s;
      for (int64_t cluster : {1, 2, 3, 4, 8, 16})
        for (int64_t least = 1; least <= 6 && cluster <= device.max_cluster; ++least) {
          s.column_slots = 0;
          if (!cut_up(cluster, 34 * KiB, least)) break;
          if (cluster == 3 && (s.slices > 1 || !deviations || !(V > 4 || (full ? narrow : grows)))) break;
          if (cluster == 16 && !last && s.slices > 1 && deviations && full && V > 4) break;
          const int64_t slice_bytes = ring_shape(kernel, s, facts.columns).slice * row_bytes;
          if (s.slices > 1 && slice_bytes < (last && !deviations ? 12 : full || few_warps() ? 18 : 20) * KiB) break;
          s.column_slots = s.slices;
          if (fitting() >= 2 * s.slices + (last && deviations ? 1 : 2) && take()) return s;
        }
    }
    s.column_slots = 0;
  }
  // Where a cluster has no room for the next row, or not even for one (softmax f32 [1048576]: copied again 0.83, by a team 0.92), and odd rows of bytes that
  // are many slices of one (softmax u8 [1048573]: 0.85, by a team 0.89; [1048576] 0.90 and 0.89).
  if (row > device.max_cluster * (grows && window ? 40 : 100) * KiB && team_up()) return s;
  // Others come again for each row: through slots where they lie between pieces or rows are copied again, else lanes ask for them a slice ahead.
  const bool again = beside && !folds && !(deviations && window && V <= 4);
  // Where stores are most of it, a block's part of a row is what memory waits for at the beginning and at the end: 65 to 85 KiB of both, in large clusters
  // two slices of that (softmax u8 [32768]: one block 0.90, clusters of 2 0.92, of 4 0.93; [65536]: of 2 0.92, of 4 0.93; [262144]: of 4 0.89, of 8
  // 0.93, of 16 0.91). Odd rows of 16-bit types lose by one slice (softmax bf16 [65537]: clusters of 4 0.93, of 2 with two slices 0.98).
  auto splits = [&](int64_t cluster) {
    if (grows) return facts.columns * (row_bytes + stored) > cluster * (cluster < 4 ? 65 : cluster < 8 ? 85 : 170) * KiB;
    return row > cluster * 68 * KiB || (cluster < 4 && row >= 2 * cluster * 28 * KiB && !(window && V > 4));
  };
  int64_t cluster = 1;
  while (cluster < device.max_cluster && splits(cluster)) cluster *= 2;
  for (int64_t slice_bytes : {34 * KiB, 16 * KiB}) {
    s.column_slots = 0;
    most_steps = steps_of(words + beside);
    if (!cut_up(cluster, slice_bytes, 1)) return std::nullopt;
    if (again && window) s.column_slots = 2;
    if (again && !window && slice_bytes == 16 * KiB && fitting() < s.slices) s.column_slots = 4;
    if (slice_bytes > 16 * KiB && fitting() < s.slices + s.column_slots) continue;
    if (take()) return s;
  }
  return std::nullopt;
}

}  // namespace fusec::cuda
