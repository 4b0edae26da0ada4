// Grid, workspace and cache policy of one call: what a schedule leaves open.

#include <algorithm>

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/ring.h"
#include "codegen/cuda/shape.h"
#include "codegen/cuda/states.h"
#include "codegen/cuda/tiles.h"
#include "lib/kernel/merge_sweeps.h"

namespace fusec::cuda {
namespace {


/// Bytes of K::Keep: words of each value of the cut.
int64_t kept_bytes(const Kernel& kernel, const Schedule& s) {
  int64_t words = 0;
  for (Val v : s.cut) {
    const bool wide = kernel.values[v].varies >> s.vector_axis & 1;
    words += ceil_div(int64_t(bytes(kept_type(kernel, v))) * (wide ? s.lane[s.vector_axis] : 1), 4);
  }
  return std::max<int64_t>(1, words) * 4;
}

}  // namespace

Launch launch(const Kernel& written, const Schedule& s, const Facts& facts, const Device& device) {
  const Kernel paired = s.merged ? merge_sweeps(written) : Kernel{};
  const Kernel& kernel = s.merged ? paired : written;
  Launch out;
  out.block = uint32_t(block_threads(s));
  if (facts.rows == 0) {
    out.empty = true;
    return out;
  }
  const int64_t V = kernel.axes.empty() ? 1 : std::max<int64_t>(1, s.lane[s.vector_axis]);
  const bool column_like = kernel.has_reductions() && !(kernel.reduced_axes() >> s.vector_axis & 1);
  const int64_t kMost = 0x7fffffff;
  auto parts = [&](int64_t wanted, int64_t at_most) { return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, at_most)); };
  size_t state = 0;
  if (s.finish == Finish::last_block) {
    const unsigned lanes = s.skeleton == Template::column ? unsigned(V) : 1;
    state = state_layout(kernel, 0, lanes).bytes;
  }
  int64_t blocks = 1, splits = 1;
  // Parts of split rows: as many as one such row asks for, whatever the number of rows, or their sums would depend on it. Blocks: one
  // wave. A second, partial wave leaves most multiprocessors idle (column sums at 1.5 waves ran at 0.86 of the copy rate).
  const int64_t resident = int64_t(device.multiprocessors) * std::max<int>(1, s.min_blocks);
  switch (s.skeleton) {
    case Template::pointwise:
      blocks = ceil_div(facts.rows, int64_t(s.threads) * V * s.rows_in_flight);
      if (s.steps) {  // a lane for each vector of the first part of every group of rows
        const int64_t apart = s.steps * facts.extents[s.vector_axis];
        blocks = ceil_div(ceil_div(facts.rows, apart * s.rows_in_flight) * apart, int64_t(s.threads) * V);
      }
      break;
    case Template::rows:
      blocks = s.keep == Keep::registers ? ceil_div(facts.rows, int64_t(s.threads / s.lanes_per_row) * s.rows_in_flight) : facts.rows;
      if (s.keep == Keep::registers && s.slots) {
        const int64_t teams = s.threads / tile_team(s), tile = tile_shape(View(kernel, s.vector_axis), s).slot_bytes(tile_rows(s), facts.columns);
        out.shared = uint32_t(teams * s.slots * tile);
        // Some tiles a block, so that copies are ahead of the work; blocks enough for several waves.
        const int64_t all = ceil_div(facts.rows, teams * tile_rows(s)), most = s.slots == 1 ? 1 : std::clamp<int64_t>(96 * 1024 / (teams * tile), 2, 64);
        blocks = ceil_div(all, std::clamp<int64_t>(all / (6 * resident), 1, most));
      }
      if (s.keep == Keep::registers && s.cluster > 1) {
        out.cluster = s.cluster;
        blocks = std::min<int64_t>(blocks, kMost / s.cluster) * s.cluster;
      }
      if (s.keep == Keep::shared || s.keep == Keep::cluster) {
        const int64_t cluster = std::max<int>(1, s.cluster), vectors = ceil_div(facts.columns + (s.edges == Edges::window ? V - 1 : 0), V);
        const int64_t part = ceil_div(vectors, cluster);
        out.cluster = uint32_t(cluster);
        out.shared = uint32_t(ceil_div(part, s.threads) * s.threads * kept_bytes(kernel, s));
        blocks = std::min<int64_t>(blocks, kMost / cluster) * cluster;
      }
      break;
    case Template::column: {
      blocks = column_blocks(s, facts.rows);
      const int64_t positions = int64_t(s.threads / s.lanes_per_row) * s.rows_in_flight;
      const int64_t one = column_blocks(s, facts.extents[s.vector_axis]);  // blocks of one run of columns
      if (s.finish == Finish::last_block) splits = parts(resident / one, facts.columns / positions / 4);
      out.state_bytes = uint64_t(blocks * splits * s.lanes_per_row) * state;
      break;
    }
    case Template::split: {
      blocks = facts.rows;
      splits = parts(resident, ceil_div(facts.columns, V) / (int64_t(s.threads) * s.rows_in_flight * 2));
      out.state_bytes = uint64_t(blocks * splits) * state;
      break;
    }
    case Template::transpose: {
      const size_t i = size_t(tile_axis(s)), j = s.vector_axis, T = s.block[j];
      const int64_t area = facts.extents[i] * facts.extents[j];
      blocks = (area ? facts.rows / area : 0) * ceil_div(facts.extents[i], int64_t(T)) * ceil_div(facts.extents[j], int64_t(T));
      break;
    }
    case Template::ring: {
      const int64_t cluster = std::max<int>(1, s.cluster);
      out.cluster = uint32_t(cluster);
      const RingShape shape = ring_shape(kernel, s, facts.columns);
      out.shared = uint32_t(s.slots * shape.slot_bytes + s.column_slots * shape.column_slot_bytes);
      if (s.team) {
        const int64_t teams = std::min<int64_t>(std::max<int64_t>(1, device.multiprocessors / s.team), facts.rows);
        blocks = teams * s.team;
        out.together = true;
        out.counters = uint32_t(34 + teams * team_words(kernel, s) * 2);  // a counter, and boards from the next 128 bytes on
        break;
      }
      out.counters = 2;
      blocks = std::min<int64_t>(std::max<int64_t>(1, device.resident_clusters(cluster) * std::max<int>(1, s.min_blocks)), facts.rows) * cluster;
      break;
    }
    case Template::scan:
      if (s.finish == Finish::last_block) {
        const int64_t Y = s.threads / s.lanes_per_row, lines = column_like ? ceil_div(facts.rows, s.lanes_per_row * V) : facts.rows;
        const int64_t in_row = std::max<int64_t>(1, ceil_div(facts.columns + (s.edges == Edges::window ? V - 1 : 0), column_like ? Y * s.steps : int64_t(s.threads) * s.steps * V));
        const int64_t groups = ceil_div(in_row, column_like ? 4 * Y : int64_t(s.threads));
        blocks = lines * in_row;
        out.counters = uint32_t(2 + lines * (in_row + groups));
        out.state_bytes = uint64_t(lines * (in_row + groups) * (column_like ? s.lanes_per_row : 1)) * state_layout(kernel, 0, column_like ? unsigned(V) : 1).bytes;
        break;
      }
      blocks = column_like ? ceil_div(facts.rows, int64_t(s.lanes_per_row) * V) : ceil_div(facts.rows, int64_t(s.threads / s.lanes_per_row));
      break;
    case Template::cpu_flat: case Template::cpu_rows: case Template::cpu_column: case Template::cpu_tile: break;
  }
  out.splits = uint32_t(splits);
  out.grid[0] = uint32_t(std::clamp<int64_t>(blocks, 1, kMost));
  // Each block takes the same number of parts.
  const int64_t turns = ceil_div(splits * std::min(blocks, resident), resident);
  out.grid[1] = uint32_t(ceil_div(splits, turns));
  if (s.finish == Finish::last_block && s.skeleton != Template::scan) out.counters = out.grid[0];
  if (s.finish != Finish::last_block) out.state_bytes = 0;
  // Streamed lines that stay leave room for the stores: it pays where the call is much larger than the L2.
  out.policy = facts.footprint >= 4 * device.l2_bytes;
  return out;
}

Occupancy occupancy(const Artifact& artifact, const Launch& launch, const Device& device) {
  auto fact = [&](const char* key) {
    auto found = artifact.facts.find(key);
    return found == artifact.facts.end() ? int64_t{0} : found->second;
  };
  const int64_t registers = fact("registers"), warps = ceil_div(launch.block, 32);
  if (!registers || !warps) return {};
  const bool small = device.sm == 86 || device.sm == 87 || device.sm == 89 || device.sm >= 120;
  const int64_t most_warps = small ? 48 : 64, most_blocks = small ? 24 : 32;
  // Registers are given out by 256 a warp, shared memory by 128 bytes and 1 KiB for the system a block.
  const int64_t by_registers = 65536 / (ceil_div(registers * 32, 256) * 256) / warps;
  const int64_t shared = ceil_div(int64_t(launch.shared) + fact("shared_bytes"), 128) * 128 + 1024;
  const int64_t blocks = std::min({most_blocks, most_warps / warps, by_registers, (device.shared_per_block + 1024) / shared});
  return {int(blocks), double(blocks * warps) / double(most_warps)};
}

}  // namespace fusec::cuda
