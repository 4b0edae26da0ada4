// Choosing a schedule: pure, from extents, strides and alignment. The figures behind the choices were measured on an H200
// (docs/cuda.md): what matters is that every access is wide, that a multiprocessor has ~48 KiB outstanding, that a row is read
// once, and that nothing spills.

#include <algorithm>

#include "codegen/cuda/scene.h"
#include "codegen/cuda/states.h"
#include "lib/kernel/merge_sweeps.h"

namespace fusec::cuda {
namespace {

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

}  // namespace

int64_t widest_size(const Scene& c) {
  int64_t size = 1;
  for (Val v : c.view.accesses)
    if (c.kernel.values[v].varies >> c.s.vector_axis & 1) size = std::max(size, int64_t(c.size(v)));
  return size;
}

namespace {

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
    const bool windows = dividing * widest_size(c) < (c.reduces && extent * widest_size(c) > 32 * 1024 ? 16 : 8) && (c.reduces ? !c.column && others == 1 && extent >= (c.kernel.scans() ? 2 : sums_bytes(c.kernel) ? 3 : 16) * V : c.facts.rows >= 16 * V);
    if (single && extent > V) c.s.edges = Edges::tail;
    else if (windows) c.s.edges = Edges::window, c.view.flat = !c.reduces;
    else V = dividing;
  }
  c.V = unsigned(V);
  if (!c.kernel.axes.empty()) c.s.lane[c.s.vector_axis] = uint16_t(V);
}

}  // namespace

void choose_pieces(Scene& c) {
  const AxisSet all = AxisSet((1u << c.kernel.axes.size()) - 1);
  for (size_t i = 0; i < c.view.accesses.size(); ++i) {
    const Val v = c.view.accesses[i];
    const Inst& inst = c.kernel.values[v];
    Access a;
    a.bytes = uint8_t(largest_piece(c.view, c.s, c.facts, i));
    a.streamed = inst.kind == Kind::load && c.view.wide(v) && inst.varies == all && a.bytes >= 4 && !is_computed(inst) && !is_guarded(c.view, inst);
    c.s.access.push_back(a);
  }
}

bool has_few_terms(const Inst& inst) {
  return (inst.op == Op::exp && (inst.relax & (kFewerTerms | kNear))) ||
         ((inst.op == Op::sigmoid || inst.op == Op::silu) && (inst.relax & kFewerTerms));
}

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

uint16_t blocks_for(int threads, int64_t registers) {
  const int64_t rounded = std::clamp<int64_t>((registers + 7) / 8 * 8, 24, 255);
  return uint16_t(std::clamp<int64_t>(65536 / (threads * rounded), 1, std::min(16, 2048 / threads)));
}

namespace {

/// Rows between the vectors of a lane, which then begin with the same column: beside parameters that lie anywhere under vectors which run on into the
/// next row. 0: there are none. A lane's vectors are best lines of memory apart, or sectors, and as many for nearly all lanes (measured: sectors 0.5 %,
/// single vectors 1 %; a lane with one of two vectors takes 1.3 times its share).
uint16_t rows_apart(const Scene& c, int64_t in_flight) {
  if (!c.view.flat || in_flight < 2) return 0;
  int64_t least = 16;
  bool parameters = false;
  for (Val v : c.view.accesses) {
    parameters |= is_parameter(c.view, v);
    if (c.view.wide(v)) least = std::min(least, int64_t(c.size(v)));
  }
  const int64_t rows = c.facts.rows / vector_extent(c), V = c.V;
  double best = 1;
  int64_t out = 0;
  for (int64_t steps : {128 / least, 32 / least, V}) {
    if (!parameters || steps % V || rows < 4 * in_flight * steps) continue;
    const int64_t left = rows % (in_flight * steps), alone = std::min(left, in_flight * steps - left);
    const double loss = 0.3 * double(alone) / double(rows) + (steps * least % 128 == 0 ? 0 : steps * least % 32 == 0 ? 0.005 : 0.01);
    if (loss < best) best = loss, out = steps;
  }
  return uint16_t(out);
}

void pointwise(Scene& c) {
  c.s.skeleton = Template::pointwise;
  c.s.threads = 256;
  // 2048 threads that move 32 bytes each reach the copy rate; with more arithmetic a byte fewer threads fit and each needs more in flight
  // (gelu, silu: 2 vectors; int8 dequantise and requantise: 4).
  const int64_t moved = std::max<int64_t>(1, c.loaded + c.stored);
  const bool arithmetic = c.formulas || c.heavy * int64_t(c.V) >= 3 * moved;
  int64_t U = std::clamp<int64_t>(pow2_ceil(ceil_div(arithmetic ? 64 : 32, moved)), 1, 8);
  // Stores leave at their own pace: u8 images to f32 0.96 with 2 vectors, 0.94 with 4. Not where a formula takes longer (u8 + bias, gelu 0.87, 0.81).
  while (U > 1 && U * c.stored > 32 && !(c.formulas && U * c.loaded <= 16)) U /= 2;
  // Parameters fetched once count where instructions do (bf16, u8 + bias, gelu; of f32 neighbours are 0.5 % better). Of rows whose parameters stay in
  // the L1 four vectors are better than two (bf16 [257] 0.99, 0.96; [32769] 0.96, 0.98).
  bool four = false;
  if (c.heavy * int64_t(c.V) >= 5 * moved) {
    c.s.steps = rows_apart(c, U);
    const uint16_t steps = U == 2 && c.loaded == 16 && c.V == 8 && vector_extent(c) <= 20 * 1024 ? rows_apart(c, 4) : uint16_t(0);
    if ((four = steps != 0)) U = 4, c.s.steps = steps;
  }
  c.s.rows_in_flight = uint16_t(U);
  // Much in flight of little arithmetic a byte is asked for by smaller blocks, which come and go more evenly (int8 dequantise: 1.04 of the copy
  // rate, by blocks of 256 1.02).
  if (U >= 4) c.s.threads = 128;
  const int64_t registers = 20 + U * ceil_div(c.loaded, 4) + c.V * 2 + (c.heavy > 8 ? 14 : 0) + int64_t(c.view.accesses.size()) * 2;
  c.s.min_blocks = blocks_for(c.s.threads, registers);
  // One load of 16 bytes a vector: full occupancy costs no spills and is worth it (gelu of bf16: 32 registers 1.006 of the copy rate, 36 0.964).
  if (c.formulas && U * c.loaded <= 32) c.s.min_blocks = uint16_t(2048 / c.s.threads);
  if (four) c.s.min_blocks = 12;
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

std::optional<Schedule> relieve(const Schedule& schedule, int64_t spilled) {
  if (schedule.min_blocks <= 1) return std::nullopt;
  auto registers = [&](int blocks) { return std::min<int64_t>(255, 65536 / (int64_t(schedule.threads) * blocks) / 8 * 8); };
  Schedule out = schedule;
  // 8 bytes of layer_norm bf16 [8192] by five blocks of 256: three blocks 0.91 of the copy rate, where five without spills had 1.00.
  do --out.min_blocks;
  while (out.min_blocks > 1 && registers(out.min_blocks) < registers(schedule.min_blocks) + 8 + spilled / 4);
  return out;
}

}  // namespace fusec::cuda
