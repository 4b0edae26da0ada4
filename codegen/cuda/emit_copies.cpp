// Elements by way of shared memory: the copies that ring.cuh issues, the runs of rows_tiled.cuh and the tiles of transpose.cuh.

#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/ring.h"
#include "codegen/cuda/tiles.h"

namespace fusec::cuda {

/// Where a load's slice begins in a slot: one load after the other.
std::string Emitter::slot_offset(Val v) const {
  size_t before = 0, size = 0;
  for (Val c : s_.cut) {
    if (c == v) break;
    ++before;
    size += bytes(w_.operand(c).type);
  }
  return "slice * " + n(size) + (ring_leads(view_, s_) ? " + " + n(16 * before) : "");
}

/// The same of a parameter of the columns in a slot of parameters: pieces of 16 bytes, one more where the operand begins between two.
std::string Emitter::column_offset(Val v) const {
  size_t before = 0, size = 0;
  for (Val c : ring_columns(view_, s_)) {
    if (c == v) break;
    if (w_.access(c).staged) ++before, size += bytes(w_.operand(c).type);
  }
  return std::string(w_.windows() ? "(slice + 2 * Granule)" : "slice") + " * " + n(size) + " + " + n(16 * before);
}

/// Rows that begin anywhere meet a parameter anywhere between pieces of 16 bytes, all lanes and, where they are alike, all parameters at the same place.
/// Then there is code for each element of a piece, of bytes for each word; else single elements.
size_t Emitter::phase_size() const {
  size_t size = 0;
  if (!w_.windows() || w_.V == 1 || !copies_) return 0;
  for (Val v : ring_columns(view_, s_)) {
    const size_t here = bytes(w_.operand(v).type);
    if (!w_.access(v).staged) continue;
    if (w_.access(v).bytes != 16 || here * w_.V % 16 || (size && size != here)) return 0;
    size = here;
  }
  return size;
}

size_t Emitter::phases() const {
  const size_t size = phase_size();
  return size ? 16 / (size == 1 ? 4 : size) : 0;
}

/// A vector of it.
std::string Emitter::column_fetch(Val v) {
  const std::string size = n(bytes(w_.operand(v).type)), base = w_.args.field(Slot::pointer, view_.access_of[v]), raw = "raw.l" + n(v);
  const std::string lead = w_.access(v).bytes == 16 ? "" : " + ((u32)(u64)" + base + " & 15u)";
  const size_t all = w_.V * bytes(w_.operand(v).type);
  if (!w_.windows())
    return "    " + fetch(std::min<size_t>(w_.access(v).bytes, all), all, "kPlain", raw, "columns_at + (" + column_offset(v) + " + at * " + size + lead + ")", "0") + "\n";
  const std::string p = "p" + n(v), slot = "columns_at + (" + column_offset(v) + lead + ") + ", skewed = "(Granule - (u32)skew(a, t)) * " + size + "u", vector = " + at * " + size;
  std::string out = "    const char* " + p + " = " + slot + skewed + vector + ";\n";
  if (w_.V == 1) return out + "    fetch<" + size + ", kPlain>(" + raw + ", " + p + ", 0);\n";
  if (phase_size()) out += "    if constexpr (Q >= 0) {\n      fetch_between<" + size + ", Q>(" + raw + ", " + slot + "(" + skewed + " & ~15u)" + vector + ", " + skewed + " % 4 * 8);\n    } else {\n";
  else out += "    if (" + w_.whole() + ") {\n      fetch<" + size + ", kPlain>(" + raw + ", " + p + ", 0);\n    } else {\n";
  out += "      clear(" + raw + ");\n      _Pragma(\"unroll\") for (int e = 0; e < V; ++e)\n        if (" + w_.valid() + ") fetch_one<" + size + ">(" + raw + ", e, " + p + " + e * " + size + ");\n    }\n";
  return out;
}

/// A slice that begins between two 16-byte pieces of memory begins between the same ones in its slot.
std::string Emitter::lead(Body& body, Val v) {
  if (w_.access(v).bytes == 16) return "";
  const std::string at = w_.args.field(Slot::pointer, view_.access_of[v]) + " + (" + body.offset(v, "") + ")";
  return " + (Ix)((u32)(u64)(" + at + ") - (u32)at * " + n(bytes(w_.operand(v).type)) + " & 15u)";
}

/// Of every slice of the ring: 2 each lane has all its vectors, 1 all but the last one, 0 nobody knows.
size_t Emitter::fills() const {
  const int64_t columns = known_columns(k_);
  if (w_.windows() || !columns) return 0;
  const RingShape shape = ring_shape(k_, s_, columns);
  const int64_t blocks = std::max<int>({1, s_.cluster, s_.team}), step = int64_t(s_.threads) * w_.V;
  const int64_t shortest = columns - shape.part * (blocks - 1) - shape.slice * (s_.slices - 1);
  return shortest == shape.slice && shortest == step * s_.steps ? 2 : shortest >= step * (s_.steps - 1);
}

/// Odd rows: does a warp ask whether it has all of its vectors, or all but the last? Not where sizes take registers.
bool Emitter::asks() const { return w_.windows() && known_columns(k_) > 0; }

/// Odd rows whose elements are unpacked, or become others: a lane's vectors are calculated side by side, and stored by predicates (softmax bf16 [65537]
/// 0.90 of the copy rate, 0.92 so; layer_norm f32 [1048573] 0.875, 0.859).
bool Emitter::stores_where() const {
  if (s_.skeleton != Template::ring || !w_.windows() || w_.V == 1 || !copies_) return false;
  return std::any_of(s_.cut.begin(), s_.cut.end(), [&](Val v) { return bytes(w_.operand(v).type) < 4; });
}

// What ring.cuh asks for: the copies of a slice of a row. A load is one run, or one for each run of the vector axis.
std::string Emitter::copies() {
  size_t row = 0;
  std::string issue = "    if (to <= from) {\n      barrier_arrive(full);\n      return;\n    }\n    u32 bytes = 0;\n";
  const bool windowed = ring_windowed(view_, s_);
  for (Val v : s_.cut) {
    Body at = body(0);
    const std::string size = n(bytes(w_.operand(v).type)), base = w_.args.field(Slot::pointer, view_.access_of[v]);
    const std::string from = "(const char*)(" + base + " + (" + at.offset(v, "") + "))", to = "slot + (" + slot_offset(v);
    row += bytes(w_.operand(v).type);
    if (windowed) {
      issue += "    {\n      element_at(a, from, t);\n      const char* p = " + from + ";\n";
      issue += "      bytes += bulk_window(" + to + "), p, p + ((i64)(to - from) + V - 1) / V * V * " + size + ", (const char*)" + base + ", (const char*)(" + base +
               " + (i64)rows(a) * columns(a)), full, policy);\n    }\n";
      continue;
    }
    std::string run = "to - e";
    if (view_.linear(k_.values[v], true) != Dim(1)) {
      const Dim& extent = k_.axes[s_.vector_axis].extent;
      const std::string left = (extent.is_constant() ? w_.args.dim(extent) : w_.args.field(Slot::extent, s_.vector_axis)) + " - " +
                               w_.index(s_.vector_axis);
      run = left + " < to - e ? " + left + " : to - e";
    }
    issue += "    for (Ix e = from; e < to;) {\n      element_at(a, e, t);\n      const Ix n = " + run + ";\n";
    issue += "      bulk_load(" + to + " + (e - from) * " + size + "), " + from + ", (u32)n * " + size + "u, full, policy);\n      e += n;\n    }\n";
    issue += "    bytes += (u32)(to - from) * " + size + "u;\n";
  }
  issue += "    barrier_arrive(full, bytes);\n";
  w_.streamed = true;
  if (copies_) function("issue(const Args& a, At& t, Ix from, Ix to, Ix slice, char* slot, u64* full, u64 policy)", issue);
  // Parameters: the columns from .. to of a slot that begins with column `first`, by a whole warp.
  std::string column_text = "    const u32 lane = threadIdx.x % 32;\n    u32 bytes = 0;\n    if (from < to) {\n";
  size_t staged = 0, column_bytes = 0;
  for (Val v : ring_columns(view_, s_)) {
    if (!copies_ || !w_.access(v).staged) continue;
    const std::string base = w_.args.field(Slot::pointer, view_.access_of[v]), size = n(bytes(w_.operand(v).type));
    column_text += "      bytes += bulk_window<32>(columns_at + (" + column_offset(v) + " + (from - first) * " + size + "), (const char*)(" + base + " + from), (const char*)(" + base +
                   " + to), (const char*)" + base + ", (const char*)(" + base + " + columns(a)), full, policy, lane);\n";
    ++staged, column_bytes += bytes(w_.operand(v).type);
  }
  if (staged)
    function("issue_columns(const Args& a, Ix first, Ix from, Ix to, Ix slice, char* columns_at, u64* full, u64 policy)",
             column_text + "    }\n    __syncwarp();\n    if (lane == 0) barrier_arrive(full, bytes);\n");
  const RingShape shape = ring_shape(k_, s_, std::max<int64_t>(1, known_columns(k_)));
  if (const size_t size = phase_size()) functions_ += "  D u32 phase(const Args& a, const At& t) { return (Granule - (u32)skew(a, t)) * " + n(size) + "u % 16 / " + n(16 / phases()) + "; }\n";
  functions_ += "  D u32 zero(const Args& a) { return " + w_.args.field(Slot::zero) + "; }\n";
  functions_ += "  D u64 policy_of_last(const Args& a) { return make_last_policy(" + w_.args.field(Slot::policy) + "); }\n";
  functions_ += "  D u32* counters(const Args& a) { return " + w_.args.field(Slot::counters) + "; }\n";
  return "  enum { RowBytes = " + n(row) + ", LeadBytes = " + n(ring_leads(view_, s_) ? 16 * s_.cut.size() : 0) + ", Granule = " + n(size_t(shape.granule)) +
         ", Copies = " + n(copies_) + ", Kept = " + n(s_.keep == Keep::shared) + ", Together = " +
         n(together_) + ", Columns = " + n(staged) + ", LoadsAhead = " + n(loads_ahead_) + ", Holds = " + n(holds_) + ", Fills = " + n(fills()) + ", Asks = " + n(asks()) + ", Phases = " + n(phases()) + ", StoresWhere = " + n(stores_where()) + ", ColumnsOf = " + n(columns_of_) + ", ColumnBytes = " + n(column_bytes) + ", ColumnLeadBytes = " +
         n(staged * 16 + (w_.windows() ? 2 * size_t(shape.granule) * column_bytes : 0)) + " };\n";
}

// Rows in tiles: where a lane finds its elements in a slot.
void Emitter::place() {
  const TileShape shape = tile_shape(view_, s_);
  for (const TileShape::Part& part : shape.parts) {
    const std::string size = n(shape.sizes[part.region]);
    std::string before;
    for (size_t r = 0; r < part.region; ++r) before += "region(a, " + n(size_t(tile_rows(s_))) + ", " + n(shape.sizes[r]) + ") + ";
    w_.placed[part.access] = "t.tile + (" + before + "((u32)t.first * " + size + "u & 15u) + t.at * " + size + ") + t.e * " + size;
  }
}

// What rows_tiled.cuh asks for: a tile's run comes, and goes back.
std::string Emitter::runs() {
  const TileShape shape = tile_shape(view_, s_);
  std::string get, put, pad, sizes;
  for (size_t r = 0; r < shape.sizes.size(); ++r) {
    const std::string size = n(shape.sizes[r]), region = "region(a, rows_of, " + size + ")", at = "tile" + (sizes.empty() ? "" : " + (" + sizes + ")");
    const std::string lead = "((u32)from * " + size + "u & 15u)";
    for (const TileShape::Part& part : shape.parts) {
      if (part.region != r) continue;
      const std::string base = w_.args.field(Slot::pointer, view_.access_of[part.access]), run = base + " + from), ", bytes = "(u32)(count * " + size + ")";
      if (k_.values[part.access].kind == Kind::load) {
        get += "    get_run<" + size + ", Team>(" + at + ", (const char*)(" + run + bytes + ", (const char*)(" + base + " + rows(a) * columns(a)), thread, policy);\n";
        pad += "    pad_run<Team>(" + at + " + " + lead + " + count * " + size + ", " + at + " + " + region + ", thread);\n";
      } else {
        put += "    put_run<" + size + ", Team>((char*)(" + run + at + " + " + lead + ", " + bytes + ", thread);\n";
      }
    }
    sizes += (sizes.empty() ? "" : " + ") + region;
  }
  w_.streamed = true;
  functions_ += "  D u32 slot_bytes(const Args& a, int rows_of) { return " + sizes + "; }\n";
  auto run = [&](const std::string& name, const std::string& tile, const std::string& more, const std::string& text) {
    functions_ += "  template <int Team> D void " + name + "(const Args& a, int rows_of, Ix from, Ix count, " + tile + " tile, int thread, " + more + "Int<Team>) {\n" + text + "  }\n";
  };
  run("get_tile", "char*", "u64 policy, ", get);
  run("put_tile", "const char*", "", put);
  run("pad_tile", "char*", "", pad);
  return "  enum { Puts = " + n(!put.empty()) + " };\n  D u32 region(const Args& a, int rows_of, u32 size) { return ((u32)rows_of * (u32)columns(a) * size + 30u) & ~15u; }\n";
}

// What transpose.cuh asks for: tiles over (i, j), operands that are staged, indices without a linear number.
void Emitter::tiles() {
  const unsigned j = s_.vector_axis, i = static_cast<unsigned>(tile_axis(s_));
  w_.row_indices.insert(i), w_.row_indices.insert(j);
  const long T = s_.block[j], threads = s_.threads, V = w_.V;
  auto& number = more_.numbers;
  size_t count = 0, offset = 0;
  for (Val v : view_.accesses) {
    if (k_.values[v].kind != Kind::load || !w_.access(v).staged) continue;
    const std::string p = n(count++);
    const size_t size = bytes(k_.operands[k_.values[v].operand].type);
    const long G = size < 4 ? 4 / long(size) : 1, VS = 16 / long(size), words = size == 8 ? 2 : 1;
    const long across = T / VS, total = T / G * across, pitch = T / G + 1;
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, long>>{
             {"Size", long(size)}, {"G", G}, {"VS", VS}, {"Words", words}, {"Across", across}, {"Total", total},
             {"Units", (total + threads - 1) / threads},
             {"Pitch", pitch}, {"Offset", long(offset)}})
      number[name + p] = value;
    // Back, along j: whole units, or a part of one where a vector is narrower.
    const std::string from = "from" + p, A = n(size_t(T / V)), column = "at % " + A + " * " + n(w_.V);
    const std::string unit = column + (G > 1 ? " / " + n(size_t(G)) : "");
    const std::string place = "(at / " + A + " * " + n(size_t(pitch)) + " + " + unit + ")" + (words > 1 ? " * " + n(size_t(words)) : "");
    const long width = long(size) * V;
    std::string read = "    const u32* const " + from + " = (const u32*)(tile + " + n(offset) + ") + " + place + ";\n   ";
    if (width % 4 == 0 && V % G == 0)
      for (long k = 0; k < width / 4; ++k) read += " raw.l" + n(v) + ".w[" + n(size_t(k)) + "] = " + from + "[" + n(size_t(k)) + "];";
    else
      read += " raw.l" + n(v) + ".w[0] = *" + from + " >> " + n(8 * size) + " * (" + column + " % " + n(size_t(G)) + ");";
    read += "\n";
    bodies_["read" + p] = read;
    offset += stage_bytes(size_t(T), size);
    Body stage = body(4);
    stage.have_policy();
    stage.fetch_along(v, i, "w");
    bodies_["stage" + p] = stage.take();
  }
  Dim product = 1;
  std::vector<unsigned> others;
  for (unsigned axis = 0; axis < k_.axes.size(); ++axis)
    if (axis != i && axis != j && !k_.axes[axis].extent.is(1)) others.push_back(axis), product = product * k_.axes[axis].extent;
  auto extent = [&](unsigned axis) {
    const Dim& d = k_.axes[axis].extent;
    return d.is_constant() ? w_.args.dim(d) : w_.args.field(Slot::extent, axis);
  };
  auto whole = [&](unsigned axis) { return k_.axes[axis].extent.is_constant() && k_.axes[axis].extent.constant() % T == 0; };
  std::string outer;
  for (unsigned axis : others) outer += (outer.empty() ? "" : " * ") + extent(axis);
  more_.texts = {{"outer", outer.empty() ? "1" : outer}, {"extent_i", extent(i)}, {"extent_j", extent(j)}};
  bodies_["place"] = "    t.i" + n(i) + " = i, t.i" + n(j) + " = j;\n";
  for (unsigned axis : others) w_.row_indices.insert(axis);
  bodies_["outer_at"] = decompose(others, w_.row_indices);
  number.insert({{"Staged", long(count)}, {"TileBytes", long(offset)}, {"T", T}, {"Whole", whole(i) && whole(j)}, {"Outer", !others.empty()},
                 {"TileAcross", T / V}, {"Q", T * (T / V) / threads}});
}

}  // namespace fusec::cuda
