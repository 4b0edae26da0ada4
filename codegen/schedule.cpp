// Schedule as canonical bytes (its identity in every cache key) and as one readable line.

#include "codegen/schedule.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace fusec {
namespace {

// Little-endian whatever the host: entries of a cache directory outlive a process.
struct Writer {
  std::string out;
  void number(uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(n >> (8 * i)));
  }
};

uint8_t bits(const Access& a) { return a.staged | a.streamed << 1 | a.early << 2 | a.prefetch << 3 | a.bypass << 4; }

/// "8x4" for {8, 4}: entries up to the last that is not 0; "" when all are 0.
std::string box(const uint16_t (&sizes)[kMaxAxes]) {
  size_t last = kMaxAxes;
  while (last && !sizes[last - 1]) --last;
  std::string out;
  for (size_t k = 0; k < last; ++k) out += (k ? "x" : "") + std::to_string(std::max<int>(1, sizes[k]));
  return out;
}

void field(std::string& out, const char* name, uint64_t value) {
  if (value) out += std::string(" ") + name + "=" + std::to_string(value);
}

}  // namespace

std::string bytes(const Schedule& s) {
  Writer w;
  for (uint8_t n : {uint8_t(s.skeleton), uint8_t(s.keep), uint8_t(s.edges), uint8_t(s.finish)}) w.number(n, 1);
  for (uint16_t n : {s.threads, s.min_blocks, s.lanes_per_row, s.rows_in_flight, s.cluster, s.team, s.steps, s.baked}) w.number(n, 2);
  for (uint8_t n : {s.slots, s.slices, s.ahead, s.column_slots, s.vector_axis}) w.number(n, 1);
  for (uint16_t n : s.lane) w.number(n, 2);
  for (uint16_t n : s.block) w.number(n, 2);
  w.number(s.wide_index | s.dynamic_rows << 1 | s.dependent_launch << 2 | s.merged << 3, 1);
  w.number(s.access.size(), 4);
  for (const Access& a : s.access) w.number(a.bytes, 1), w.number(bits(a), 1);
  w.number(s.cut.size(), 4);
  for (Val v : s.cut) w.number(v, 4);
  return w.out;
}

std::optional<Schedule> parse_schedule(std::string_view text) {
  const std::string_view whole = text;
  bool good = true;
  auto number = [&](int bytes) -> uint64_t {
    if (text.size() < size_t(bytes)) return good = false, 0;
    uint64_t n = 0;
    for (int i = 0; i < bytes; ++i) n |= uint64_t(uint8_t(text[i])) << (8 * i);
    text.remove_prefix(bytes);
    return n;
  };
  Schedule s;
  s.skeleton = Template(number(1)), s.keep = Keep(number(1)), s.edges = Edges(number(1)), s.finish = Finish(number(1));
  good &= s.skeleton <= Template::cpu_tile && s.keep <= Keep::cache_buffer && s.edges <= Edges::each && s.finish <= Finish::next_kernel;
  for (uint16_t* n : {&s.threads, &s.min_blocks, &s.lanes_per_row, &s.rows_in_flight, &s.cluster, &s.team, &s.steps, &s.baked}) *n = number(2);
  for (uint8_t* n : {&s.slots, &s.slices, &s.ahead, &s.column_slots, &s.vector_axis}) *n = number(1);
  for (uint16_t& n : s.lane) n = number(2);
  for (uint16_t& n : s.block) n = number(2);
  const uint64_t flags = number(1);
  s.wide_index = flags & 1, s.dynamic_rows = flags >> 1 & 1, s.dependent_launch = flags >> 2 & 1, s.merged = flags >> 3 & 1;
  for (uint64_t n = number(4); good && n > 0; --n) {
    Access& a = s.access.emplace_back();
    a.bytes = number(1);
    const uint64_t marks = number(1);
    a.staged = marks & 1, a.streamed = marks >> 1 & 1, a.early = marks >> 2 & 1, a.prefetch = marks >> 3 & 1, a.bypass = marks >> 4 & 1;
  }
  for (uint64_t n = number(4); good && n > 0; --n) s.cut.push_back(number(4));
  if (!good || !text.empty() || bytes(s) != whole) return {};  // marks that no flag stands for
  return s;
}

std::string print(const Schedule& s) {
  std::string out = kTemplateNames[size_t(s.skeleton)];
  out += std::string(" keep=") + kKeepNames[size_t(s.keep)] + " edges=" + kEdgesNames[size_t(s.edges)];
  if (s.finish != Finish::none) out += std::string(" finish=") + kFinishNames[size_t(s.finish)];
  field(out, "threads", s.threads);
  if (s.min_blocks > 1) field(out, "min_blocks", s.min_blocks);
  if (s.lanes_per_row > 1) field(out, "lanes_per_row", s.lanes_per_row);
  if (s.rows_in_flight > 1) field(out, "rows_in_flight", s.rows_in_flight);
  if (s.cluster > 1) field(out, "cluster", s.cluster);
  field(out, "team", s.team);
  field(out, "steps", s.steps);
  field(out, "slots", s.slots);
  field(out, "slices", s.slices);
  field(out, "ahead", s.ahead);
  field(out, "column_slots", s.column_slots);
  if (std::string lane = box(s.lane); !lane.empty()) out += " lane=" + lane + " axis=" + std::to_string(s.vector_axis);
  if (std::string block = box(s.block); !block.empty()) out += " block=" + block;
  field(out, "baked", s.baked);
  if (s.wide_index) out += " wide";
  if (s.dynamic_rows) out += " dynamic_rows";
  if (s.dependent_launch) out += " dependent_launch";
  if (s.merged) out += " merged";
  if (!s.access.empty()) {
    out += " access=";
    for (size_t i = 0; i < s.access.size(); ++i) {
      const Access& a = s.access[i];
      out += (i ? "," : "") + std::to_string(a.bytes);
      for (auto [on, mark] : {std::pair{a.staged, 's'}, {a.streamed, 'x'}, {a.early, 'e'}, {a.prefetch, 'p'}, {a.bypass, 'b'}})
        if (on) out += mark;
    }
  }
  if (!s.cut.empty()) {
    out += " cut=";
    for (size_t i = 0; i < s.cut.size(); ++i) out += (i ? ",v" : "v") + std::to_string(s.cut[i]);
  }
  return out;
}

}  // namespace fusec
