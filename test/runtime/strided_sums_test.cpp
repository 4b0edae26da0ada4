// A row's sum has the same bits however its elements lie in memory: dense, apart, padded, transposed, behind any alignment. The CPU takes
// another order where another axis, or none, is contiguous, and CUDA where rows of an odd length lie without a gap (docs/numerics.md): on the
// CPU only padding and alignment are compared, and odd rows on CUDA with those that lie with a gap as they do.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <cstring>

namespace fusec {
namespace {

struct Case {
  const char* name;
  const char* text;  // of one input f32[N,C] and one output of N rows
  bool whole;        // the output has C columns, not one
};
const Case kCases[] = {
    {"sum", "graph @g(%x: f32[N,C]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }", false},
    {"prod", "graph @g(%x: f32[N,C]) -> f32[N] { %y = prod %x {axes=[1]}\n return %y }", false},
    {"var", "graph @g(%x: f32[N,C]) -> f32[N] { %y = var %x {axes=[1]}\n return %y }", false},
    {"logsumexp", "graph @g(%x: f32[N,C]) -> f32[N] { %y = logsumexp %x {axes=[1]}\n return %y }", false},
    {"softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }", true},
    {"centre", R"(graph @g(%x: f32[N,C]) -> f32[N,C] {
       %m = mean %x {axes=[1], keep=true}
       %y = sub %x, %m
       return %y })", true},
    {"column_sum", "graph @g(%x: f32[C,N]) -> f32[N] { %y = sum %x {axes=[0]}\n return %y }", false},
};

struct Way {
  const char* name;
  int64_t row, element, offset;  // strides: row < 0 = columns * element + (-row - 1) of padding; element 0: columns first
  bool on_cpu;
};
const Way kWays[] = {{"offset", -1, 1, 1, true}, {"padding", -4, 1, 0, true}, {"padding to a vector", -17, 1, 0, true},
                     {"stride 2", -1, 2, 0, false}, {"stride 3 and padding", -6, 3, 0, false}, {"transposed", 1, 0, 0, false}};

float drawn(uint64_t n) {
  n = (n + 1) * 0x9e3779b97f4a7c15u;
  n ^= n >> 31;
  return float(int64_t(n >> 40) - (1 << 23)) * 0x1p-22f;
}

void check(const Case& c, const std::string& device, int64_t rows, int64_t columns) {
  const Result<Graph> graph = parse(c.text);
  ASSERT_TRUE(graph) << graph.error().text();
  const Result<Program> program = compile(*graph, {.device = device, .cache = false});
  ASSERT_TRUE(program) << program.error().text();
  const bool by_column = std::string(c.name) == "column_sum";
  const std::vector<int64_t> in = by_column ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  const std::vector<int64_t> out = c.whole ? std::vector<int64_t>{rows, columns} : std::vector<int64_t>{rows};
  const size_t results = size_t(rows * (c.whole ? columns : 1));
  std::vector<float> dense(size_t(rows * columns)), want(results), got(results);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = drawn(i);
  const Status first = program->run({{dense.data(), in}}, {{want.data(), out}});
  ASSERT_TRUE(first) << first.error().text();
  bool odd = device == "simt" && !by_column && columns % 4 != 0;  // `want` is of dense rows still
  for (const Way& way : kWays) {
    if (device == "cpu" && !way.on_cpu) continue;
    const int64_t element = way.element ? way.element : in[0], row = way.row < 0 ? in[1] * element - way.row - 1 : way.row;
    std::vector<float> memory(size_t(in[0] * row + in[1] * element + way.offset));
    for (int64_t i = 0; i < in[0]; ++i)
      for (int64_t k = 0; k < in[1]; ++k) memory[size_t(way.offset + i * row + k * element)] = dense[size_t(i * in[1] + k)];
    const std::vector<int64_t> strides{row, element};
    const Status s = program->run({{memory.data() + way.offset, in, strides}}, {{got.data(), out}});
    ASSERT_TRUE(s) << s.error().text();
    if (odd && way.row != -1) want = got, odd = false;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), results * sizeof(float)), 0)
        << c.name << " of " << rows << " x " << columns << ", " << way.name << " on " << device;
  }
}

class StridedSums : public testing::TestWithParam<Case> {};

TEST_P(StridedSums, HaveTheSameBits) {
  for (const char* device : {"cpu", "simt"}) {
    const Result<Graph> graph = parse(GetParam().text);
    if (!compile(*graph, {.device = device})) continue;
    for (auto [rows, columns] : std::initializer_list<std::pair<int64_t, int64_t>>{{3, 16}, {5, 7}, {40, 5}, {9, 100}, {70, 33}, {4, 1000}, {2, 9001}, {300, 8}}) {
      if (std::string(device) == "simt" && (rows * columns > 3000 || rows < 5)) continue;
      check(GetParam(), device, rows, columns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runtime, StridedSums, testing::ValuesIn(kCases), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusec
