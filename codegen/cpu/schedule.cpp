// Which axis the lanes run along, how wide, how many vectors side by side, what an item is. Numbers without a source
// are from prototypes on two Zen 5 cores; none depends on the number of threads, so results never do.
#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/cpu/cpu.h"
#include "codegen/cpu/lazy.h"

namespace fusec::cpu {
namespace {

constexpr int64_t kChunk = 16384;             // elements of one item along a kept vector axis without reductions
constexpr int64_t kTile = 256;                // both sides of an item of a transposing kernel
constexpr int kBypass = 8, kBypassRows = 40;  // arithmetic up to which non-temporal stores pay
constexpr int64_t kLazyColumns = 262144;      // of a softmax whose exponentials wait in a buffer: 1 MB, the L2
constexpr int64_t kCombMost = 8;  // longest axis that is combed apart: extent * (extent - 1) shuffles for each vector
constexpr int64_t kWorthAThread =
    65536;  // elements below which another thread does not pay (64K floats serial take as long as waking one)
constexpr int64_t kPart = 32768;   // elements of one part of a split reduction

struct Weight {
  int cost = 0;        // arithmetic per element, in adds
  size_t widest = 1;   // bytes of the widest register that holds data
  bool heavy = false;  // has a formula such as exp
};

Weight weigh(const Kernel& kernel) {
  Weight out;
  for (const Inst& inst : kernel.values) {
    if (inst.kind == Kind::compute) out.cost += info(inst.op).cost;
    if (inst.kind == Kind::compute && has(inst.op, kHeavy)) out.heavy = true;
    // 64-bit indices ride along in two registers: only data decides the width.
    const bool index = inst.type == DType::i64 && inst.kind != Kind::load && inst.kind != Kind::store;
    if (inst.kind != Kind::dim && inst.kind != Kind::iota && inst.kind != Kind::result && !index)
      out.widest = std::max(out.widest, bytes(compute_type(inst.type)));
  }
  return out;
}

bool contiguous(const Kernel& kernel, const Inst& inst, const Facts::Access& access, size_t axis) {
  for (Val e : inst.map.extra)
    if (e != kNoVal && (kernel.values[e].varies >> axis & 1)) return false;
  return access.step[axis] == 1;
}

/// An access that varies along the vector axis but is contiguous along another, and so can be turned in registers.
bool turns(const Inst& inst, const Facts::Access& access, size_t vector_axis, size_t axis) {
  if (inst.map.guard != kNoVal || !(inst.varies >> vector_axis & 1) || !(inst.varies >> axis & 1)) return false;
  for (Val e : inst.map.extra)
    if (e != kNoVal) return false;
  return access.step[axis] == 1 && access.step[vector_axis] != 1;
}

/// Extent of an axis; of the batch of a reduction, which differs from call to call, a large one: who adds what must not depend on it.
int64_t long_when_unknown(const Kernel& kernel, const Facts& facts, size_t axis) {
  if (kernel.has_reductions() && !kernel.axes[axis].reduced && !kernel.axes[axis].extent.is_constant()) return 1 << 20;
  return std::max<int64_t>(1, facts.extents[axis]);
}

/// Nanoseconds for one vector of lanes along `axis`, roughly: what is contiguous moves at 40 GB/s, what is not is
/// gathered.
double cost_along(const Kernel& kernel, const Facts& facts, size_t axis, int width) {
  double total = 0;
  size_t n = 0;
  for (const Inst& inst : kernel.values) {
    if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
    const Facts::Access& access = facts.access[n++];
    const double size = static_cast<double>(bytes(kernel.operands[inst.operand].type));
    if (!(inst.varies >> axis & 1)) total += 0.1;
    else if (contiguous(kernel, inst, access, axis)) total += size * width / 40;
    else total += (inst.kind == Kind::store ? 0.8 : 0.6) * width;
  }
  const int64_t extent = long_when_unknown(kernel, facts, axis);
  const double lanes = static_cast<double>((extent + width - 1) / width * width) / static_cast<double>(extent);
  total = (total + 0.5) * lanes;
  // Reduced: lanes are merged once a row. Kept: a short axis pays the way from item to item.
  const int64_t row = kernel.axes[axis].reduced ? facts.columns : extent;
  return total + 20.0 * width / static_cast<double>(std::max<int64_t>(1, row));
}

size_t field_count(const Reduction& r) {
  return r.fold == Fold::welford ? 3 : r.fold == Fold::online || r.op == Op::argmax || r.op == Op::argmin ? 2 : 1;
}

/// Parts of the reduced space, when rows are long and nothing but row values comes out of the one sweep. Also when rows are many: a
/// row's sum does not depend on how many come with it.
void split(const Kernel& kernel, const Facts& facts, Schedule& s) {
  if (kernel.sweeps.size() != 1 || !kernel.sweeps[0].stores.empty() || kernel.reductions.empty()) return;
  const int64_t lanes = kernel.axes[s.vector_axis].reduced ? 1 : s.block[s.vector_axis];
  if (facts.columns * lanes < 4 * kPart) return;
  size_t axis = 0;
  while (axis < kernel.axes.size() &&
         (!kernel.axes[axis].reduced || facts.extents[axis] <= 1 || s.lane[axis] == facts.extents[axis]))
    ++axis;
  if (axis == kernel.axes.size()) return;
  int64_t inside = lanes;
  for (size_t k = axis + 1; k < kernel.axes.size(); ++k)
    if (kernel.axes[k].reduced) inside *= std::max<int64_t>(1, facts.extents[k]);
  s.finish = Finish::next_kernel;
  // A power of two: sizes that differ a little share code.
  s.block[axis] =
      static_cast<uint16_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(kPart / inside, 1, kPart))));
}

/// A second axis that accesses are contiguous along which would otherwise be gathered; kNone when there is no
/// worthwhile one.
constexpr size_t kNone = ~size_t{0};
size_t tile_axis(const Kernel& kernel, const Facts& facts, size_t vector_axis, int width) {
  size_t best = kNone, best_bytes = 0;
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    if (k == vector_axis || kernel.axes[k].reduced || facts.extents[k] < width || facts.extents[vector_axis] < width)
      continue;
    size_t n = 0, gained = 0;
    for (const Inst& inst : kernel.values)
      if (inst.kind == Kind::load || inst.kind == Kind::store)
        if (turns(inst, facts.access[n++], vector_axis, k)) gained += bytes(kernel.operands[inst.operand].type);
    if (gained > best_bytes) best = k, best_bytes = gained;
  }
  return best;
}

/// Two kept axes whose elements lie one after another in memory, the inner one short: lanes run over both as over one.
struct Joint {
  size_t outer = kNone, inner = kNone;
  double cost = 0;
  int side = 1;  // vectors of a group: together they cover whole indices of the outer axis
};

bool joins(const Inst& inst, const Facts::Access& access, size_t outer, size_t inner, int64_t extent) {
  for (Val e : inst.map.extra)
    if (e != kNoVal) return false;
  return access.step[inner] == 1 && access.step[outer] == extent;
}

bool combs(const Inst& inst, const Facts::Access& access, size_t outer, size_t inner, int64_t extent) {
  return inst.map.guard == kNoVal && (inst.varies >> inner & 1) && joins(inst, access, outer, inner, extent);
}

Joint joint_axes(const Kernel& kernel, const Facts& facts, int width, int cost) {
  Joint best;
  for (size_t inner = 0; inner < kernel.axes.size(); ++inner) {
    const int64_t extent = facts.extents[inner];
    if (extent < 2 || extent >= 2 * width) continue;
    int side = static_cast<int>(std::lcm(extent, width) / width);
    if (side > (cost <= 20 ? 16 : 8)) continue;
    if (side == 1) side = 2;
    for (size_t outer = 0; outer < kernel.axes.size(); ++outer) {
      if (outer == inner || facts.extents[outer] * extent < 4 * width) continue;
      double total = 0.5;
      size_t n = 0;
      for (const Inst& inst : kernel.values) {
        if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
        const Facts::Access& access = facts.access[n++];
        if (!(inst.varies >> outer & 1)) total += 0.1;  // hoisted
        else if (joins(inst, access, outer, inner, extent))
          total += static_cast<double>(bytes(kernel.operands[inst.operand].type)) * width / 40;
        else total += (inst.kind == Kind::store ? 0.8 : 0.6) * width;
      }
      if (best.outer == kNone || total < best.cost) best = {outer, inner, total, side};
    }
  }
  return best;
}

/// A short axis whose indices are evaluated together: read as whole vectors, combed apart in registers. With reductions
/// it is the reduced one, and lanes are rows.
Joint comb_axes(const Kernel& kernel, const Facts& facts, int width, const Weight& weight) {
  Joint best;
  for (size_t inner = 0; inner < kernel.axes.size(); ++inner) {
    const int64_t extent = facts.extents[inner];
    if (extent < 2 || extent > kCombMost || weight.cost * extent > 400 ||
        kernel.axes[inner].reduced != kernel.has_reductions())
      continue;
    for (size_t outer = 0; outer < kernel.axes.size(); ++outer) {
      if (outer == inner || kernel.axes[outer].reduced || facts.extents[outer] < (kernel.has_reductions() ? 4 : 1) * width / 2) continue;
      double total = 0.5;
      size_t n = 0, staged = 0;
      for (const Inst& inst : kernel.values) {
        if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
        const Facts::Access& access = facts.access[n++];
        const double moved = static_cast<double>(bytes(kernel.operands[inst.operand].type)) * width / 40;
        if (!(inst.varies >> outer & 1)) total += 0.2;
        else if (combs(inst, access, outer, inner, extent))
          total += moved + 0.35 * static_cast<double>(extent - 1), ++staged;
        else if (contiguous(kernel, inst, access, outer)) total += moved;
        else total += (inst.kind == Kind::store ? 0.8 : 0.6) * width;
      }
      const int64_t reach = facts.extents[outer];  // bytes of a block of packed weights are few
      total *= static_cast<double>((reach + width - 1) / width * width) / static_cast<double>(reach);
      if (staged && (best.outer == kNone || total < best.cost)) best = {outer, inner, total, 1};
    }
  }
  return best;
}

/// Where lanes run, and with which second axis, if any.
struct Lanes {
  size_t axis = 0;
  int width = 1;
  Joint joint, comb;
  size_t tile = kNone;
};

Lanes choose_lanes(const Kernel& kernel, const Facts& facts, const Weight& weight, const Device& device) {
  Lanes out;
  out.width = static_cast<int>(std::clamp<size_t>(device.vector_bytes / weight.widest, 2, 64));
  const int narrow = std::min(out.width, 16);  // what is turned or combed in registers
  double best = 0;
  for (size_t k = kernel.axes.size(); k-- > 0;) {
    const double cost = cost_along(kernel, facts, k, out.width);
    if (k + 1 == kernel.axes.size() || cost < best) best = cost, out.axis = k;
  }
  if (kernel.axes.size() < 2) return out;
  const Joint comb = comb_axes(kernel, facts, narrow, weight);
  Joint joint;
  if (!kernel.has_reductions()) joint = joint_axes(kernel, facts, out.width, weight.cost);
  if (joint.outer != kNone && joint.cost < best) {
    best = joint.cost;
    out.joint = joint;
    out.axis = joint.outer;
  }
  if (comb.outer != kNone && comb.cost < best) {
    out.joint = {};
    out.comb = comb;
    out.axis = comb.outer;
    out.width = narrow;
  } else if (!kernel.has_reductions() && out.joint.outer == kNone) {
    out.tile = tile_axis(kernel, facts, out.axis, narrow);
    if (out.tile != kNone) out.width = narrow;
  }
  return out;
}

/// Vectors side by side: enough to hide latencies, few enough for the registers.
uint16_t side_by_side(const Kernel& kernel, const Facts& facts, const Lanes& lanes, const Weight& weight,
                      const Schedule& s) {
  if (kernel.axes.empty() || lanes.tile != kNone || lanes.comb.outer != kNone) return 1;
  if (lanes.joint.outer != kNone) return static_cast<uint16_t>(lanes.joint.side);
  if (kernel.scans() && kernel.axes[lanes.axis].reduced) return 1;  // one vector waits for the other
  if (s.ahead) return weight.cost <= 40 ? 4 : 2;
  if (s.skeleton == Template::cpu_column && weight.cost <= 40) {
    // Wide strips: a column sum of 16 vectors runs at the copy rate, of 4 at half of it. The accumulators fill the
    // registers.
    size_t fields = 0;
    for (const Reduction& r : kernel.reductions)
      fields += field_count(r) * (bytes(r.accumulate) * static_cast<size_t>(lanes.width) + 63) / 64;
    auto side = static_cast<uint16_t>(std::bit_floor(std::max<size_t>(1, 16 / std::max<size_t>(1, fields))));
    while (side > 1 && long_when_unknown(kernel, facts, lanes.axis) <= int64_t{side} / 2 * lanes.width) side /= 2;
    return side;
  }
  return kernel.has_reductions() && weight.cost <= 40 ? 4 : weight.cost <= 120 ? 2 : 1;
}

/// What a lane and an item cover along each axis.
void set_extents(const Kernel& kernel, const Facts& facts, const Lanes& lanes, Schedule& s) {
  if (kernel.axes.empty()) return;
  const size_t axis = lanes.axis;
  s.lane[axis] = static_cast<uint16_t>(lanes.width);
  if (!kernel.axes[axis].reduced)
    s.block[axis] = static_cast<uint16_t>(kernel.has_reductions() ? lanes.width * s.steps : kChunk);
  if (lanes.tile != kNone) {
    s.lane[lanes.tile] = static_cast<uint16_t>(lanes.width);
    s.block[axis] = s.block[lanes.tile] = kTile;
  }
  const Joint& second = lanes.comb.outer != kNone ? lanes.comb : lanes.joint;
  if (second.outer == kNone) return;
  const int64_t extent = facts.extents[second.inner];
  s.lane[second.inner] = static_cast<uint16_t>(extent);
  s.baked = static_cast<uint16_t>(1u << second.inner);
  const int64_t group = lanes.comb.outer != kNone ? lanes.width : int64_t{second.side} * lanes.width / extent;
  s.block[axis] = static_cast<uint16_t>(std::max<int64_t>(1, kChunk / extent / group) * group);
}

void set_accesses(const Kernel& kernel, const Facts& facts, const Lanes& lanes, const Weight& weight, Schedule& s) {
  size_t n = 0;
  for (const Inst& inst : kernel.values) {
    if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
    const Facts::Access& fact = facts.access[n++];
    const size_t size = bytes(kernel.operands[inst.operand].type);
    bool wide = !kernel.axes.empty() && (inst.varies >> lanes.axis & 1) && contiguous(kernel, inst, fact, lanes.axis);
    if (lanes.joint.outer != kNone)
      wide = joins(inst, fact, lanes.axis, lanes.joint.inner, facts.extents[lanes.joint.inner]);
    Access access;
    access.bytes = static_cast<uint8_t>(wide ? std::min<size_t>(64, size * static_cast<size_t>(lanes.width)) : size);
    if (wide && (!kernel.has_reductions() || s.ahead)) {
      const int most = s.ahead ? kBypassRows : kBypass;
      access.bypass = inst.kind == Kind::store && inst.map.guard == kNoVal && !weight.heavy && weight.cost <= most;
      access.prefetch = s.ahead || weight.cost > kBypass;
    }
    if (lanes.tile != kNone) access.staged = turns(inst, fact, lanes.axis, lanes.tile);
    if (lanes.comb.outer != kNone)
      access.staged = combs(inst, fact, lanes.axis, lanes.comb.inner, facts.extents[lanes.comb.inner]);
    s.access.push_back(access);
  }
}

}  // namespace

Schedule schedule(const Kernel& kernel, const Facts& facts, const Device& device) {
  const Weight weight = weigh(kernel);
  const Lanes lanes = choose_lanes(kernel, facts, weight, device);
  const bool rows = !kernel.axes.empty() && kernel.axes[lanes.axis].reduced;
  const bool turned = lanes.tile != kNone || (lanes.comb.outer != kNone && !kernel.has_reductions());
  Schedule s;
  s.wide_index = true;
  s.keep = Keep::reload;
  s.vector_axis = static_cast<uint8_t>(lanes.axis);
  s.skeleton = turned                     ? Template::cpu_tile
               : !kernel.has_reductions() ? Template::cpu_flat
               : rows                     ? Template::cpu_rows
                                          : Template::cpu_column;
  // Stores of a row run beside the reads of the next.
  const Sweep& last = kernel.sweeps.back();
  s.ahead = rows && kernel.sweeps.size() > 1 && last.reductions.empty() && !last.stores.empty();
  if (s.ahead && std::popcount(static_cast<unsigned>(kernel.reduced_axes())) == 1 && facts.columns <= kLazyColumns)
    if (const auto lazy = lazy_pair(kernel)) {
      s.keep = Keep::cache_buffer;
      s.cut = {lazy->e};
    }
  s.steps = side_by_side(kernel, facts, lanes, weight, s);
  set_extents(kernel, facts, lanes, s);
  set_accesses(kernel, facts, lanes, weight, s);
  if (!kernel.axes.empty()) split(kernel, facts, s);
  return s;
}

Launch launch(const Kernel& kernel, const Schedule& s, const Facts& facts) {
  Launch out;
  out.empty = facts.rows == 0;
  if (out.empty || kernel.axes.empty()) return out;
  const bool rows = kernel.axes[s.vector_axis].reduced;
  int64_t items = 1, lanes = 1;
  for (size_t k = 0; k < kernel.axes.size(); ++k)
    if (!kernel.axes[k].reduced && (rows || k != s.vector_axis) && !(s.skeleton == Template::cpu_flat && s.lane[k]) &&
        !(s.lane[k] && !s.block[k]))
      items *= s.skeleton == Template::cpu_tile && s.lane[k] ? (facts.extents[k] + s.block[k] - 1) / s.block[k]
                                                             : facts.extents[k];
  if (!rows) {
    lanes = s.block[s.vector_axis];
    items *= (facts.extents[s.vector_axis] + lanes - 1) / lanes;
  }
  const int64_t row_items = items;
  if (s.finish == Finish::next_kernel) {
    size_t axis = 0;
    for (size_t k = kernel.axes.size(); k-- > 0;)
      if (kernel.axes[k].reduced && s.block[k]) axis = k;
    const int64_t parts = std::max<int64_t>(1, (facts.extents[axis] + s.block[axis] - 1) / s.block[axis]);
    out.splits = static_cast<uint32_t>(parts);
    items *= parts;
    size_t fields = 0;
    for (const Reduction& r : kernel.reductions) fields += field_count(r);
    out.state_bytes = static_cast<uint64_t>(items) * fields * static_cast<uint64_t>(lanes) * 8;
    out.grid[1] = static_cast<uint32_t>(row_items);
  }
  out.grid[0] = static_cast<uint32_t>(items);
  const int64_t each =
      std::max<int64_t>(1, facts.rows * std::max<int64_t>(1, facts.columns) / std::max<int64_t>(1, items));
  out.block = static_cast<uint32_t>(std::clamp<int64_t>(kWorthAThread / each, 1, int64_t{1} << 30));
  return out;
}

}  // namespace fusec::cpu
