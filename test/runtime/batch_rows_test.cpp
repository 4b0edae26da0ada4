// A row's result has the same bits however many rows come with it and wherever it lies among them.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <cstring>

namespace fusec {
namespace {

using Floats = std::vector<float>;

struct Case {
  const char* name;
  const char* text;   // the batch is N, the row C; one input, and one output of `out` floats a row (0: of C)
  int64_t out;
};
const Case kCases[] = {
    {"softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }", 0},
    {"layer_norm", R"(graph @g(%x: f32[N,C]) -> f32[N,C] {
       %m = mean %x {axes=[1], keep=true}
       %d = sub %x, %m
       %q = mul %d, %d
       %v = mean %q {axes=[1], keep=true}
       %r = rsqrt %v
       %y = mul %d, %r
       return %y })", 0},
    {"logsumexp", "graph @g(%x: f32[N,C]) -> f32[N] { %y = logsumexp %x {axes=[1]}\n return %y }", 1},
    {"sum", "graph @g(%x: f32[N,C]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }", 1},
    {"prod", "graph @g(%x: f32[N,C]) -> f32[N] { %y = prod %x {axes=[1]}\n return %y }", 1},
};

float drawn(uint64_t n) {
  n = (n + 1) * 0x9e3779b97f4a7c15u;
  n ^= n >> 31;
  return float(int64_t(n >> 40) - (1 << 23)) * 0x1p-22f;
}

TEST(BatchRows, SameBitsInAnyCompany) {
#if !FUSEC_HAS_CPU
  GTEST_SKIP() << "wants the CPU back end";
#endif
  for (const Case& c : kCases) {
    const Result<Graph> graph = parse(c.text);
    ASSERT_TRUE(graph) << graph.error().text();
    CompileOptions options;
    options.device = "cpu";
    options.cache = false;
    const Result<Program> program = compile(*graph, options);
    ASSERT_TRUE(program) << program.error().text();
    for (int64_t columns : {2, 3, 7, 15, 16, 17, 31, 32, 33, 49, 64, 100, 1000, 1001, 4096, 40000, 200000}) {
      const int64_t out = c.out ? c.out : columns;
      Floats alone;
      for (int64_t batch : {1, 2, 3, 8, 15, 16, 31, 32, 33, 64, 100, 300}) {
        if (batch * columns > 2000000) continue;
        for (int64_t place : {int64_t(0), batch / 2, batch - 1}) {
          Floats x(size_t(batch * columns)), y(size_t(batch * out));
          for (int64_t i = 0; i < batch; ++i)
            for (int64_t k = 0; k < columns; ++k) x[size_t(i * columns + k)] = drawn(uint64_t(i == place ? k : i * columns + k + 1000000));
          const int64_t in[] = {batch, columns}, whole[] = {batch, out}, row[] = {batch};
          const Status status = program->run({{x.data(), in}}, {{y.data(), c.out ? std::span<const int64_t>(row) : std::span<const int64_t>(whole)}});
          ASSERT_TRUE(status) << status.error().text();
          const Floats mine(y.begin() + place * out, y.begin() + (place + 1) * out);
          if (alone.empty()) alone = mine;
          ASSERT_EQ(std::memcmp(mine.data(), alone.data(), mine.size() * 4), 0) << c.name << " of " << columns << ": row " << place << " of " << batch;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fusec
