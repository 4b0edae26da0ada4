// Kernels without reductions: chains, broadcasts, tails, strides, guards, at sizes around the vector's.

#include "test/codegen/cpu/run.h"

#include <cmath>
#include <numeric>

namespace fusec::cpu {
namespace {

const int64_t kSizes[] = {0, 1, 7, 15, 16, 17, 31, 33, 67, 1000, 4099};

std::vector<float> some_floats(size_t n, uint32_t seed = 1) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(static_cast<int32_t>(seed)) / (1 << 28);
  }
  return out;
}

TEST(CpuFlat, ChainAtEverySizeAndOffset) {
  Runner run(R"(graph @g(%x: f32[N], %y: f32[N]) -> f32[N] {
    %a = add %x, %y
    %b = relu %a
    %c = mul %b, %x
    return %c
  })");
  for (int64_t n : kSizes)
    for (size_t off : {0, 1}) {
      const auto x = some_floats(n + 1, 1), y = some_floats(n + 1, 2);
      std::vector<float> z(n + 3, -7);
      run({{(void*)(x.data() + off)}, {(void*)(y.data())}, {z.data() + 1}}, {{"N", n}});
      EXPECT_EQ(z[0], -7);
      EXPECT_EQ(z[n + 1], -7);
      for (int64_t i = 0; i < n; ++i) {
        const float a = x[i + off] + y[i];
        ASSERT_EQ(z[i + 1], (a < 0 ? 0.f : a) * x[i + off]) << i << " of " << n;
      }
    }
}

/// Graphs that move data, each against the reference at several sizes.
struct Movement {
  const char* text;
  std::vector<std::vector<int64_t>> sizes;  // of N, M
};
const Movement kMovements[] = {
    {"graph @t(%x: f32[N,M]) -> f32[M,N] {\n %y = transpose %x {perm=[1,0]}\n %z = neg %y\n return %z\n}",
     {{40, 70}, {1, 5}, {33, 16}, {0, 3}}},
    {"graph @ta(%a: f32[N,M], %b: f32[M,N]) -> f32[N,M] {\n %t = transpose %b {perm=[1,0]}\n %y = add %a, %t\n return "
     "%y\n}",
     {{200, 300}, {1, 1}, {17, 15}, {64, 64}}},
    {"graph @r(%x: f16[N,M]) -> f16[N,M] {\n %y = reverse %x {axes=[1]}\n %z = neg %y\n return %z\n}",
     {{3, 70}, {2, 1}, {5, 16}}},
    {"graph @p(%x: f32[N,M]) -> f32[N+3,M+5] {\n %y = pad %x {low=[1,2], high=[2,3], value=2.5}\n %z = neg %y\n return "
     "%z\n}",
     {{3, 70}, {2, 1}, {0, 7}, {4, 0}}},
    {"graph @s(%x: i16[N,M]) -> i16[N,10] {\n %y = slice %x {start=[0,1], stop=[N,21], step=[1,2]}\n %z = neg %y\n "
     "return %z\n}",
     {{3, 70}, {1, 21}}},
    {"graph @c(%x: u8[N,M], %y: u8[N,7]) -> u8[N,M+7] {\n %z = concat %x, %y {axis=1}\n %q = add %z, %z\n return %q\n}",
     {{3, 70}, {2, 0}, {1, 1}}},
    {"graph @b(%x: f32[N,1,M], %y: f32[7,1]) -> f32[N,7,M] {\n %q = add %x, %y\n return %q\n}",
     {{3, 70}, {2, 1}, {1, 17}, {0, 5}}},
    {"graph @n(%x: u8[N,M,3]) -> f32[N,3,M] {\n %t = transpose %x {perm=[0,2,1]}\n %f = cast %t {to=f32}\n %y = mul "
     "%f, 0.25\n return %y\n}",
     {{2, 70}, {1, 1}, {3, 33}}},
    {"graph @w(%x: f32[N,3,M], %s: f32[3,1]) -> u8[N,M,3] {\n %a = mul %x, %s\n %t = transpose %a {perm=[0,2,1]}\n %y "
     "= cast %t {to=u8}\n"
     " return %y\n}",
     {{2, 70}, {1, 32}, {3, 33}, {2, 1000}}},
    {"graph @d(%x: f64[N,M]) -> (f64[M,N], i64[M,N]) {\n %t = transpose %x {perm=[1,0]}\n %i = cast %t {to=i64}\n "
     "return %t, %i\n}",
     {{7, 70}, {40, 5}, {8, 33}, {20, 20}}},
    {"graph @u(%x: f32[6,5]) -> f32[10,3] {\n %t = transpose %x {perm=[1,0]}\n %y = reshape %t {shape=[10,3]}\n return "
     "%y\n}",
     {{0, 0}}},
    {"graph @i(%x: f32[N,M]) -> f32[N,M] {\n %i = iota {shape=[N,M], axis=1, to=f32}\n %y = add %x, %i\n return %y\n}",
     {{3, 70}, {2, 1}}},
    {"graph @e(%x: f32[N,M], %b: f32[M], %r: bf16[N,1]) -> f32[N,M] {\n %c = cast %r {to=f32}\n %a = add %x, %b\n %y = "
     "mul %a, %c\n return %y\n}",
     {{1000, 3}, {1000, 8}, {333, 7}, {77, 12}, {100, 16}, {5, 31}, {3, 2}, {40, 1}, {0, 3}}},
    {"graph @h(%x: u8[N,M,3], %m: f32[3]) -> f32[N,M,3] {\n %f = cast %x {to=f32}\n %y = sub %f, %m\n return %y\n}",
     {{2, 70}, {1, 1}, {3, 33}, {4, 1000}}},
    {"graph @j(%x: f32[N,M]) -> f32[N,M] {\n %i = iota {shape=[N,M], axis=1, to=f32}\n %k = iota {shape=[N,M], axis=0, "
     "to=f32}\n"
     " %y = add %x, %i\n %z = mul %y, %k\n return %z\n}",
     {{100, 5}, {1000, 6}}},
    {"graph @z(%x: f32[]) -> f32[] {\n %y = neg %x\n return %y\n}", {{0, 0}}},
    {"graph @k(%x: f32[N,M], %b: f32[M], %g: bool[N,M]) -> (f16[N,M], f32[N,M]) {\n %a = add %x, %b\n %r = relu %a\n "
     "%c = cast %r {to=f16}\n"
     " %s = select %g, %a, %x\n return %c, %s\n}",
     {{9, 4096}, {3, 17}, {2, 3}, {4000, 3}}},
};

TEST(CpuFlat, MovementAgreesWithTheReference) {
  for (const Movement& m : kMovements) {
    auto sizes = [](const std::vector<int64_t>& s) { return Sizes{{"N", s[0]}, {"M", s[1]}}; };
    const Runner runner(m.text);
    for (const auto& s : m.sizes) {
      std::vector<Tensor> inputs;
      for (const Port& port : runner.graph.inputs()) {
        std::vector<int64_t> extents;
        for (const Dim& d : runner.graph.node(port.node).type.shape) extents.push_back(*d.value(sizes(s)));
        inputs.push_back(sample(runner.graph.node(port.node).type.dtype, extents, 5 + inputs.size()));
      }
      const Result<std::vector<Tensor>> want = evaluate(runner.graph, inputs);
      ASSERT_TRUE(want) << want.error().text();
      const std::vector<Tensor> got = run(runner, inputs, sizes(s));
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(difference(got[i], (*want)[i]), "") << m.text << " N=" << s[0] << " M=" << s[1] << "\n"
                                                      << print(runner.kernel);
    }
  }
}

TEST(CpuFlat, StridedAndBackwardOperands) {
  BuildOptions options;
  options.inputs = {Layout{0, false}, Layout{0, false}};
  options.outputs = {Layout{0, false}};
  Runner run("graph @g(%x: f32[N,M], %y: f32[N,M]) -> f32[N,M] {\n %z = sub %x, %y\n return %z\n}", options);
  const int64_t n = 5, m = 37;
  const auto x = some_floats(n * m * 8, 1), y = some_floats(n * m * 8, 2);
  std::vector<float> z(n * m * 8, -7);
  // x every third element of padded rows, y backwards in both dims, z with a gap of one.
  run({{(void*)x.data(), {3 * m + 5, 3}}, {(void*)(y.data() + n * m - 1), {-m, -1}}, {z.data(), {2 * m + 1, 2}}},
      {{"N", n}, {"M", m}});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) {
      ASSERT_EQ(z[i * (2 * m + 1) + 2 * j], x[i * (3 * m + 5) + 3 * j] - y[n * m - 1 - i * m - j]);
      ASSERT_EQ(z[i * (2 * m + 1) + 2 * j + 1], -7);
    }
}

TEST(CpuFlat, LargeCallsGoAroundTheCacheFromAnyAlignment) {
  Runner run(
      "graph @g(%x: f32[N], %y: f32[N]) -> (f32[N], f16[N]) {\n %z = add %x, %y\n %h = cast %z {to=f16}\n return %z, "
      "%h\n}");
  const int64_t n = (1 << 22) + 13;
  const auto x = some_floats(n + 1, 1), y = some_floats(n + 1, 2);
  std::vector<float> z(n + 32, -7);
  std::vector<uint16_t> h(n + 32, 7);
  for (int off : {0, 1, 5}) {
    std::fill(z.begin(), z.end(), -7.f);
    run({{(void*)x.data()}, {(void*)(y.data() + 1)}, {z.data() + off}, {h.data() + off / 2}}, {{"N", n}});
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(z[i + off], x[i] + y[i + 1]) << i;
    EXPECT_EQ(z[n + off], -7);
    if (off) { EXPECT_EQ(z[off - 1], -7); }
  }
}

}  // namespace
}  // namespace fusec::cpu
