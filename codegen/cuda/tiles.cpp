#include "codegen/cuda/tiles.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/ring.h"

namespace fusec::cuda {
namespace {

constexpr int64_t KiB = 1024;

size_t size_of(const View& view, Val access) { return bytes(view.kernel.operands[view.kernel.values[access].operand].type); }

bool full(const View& view, Val v) { return view.kernel.values[v].varies == AxisSet((1u << view.kernel.axes.size()) - 1); }

/// Most words of one bank that a warp asks for at once, over all accesses: a group of lanes has `rows` rows behind each other.
int64_t conflicts(const TileShape& shape, int64_t columns, int64_t lanes, int64_t rows, int64_t V) {
  int64_t out = 0;
  for (const TileShape::Part& part : shape.parts) {
    const int64_t size = int64_t(shape.sizes[part.region]);
    std::set<int64_t> words[32];
    int64_t most = 1;
    for (int64_t lane = 0; lane < 32; ++lane) {
      const int64_t word = (lane / lanes * rows * columns + lane % lanes * V) * size / 4;
      words[word % 32].insert(word);
      most = std::max<int64_t>(most, int64_t(words[word % 32].size()));
    }
    out += most;
  }
  return out;
}

}  // namespace

int64_t TileShape::slot_bytes(int64_t rows, int64_t columns) const {
  int64_t out = 0;
  for (size_t size : sizes) out += region_bytes(rows, columns, size);
  return out;
}

TileShape tile_shape(const View& view, const Schedule& s) {
  TileShape out;
  std::vector<size_t> free;  // regions of loads that no store has taken
  for (int stores = 0; stores < 2; ++stores)
    for (size_t i = 0; i < view.accesses.size(); ++i) {
      const Val v = view.accesses[i];
      if (!s.access[i].staged || (view.kernel.values[v].kind == Kind::store) != (stores == 1)) continue;
      const size_t size = size_of(view, v);
      auto same = std::find_if(free.begin(), free.end(), [&](size_t r) { return out.sizes[r] == size; });
      if (stores && same != free.end()) {
        out.parts.push_back({v, *same});
        free.erase(same);
        continue;
      }
      if (!stores) free.push_back(out.sizes.size());
      out.parts.push_back({v, out.sizes.size()});
      out.sizes.push_back(size);
    }
  return out;
}

bool tileable(const View& view, const Device& device) {
  const Kernel& kernel = view.kernel;
  if (device.sm < 80 || !kernel.has_reductions() || !(kernel.reduced_axes() >> view.vector_axis & 1)) return false;
  Dim pitch = 1;
  for (unsigned k = 0; k < kernel.axes.size(); ++k) {
    if (!kernel.axes[k].reduced) continue;
    if (k != view.vector_axis && !kernel.axes[k].extent.is(1)) return false;
    pitch = pitch * kernel.axes[k].extent;
  }
  bool any = false;
  for (Val v : view.accesses) {
    const Inst& inst = kernel.values[v];
    // Lanes without a row compute with what is there: addresses must not come of it.
    if (is_computed(inst) || inst.map.guard != kNoVal) return false;
    if (!full(view, v)) continue;
    const auto along = view.linear(inst, true), across = view.linear(inst, false);
    if (along != Dim(1) || across != pitch) return false;
    any |= inst.kind == Kind::load;
  }
  return any;
}

void fit_tiles(const View& view, const Facts& facts, const Device& device, Schedule& s) {
  const int64_t V = std::max<int>(1, s.lane[s.vector_axis]), columns = facts.columns;
  bool loads = false, puts = false;
  for (size_t i = 0; i < view.accesses.size(); ++i) {
    const Val v = view.accesses[i];
    const bool load = view.kernel.values[v].kind == Kind::load;
    // Vectors of 16 bytes need no help to leave.
    const bool helps = load || V * int64_t(size_of(view, v)) < 16;
    s.access[i].staged = full(view, v) && helps && facts.access[i].align % 16 == 0 && dense_rows(view, s, facts, v);
    loads |= load && s.access[i].staged;
    puts |= !load && s.access[i].staged;
  }
  auto fits = [&](int64_t bytes) { return bytes <= device.shared_per_block - 8 * KiB; };
  const TileShape shape = tile_shape(view, s);
  const int64_t teams = s.threads / tile_team(s);
  auto slot_bytes = [&] { return teams * shape.slot_bytes(tile_rows(s), columns); };
  if (loads && s.slots) {  // by hand, or tuned
    while (s.slots > 1 && !fits(s.slots * slot_bytes())) --s.slots;
    while (s.rows_in_flight > 1 && !fits(s.slots * slot_bytes())) s.rows_in_flight /= 2;
  } else if (loads) {
    // Rows of a group of lanes: about 4 KiB a tile of a warp, not too little of it to be loaded, and few conflicts of banks.
    auto incoming = [&](int64_t rows) {
      int64_t out = 0;
      for (const TileShape::Part& part : shape.parts)
        if (view.kernel.values[part.access].kind == Kind::load) out += TileShape::region_bytes(rows, columns, shape.sizes[part.region]);
      return out;
    };
    const int64_t groups = tile_team(s) / s.lanes_per_row;
    int64_t least = INT64_MAX;
    // Two parameters that stay in registers are loaded once a tile (layer_norm bf16 [257]: 8 rows 0.92 to 0.93 of the copy rate, 4 rows 0.89; u8
    // [257]: 4 rows 0.88, 2 rows 0.78). Nothing else gains by large tiles (softmax u8 [257]: 10 KiB 0.85, 5 KiB 0.92).
    const auto parameters = V > 1 || s.lanes_per_row > 32 ? 0 : std::count_if(s.access.begin(), s.access.end(), [](const Access& a) { return a.early; });
    const int64_t few = parameters > 1 ? 10496 : 4608, most = parameters ? 10496 : 8704;
    const bool behind = puts || (view.element_stores().empty() && s.lanes_per_row >= (s.edges == Edges::window ? 2 : 4));
    for (int64_t rows : {1, 2, 3, 4, 6, 8, 16, 32}) {
      const int64_t size = shape.slot_bytes(groups * rows, columns);
      int64_t cost = (size > few ? 1 : 0) + (incoming(groups * rows) < 1 * KiB ? 2 : 0) + (parameters > 1 ? 12 / rows : 0);
      if (s.lanes_per_row <= 32) cost += conflicts(shape, columns, s.lanes_per_row, behind ? rows : 1, V);
      if (rows > 1 && (size > most || cost > least || (!parameters && rows % 3 == 0))) continue;
      least = cost;
      s.rows_in_flight = uint16_t(rows);
    }
    // One tile a warp, warps enough that some load while others work (softmax f32 [17]: 0.99 of the copy rate, with a second tile
    // ahead 0.94). Of blocks fewer fit: they copy ahead.
    auto room = [&] { return ((device.shared_per_block + 1 * KiB) / std::max<int>(1, s.min_blocks) - 3 * KiB) / slot_bytes(); };
    while (s.lanes_per_row > 32 && s.min_blocks > 2 && room() < 2) --s.min_blocks;
    s.slots = s.lanes_per_row <= 32 ? 1 : uint8_t(std::clamp<int64_t>(room(), 1, 4));
    if (parameters) s.min_blocks = uint16_t(std::clamp<int64_t>((device.shared_per_block + 1 * KiB) / (s.slots * slot_bytes() + 1 * KiB), 1, s.min_blocks));
  }
  if (loads && fits(s.slots * slot_bytes())) return;
  s.slots = 0;
  s.rows_in_flight = 1;
  for (Access& a : s.access) a.staged = 0;
}

void shift_parameters(const View& view, const Facts& facts, Schedule& s) {
  const unsigned axis = s.vector_axis;
  for (size_t i = 0; s.edges == Edges::window && i < view.accesses.size(); ++i) {
    const Inst& inst = view.kernel.values[view.accesses[i]];
    const bool computed = is_computed(inst) || inst.map.guard != kNoVal;
    if (inst.kind != Kind::load || computed || inst.varies != AxisSet(1u << axis) || facts.access[i].step[axis] != 1) continue;
    s.access[i].staged = s.lane[axis] * size_of(view, view.accesses[i]) == 16 && facts.access[i].align % 16 == 0;
  }
}

}  // namespace fusec::cuda
