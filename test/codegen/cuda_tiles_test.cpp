// Rows and columns whose vectors begin anywhere between 16-byte pieces of memory: runs of whole rows through shared memory
// (templates/rows_tiled.cuh), columns out of two aligned pieces, parameters beside vectors that run on into the next row. On the host,
// with a race detector: right values, nothing outside of an operand, the same bits one element off, where lanes load themselves.

#include "codegen/cuda/tiles.h"
#include "lib/kernel/merge_sweeps.h"
#include "test/codegen/cuda_run.h"

namespace fusec {
namespace {

struct Case {
  const char* name;
  const char* text;
  double tolerance;
};
const Case kRows[] = {
    {"softmax_f32", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }", 1e-6},
    {"softmax_bf16", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", 1e-2},
    {"layer_norm_bf16", "graph @g(%x: bf16[N,C], %g: bf16[C], %b: bf16[C]) -> bf16[N,C] { %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}\n return %y }", 2e-2},
    {"bytes", R"(graph @g(%u: u8[N,C], %g: f32[C]) -> (f32[N,C], f32[N]) {
       %f = cast %u {to=f32}
       %s = sum %f {axes=[1]}
       %n = rms_norm %f {axes=[1], eps=1e-6}
       %y = mul %n, %g
       return %y, %s })", 1e-4},
    {"two_operands", R"(graph @g(%x: bf16[N,C], %r: f32[N,C]) -> (bf16[N,C], f32[N,C]) {
       %f = cast %x {to=f32}
       %h = add %f, %r
       %y = softmax %h {axes=[1]}
       %z = cast %y {to=bf16}
       return %z, %h })", 1e-2},
    {"argmax", "graph @g(%x: f32[N,C]) -> i64[N] { %y = argmax %x {axes=[1]}\n return %y }", 0},
};
const Case kOthers[] = {
    {"columns_f32", "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }", 1e-4},
    {"columns_u8", "graph @g(%u: u8[N,C]) -> f32[C] { %x = cast %u {to=f32}\n %y = sum %x {axes=[0]}\n return %y }", 1e-4},
    {"columns_33_f32", "graph @g(%x: f32[N,33]) -> f32[33] { %y = sum %x {axes=[0]}\n return %y }", 1e-4},
    {"columns_129_u8", "graph @g(%u: u8[N,129]) -> f32[129] { %x = cast %u {to=f32}\n %y = sum %x {axes=[0]}\n return %y }", 1e-4},
    {"columns_129_f32", "graph @g(%x: f32[N,129]) -> f32[129] { %y = sum %x {axes=[0]}\n return %y }", 1e-4},
    {"bias_f32", "graph @g(%x: f32[N,17], %b: f32[17]) -> f32[N,17] { %y = add %x, %b\n return %y }", 0},
    {"bias_bf16", "graph @g(%x: bf16[N,521], %b: bf16[521]) -> bf16[N,521] { %y = add %x, %b\n return %y }", 0},
};

// Sums of bytes are whole numbers: to the bit, in whatever order, and whichever words a row lies in.
const Case kBytes[] = {
    {"rows_u8", "graph @g(%u: u8[N,C]) -> f32[N] { %x = cast %u {to=f32}\n %y = sum %x {axes=[1]}\n return %y }", 0},
    {"rows_i8", "graph @g(%u: i8[N,C]) -> f32[N] { %x = cast %u {to=f32}\n %y = sum %x {axes=[1]}\n return %y }", 0},
    {"two_rows", R"(graph @g(%u: u8[N,C], %v: i8[N,C]) -> (f32[N], f32[N]) {
       %x = cast %u {to=f32}
       %w = cast %v {to=f32}
       %y = sum %x {axes=[1]}
       %z = sum %w {axes=[1]}
       return %y, %z })", 0},
    {"columns_u8", "graph @g(%u: u8[N,C]) -> f32[C] { %x = cast %u {to=f32}\n %y = sum %x {axes=[0]}\n return %y }", 0},
    {"columns_i8", "graph @g(%u: i8[N,C]) -> f32[C] { %x = cast %u {to=f32}\n %y = sum %x {axes=[0]}\n return %y }", 0},
};
// Columns whose pieces slide: states of one field and of several, operands of several sizes, weights of rows.
const Case kSliding[] = {
    {"sum_f32", "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }", 1e-4},
    {"largest_bf16", "graph @g(%x: bf16[N,C]) -> bf16[C] { %y = reduce_max %x {axes=[0]}\n return %y }", 0},
    {"place_f32", "graph @g(%x: f32[N,C]) -> i64[C] { %y = argmax %x {axes=[0]}\n return %y }", 0},
    {"variance_bf16", "graph @g(%x: bf16[N,C]) -> (bf16[C], bf16[C]) { %m = mean %x {axes=[0]}\n %v = var %x {axes=[0]}\n return %m, %v }", 2e-2},
    {"weights", R"(graph @g(%x: bf16[N,C], %z: bf16[N,C], %w: f32[N,1], %b: f32[C]) -> f32[C] {
       %p = mul %x, %z
       %f = cast %p {to=f32}
       %q = mul %f, %w
       %s = sum %q {axes=[0]}
       %y = add %s, %b
       return %y })", 1e-2},
};

// Parameters of the columns under vectors that run on into the next row: several of them, beside values of rows and of planes.
const Case kBeside[] = {
    {"gelu_bf16", "graph @g(%x: bf16[N,C], %b: bf16[C]) -> bf16[N,C] { %t = add %x, %b\n %y = gelu %t\n return %y }", 0},
    {"f32", "graph @g(%x: f32[N,C], %b: f32[C]) -> f32[N,C] { %y = add %x, %b\n return %y }", 0},
    {"bytes", R"(graph @g(%u: u8[N,C], %v: u8[C], %b: f32[1,C], %r: f32[N,1]) -> f32[N,C] {
       %w = add %u, %v
       %x = cast %w {to=f32}
       %s = mul %x, %r
       %y = add %s, %b
       return %y })", 0},
    {"planes", R"(graph @g(%x: f16[N,3,C], %b: f16[C], %p: f16[3,C], %z: f16[C]) -> (f16[N,3,C], f16[N,3,C]) {
       %s = add %x, %b
       %t = mul %s, %p
       %y = max %x, %z
       return %t, %y })", 0},
};

std::vector<Tensor> inputs_of(const Subject& s, const Sizes& sizes) {
  std::vector<Tensor> out;
  for (const Port& port : s.graph.inputs()) {
    std::vector<int64_t> extents;
    for (const Dim& d : s.graph.node(port.node).type.shape) extents.push_back(value_of(d, sizes));
    out.push_back(drawn(s.graph.node(port.node).type.dtype, extents, 5 + out.size(), false));
  }
  return out;
}

double difference(const Tensor& got, const Tensor& want) {
  if (got.extents != want.extents || got.dtype != want.dtype) return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double b = element(want, i), d = std::abs(element(got, i) - b) / std::max(1.0, std::abs(b));
    if (!(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
  }
  return worst;
}

Schedule checked(const Case& c, const Sizes& sizes) {
  const Subject s = subject(c.text);
  const std::vector<Tensor> inputs = inputs_of(s, sizes);
  const auto want = evaluate(s.graph, inputs);
  EXPECT_TRUE(want);
  std::string where = c.name;
  for (const auto& [name, value] : sizes) where += " " + name + "=" + std::to_string(value);
  How few;
  few.most_blocks = 1, few.seed = 3;  // all tiles by one block
  How off;
  off.offset = 1;
  Schedule chosen;
  std::vector<Tensor> first;
  for (How how : {How{}, few, off}) {
    if (how.most_blocks) how.most_blocks = std::max<uint32_t>(1, chosen.cluster);
    const Ran ran = run(s, sizes, inputs, how);
    EXPECT_EQ(ran.trouble, "") << where << "\n" << print(ran.schedule);
    if (!ran.trouble.empty() || !want) return ran.schedule;
    for (size_t k = 0; k < want->size(); ++k) EXPECT_LE(difference(ran.outputs[k], (*want)[k]), c.tolerance) << where << " output " << k << "\n" << print(ran.schedule);
    if (first.empty()) first = ran.outputs, chosen = ran.schedule;
    for (size_t k = 0; k < first.size(); ++k) EXPECT_EQ(ran.outputs[k], first[k]) << where << " output " << k << "\n" << print(ran.schedule);
  }
  return chosen;
}

TEST(Tiles, RowsThatBeginAnywhere) {
  size_t tiled = 0;
  for (const Case& c : kRows)
    for (auto [rows, columns] : {std::pair{1, 17}, {77, 17}, {300, 3}, {21, 127}, {9, 257}, {3, 1061}, {77, 100}}) {
      const Schedule s = checked(c, {{"N", rows}, {"C", columns}});
      tiled += s.skeleton == Template::rows && s.slots > 0;
    }
  EXPECT_GT(tiled, 25u);
}

/// Is it a row in windows of a line of memory, a word a lane step?
bool by_words(const Case& c, const Schedule& s) {
  const Kernel written = subject(c.text).kernel, kernel = s.merged ? merge_sweeps(written) : written;
  return cuda::by_words(cuda::View(kernel, s.vector_axis), s);
}

// A word a lane step, in windows of a line of memory: rows of a warp and of a block; the first line and the last ones are not whole, and pairs begin and
// end inside a word. Longer rows take the ring: their first and last vectors are short, parameters beside them come out of two pieces.
TEST(Tiles, RowsByWords) {
  size_t held = 0, rings = 0, pieces = 0;
  for (const Case& c : kRows)
    for (auto [rows, columns] : {std::pair{37, 257}, {9, 1061}, {5, 2083}, {3, 4097}, {3, 16901}, {2, 35001}}) {
      const Schedule s = checked(c, {{"N", rows}, {"C", columns}});
      held += s.skeleton == Template::rows && by_words(c, s);
      const bool ring = s.skeleton == Template::ring && s.edges == Edges::window;
      rings += ring, pieces += ring && std::any_of(s.access.begin(), s.access.end(), [](const Access& a) { return a.staged && a.bytes == 16; });
    }
  EXPECT_GT(held, 10u);
  EXPECT_GE(rings, 6u);
  EXPECT_GE(pieces, 3u);
}

// Longer rows stay in registers, in aligned windows: their first and last vectors are short, parameters beside them come as two pieces.
TEST(Tiles, LongRowsInWindows) {
  size_t windows = 0, pieces = 0;
  for (const Case& c : kRows)
    for (auto [rows, columns] : {std::pair{3, 9001}, {2, 16381}}) {
      const Schedule s = checked(c, {{"N", rows}, {"C", columns}});
      windows += s.keep == Keep::registers && s.edges == Edges::window;
      for (const Access& a : s.access) pieces += s.edges == Edges::window && a.staged;
    }
  EXPECT_GT(windows, 6u);
  EXPECT_GE(pieces, 2u);
}

TEST(Tiles, ColumnsAndParametersThatBeginAnywhere) {
  for (const Case& c : kOthers)
    for (auto [rows, columns] : {std::pair{1, 17}, {700, 17}, {90, 33}, {65, 257}, {300, 1000}}) {
      const Schedule s = checked(c, {{"N", rows}, {"C", columns}});
      if (s.skeleton == Template::column && rows > 1 && columns % 16 == 1) {
        EXPECT_TRUE(s.access[0].staged) << print(s);
      }
    }
}

// A lane's vectors are rows apart and share what they fetched of the parameters: groups of rows that are whole and that are not, one that runs over
// the end of the whole, parameters out of words and element by element, a loop over the grid.
TEST(Tiles, ParametersBesideVectorsThatAreRowsApart) {
  size_t chosen = 0, apart = 0;
  for (const Case& c : kBeside)
    for (auto [rows, columns] : {std::pair{1024, 3}, {331, 17}, {140, 31}, {67, 129}, {64, 521}, {259, 523}}) {
      const Sizes sizes{{"N", rows}, {"C", columns}};
      chosen += checked(c, sizes).steps > 0;
      const Subject s = subject(c.text);
      const std::vector<Tensor> inputs = inputs_of(s, sizes);
      for (int in_flight : {2, 3})
        for (int offset : {0, 1}) {
          How how;
          how.offset = offset, how.most_blocks = in_flight == 3 ? 2 : 0;
          how.change = [&](Schedule& s) {
            if (s.edges == Edges::window) s.rows_in_flight = uint16_t(in_flight), s.steps = 16, s.wide_index = in_flight == 3, ++apart;
          };
          const Ran ran = run(s, sizes, inputs, how);
          EXPECT_EQ(ran.trouble, "") << c.name << "\n" << print(ran.schedule);
          EXPECT_EQ(ran.outputs, *evaluate(s.graph, inputs)) << c.name << "\n" << print(ran.schedule);
        }
    }
  EXPECT_GE(chosen, 5u);
  EXPECT_GE(apart, 80u);
}

/// The case with a constant for C: how many columns there are is then known when lanes are chosen.
struct Fixed {
  std::string text;
  Case at;
  Fixed(const Case& c, int64_t columns) : text(c.text), at(c) {
    for (size_t i; (i = text.find("C]")) != text.npos;) text.replace(i, 1, std::to_string(columns));
    at.text = text.c_str();
  }
};

TEST(Tiles, SumsOfBytes) {
  size_t tiled = 0, windows = 0, slid = 0;
  for (const Case& c : kBytes)
    for (auto [rows, columns] : {std::pair{1, 17}, {131, 16}, {131, 17}, {67, 33}, {45, 63}, {40, 65}, {33, 127}, {21, 255}, {9, 257}, {9, 1030}, {5, 4097}}) {
      const Schedule s = checked(Fixed(c, columns).at, {{"N", rows}});
      tiled += s.skeleton == Template::rows && s.slots > 0;
      windows += s.skeleton == Template::rows && s.edges == Edges::window && !s.slots;
      slid += s.skeleton == Template::column && s.edges == Edges::window && s.access[0].staged;
    }
  EXPECT_GE(tiled, 6u);
  EXPECT_GE(windows, 9u);
  EXPECT_GE(slid, 14u);
}

TEST(Tiles, ColumnsInWindows) {
  size_t slid = 0;
  for (const Case& c : kSliding)
    for (auto [rows, columns] : {std::pair{1, 17}, {3, 23}, {700, 17}, {90, 33}, {65, 257}, {41, 1030}, {20, 4099}, {8205, 17}, {9, 24577}}) {
      const Schedule s = checked(Fixed(c, columns).at, {{"N", rows}});
      slid += s.skeleton == Template::column && s.edges == Edges::window && s.access[0].staged;
    }
  EXPECT_GT(slid, 20u);
}

/// What lanes, rows and slots follow from, for every length: everything fits, and calls of other alignment share lanes and steps.
TEST(Tiles, FitAndDependOnTheRowAlone) {
  const cuda::Device device = cuda::device(90);
  for (const Case& c : kRows) {
    const Kernel kernel = subject(c.text).kernel;
    for (int64_t columns = 1; columns < 20000; columns += columns < 300 ? 2 : columns / 7 * 2) {
      const Sizes sizes{{"N", 1000}, {"C", columns}};
      Binding call = dense_binding(kernel, sizes);
      const Schedule s = cuda::schedule(kernel, facts(kernel, call), device);
      for (BoundOperand& o : call.operands) o.data = static_cast<char*>(o.data) + bytes(kernel.operands[size_t(&o - call.operands.data())].type);
      const Schedule off = cuda::schedule(kernel, facts(kernel, call), device);
      const std::string where = std::string(c.name) + " of " + std::to_string(columns) + ": " + print(s) + "\n" + print(off);
      EXPECT_EQ(s.lanes_per_row, off.lanes_per_row) << where;
      EXPECT_EQ(s.steps, off.steps) << where;
      EXPECT_EQ(s.lane[s.vector_axis], off.lane[off.vector_axis]) << where;
      if (s.skeleton != Template::rows || !s.slots) continue;
      EXPECT_GE(int64_t(s.steps) * s.lanes_per_row * s.lane[s.vector_axis], columns) << where;
      EXPECT_LE(cuda::launch(kernel, s, facts(kernel, dense_binding(kernel, sizes)), device).shared + 8 * 1024, device.shared_per_block) << where;
      EXPECT_EQ(off.slots, 0) << where;
    }
  }
}

}  // namespace
}  // namespace fusec
