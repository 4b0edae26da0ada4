#pragma once
// Kernels small enough to run under the race detector many times, at least one for each skeleton (codegen/cuda/templates) and each way of
// running it: odd rows, tails, clusters, split reductions, rings with slots and without. Blocks are few, so that one takes several rows.

#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/codegen/cuda_run.h"

namespace fusec {

struct Skeleton {
  const char* name;
  const char* text;
  Sizes sizes;
  void (*change)(Schedule&) = nullptr;
  uint32_t blocks = 3;
};
inline void PrintTo(const Skeleton& s, std::ostream* out) { *out << s.name; }

namespace skeletons {

inline void on_chip(Schedule& s, Keep keep, uint16_t cluster) {
  s.keep = keep, s.steps = 0, s.threads = s.lanes_per_row = 64, s.rows_in_flight = 2, s.cluster = cluster,
  s.block[s.vector_axis] = 0;
  for (Access& a : s.access) a.early = 0;
}
inline void wide(Schedule& s) { s.wide_index = true; }
inline void shared(Schedule& s) { on_chip(s, Keep::shared, 1); }
inline void cluster(Schedule& s) { on_chip(s, Keep::cluster, 4); }
inline void held_by_cluster(Schedule& s) { on_chip(s, Keep::registers, 4), s.steps = 1, s.rows_in_flight = 1; }
inline void four_rows(Schedule& s) { s.rows_in_flight = 4; }
inline void two_rows(Schedule& s) { s.rows_in_flight = 2; }
inline void looped(Schedule& s) { on_chip(s, Keep::reload, 1), s.cut.clear(); }
inline void ring_of(Schedule& s, Keep keep, uint16_t cluster, int slots, int ahead) {
  on_chip(s, keep, cluster);
  s.skeleton = Template::ring, s.dynamic_rows = true, s.rows_in_flight = s.min_blocks = 1;
  s.slots = uint8_t(slots), s.slices = 2, s.ahead = uint8_t(ahead), s.steps = 8;
  if (!slots) s.cut.clear();
}
inline void ring(Schedule& s) { ring_of(s, Keep::shared, 1, 5, 1); }
inline void ring_of_clusters(Schedule& s) { ring_of(s, Keep::shared, 4, 5, 1); }
/// One team of all four multiprocessors, three rows ahead; two teams of two.
inline void ring_of_team(Schedule& s) { ring_of(s, Keep::shared, 1, 9, 3), s.team = 4, s.dynamic_rows = false, s.merged = true; }
inline void ring_of_teams(Schedule& s) { ring_of(s, Keep::shared, 1, 6, 2), s.team = 2, s.dynamic_rows = false; }
inline void ring_again(Schedule& s) { ring_of(s, Keep::reload, 1, 3, 0); }
inline void ring_of_lanes(Schedule& s) { ring_of(s, Keep::reload, 1, 0, 0); }
/// Parameters of the columns (the second load and the third) in slots: one for each slice, or fewer.
inline void with_columns(Schedule& s, int slots) {
  s.column_slots = uint8_t(slots);
  s.access[1].staged = s.access[2].staged = 1;
}
inline void ring_columns_stay(Schedule& s) { ring(s), with_columns(s, 2); }
inline void ring_columns_again(Schedule& s) { ring(s), with_columns(s, 1); }
inline void ring_columns_of_teams(Schedule& s) { ring_of_teams(s), with_columns(s, 2); }
inline void ring_columns_of_clusters(Schedule& s) { ring_of_clusters(s), with_columns(s, 1); }

/// Odd rows whose parameters stay: they lie anywhere between two pieces, the same place for all lanes of a row.
inline void ring_columns_between(Schedule& s) {
  ring(s), with_columns(s, 2);
  for (int i : {0, 1, 2}) s.access[i].bytes = 16;
}

/// Rows that begin anywhere, a word a lane step.
inline void by_words(Schedule& s) {
  s.edges = Edges::window, s.lane[s.vector_axis] = 1, s.block[s.vector_axis] = 0;
  for (Access& a : s.access) a.bytes = 4, a.early = a.staged = 0;
}
inline void ring_by_words(Schedule& s) { ring(s), by_words(s), with_columns(s, 2), s.steps = 5; }
inline void ring_by_words_of_clusters(Schedule& s) { ring_of_clusters(s), by_words(s), s.steps = 3; }
inline void rows_by_words(Schedule& s) { on_chip(s, Keep::registers, 1), by_words(s), s.slots = 0, s.steps = 9, s.rows_in_flight = 1; }

/// Columns that slide, on few multiprocessors too.
inline void columns_slide(Schedule& s) { s.edges = Edges::window, s.access[0].staged = 1, s.lanes_per_row = 18, s.threads = 288; }

/// Parts of 256 elements, 128 a group; of columns, 8 positions, 32 a group.
inline void scan_parts(Schedule& s) { s.threads = s.lanes_per_row = 64, s.steps = 1, s.finish = Finish::last_block; }
inline void scan_column_parts(Schedule& s) { s.threads = 64, s.lanes_per_row = 8, s.steps = 1, s.finish = Finish::last_block; }
inline void scan_small(Schedule& s) { s.threads = 128, s.lanes_per_row = 64, s.steps = 2; }
inline void scan_column_small(Schedule& s) { s.threads = 64, s.lanes_per_row = 16, s.steps = 2; }

inline const char* const kSoftmax = "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }";
inline const char* const kSoftmaxBf16 = "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }";
inline const char* const kCentre =
    "graph @g(%x: f32[N,C]) -> f32[N,C] { %m = mean %x {axes=[1], keep=true}\n %y = sub %x, %m\n return %y }";
inline const char* const kCentreColumns =
    "graph @g(%x: f32[N,C]) -> f32[N,C] { %m = mean %x {axes=[0], keep=true}\n %y = sub %x, %m\n return %y }";
inline const char* const kScaled = R"(graph @g(%x: f32[N,C], %g: f32[C], %b: f32[C]) -> f32[N,C] {
  %m = mean %x {axes=[1], keep=true}
  %d = sub %x, %m
  %s = mul %d, %g
  %y = add %s, %b
  return %y })";
inline const char* const kSumColumns = "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }";
inline const char* const kTurn = R"(graph @g(%a: f32[N,C], %b: f32[C,N]) -> f32[N,C] {
  %t = transpose %b {perm=[1,0]}
  %y = add %a, %t
  return %y })";
inline const char* const kTurnBytes = "graph @g(%a: u8[N,C]) -> u8[C,N] { %y = transpose %a {perm=[1,0]}\n return %y }";

}  // namespace skeletons

inline const Skeleton kSkeletons[] = {
    {"pointwise", "graph @g(%x: f32[N]) -> f32[N] { %y = neg %x\n return %y }", {{"N", 4099}}},
    {"pointwise_wide", "graph @g(%x: bf16[N], %y: bf16[N]) -> bf16[N] { %z = add %x, %y\n return %z }", {{"N", 9001}}, skeletons::wide},
    {"transpose", skeletons::kTurn, {{"N", 130}, {"C", 65}}},
    {"transpose_bytes", skeletons::kTurnBytes, {{"N", 530}, {"C", 67}}},
    {"rows", skeletons::kSoftmax, {{"N", 9}, {"C", 4096}}},
    {"rows_wide", skeletons::kCentre, {{"N", 9}, {"C", 4096}}, skeletons::wide},
    {"rows_tail", skeletons::kSoftmax, {{"N", 9}, {"C", 1003}}},
    {"rows_odd", skeletons::kSoftmaxBf16, {{"N", 9}, {"C", 1001}}},
    {"rows_of_64", skeletons::kSoftmaxBf16, {{"N", 37}, {"C", 64}}},
    {"four_rows", skeletons::kCentre, {{"N", 37}, {"C", 100}}, skeletons::four_rows},
    {"rows_together", skeletons::kSoftmax, {{"N", 9}, {"C", 4096}}, skeletons::two_rows},
    {"rows_by_words", skeletons::kScaled, {{"N", 9}, {"C", 515}}, skeletons::rows_by_words},
    {"rows_held_by_cluster", skeletons::kCentre, {{"N", 9}, {"C", 1000}}, skeletons::held_by_cluster, 8},
    {"rows_looped", skeletons::kSoftmax, {{"N", 9}, {"C", 4099}}, skeletons::looped},
    {"rows_shared", skeletons::kCentre, {{"N", 9}, {"C", 1001}}, skeletons::shared},
    {"rows_shared_odd", skeletons::kSoftmaxBf16, {{"N", 9}, {"C", 1001}}, skeletons::shared},
    {"rows_cluster", skeletons::kCentre, {{"N", 9}, {"C", 1003}}, skeletons::cluster, 8},
    {"ring", skeletons::kCentre, {{"N", 70}, {"C", 1024}}, skeletons::ring, 1},
    {"ring_odd", skeletons::kCentre, {{"N", 70}, {"C", 515}}, skeletons::ring, 1},
    {"ring_of_clusters", skeletons::kCentre, {{"N", 40}, {"C", 1100}}, skeletons::ring_of_clusters, 4},
    {"ring_of_team", skeletons::kSoftmax, {{"N", 40}, {"C", 1100}}, skeletons::ring_of_team},
    {"ring_of_teams_odd", skeletons::kCentre, {{"N", 41}, {"C", 515}}, skeletons::ring_of_teams},
    {"ring_columns_of_teams", skeletons::kScaled, {{"N", 40}, {"C", 1024}}, skeletons::ring_columns_of_teams},
    {"ring_again", skeletons::kCentre, {{"N", 70}, {"C", 1024}}, skeletons::ring_again, 1},
    {"ring_columns_stay", skeletons::kScaled, {{"N", 70}, {"C", 1024}}, skeletons::ring_columns_stay, 1},
    {"ring_columns_again", skeletons::kScaled, {{"N", 70}, {"C", 1024}}, skeletons::ring_columns_again, 1},
    {"ring_columns_odd", skeletons::kScaled, {{"N", 70}, {"C", 515}}, skeletons::ring_columns_again, 1},
    {"ring_columns_between", skeletons::kScaled, {{"N", 70}, {"C", 515}}, skeletons::ring_columns_between, 1},
    {"ring_columns_of_clusters", skeletons::kScaled, {{"N", 40}, {"C", 1100}}, skeletons::ring_columns_of_clusters, 4},
    {"ring_by_words", skeletons::kScaled, {{"N", 70}, {"C", 515}}, skeletons::ring_by_words, 1},
    {"ring_by_words_of_clusters", skeletons::kScaled, {{"N", 40}, {"C", 1101}}, skeletons::ring_by_words_of_clusters, 4},
    {"ring_of_lanes", skeletons::kCentre, {{"N", 70}, {"C", 1024}}, skeletons::ring_of_lanes, 1},
    {"column", skeletons::kCentreColumns, {{"N", 100}, {"C", 64}}},
    {"column_odd", skeletons::kCentreColumns, {{"N", 128}, {"C", 67}}},
    {"column_split", skeletons::kSumColumns, {{"N", 4000}, {"C", 64}}},
    {"column_slides", "graph @g(%x: f32[N,67]) -> f32[67] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 301}}, skeletons::columns_slide},
    {"scan_rows", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=1}\n return %y }", {{"N", 5}, {"C", 1100}}, skeletons::scan_small},
    {"scan_rows_back", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=1, reverse=true, exclusive=true}\n return %y }", {{"N", 5}, {"C", 203}}},
    {"scan_columns", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=0}\n return %y }", {{"N", 50}, {"C", 68}}, skeletons::scan_column_small},
    {"scan_columns_back", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumprod %x {axis=0, reverse=true}\n return %y }", {{"N", 50}, {"C", 67}}},
    {"scan_parts", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=1}\n return %y }", {{"N", 2}, {"C", 33000}}, skeletons::scan_parts},
    {"scan_parts_back", "graph @g(%x: f32[N]) -> f32[N] { %y = cummax %x {axis=0, reverse=true}\n return %y }", {{"N", 34002}}, skeletons::scan_parts},
    {"scan_column_parts", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=0}\n return %y }", {{"N", 531}, {"C", 40}}, skeletons::scan_column_parts},
    {"scan_column_parts_back", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=0, reverse=true}\n return %y }", {{"N", 270}, {"C", 32}}, skeletons::scan_column_parts},
    {"split", "graph @g(%x: f32[N]) -> f32[] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 200003}}},
    {"split_argmax", "graph @g(%x: f32[N]) -> i64[] { %y = argmax %x {axes=[0], to=i64}\n return %y }", {{"N", 200003}}},
};

/// How every run of a skeleton begins.
inline How how_of(const Skeleton& s) {
  How how;
  how.device.multiprocessors = 4;
  how.change = s.change;
  how.most_blocks = s.blocks;
  return how;
}

/// Negative numbers, so that what a lane does not have (0, once cleared) would win a maximum; bytes as they come.
inline std::vector<Tensor> inputs_of(const Skeleton& skeleton, const Subject& s) {
  std::vector<Tensor> out;
  for (const Port& port : s.graph.inputs()) {
    const Type& type = s.graph.node(port.node).type;
    std::vector<int64_t> extents;
    for (const Dim& d : type.shape) extents.push_back(value_of(d, skeleton.sizes));
    Tensor t = drawn(type.dtype, extents, 7 + out.size(), !is_float(type.dtype));
    for (int64_t i = 0; i < t.elements() && is_float(type.dtype); ++i) {
      const double x = element(t, i) - 4;
      convert(DType::f64, reinterpret_cast<const std::byte*>(&x), type.dtype, t.data.data() + size_t(i) * bytes(type.dtype), 1);
    }
    out.push_back(std::move(t));
  }
  return out;
}

/// The files of codegen/cuda/templates, by name; of those that are filled in (skeleton.h) the first line that a text takes as it is.
inline std::map<std::string, std::string> template_files() {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(FUSEC_SOURCE_DIR "/codegen/cuda/templates")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    std::string file = text.str();
    if (file.starts_with("@") || file.find("\n@") != file.npos) {
      size_t at = 0;
      while (file[at] == '@') at = file.find('\n', at) + 1;
      file = file.substr(at, file.find('\n', at) - at);
    }
    out[entry.path().filename().string()] = file;
  }
  return out;
}

}  // namespace fusec
