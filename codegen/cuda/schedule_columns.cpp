// Columns, which fold across vectors; long rows in parts; and running sums. The figures are of an H200 (docs/cuda.md).

#include "codegen/cuda/scene.h"
#include "codegen/cuda/states.h"

namespace fusec::cuda {
namespace {

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

constexpr size_t kStates = 40 * 1024;  // bytes of the states that meet in shared memory

/// Vectors of columns that begin anywhere between 16-byte pieces come as the pieces that there are, or as the two that they lie in.
void take_pieces(Scene& c) {
  const std::vector<size_t> loads = element_loads(c.view);
  bool all = true;
  for (size_t i : loads) {
    const Val v = c.view.accesses[i];
    Access& a = c.s.access[i];
    const bool computed = is_computed(c.kernel.values[v]) || c.kernel.values[v].map.guard != kNoVal;
    const bool there = !computed && int64_t(c.V) * int64_t(c.size(v)) == 16 && c.facts.access[i].align % 16 == 0 && dense_columns(c, i);
    all &= there;
    a.staged = there && (a.bytes < 16 || c.s.edges == Edges::window);
    a.streamed |= a.staged;
  }
  if (c.s.edges == Edges::window && !all)
    for (size_t i : loads) c.s.access[i].staged = 0;
}

/// Bytes of the largest state of V columns.
int64_t state_of_columns(const Scene& c) {
  size_t state = 16;
  for (size_t i = 0; i < c.view.folds(); ++i) state = std::max(state, state_layout(c.kernel, i, c.V).bytes);
  return int64_t(state);
}

/// Positions of a thread in flight: 128 bytes.
int64_t in_flight(const Scene& c) { return pow2_floor(std::clamp<int64_t>(128 / std::max<int64_t>(c.loaded, 4), 1, 8)); }

int64_t registers(const Scene& c, int64_t positions) {
  return 20 + positions * ceil_div(c.loaded, 4) + state_of_columns(c) / 4 * 2 + (c.heavy > 8 ? 16 : 4);
}

/// Lanes along the columns, of one vector, and threads of a column.
struct Across {
  int64_t X, Y;
  bool slides;
  int64_t warps() const { return X * Y / 32; }
  /// 16 warps with 128 bytes a thread: 64 KiB in flight. Some more where few lanes slide, one piece of whose X is read twice, if there are registers.
  int64_t blocks(const Scene& c) const {
    const int64_t up = ceil_div(int64_t{16}, warps());
    return slides && X <= 5 && up <= blocks_for(int(X * Y), registers(c, in_flight(c))) ? up : std::max<int64_t>(1, 16 / warps());
  }
};

/// Blocks of a multiprocessor by their registers, where columns slide (f32 and 16 bits 64 a thread, bytes 72).
int64_t together(const Scene& c, int64_t threads) {
  return blocks_for(int(threads), 24 + in_flight(c) * ceil_div(c.loaded, 4) + state_of_columns(c) / 4 + (c.heavy > 8 ? 12 : 0));
}

/// What else counts where columns slide: multiprocessors without a part of the columns. For bytes also warps whose pieces are of two rows (u8 [8193]:
/// 30 lanes 0.984, 32 lanes 1.013) and blocks of 17 warps.
double waves(const Scene& c, const Across& a, int64_t blocks, double idle) {
  const int64_t mps = c.device.multiprocessors, resident = mps * a.blocks(c);
  double out = blocks <= resident ? double(resident) / double(resident / blocks * blocks) - 1 : 0;
  if (blocks > resident && blocks < 4 * mps) out += double(ceil_div(blocks, mps) * mps) / double(blocks) - 1;
  if (c.V < 16) return out;
  if (a.X == 32) out -= 0.05;
  return out + (a.X * a.Y > 512 ? 0.07 : a.warps() * a.blocks(c) < 12 ? 0 : -idle / 2);
}

/// The same of bytes in many waves of blocks: the last one, and 24 warps of a multiprocessor (u8 [262145] by 16 lanes 0.954 of the copy rate, by 22
/// lanes 0.987; [131073] 0.882, by 34 lanes 0.962; [1048573] by 24 lanes 0.952, by 34 lanes, whose blocks are alone, 0.887).
double many_waves(const Scene& c, const Across& a, int64_t blocks) {
  const int64_t mps = c.device.multiprocessors, each = together(c, a.X * a.Y), wave = mps * each;
  const double last = double(ceil_div(blocks, wave) * wave) / double(blocks) - 1, idle = std::abs(1 - double(a.warps() * each) / 24);
  return last + idle / 2 + (each == 1 && blocks >= 2 * mps ? 0.2 : 0);
}

bool has_many_waves(const Scene& c, const Across& a, int64_t blocks) {
  return a.slides && c.V == 16 && blocks > c.device.multiprocessors * together(c, a.X * a.Y);
}

/// Few lanes without columns (129 of f32, 33 vectors: 3 blocks of 11 lanes 0.93 of the copy rate, two of 32 0.77); few blocks, since each shares
/// sectors with its neighbours ([100] of f32 in 5 blocks 0.70); 16 warps of a multiprocessor; few trips of the last block, which merges the parts
/// alone (u8 [512]: 264 parts by 8 threads of a column 0.87, 132 by 16 0.95).
Across columns_across(const Scene& c, int64_t columns, bool shifted) {
  const bool slides = c.s.edges == Edges::window;
  const int64_t across = std::max<int64_t>(1, ceil_div(columns, c.V)), least = slides ? c.V : 1;
  auto blocks_of = [&](int64_t X) {
    Schedule s = c.s;
    s.lanes_per_row = uint16_t(X);
    return column_blocks(s, columns);
  };
  auto cost = [&](const Across& a) {
    const int64_t blocks = blocks_of(a.X), resident = c.device.multiprocessors * a.blocks(c);
    const double lanes = double(blocks * a.X) / double(across) + (blocks > 1 ? 2.0 / double(a.X) : 0);
    if (has_many_waves(c, a, blocks)) return lanes + many_waves(c, a, blocks) + (a.Y > c.V ? 1 : 0);  // (that was not tried)
    const double trips = double(resident) / double(blocks * a.Y) / (shifted ? 1 : 2), idle = std::abs(1 - double(a.warps() * a.blocks(c)) / 16);
    return lanes + idle + 0.0028 * trips + (slides ? waves(c, a, blocks, idle) : 0);
  };
  const int64_t first = std::min<int64_t>(32, pow2_ceil(across));
  Across best{first, 256 / first, slides};
  if (slides) best = {32, std::max<int64_t>(8, least), slides};
  for (int64_t X = std::min<int64_t>(slides ? 34 : 32, across + slides); X >= 1 + slides; --X)
    for (int64_t Y = least; X * Y <= 576; Y *= 2)
      if (X * Y % 32 == 0 && cost({X, Y, slides}) < cost(best) - 0.005) best = {X, Y, slides};
  return best;
}

}  // namespace

void column(Scene& c) {
  Schedule& s = c.s;
  s.skeleton = Template::column;
  const bool fit = 34 * (c.V / 2) * state_layout(c.kernel, 0, c.V).bytes <= kStates;
  if (s.edges == Edges::tail && fit && may_slide(c.view, c.V)) s.edges = Edges::window;
  s.keep = c.kernel.sweeps.size() > 1 ? Keep::reload : Keep::none;
  // From one run of columns, not from how many runs there are, and a run that differs from call to call is taken for long: who adds
  // what must not depend on the batch.
  const bool known = !c.kernel.axes.empty() && c.kernel.axes[s.vector_axis].extent.is_constant();
  take_pieces(c);
  auto choose = [&] {
    bool shifted = false;
    for (const Access& a : s.access) shifted |= a.staged && s.edges == Edges::tail;
    return known ? columns_across(c, vector_extent(c), shifted) : Across{32, 8, s.edges == Edges::window};
  };
  Across chosen = choose();
  auto blocks_of = [&](const Across& a) {
    s.lanes_per_row = uint16_t(a.X);
    return known ? column_blocks(s, vector_extent(c)) : 1;
  };
  // Of few parts, or few blocks without parts, some multiprocessors have none, for which sliding makes up only with bytes (f32 / bf16 [16385]: 0.97 /
  // 0.99 of the copy rate, shifted 1.02), or where all blocks run at a time, three or four of a multiprocessor (f32 / bf16 [50257]: 1.04 / 1.03,
  // shifted 0.95 / 0.97 and, in another run, 0.85 / 0.95).
  const int64_t mps = c.device.multiprocessors, state = state_of_columns(c);
  int64_t all = 0;  // blocks of a multiprocessor, where they are as many as its registers allow
  bool one_part = false;
  if (s.edges == Edges::window && c.V < 16) {
    const Across wide{32, 8, true};
    const int64_t blocks = blocks_of(wide);
    if (known && 2 * blocks >= 3 * mps && blocks <= mps * together(c, 256)) {
      chosen = wide, all = together(c, 256), one_part = c.V > 4;  // (16 bits: 64 registers so, but 80 where what is left is taken at once)
    } else if (blocks >= 7 * mps) {
      chosen = wide;
    } else if (blocks_of(chosen) * 5 > mps * chosen.blocks(c)) {
      s.edges = Edges::tail;
      take_pieces(c);
      chosen = choose();
    }
  } else if (s.edges == Edges::window && blocks_of(chosen) > mps * chosen.blocks(c)) {
    all = together(c, chosen.X * chosen.Y);
  }
  // Blocks for a wave and a half: twice as many, half as wide (u8 [262144]: 1.03 of the copy rate, by 32 lanes 0.97).
  if (s.edges == Edges::full && c.V == 16 && chosen.X == 32 && blocks_of(chosen) >= 2 * mps && blocks_of(chosen) < 6 * mps)
    chosen = {16, 2 * chosen.Y, false};
  int64_t X = chosen.X;
  const int64_t least = s.edges == Edges::window ? c.V : 1;  // threads of a column
  int64_t Y = std::max(least, std::min<int64_t>(chosen.Y, pow2_ceil(std::max<int64_t>(1, c.facts.columns))));
  auto fits = [&] { return Y == 1 || X * (Y / 2) * state <= int64_t(kStates); };
  while (!fits()) Y /= 2;
  while (X * Y % 32) Y *= 2;
  if (!fits())  // whole warps of so few lanes are too many of so large states
    for (X = 32; !fits();) Y /= 2;
  const bool slides = s.edges == Edges::window;
  const Across across{X, Y, slides};
  const int64_t U = in_flight(c) * (slides && X == 2 ? 2 : 1);  // (half of what two lanes read is the other's)
  s.lanes_per_row = uint16_t(X);
  s.threads = uint16_t(X * Y);
  s.rows_in_flight = uint16_t(U);
  // Two blocks with 128 bytes a thread: 64 KiB in flight (column sums: 1.03 of the copy rate; 3 blocks 0.98).
  const uint16_t by_registers = blocks_for(s.threads, registers(c, U));
  s.min_blocks = all ? uint16_t(all - one_part) : std::min<uint16_t>(by_registers, uint16_t(across.blocks(c)));
  // Where columns slide, one part is best none: what is left of the positions is then taken at once.
  const int64_t blocks = blocks_of(across);
  const bool parts = one_part || (slides && known ? 2 * blocks <= mps * across.blocks(c) : blocks < 2 * mps);
  if (parts && c.view.folds() == 1 && c.view.element_stores().empty() && c.facts.columns >= 4 * Y * U)
    s.finish = Finish::last_block;
}

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
    const int64_t vectors = std::max<int64_t>(1, ceil_div(c.facts.columns + (s.edges == Edges::window ? c.V - 1 : 0), c.V));
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

}  // namespace fusec::cuda
