// A schedule that was changed by hand or by a tuner: what follows from the changed fields, and whether the skeleton still fits.

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

constexpr int kScratch = 48 * 1024;  // bytes of static shared memory of a block

bool pow2(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }
std::string text(int64_t n) { return std::to_string(n); }

struct Settling {
  const Kernel& kernel;
  const Facts& facts;
  const Device& device;
  Schedule& s;
  View view;
  int64_t V = 1;
  size_t state = 16;  // bytes of the largest running state

  int64_t vectors() const { return std::max<int64_t>(1, ceil_div(facts.columns + window_of(view, s) - 1, V)); }
};

/// No more threads a multiprocessor than it holds.
void clamp_blocks(Schedule& s) { s.min_blocks = uint16_t(std::clamp<int>(s.min_blocks, 1, std::min(32, 2048 / s.threads))); }

std::string common(Settling& c) {
  Schedule& s = c.s;
  if (s.threads < 32 || s.threads > 1024 || s.threads % 32) return "threads=" + text(s.threads) + ": a multiple of 32 up to 1024 is expected";
  if (s.rows_in_flight < 1 || s.rows_in_flight > 32) return "rows_in_flight=" + text(s.rows_in_flight) + ": 1 to 32 are expected";
  if (s.skeleton != Template::ring) s.team = 0;
  const bool any = s.skeleton == Template::ring;
  if (s.cluster < 1 || s.cluster > c.device.max_cluster || (!any && !pow2(s.cluster)))
    return "cluster=" + text(s.cluster) + ": " + (any ? "1" : "a power of two") + " up to " + text(c.device.max_cluster) + " is expected";
  clamp_blocks(s);
  if (s.access.size() != c.view.accesses.size()) return "access: " + text(int64_t(c.view.accesses.size())) + " entries are expected";
  if (!c.kernel.axes.empty() && s.vector_axis >= c.kernel.axes.size()) return "axis=" + text(s.vector_axis) + ": the kernel has " + text(int64_t(c.kernel.axes.size())) + " axes";
  for (unsigned axis = 0; axis < kMaxAxes; ++axis)  // only tiles have two axes
    if (axis != s.vector_axis && s.skeleton != Template::transpose) s.lane[axis] = s.block[axis] = 0;
  if (!pow2(c.V) || c.V > 16) return "lane=" + text(c.V) + ": a power of two up to 16 is expected";
  const int64_t extent = c.kernel.axes.empty() ? 1 : c.facts.extents[s.vector_axis];
  if (s.edges == Edges::tail && extent % c.V == 0) s.edges = Edges::full;
  if (s.edges == Edges::full && extent % c.V) return "lane=" + text(c.V) + " does not divide the extent " + text(extent) + ", and edges=full";
  const bool by_lanes = s.skeleton != Template::ring && s.skeleton != Template::transpose && !(s.skeleton == Template::rows && s.slots);
  for (size_t i = 0; i < s.access.size(); ++i) {
    const Val v = c.view.accesses[i];
    const int64_t size = int64_t(bytes(c.kernel.operands[c.kernel.values[v].operand].type));
    const int64_t whole = c.view.wide(v) ? size * c.V : size;
    s.access[i].bytes = uint8_t(std::min<int64_t>(s.access[i].bytes, whole));
    const bool store = c.kernel.values[v].kind == Kind::store;
    if (store) s.access[i].streamed = s.access[i].early = s.access[i].prefetch = s.access[i].bypass = 0;
    if (store ? s.skeleton != Template::rows : s.skeleton == Template::pointwise || s.skeleton == Template::split || s.skeleton == Template::scan)
      s.access[i].staged = 0;
    const int64_t piece = s.access[i].bytes;
    if (piece < size || piece > 16 || !pow2(piece)) return "access." + text(int64_t(i)) + ": pieces of " + text(size) + " to 16 bytes are expected";
    if (piece > size && c.facts.access[i].align % piece) return "access." + text(int64_t(i)) + ": this call's address does not allow pieces of " + text(piece);
    if (by_lanes) s.access[i].bytes = uint8_t(std::min(piece, largest_piece(c.view, s, c.facts, i)));
  }
  for (Val v : s.cut)
    if (v >= c.kernel.values.size() || c.kernel.values[v].kind == Kind::store || c.view.level(v) != Level::element)
      return "cut: v" + text(v) + " is no element value of this kernel";
  return "";
}

/// Of rows that stay on chip the loads of the row have a cache policy; what comes behind it has none.
void policy_of_row(Settling& c) {
  if (c.s.cut.empty()) return;
  const std::vector<Val> row = c.view.needed(c.s.cut, [&](Val v) { return c.view.level(v) != Level::element; });
  for (size_t i = 0; i < c.s.access.size(); ++i) c.s.access[i].streamed &= std::count(row.begin(), row.end(), c.view.accesses[i]) > 0;
}

std::string pointwise(Settling& c) {
  Schedule& s = c.s;
  if (c.kernel.has_reductions()) return "skeleton=pointwise: the kernel reduces";
  if (!c.kernel.axes.empty()) s.block[s.vector_axis] = 0;  // a tile's
  const bool parameters = std::any_of(c.view.accesses.begin(), c.view.accesses.end(), [&](Val v) { return is_parameter(c.view, v); });
  if (!c.view.flat || !parameters || s.rows_in_flight < 2) s.steps = 0;
  if (!s.steps) return "";
  if (s.steps * c.facts.extents[s.vector_axis] % c.V) return "steps=" + text(s.steps) + ": vectors that many rows apart do not begin with the same column";
  return "";
}

std::string rows(Settling& c) {
  Schedule& s = c.s;
  if (!c.view.kernel.has_reductions()) return "skeleton=rows: the kernel reduces nothing";
  if (!(c.kernel.reduced_axes() >> s.vector_axis & 1)) return "skeleton=rows: the vector axis is not reduced";
  if (s.keep != Keep::registers) s.steps = 0, s.block[s.vector_axis] = 0;
  const uint8_t slots = s.slots;
  const bool tiled = slots && s.keep == Keep::registers && (s.edges == Edges::full || sums_bytes(c.kernel)) && tileable(c.view, c.device);
  s.slots = 0;
  for (Access& a : s.access) a.staged = 0;
  // Lanes of a block meet by butterflies.
  if (s.keep != Keep::registers && !pow2(s.threads)) return "threads=" + text(s.threads) + ": a power of two is expected";
  switch (s.keep) {
    case Keep::reload:
      s.cut.clear();
      for (Access& a : s.access) a.early = 0;
      s.lanes_per_row = s.threads;
      s.cluster = 1;
      return 2 * (s.threads / 32) * int64_t(c.state) > kScratch ? "threads: the states of so many warps do not fit" : "";
    case Keep::shared:
    case Keep::cluster: {
      if (s.cut.empty()) return "keep: nothing is cut";
      s.lanes_per_row = s.threads;
      s.keep = s.cluster > 1 ? Keep::cluster : Keep::shared;
      for (Access& a : s.access) a.early = 0;
      policy_of_row(c);
      const Launch l = launch(c.kernel, s, c.facts, c.device);
      return int64_t(l.shared) + 8 * 1024 > c.device.shared_per_block ? "keep: " + text(l.shared) + " bytes of a row do not fit into shared memory" : "";
    }
    case Keep::registers: {
      if (s.cut.empty() && !c.view.element_stores().empty()) return "keep=registers: nothing is cut";
      if (!pow2(s.lanes_per_row) || s.lanes_per_row > 1024) return "lanes_per_row=" + text(s.lanes_per_row) + ": a power of two up to 1024 is expected";
      if (s.threads < s.lanes_per_row) s.threads = s.lanes_per_row;
      if (s.threads % s.lanes_per_row) return "threads=" + text(s.threads) + ": whole rows of lanes are expected";
      if (tiled && s.lanes_per_row > 32) s.threads = s.lanes_per_row;
      clamp_blocks(s);
      if (tiled || s.lanes_per_row != s.threads || s.rows_in_flight > 1) s.cluster = 1;
      const int64_t steps = ceil_div(c.vectors(), s.lanes_per_row * s.cluster);
      if (steps * c.V > 128) return "lanes_per_row=" + text(s.lanes_per_row) + ": " + text(steps * c.V) + " elements a lane are more than registers hold";
      if (!tiled && s.rows_in_flight * steps > 64) return "rows_in_flight=" + text(s.rows_in_flight) + ": more than registers hold";
      s.steps = uint16_t(steps);
      policy_of_row(c);
      const bool exact = steps * s.lanes_per_row * s.cluster * c.V == c.facts.columns && s.edges != Edges::window;
      s.block[s.vector_axis] = exact ? uint16_t(std::min<int64_t>(c.facts.columns, 65535)) : uint16_t(0);
      if (tiled) s.slots = slots, fit_tiles(c.view, c.facts, c.device, s);
      else shift_parameters(c.view, c.facts, s);
      return "";
    }
    case Keep::none: case Keep::cache_buffer: return "keep: registers, shared, cluster and reload are known to rows";
  }
  return "";
}

std::string column(Settling& c) {
  Schedule& s = c.s;
  if (!c.kernel.has_reductions() || (c.kernel.reduced_axes() >> s.vector_axis & 1)) return "skeleton=column: the vector axis must be kept, and something reduced";
  if (!s.lanes_per_row || s.threads % s.lanes_per_row || !pow2(s.threads / s.lanes_per_row)) return "lanes_per_row and threads: a power of two of lanes_per_row is expected";
  const int64_t Y = s.threads / s.lanes_per_row;
  if (s.edges == Edges::window && !may_slide(c.view, unsigned(c.V))) return "edges=window: one sweep over vectors of 16 bytes, without stores of elements, is expected";
  if (s.edges == Edges::window && (s.lanes_per_row < 2 || Y < c.V)) return "edges=window: two lanes along the columns and " + text(c.V) + " threads of one are expected";
  if (Y > 1 && s.lanes_per_row * (Y / 2) * int64_t(c.state) > kScratch) return "threads: the states of so many lanes do not fit into shared memory";
  if (s.finish == Finish::last_block && (c.view.folds() != 1 || !c.view.element_stores().empty())) return "finish=last_block: one sweep without element stores is expected";
  for (size_t i = 0; i < s.access.size(); ++i) s.access[i].staged &= c.V * int64_t(bytes(c.kernel.operands[c.kernel.values[c.view.accesses[i]].operand].type)) == 16;  // out of two pieces
  if (s.edges == Edges::window) {  // all or none
    bool all = true;
    for (size_t i : element_loads(c.view)) all &= s.access[i].staged;
    if (!all)
      for (Access& a : s.access) a.staged = 0;
  }
  return s.finish == Finish::next_kernel ? "finish=next_kernel is the CPU's" : "";
}

std::string scan(Settling& c) {
  Schedule& s = c.s;
  if (!pow2(s.lanes_per_row) || s.lanes_per_row > s.threads || s.threads % s.lanes_per_row) return "lanes_per_row=" + text(s.lanes_per_row) + ": whole rows of lanes are expected";
  if (s.steps < 1 || s.steps > 16) return "steps=" + text(s.steps) + ": 1 to 16 are expected";
  const bool column = !(c.kernel.reduced_axes() >> s.vector_axis & 1);
  if (s.finish == Finish::last_block && !column && s.lanes_per_row != s.threads) return "finish=last_block: a block a part of a row is expected";
  const int64_t states = column ? s.threads : s.threads / 32;
  return 2 * states * int64_t(c.state) > kScratch ? "threads: the states of so many do not fit" : "";
}

std::string split(Settling& c) {
  Schedule& s = c.s;
  if (!c.kernel.has_reductions() || !(c.kernel.reduced_axes() >> s.vector_axis & 1)) return "skeleton=split: the vector axis must be reduced";
  if (c.view.folds() != 1 || !c.view.element_stores().empty()) return "skeleton=split: one sweep without element stores is expected";
  s.finish = Finish::last_block;
  s.lanes_per_row = s.threads;
  if (!pow2(s.threads)) return "threads=" + text(s.threads) + ": a power of two is expected";
  return 2 * (s.threads / 32) * int64_t(c.state) > kScratch ? "threads: the states of so many warps do not fit" : "";
}

std::string ring(Settling& c) {
  if (std::string why = fit_ring(c.kernel, c.facts, c.device, c.s); !why.empty()) return why;
  for (Val v : c.s.cut) {  // copies have a policy, and are ahead
    Access& a = c.s.access[c.view.access_of[v]];
    a.streamed = 1, a.prefetch = a.bypass = 0;
  }
  return "";
}

}  // namespace

void follow(Schedule& s, const Device& device) { s.dependent_launch = device.sm >= 90; }

std::string settle(const Kernel& written, const Facts& facts, const Device& device, Schedule& s) {
  const Kernel paired = s.merged ? merge_sweeps(written) : Kernel{};
  const Kernel& kernel = s.merged ? paired : written;
  if (!kernel.axes.empty() && s.vector_axis >= kernel.axes.size()) return "axis=" + text(s.vector_axis) + ": there is no such axis";
  s.merged = s.merged && paired.sweeps.size() < written.sweeps.size();
  Settling c{kernel, facts, device, s, View(kernel, s.vector_axis)};
  // Pointwise vectors run on from row to row: a tail is at the end of everything.
  if (s.skeleton == Template::pointwise && s.edges == Edges::tail && !kernel.axes.empty() && facts.rows != facts.extents[s.vector_axis]) s.edges = Edges::window;
  c.view.flat = s.skeleton == Template::pointwise && s.edges == Edges::window;
  c.V = kernel.axes.empty() ? 1 : std::max<int64_t>(1, s.lane[s.vector_axis]);
  if (std::string why = common(c); !why.empty()) return why;
  const bool column_like = kernel.has_reductions() && !(kernel.reduced_axes() >> s.vector_axis & 1);
  for (size_t i = 0; i < c.view.folds(); ++i) c.state = std::max(c.state, state_layout(kernel, i, column_like ? unsigned(c.V) : 1).bytes);
  if (kernel.scans() != (s.skeleton == Template::scan)) return "skeleton=scan: running sums take it, and nothing else does";
  switch (s.skeleton) {
    case Template::pointwise: return pointwise(c);
    case Template::transpose:
      if (kernel.has_reductions() || tile_axis(s) < 0) return "skeleton=transpose: two tiled axes and no reduction are expected";
      return s.threads == 256 ? "" : "skeleton=transpose: threads=256 is expected";
    case Template::rows: return rows(c);
    case Template::column: return column(c);
    case Template::split: return split(c);
    case Template::ring: return ring(c);
    case Template::scan: return scan(c);
    case Template::cpu_flat: case Template::cpu_rows: case Template::cpu_column: case Template::cpu_tile: break;
  }
  return "skeleton: it is not one of a GPU";
}

namespace {

class CudaScheduler final : public Scheduler {
 public:
  explicit CudaScheduler(const Device& device) : device_(device) {}
  Schedule schedule(const Kernel& kernel, const Facts& facts) const override { return cuda::schedule(kernel, facts, device_); }
  Launch launch(const Kernel& kernel, const Schedule& s, const Facts& facts) const override { return cuda::launch(kernel, s, facts, device_); }
  std::string settle(const Kernel& kernel, const Facts& facts, Schedule& s) const override { return cuda::settle(kernel, facts, device_, s); }
  std::string_view fields(const Schedule& s) const override { return cuda::fields(s); }
  std::vector<Candidate> candidates(const Kernel& kernel, const Facts& facts) const override { return cuda::candidates(*this, kernel, facts); }
  void follow(Schedule& schedule) const override { cuda::follow(schedule, device_); }
  Occupancy occupancy(const Artifact& artifact, const Launch& launch) const override { return cuda::occupancy(artifact, launch, device_); }
  std::string target_key() const override { return "sm_" + std::to_string(device_.sm); }

 private:
  Device device_;
};

}  // namespace

std::shared_ptr<const Scheduler> scheduler(const Device& device) { return std::make_shared<CudaScheduler>(device); }

}  // namespace fusec::cuda
