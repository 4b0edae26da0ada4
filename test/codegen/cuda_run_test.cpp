// Emitted kernels run on the host, thread by thread, with a race detector: right values, no race, nothing out of bounds, the same
// bits whatever the alignment and the order of threads.

#include <array>
#include <bit>
#include <map>

#include "test/codegen/cuda_run.h"

namespace fusec {
namespace {

std::vector<Tensor> inputs_of(const Subject& s, const Sizes& sizes, uint64_t seed, bool special) {
  std::vector<Tensor> out;
  for (const Port& port : s.graph.inputs()) {
    std::vector<int64_t> extents;
    for (const Dim& d : s.graph.node(port.node).type.shape) extents.push_back(value_of(d, sizes));
    out.push_back(drawn(s.graph.node(port.node).type.dtype, extents, seed + out.size(), special));
  }
  return out;
}

/// Largest difference, relative to the larger of 1 and the expected value; NaNs and infinities must be where they belong.
double difference(const Tensor& got, const Tensor& want) {
  if (got.extents != want.extents || got.dtype != want.dtype) return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double a = element(got, i), b = element(want, i);
    if (std::isnan(b) || std::isinf(b)) {
      if (std::isnan(b) ? !std::isnan(a) : a != b) return INFINITY;
    } else {
      const double d = std::abs(a - b) / std::max(1.0, std::abs(b));
      if (!(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
    }
  }
  return worst;
}

struct Case {
  const char* name;
  const char* text;
  std::vector<Sizes> sizes;
  double tolerance = 0;   // 0: the reference's bits
};

void check(const Case& c, const How& how, const Sizes& sizes, const Subject& s) {
  const std::vector<Tensor> inputs = inputs_of(s, sizes, 7, c.tolerance == 0);
  const auto want = evaluate(s.graph, inputs);
  ASSERT_TRUE(want) << want.error().text();
  std::string where = c.name;
  for (const auto& [name, value] : sizes) where += " " + name + "=" + std::to_string(value);
  const Ran first = run(s, sizes, inputs, how);
  ASSERT_EQ(first.trouble, "") << where << "\n" << print(first.schedule);
  ASSERT_EQ(first.outputs.size(), want->size());
  for (size_t k = 0; k < want->size(); ++k) {
    const double d = difference(first.outputs[k], (*want)[k]);
    EXPECT_LE(d, c.tolerance) << where << " output " << k << "\n" << print(first.schedule);
  }
  // One element off: narrower pieces, the same bits; other orders of threads too.
  How other = how;
  other.offset = 1;
  other.seed = 99;
  const Ran second = run(s, sizes, inputs, other);
  ASSERT_EQ(second.trouble, "") << where << " off by one\n" << print(second.schedule);
  for (size_t k = 0; k < want->size(); ++k) EXPECT_EQ(second.outputs[k], first.outputs[k]) << where << " off by one\n" << print(second.schedule);
  other.offset = 0;
  other.order = SIMT_REVERSE;
  const Ran third = run(s, sizes, inputs, other);
  ASSERT_EQ(third.trouble, "") << where;
  for (size_t k = 0; k < want->size(); ++k) EXPECT_EQ(third.outputs[k], first.outputs[k]) << where << " in reverse";
}

std::vector<Sizes> lengths(const char* name, std::initializer_list<int64_t> all) {
  std::vector<Sizes> out;
  for (int64_t n : all) out.push_back({{name, n}});
  return out;
}
std::vector<Sizes> shapes(std::initializer_list<std::pair<int64_t, int64_t>> all) {
  std::vector<Sizes> out;
  for (auto [n, c] : all) out.push_back({{"N", n}, {"C", c}});
  return out;
}

const Case kCases[] = {
    {"copy", "graph @g(%x: f32[N]) -> f32[N] { %y = abs %x\n return %y }", lengths("N", {1, 31, 32, 33, 1000, 4099})},
    {"bf16_chain", R"(graph @g(%a: bf16[N], %b: bf16[N]) -> bf16[N] {
       %p = mul %a, %b
       %y = add %p, %b
       return %y })", lengths("N", {1, 33, 1000, 4099})},
    {"bias_relu_cast", R"(graph @g(%x: f32[N,C], %b: f32[C]) -> f16[N,C] {
       %s = add %x, %b
       %r = relu %s
       %y = cast %r {to=f16}
       return %y })", shapes({{1, 1}, {3, 31}, {33, 32}, {5, 1000}, {2, 4099}})},
    {"f8", R"(graph @g(%x: f8e4m3[N], %y: f8e5m2[N], %z: f16[N]) -> (f8e4m3[N], f8e5m2[N]) {
       %s = cast %y {to=f8e4m3}
       %a = add %x, %s
       %t = cast %z {to=f8e5m2}
       return %a, %t })", lengths("N", {1, 4099})},
    {"integers", R"(graph @g(%x: i8[N], %y: i8[N], %u: u16[N], %w: u16[N]) -> (i8[N], i8[N], u16[N], i8[N], i8[N]) {
       %q = floor_div %x, %y
       %r = trunc_mod %x, %y
       %m = mul %u, %w
       %s = shl %x, %y
       %t = shr %x, %y
       return %q, %r, %m, %s, %t })", lengths("N", {4099})},
    {"casts", R"(graph @g(%x: f32[N], %d: f64[N], %k: i64[N]) -> (i8[N], u8[N], i64[N], bool[N], f16[N], bf16[N], f8e4m3[N], bf16[N], i32[N]) {
       %a = cast %x {to=i8}
       %b = cast %x {to=u8}
       %c = cast %x {to=i64}
       %e = cast %x {to=bool}
       %f = cast %d {to=f16}
       %g = cast %d {to=bf16}
       %h = cast %d {to=f8e4m3}
       %i = cast %k {to=bf16}
       %j = cast %d {to=i32}
       return %a, %b, %c, %e, %f, %g, %h, %i, %j })", lengths("N", {4099})},
    {"floats", R"(graph @g(%x: f32[N], %y: f32[N]) -> (f32[N], f32[N], f32[N], f32[N], f32[N], f32[N], bool[N]) {
       %a = floor_mod %x, %y
       %b = floor_div %x, %y
       %c = div %x, %y
       %d = round_even %x
       %e = sqrt %x
       %f = sign %x
       %g = lt %x, %y
       return %a, %b, %c, %d, %e, %f, %g })", lengths("N", {1000})},
    {"quotients", R"(graph @g(%x: f32[N,C], %s: f32[N,1], %u: u8[N,C], %k: i16[N,C]) -> (f32[N,C], f32[N,C], f32[N,C], f16[N,C]) {
       %a = div %x, %s
       %b = div %x, 255.0
       %v = cast %u {to=f32}
       %c = div %v, 3.0
       %h = cast %k {to=f16}
       %i = div %h, 7.0
       return %a, %b, %c, %i })", shapes({{1, 1}, {50, 64}, {33, 333}})},
    {"requantise", R"(graph @g(%q: i8[N,C], %s: f32[C], %x: f32[N,C]) -> (i8[N,C], u8[N,C], f32[N,C]) {
       %f = cast %q {to=f32}
       %d = mul %f, %s
       %t = round_even %d
       %c = clamp %t, -128.0, 127.0
       %y = cast %c {to=i8}
       %v = clamp %x, 0.0, 255.0
       %u = cast %v {to=u8}
       %w = max %x, 1.5
       return %y, %u, %w })", shapes({{1, 1}, {50, 64}, {9, 333}})},
    {"pad", R"(graph @g(%x: f32[N,C]) -> f32[N+3,C+5] {
       %y = pad %x {low=[1,2], high=[2,3], value=1.5}
       return %y })", shapes({{1, 1}, {7, 31}, {33, 59}})},
    {"odd_rows", R"(graph @g(%x: bf16[N,C], %b: bf16[C], %r: bf16[N,1]) -> bf16[N,C] {
       %s = add %x, %b
       %y = mul %s, %r
       return %y })", shapes({{5, 31}, {33, 333}, {7, 1001}})},
    {"reverse_slice", R"(graph @g(%x: i32[40,N]) -> i32[20,N] {
       %r = reverse %x {axes=[1]}
       %y = slice %r {start=[0,0], stop=[40,N], step=[2,1]}
       return %y })", lengths("N", {1, 33, 100})},
    {"transpose_add", R"(graph @g(%a: f32[N,C], %b: f32[C,N]) -> f32[N,C] {
       %t = transpose %b {perm=[1,0]}
       %y = add %a, %t
       return %y })", shapes({{1, 1}, {33, 31}, {64, 100}, {130, 65}})},
    {"transpose_bf16", R"(graph @g(%a: bf16[3,N,C], %b: f32[C]) -> f16[3,C,N] {
       %s = mul %a, %a
       %t = transpose %s {perm=[0,2,1]}
       %y = cast %t {to=f16}
       return %y })", shapes({{33, 31}, {64, 64}, {130, 65}})},
    {"transpose_u8", R"(graph @g(%a: u8[N,C], %b: u8[C,N]) -> u8[C,N] {
       %t = transpose %a {perm=[1,0]}
       %y = xor %t, %b
       return %y })", shapes({{33, 31}, {128, 256}, {130, 65}})},
    {"transpose_f64", R"(graph @g(%a: f64[N,C], %b: bool[N,C]) -> f64[C,N] {
       %z = select %b, %a, 0.0
       %y = transpose %z {perm=[1,0]}
       return %y })", shapes({{33, 31}, {64, 64}, {70, 65}})},
    {"row_sum", "graph @g(%x: f32[N,C]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }",
     shapes({{1, 1}, {3, 31}, {5, 32}, {7, 33}, {5, 1000}, {2, 4099}, {300, 8}, {3, 0}}), 1e-4},
    {"rows_of_seven", "graph @g(%x: f32[N,C]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }", shapes({{1000, 7}, {5000, 3}}), 1e-4},
    {"row_max_bf16", "graph @g(%x: bf16[N,C]) -> bf16[N] { %y = reduce_max %x {axes=[1]}\n return %y }",
     shapes({{1, 1}, {3, 31}, {5, 64}, {2, 4096}, {2, 0}})},
    {"int_sum", "graph @g(%x: i16[N,C]) -> i16[N] { %y = sum %x {axes=[1]}\n return %y }", shapes({{3, 31}, {5, 64}, {2, 4096}})},
    {"argmax", "graph @g(%x: i8[N,C]) -> i64[N] { %y = argmax %x {axes=[1], to=i64}\n return %y }", shapes({{1, 1}, {3, 31}, {5, 64}, {2, 4099}})},
    {"argmin_last", "graph @g(%x: f32[N,C]) -> i32[N] { %y = argmin %x {axes=[1], to=i32, last=true}\n return %y }", shapes({{3, 31}, {5, 1000}})},
    {"any_all", R"(graph @g(%x: bool[N,C]) -> (bool[N], bool[N]) {
       %y = any %x {axes=[1]}
       %z = all %x {axes=[1]}
       return %y, %z })", shapes({{1, 1}, {3, 33}, {40, 7}})},
    {"centre", R"(graph @g(%x: f32[N,C]) -> f32[N,C] {
       %m = mean %x {axes=[1], keep=true}
       %y = sub %x, %m
       return %y })", shapes({{1, 1}, {3, 31}, {5, 32}, {9, 1000}, {2, 4099}, {3, 8192}}), 1e-4},
    {"residual_variance", R"(graph @g(%x: bf16[N,C], %r: bf16[N,C]) -> (bf16[N,C], f32[N]) {
       %h = add %x, %r
       %f = cast %h {to=f32}
       %v = var %f {axes=[1], ddof=1}
       return %h, %v })", shapes({{3, 31}, {5, 1024}, {2, 4096}}), 1e-3},
    {"column_sum", "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }",
     shapes({{1, 1}, {31, 33}, {100, 32}, {1000, 64}, {4099, 3}, {0, 5}}), 1e-3},
    {"column_centre", R"(graph @g(%x: f32[N,C]) -> f32[N,C] {
       %m = mean %x {axes=[0], keep=true}
       %y = sub %x, %m
       return %y })", shapes({{1, 1}, {31, 33}, {100, 64}}), 1e-4},
    {"softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }", shapes({{1, 1}, {3, 31}, {5, 32}, {2, 1000}, {2, 4096}}), 1e-5},
    {"softmax_odd", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", shapes({{5, 129}, {7, 333}, {3, 1001}, {3, 4099}}), 1e-2},
    {"layer_norm_odd", R"(graph @g(%x: f32[2,N,C], %g: f32[C], %b: f32[C]) -> f32[2,N,C] {
       %y = layer_norm %x, %g, %b {axes=[2], eps=1e-5}
       return %y })", shapes({{5, 129}, {2, 1001}, {3, 2049}}), 1e-3},
    {"argmax_odd", "graph @g(%x: bf16[N,C]) -> i64[N] { %y = argmax %x {axes=[1], to=i64}\n return %y }", shapes({{3, 333}, {4, 1001}})},
    {"softmax_f16", "graph @g(%x: f16[N,C]) -> f16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", shapes({{3, 31}, {9, 64}, {2, 1024}}), 1e-3},
    {"column_softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[0]}\n return %y }", shapes({{1, 1}, {31, 33}, {100, 64}}), 1e-5},
    {"logsumexp", "graph @g(%x: f32[N,C]) -> f32[N] { %y = logsumexp %x {axes=[1]}\n return %y }", shapes({{3, 31}, {2, 1000}, {1, 40000}, {3, 0}}), 1e-5},
    {"column_var", "graph @g(%x: f32[N,C]) -> f32[C] { %y = var %x {axes=[0], ddof=1}\n return %y }", shapes({{2, 1}, {31, 33}, {1000, 64}}), 1e-4},
    {"full_var", "graph @g(%x: f32[N]) -> f32[] { %y = var %x {axes=[0], ddof=1}\n return %y }", lengths("N", {2, 1000, 40003}), 1e-4},
    // States of 16 columns that are larger than what 32 warps of 17 lanes may share.
    {"many_column_folds", R"(graph @g(%x: i8[N,C]) -> (i32[C], i64[C], i64[C], i8[C], i8[C], i64[C], i64[C]) {
       %a = argmin %x {axes=[0], to=i32}
       %b = argmax %x {axes=[0], last=true}
       %c = argmin %x {axes=[0], last=true}
       %d = reduce_max %x {axes=[0]}
       %e = reduce_min %x {axes=[0]}
       %w = cast %x {to=i64}
       %f = sum %w {axes=[0]}
       %q = mul %w, %w
       %h = sum %q {axes=[0]}
       return %a, %b, %c, %d, %e, %f, %h })", shapes({{2, 264}, {100, 272}, {100, 33}})},
    {"cumsum_rows", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=1}\n return %y }", shapes({{1, 1}, {70, 4}, {9, 7}, {5, 128}, {70, 17}, {3, 1001}, {2, 4100}, {1, 66000}, {2, 66001}}), 1e-3},
    {"cumsum_rows_back", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = cumsum %x {axis=1, reverse=true, exclusive=true}\n return %y }", shapes({{1, 1}, {9, 24}, {9, 35}, {2, 5000}}), 1e-2},
    {"cumsum_columns", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cumsum %x {axis=0}\n return %y }", shapes({{1, 5}, {33, 67}, {129, 64}, {2100, 12}}), 1e-3},
    {"cumsum_middle", "graph @g(%x: f16[N,C,12]) -> f16[N,C,12] { %y = cumsum %x {axis=1, reverse=true}\n return %y }", shapes({{1, 1}, {9, 50}}), 1e-2},
    {"cumsum_integers", "graph @g(%x: i8[N,C]) -> i8[N,C] { %y = cumsum %x {axis=1}\n return %y }", shapes({{3, 5}, {3, 777}, {2, 9000}})},
    {"cumprod_integers", "graph @g(%x: i64[N,C]) -> i64[N,C] { %y = cumprod %x {axis=0, exclusive=true}\n return %y }", shapes({{3, 5}, {77, 30}})},
    {"cummax_special", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = cummax %x {axis=1}\n return %y }", shapes({{3, 5}, {3, 777}, {2, 9000}})},
    {"cummin_special", "graph @g(%x: f64[N,C]) -> f64[N,C] { %y = cummin %x {axis=0, reverse=true}\n return %y }", shapes({{3, 5}, {100, 77}})},
    {"cumsum_fused", R"(graph @g(%m: bool[N,C], %w: f32[C], %r: i32[N,1]) -> (f32[N,C], i32[N,C]) {
       %i = cast %m {to=i32}
       %j = add %i, %r
       %a = cumsum %j {axis=1, exclusive=true}
       %b = cummax %j {axis=1}
       %d = sub %a, %b
       %f = cast %d {to=f32}
       %y = mul %f, %w
       return %y, %a })", shapes({{3, 5}, {9, 300}, {3, 1025}})},
    {"full_sum", "graph @g(%x: f32[N]) -> f32[] { %y = sum %x {axes=[0]}\n return %y }", lengths("N", {1, 31, 33, 1000, 4099, 40003}), 1e-3},
    // Rows that begin anywhere, of which an operand has a part: beside its first and last there is no memory.
    {"concat_softmax_odd", "graph @g(%x: bf16[3,C], %y: bf16[5,C]) -> bf16[8,C] { %c = concat %x, %y {axis=0}\n %z = softmax %c {axes=[1]}\n return %z }", lengths("C", {29, 101, 1001, 4099}), 1e-2},
    {"concat_sum_odd", "graph @g(%x: f32[3,C], %y: f32[1,C]) -> f32[4] { %c = concat %x, %y {axis=0}\n %z = sum %c {axes=[1]}\n return %z }", lengths("C", {101, 4099, 9001}), 1e-3},
    {"concat_cumsum_odd", "graph @g(%x: i8[1,1,C]) -> i8[3,1,C] { %c = concat %x, %x, %x {axis=0}\n %z = cumsum %c {axis=2}\n return %z }", lengths("C", {29, 1001})},
    {"pad_cummax_odd", "graph @g(%x: f16[6,C]) -> f16[9,C] { %p = pad %x {low=[1,0], high=[2,0]}\n %z = cummax %p {axis=1}\n return %z }", lengths("C", {101, 1001, 5001})},
    {"pad_layer_norm_odd", "graph @g(%x: f32[6,C]) -> f32[9,C] { %p = pad %x {low=[1,0], high=[2,0]}\n %z = layer_norm %p {axes=[1], eps=1e-5}\n return %z }", lengths("C", {101, 1001}), 1e-4},
    // Rows that repeat short runs, beyond what lanes hold: nothing of them can be copied as a piece.
    {"repeated_runs", R"(graph @g(%x: f32[31,4], %y: f32[N,1,4]) -> (f32[N,31,4], i64[]) {
       %z = mul %x, %y
       %a = argmax %z {axes=[0,1,2], to=i64}
       return %z, %a })", lengths("N", {3, 68, 300})},
    {"full_argmax", "graph @g(%x: f32[N]) -> i64[] { %y = argmax %x {axes=[0], to=i64}\n return %y }", lengths("N", {1, 1000, 40003})},
    {"batch_mean", "graph @g(%x: f32[N,C,28]) -> f32[C] { %y = mean %x {axes=[0,2]}\n return %y }", shapes({{1, 1}, {9, 5}, {64, 3}}), 1e-4},
    {"middle_max", "graph @g(%x: f16[N,C,12]) -> f16[N,12] { %y = reduce_max %x {axes=[1]}\n return %y }", shapes({{1, 1}, {9, 50}})},
};

class Runs : public ::testing::TestWithParam<Case> {};

TEST_P(Runs, Right) {
  const Case& c = GetParam();
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Subject s = subject(c.text);
  ASSERT_FALSE(s.kernel.values.empty());
  for (const Sizes& sizes : c.sizes) {
    How how;
    how.device.multiprocessors = 4;
    check(c, how, sizes, s);
    if (HasFatalFailure()) break;
  }
}


INSTANTIATE_TEST_SUITE_P(Cuda, Runs, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

/// Schedules that these small sizes would not choose.
struct Variant {
  const char* name;
  void (*change)(Schedule&);
  uint32_t most_blocks = 0;
};
void wide(Schedule& s) { s.wide_index = true; }
void looped(Schedule& s) {
  if (s.skeleton != Template::rows) return;
  s.keep = Keep::reload, s.cut.clear(), s.steps = 0, s.threads = s.lanes_per_row = 64, s.rows_in_flight = 2, s.block[s.vector_axis] = 0;
  for (Access& a : s.access) a.early = 0;
}
void on_chip(Schedule& s, Keep keep, int cluster) {
  if (s.skeleton != Template::rows || s.cut.empty()) return;
  s.keep = keep, s.steps = 0, s.threads = s.lanes_per_row = 64, s.rows_in_flight = 2, s.cluster = uint16_t(cluster), s.block[s.vector_axis] = 0;
  for (Access& a : s.access) a.early = 0;
}
void paired(Schedule& s) {
  if (s.skeleton == Template::rows) looped(s), s.merged = true;
}
void shared(Schedule& s) { on_chip(s, Keep::shared, 1); }
void cluster(Schedule& s) { on_chip(s, Keep::cluster, 4); }
/// Rows that one load brings: in slots, copied again for each sweep, or (slots = 0) loaded by the lanes.
void ring_of(Schedule& s, int cluster, Keep keep, int slots, int slices, int ahead, int threads = 64) {
  if (s.skeleton != Template::rows || s.cut != std::vector<Val>{0} || s.edges == Edges::tail) return;
  if (s.access[0].bytes < 16 && s.vector_axis > 1) slots = 0;  // runs that begin between 16-byte pieces
  on_chip(s, slots ? keep : Keep::reload, cluster);
  s.skeleton = Template::ring, s.dynamic_rows = true, s.min_blocks = s.rows_in_flight = 1, s.threads = s.lanes_per_row = uint16_t(threads);
  s.slots = uint8_t(slots), s.slices = uint8_t(slices), s.ahead = uint8_t(ahead), s.steps = 8;
  if (!slots) s.cut.clear();
}
void ring(Schedule& s) { ring_of(s, 1, Keep::shared, 4, 3, 0); }
void ring_ahead(Schedule& s) { ring_of(s, 1, Keep::shared, 5, 2, 1, 96), s.merged |= s.skeleton == Template::ring; }
void ring_of_clusters(Schedule& s) { ring_of(s, 4, Keep::shared, 5, 2, 1); }
void ring_of_teams(Schedule& s) {
  ring_of(s, 1, Keep::shared, 6, 2, 2);
  if (s.skeleton == Template::ring) s.team = 2, s.dynamic_rows = false;
}
void ring_of_one_team(Schedule& s) {
  ring_of(s, 1, Keep::reload, 3, 2, 0);
  if (s.skeleton == Template::ring) s.team = 3, s.dynamic_rows = false;
}
void ring_again(Schedule& s) { ring_of(s, 1, Keep::reload, 2, 3, 0); }
void ring_again_in_clusters(Schedule& s) { ring_of(s, 2, Keep::reload, 3, 2, 0, 96); }
void ring_of_lanes(Schedule& s) { ring_of(s, 2, Keep::reload, 0, 3, 0); }
void four_rows(Schedule& s) {
  if (s.skeleton == Template::rows && s.keep == Keep::registers) s.rows_in_flight = 4;
}
void masked(Schedule& s) {
  if (s.skeleton == Template::rows) s.block[s.vector_axis] = 0;
}
const Variant kVariants[] = {{"wide", wide}, {"looped", looped}, {"paired", paired}, {"shared", shared}, {"cluster", cluster}, {"ring", ring}, {"ring_ahead", ring_ahead}, {"ring_of_clusters", ring_of_clusters},
                             {"ring_of_teams", ring_of_teams}, {"ring_of_one_team", ring_of_one_team}, {"ring_again", ring_again}, {"ring_again_in_clusters", ring_again_in_clusters}, {"ring_of_lanes", ring_of_lanes}, {"masked", masked}, {"four_rows", four_rows}, {"two_blocks", wide, 2}};

class Variants : public ::testing::TestWithParam<Variant> {};

TEST_P(Variants, Right) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  for (const Case& c : kCases) {
    if (c.sizes.size() < 2) continue;
    const Subject s = subject(c.text);
    How how;
    how.device.multiprocessors = 4;
    how.change = GetParam().change;
    how.most_blocks = GetParam().most_blocks;
    check(c, how, c.sizes[c.sizes.size() / 2], s);
    if (HasFatalFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, Variants, ::testing::ValuesIn(kVariants), [](const auto& info) { return info.param.name; });

// Rows that the sizes send to the ring: one run and several, odd lengths, narrow and wide types side by side, parameters of columns.
const Case kRings[] = {
    {"softmax_bf16", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", shapes({{9, 36864}, {9, 36001}}), 1e-2},
    {"softmax_u8", "graph @g(%u: u8[N,C]) -> f32[N,C] { %x = cast %u {to=f32}\n %y = softmax %x {axes=[1]}\n return %y }", shapes({{9, 36864}, {9, 50001}}), 1e-5},
    {"strict_softmax", R"(graph @g(%x: f32[N,C]) -> f32[N,C] {
       %m = reduce_max %x {axes=[1], keep=true}
       %d = sub %x, %m
       %e = exp %d
       %s = sum %e {axes=[1], keep=true}
       %y = div %e, %s
       return %y })", shapes({{9, 36864}, {9, 33003}}), 1e-5},
    {"add_layer_norm", R"(graph @g(%x: bf16[N,C], %r: bf16[N,C], %g: f32[C], %b: bf16[C]) -> (bf16[N,C], bf16[N,C]) {
       %h = add %x, %r
       %f = cast %h {to=f32}
       %c = cast %b {to=f32}
       %n = layer_norm %f, %g, %c {axes=[1], eps=1e-5}
       %y = cast %n {to=bf16}
       return %y, %h })", shapes({{9, 26001}}), 2e-2},
    {"layer_norm_with_parameters", R"(graph @g(%x: bf16[N,C], %g: f32[C], %b: f32[C]) -> bf16[N,C] {
       %f = cast %x {to=f32}
       %n = layer_norm %f, %g, %b {axes=[1], eps=1e-5}
       %y = cast %n {to=bf16}
       return %y })", shapes({{9, 24576}, {9, 26008}, {9, 26001}}), 2e-2},
    {"rms_norm_with_parameters", R"(graph @g(%x: f32[N,C], %g: bf16[C]) -> f32[N,C] {
       %n = rms_norm %x {axes=[1], eps=1e-6}
       %w = cast %g {to=f32}
       %y = mul %n, %w
       return %y })", shapes({{9, 20480}, {9, 20001}}), 1e-5},
    {"layer_norm_and_argmax", R"(graph @g(%x: f32[N,C]) -> (f32[N,C], i64[N]) {
       %y = layer_norm %x {axes=[1], eps=1e-5}
       %a = argmax %x {axes=[1]}
       return %y, %a })", shapes({{9, 20480}, {9, 20001}}), 1e-4},
    {"softmax_of_scaled", R"(graph @g(%x: f32[N,C], %g: f32[C]) -> f32[N,C] {
       %s = mul %x, %g
       %y = softmax %s {axes=[1]}
       return %y })", shapes({{9, 20480}, {9, 20001}}), 1e-5},
    {"bytes_to_f32", R"(graph @g(%u: u8[N,C], %s: f32[N,1]) -> (f32[N,C], f32[N]) {
       %f = cast %u {to=f32}
       %x = mul %f, %s
       %m = mean %x {axes=[1], keep=true}
       %y = sub %x, %m
       %r = reshape %m {shape=[N]}
       return %y, %r })", shapes({{9, 70003}}), 1e-3},
    {"batch_norm", R"(graph @g(%x: f32[8,N,C], %w: f32[1,N,1]) -> f32[8,N,C] {
       %m = mean %x {axes=[0,2], keep=true}
       %v = var %x {axes=[0,2], keep=true, ddof=0}
       %d = sub %x, %m
       %e = add %v, 1e-05
       %r = rsqrt %e
       %n = mul %d, %r
       %y = mul %n, %w
       return %y })", shapes({{9, 4704}}), 1e-3},
};

class Rings : public ::testing::TestWithParam<Case> {};

TEST_P(Rings, Right) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Subject s = subject(GetParam().text);
  How how;
  how.device.multiprocessors = 4;
  how.races = SIMT_RACES_SHARED;
  for (const Sizes& sizes : GetParam().sizes) {
    check(GetParam(), how, sizes, s);
    ASSERT_FALSE(HasFatalFailure());
    const std::vector<Tensor> inputs = inputs_of(s, sizes, 7, false);
    EXPECT_EQ(run(s, sizes, inputs, how).schedule.skeleton, Template::ring);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, Rings, ::testing::ValuesIn(kRings), [](const auto& info) { return info.param.name; });

// Parameters of the columns come for each row through one slot: the same bits as where they stay in a slot for each slice.
TEST(CudaRun, ParametersOfRingsComeAgain) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const auto stay = [](Schedule& s) { s.slices *= 2, s.slots *= 2, s.column_slots = s.slices; };
  const auto again = [](Schedule& s) { s.slices *= 2, s.slots *= 2, s.column_slots = 1; };
  size_t ran = 0;
  for (const Case& c : kRings) {
    if (!std::string(c.name).ends_with("with_parameters")) continue;
    const Subject s = subject(c.text);
    for (const Sizes& sizes : c.sizes) {
      const std::vector<Tensor> inputs = inputs_of(s, sizes, 7, false);
      for (int64_t offset : {0, 1}) {
        How how;
        how.device.multiprocessors = 4;
        how.races = SIMT_RACES_SHARED;
        how.offset = offset;
        how.change = stay;
        const Ran kept = run(s, sizes, inputs, how);
        how.change = again;
        const Ran ran_again = run(s, sizes, inputs, how);
        ASSERT_EQ(kept.trouble + ran_again.trouble, "") << c.name << ": " << print(ran_again.schedule);
        EXPECT_EQ(ran_again.outputs, kept.outputs) << c.name << ": " << print(ran_again.schedule);
        ran += ran_again.schedule.access[1].staged;
      }
    }
  }
  EXPECT_GE(ran, 8u);
}

// Rows too long for a block, with much arithmetic: held by the registers of a cluster.
const Case kHeldByClusters[] = {
    {"layer_norm_silu", R"(graph @g(%x: bf16[N,C], %g: bf16[C], %b: bf16[C]) -> bf16[N,C] {
       %n = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       %y = silu %n
       return %y })", {{{"N", 2}, {"C", 36864}}, {{"N", 3}, {"C", 40960}}, {{"N", 2}, {"C", 40961}}, {{"N", 1}, {"C", 65536}}}, 2e-2},
    {"group_norm_silu", R"(graph @g(%x: bf16[N,8,96,96], %g: bf16[8], %b: bf16[8]) -> bf16[N,8,96,96] {
       %n = group_norm %x, %g, %b {groups=2, eps=1e-5}
       %y = silu %n
       return %y })", {{{"N", 1}}, {{"N", 2}}}, 2e-2},
};

class HeldByClusters : public ::testing::TestWithParam<Case> {};

TEST_P(HeldByClusters, Right) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Subject s = subject(GetParam().text);
  for (const Sizes& sizes : GetParam().sizes) {
    How how;
    how.races = SIMT_RACES_SHARED;
    check(GetParam(), how, sizes, s);
    ASSERT_FALSE(HasFatalFailure());
    const Schedule schedule = run(s, sizes, inputs_of(s, sizes, 7, false), how).schedule;
    EXPECT_TRUE(schedule.keep == Keep::registers && schedule.cluster > 1) << print(schedule);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, HeldByClusters, ::testing::ValuesIn(kHeldByClusters), [](const auto& info) { return info.param.name; });

// Rows enough that slots, states and the queue of rows go around several times, in twenty orders of threads.
TEST(CudaRun, RingsGoAround) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Case c{"softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {}, 1e-5};
  const Subject s = subject(c.text);
  const Sizes sizes{{"N", 70}, {"C", 515}};
  const std::vector<Tensor> inputs = inputs_of(s, sizes, 7, false);
  for (const auto change : {ring_ahead, ring_of_clusters, ring_again}) {
    How how;
    how.change = change;
    how.device.multiprocessors = 1;
    Ran first;
    for (how.seed = 1; how.seed <= 20; ++how.seed) {
      const Ran ran = run(s, sizes, inputs, how);
      ASSERT_EQ(ran.trouble, "") << print(ran.schedule) << " seed " << how.seed;
      ASSERT_EQ(ran.schedule.skeleton, Template::ring);
      if (how.seed == 1) {
        first = ran;
        EXPECT_LE(difference(ran.outputs[0], (*evaluate(s.graph, inputs))[0]), c.tolerance);
      }
      EXPECT_EQ(ran.outputs[0], first.outputs[0]) << "seed " << how.seed;
    }
  }
}

// A constant number of rows may choose what any number does not: clusters for the formulas of few rows, and, of two rows a block, loads past the
// L1 while the parameters come into it.
TEST(CudaRun, ConstantRows) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Case kFew = {"few", R"(graph @g(%a: f32[3,1024], %r: f32[3,1024], %g: f32[1024], %b: f32[1024]) -> f32[3,1024] {
    %t = add %a, %r
    %h = layer_norm %t, %g, %b {axes=[1], eps=1e-05}
    %e = gelu %h
    %y = mul %e, %a
    return %y })", {}, 1e-4};
  const Subject few = subject(kFew.text);
  EXPECT_NE(print(cuda::schedule(few.kernel, facts(few.kernel, dense_binding(few.kernel, {})), cuda::device(90))).find(" cluster=2 "), std::string::npos);
  check(kFew, {}, {}, few);
  for (const auto [rows, columns, multiprocessors] : {std::array{47, 1024, 2}, std::array{15, 1536, 1}, std::array{15, 2048, 1}}) {
    const std::string c = std::to_string(columns), x = "f32[" + std::to_string(rows) + "," + c + "]";
    const std::string text = "graph @g(%x: " + x + ", %g: f32[" + c + "], %b: f32[" + c + "]) -> " + x + " {\n %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}\n return %y }";
    const Subject wave = subject(text);
    How how;
    how.device.multiprocessors = multiprocessors;
    const std::string chosen = print(cuda::schedule(wave.kernel, facts(wave.kernel, dense_binding(wave.kernel, {})), how.device));
    EXPECT_NE(chosen.find(" access=16b,16p,16p,16 "), std::string::npos) << chosen;
    check({"wave", text.c_str(), {}, 1e-4}, how, {}, wave);
  }
}

// Where the text knows a row's length, a lane's vectors in a slice are taken without a condition, all of them or all but the last one; parameters that lanes
// ask for a slice ahead end with the last slice, and those of one slice stay in registers. Clusters of three, and rows folded far ahead.
TEST(CudaRun, RingsOfKnownLengths) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  std::map<std::string, size_t> fills, holds;
  for (const char* type : {"f32", "bf16", "u8"})
    for (const int64_t length : {4096, 4032, 1040}) {
      const std::string t = type, v = t == "u8" ? "f32" : t, n = std::to_string(length);
      const Subject s = subject("graph @g(%x: " + t + "[5," + n + "], %g: " + v + "[" + n + "], %b: " + v + "[" + n + "]) -> " + v + "[5," + n + "] {\n %f = cast %x {to=" + v +
                                "}\n %y = layer_norm %f, %g, %b {axes=[1], eps=1e-5}\n return %y\n}");
      const std::vector<Tensor> inputs = inputs_of(s, {}, 7, false);
      const auto want = evaluate(s.graph, inputs);
      ASSERT_TRUE(want);
      const Facts f = facts(s.kernel, dense_binding(s.kernel, {}));
      for (const auto& [cluster, team, slices, columns, ahead] : {std::tuple{1, 0, 2, 0, 1}, {2, 0, 2, 2, 1}, {3, 0, 1, 1, 3}, {4, 0, 1, 0, 1}, {1, 3, 1, 0, 5}}) {
        Schedule ring = cuda::schedule(s.kernel, f, cuda::device(90));
        ring.skeleton = Template::ring, ring.keep = Keep::shared, ring.merged = true, ring.threads = 64, ring.min_blocks = ring.rows_in_flight = 1;
        ring.cluster = uint16_t(cluster), ring.slices = uint8_t(slices), ring.column_slots = uint8_t(columns), ring.slots = 0, ring.ahead = uint8_t(ahead), ring.team = uint16_t(team);
        ASSERT_EQ(cuda::settle(s.kernel, f, cuda::device(90), ring), "") << t << " " << n << ": " << print(ring);
        How how;
        how.device.multiprocessors = 3;
        how.change = [&](Schedule& made) { made = ring; };
        const Ran ran = run(s, {}, inputs, how);
        ASSERT_EQ(ran.trouble, "") << t << " " << n << ": " << print(ran.schedule);
        EXPECT_LE(difference(ran.outputs[0], (*want)[0]), v == "bf16" ? 0.05 : 1e-4) << t << " " << n << ": " << print(ran.schedule);
        ++fills[ran.text.substr(ran.text.find(", Fills = ") + 10, 1)];
        holds[t] += ran.text.find(", Holds = 1") != std::string::npos;
      }
    }
  for (const char* each : {"0", "1", "2"}) EXPECT_GT(fills[each], 0u) << "Fills = " << each;
  for (const char* type : {"f32", "bf16", "u8"}) EXPECT_GT(holds[type], 1u) << type;
}

// Softmax through the ring, where exp is made for bytes or of few terms: each probability, large or tiny, over its true value, whatever the row's largest
// element is; rows of whole vectors and rows that begin and end inside of them.
TEST(CudaRun, SoftmaxOfRings) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  for (const DType type : {DType::u8, DType::i8, DType::bf16})
    for (const int64_t length : {4096, 4033}) {
      const bool narrow = type == DType::bf16;
      const std::string t(name(type)), v = narrow ? "bf16" : "f32", n = std::to_string(length);
      const Subject s = subject("graph @g(%x: " + t + "[5," + n + "]) -> " + v + "[5," + n + "] {\n %f = cast %x {to=" + v + "}\n %y = softmax %f {axes=[1]}\n return %y\n}");
      // Of bytes a row goes down from its largest; of bf16 all of it lies far from 0, where a product with log2 e is rounded coarsely.
      const double largest[] = {255, 128, 100, 31, 0}, lowest = type == DType::i8 ? -128 : 0;
      std::vector<Tensor> inputs = inputs_of(s, {}, 7, false);
      std::vector<std::vector<double>> want(5, std::vector<double>(size_t(length)));
      for (int64_t r = 0; r < 5; ++r) {
        double sum = 0;
        for (int64_t e = 0; e < length; ++e) {
          const double down = double(e * 31 % (narrow ? 20 : 90)), x = narrow ? 8 * (largest[r] - 128 - down) : std::max(0.0, largest[r] - down) + lowest;
          const uint32_t bits = narrow ? std::bit_cast<uint32_t>(float(x)) >> 16 : uint32_t(int32_t(x));
          std::memcpy(inputs[0].data.data() + size_t(r * length + e) * bytes(type), &bits, bytes(type));
          sum += want[size_t(r)][size_t(e)] = std::exp(x - (narrow ? 8 * (largest[r] - 128) : largest[r] + lowest));
        }
        for (double& p : want[size_t(r)]) p /= sum;
      }
      How how;
      how.device.multiprocessors = 3;
      how.change = [&](Schedule& made) {
        made = cuda::schedule(s.kernel, facts(s.kernel, dense_binding(s.kernel, {})), cuda::device(90));
        made.skeleton = Template::ring, made.keep = Keep::shared, made.merged = true, made.threads = 96, made.min_blocks = made.rows_in_flight = 1;
        made.cluster = 2, made.slices = 2, made.slots = 0, made.ahead = 1, made.lane[made.vector_axis] = narrow ? 8 : 4;
        if (length % 16) made.edges = Edges::window;
        ASSERT_EQ(cuda::settle(s.kernel, facts(s.kernel, dense_binding(s.kernel, {})), cuda::device(90), made), "") << print(made);
      };
      const Ran ran = run(s, {}, inputs, how);
      ASSERT_EQ(ran.trouble, "") << t << " " << n << ": " << print(ran.schedule);
      EXPECT_NE(ran.text.find(narrow ? "few_in_row(" : "bytes_in_row("), std::string::npos) << t << " " << n;
      double worst = 0;
      for (int64_t r = 0; r < 5; ++r)
        for (int64_t e = 0; e < length; ++e)
          if (const double p = want[size_t(r)][size_t(e)]; p > 0x1p-120) worst = std::max(worst, std::fabs(element(ran.outputs[0], r * length + e) / p - 1));
      EXPECT_LE(worst, narrow ? 0x1.01p-8 : 3e-7) << t << " " << n << ": " << print(ran.schedule);
    }
}

// A schedule that settles is as it was; changed by hand, what settles runs: no lane takes more at a time than each row's start allows.
/// A schedule by hand gives what the reference does, or is refused. Did it run?
bool right_or_refused(const Subject& s, const Facts& f, Schedule changed) {
  if (!cuda::settle(s.kernel, f, cuda::device(90), changed).empty()) return false;
  How how;
  how.change = [&](Schedule& schedule) { schedule = changed; };
  const std::vector<Tensor> inputs = inputs_of(s, {}, 7, false);
  const Ran got = run(s, {}, inputs, how);
  EXPECT_EQ(got.trouble, "") << print(changed);
  if (got.trouble.empty()) {
    EXPECT_LE(difference(got.outputs[0], (*evaluate(s.graph, inputs))[0]), 1e-4) << print(changed);
  }
  return true;
}

TEST(CudaRun, SettledByHand) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  size_t ran = 0;
  for (const char* type : {"f32", "bf16", "u8"})
    for (const int64_t length : {16, 17, 100, 129, 1025, 4098})
      for (const char* op : {"softmax %f {axes=[1]}", "sum %f {axes=[1], keep=true}", "sum %f {axes=[0], keep=true}", "cumsum %f {axis=1}", "exp %f"}) {
        const std::string t = type, n = std::to_string(length);
        const Subject s = subject("graph @g(%x: " + t + "[5," + n + "]) -> f32[5," + n + "] {\n %f = cast %x {to=f32}\n %r = " + op + "\n %y = add %f, %r\n return %y\n}");
        const Facts f = facts(s.kernel, dense_binding(s.kernel, {}));
        const Schedule model = cuda::schedule(s.kernel, f, cuda::device(90));
        Schedule same = model;
        ASSERT_EQ(cuda::settle(s.kernel, f, cuda::device(90), same), "") << op << print(model);
        EXPECT_EQ(print(same), print(model)) << t << " " << n << " " << op;
        for (const Edges edges : {Edges::full, Edges::tail, Edges::window})
          for (const int lane : {0, 1, 4}) {
            Schedule changed = model;
            changed.edges = edges;
            if (lane) changed.lane[changed.vector_axis] = uint16_t(lane);
            ran += right_or_refused(s, f, changed);
          }
        if (length < 129 || length > 1025) continue;
        for (const uint16_t threads : {32, 96, 128, 160}) {
          for (const Keep keep : {Keep::reload, Keep::shared}) {
            Schedule changed = model;
            changed.threads = threads, changed.keep = keep, changed.slots = 0;
            ran += right_or_refused(s, f, changed);
          }
          for (const int lane : {1, 4}) {
            Schedule changed = model;
            changed.skeleton = Template::ring, changed.keep = Keep::shared, changed.edges = Edges::window, changed.slices = changed.min_blocks = 1;
            changed.threads = threads, changed.lane[changed.vector_axis] = uint16_t(lane), changed.slots = 4, changed.cluster = 2;
            ran += right_or_refused(s, f, changed);
          }
        }
      }
  EXPECT_GT(ran, 300u);
  // A tile's choice as pointwise: vectors run on from row to row.
  for (const char* type : {"f32", "f16"}) {
    const std::string t = type;
    const Subject s = subject("graph @g(%v: " + t + "[33,277], %c: " + t + "[33,1]) -> " + t + "[277,33] {\n %u = mul %v, %c\n %w = transpose %u {perm=[1,0]}\n return %w\n}");
    const Facts f = facts(s.kernel, dense_binding(s.kernel, {}));
    Schedule changed = cuda::schedule(s.kernel, f, cuda::device(90));
    ASSERT_EQ(changed.skeleton, Template::transpose);
    changed.skeleton = Template::pointwise;
    EXPECT_TRUE(right_or_refused(s, f, changed));
  }
}

// A strided call has another kernel (its layout class) and the same values.
TEST(CudaRun, StridedOperands) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  for (const Case& c : kCases) {
    const Subject dense = subject(c.text);
    BuildOptions options;
    const Layout apart{0, false};
    options.inputs.assign(dense.group.inputs.size(), apart);
    options.outputs.assign(dense.group.outputs.size(), apart);
    const Subject s = subject(c.text, options);
    How how;
    how.strided = true;
    how.device.multiprocessors = 4;
    check(c, how, c.sizes.back(), s);
    if (HasFatalFailure()) break;
  }
}

}  // namespace
}  // namespace fusec
