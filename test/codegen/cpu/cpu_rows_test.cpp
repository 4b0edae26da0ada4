// Reductions: rows, columns, several axes, full ones in parts; every reducer, tails, empty rows.

#include "test/codegen/cpu/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace fusec::cpu {
namespace {

std::vector<float> some_floats(size_t n, uint32_t seed = 1) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(static_cast<int32_t>(seed)) / (1 << 28);
  }
  return out;
}

TEST(CpuRows, LayerNorm) {
  Runner run(R"(graph @g(%x: f32[R,C], %s: f32[C], %b: f32[C]) -> f32[R,C] {
    %m = mean %x {axes=[1], keep=true}
    %d = sub %x, %m
    %q = mul %d, %d
    %v = mean %q {axes=[1], keep=true}
    %e = add %v, 1e-05
    %r = sqrt %e
    %n = div %d, %r
    %t = mul %n, %s
    %y = add %t, %b
    return %y
  })");
  EXPECT_EQ(run.dense({{"R", 64}, {"C", 1000}}).plan.skeleton, Template::cpu_rows);
  for (int64_t c : {1, 7, 16, 17, 63, 64, 65, 1000, 4099}) {
    const int64_t r = 5;
    const auto x = some_floats(r * c, 3), s = some_floats(c, 4), b = some_floats(c, 5);
    std::vector<float> y(r * c, -7);
    run({{(void*)x.data()}, {(void*)s.data()}, {(void*)b.data()}, {y.data()}}, {{"R", r}, {"C", c}});
    for (int64_t i = 0; i < r; ++i) {
      double mean = 0, var = 0;
      for (int64_t j = 0; j < c; ++j) mean += x[i * c + j];
      mean /= c;
      for (int64_t j = 0; j < c; ++j) var += (x[i * c + j] - mean) * (x[i * c + j] - mean);
      const double scale = 1 / std::sqrt(var / c + 1e-5);
      for (int64_t j = 0; j < c; ++j)
        ASSERT_NEAR(y[i * c + j], (x[i * c + j] - mean) * scale * s[j] + b[j], 2e-3 * (c == 1 ? 100 : 1)) << c;
    }
  }
}

TEST(CpuRows, ColumnSum) {
  Runner run("graph @g(%x: f32[R,C]) -> f32[C] {\n %y = sum %x {axes=[0]}\n return %y\n}");
  EXPECT_EQ(run.dense({{"R", 100}, {"C", 1000}}).plan.skeleton, Template::cpu_column);
  for (int64_t c : {1, 7, 16, 17, 63, 64, 65, 1000})
    for (int64_t r : {0, 1, 3, 100}) {
      const auto x = some_floats(r * c, 3);
      std::vector<float> y(c + 1, -7);
      run({{(void*)x.data()}, {y.data()}}, {{"R", r}, {"C", c}});
      for (int64_t j = 0; j < c; ++j) {
        float sum = 0;
        for (int64_t i = 0; i < r; ++i) sum += x[i * c + j];
        // Few columns run along the rows, in another order.
        if (run.dense({{"R", r}, {"C", c}}).plan.skeleton != Template::cpu_column) ASSERT_NEAR(y[j], sum, 1e-3);
        else ASSERT_EQ(y[j], sum) << r << " " << c << " " << j;
      }
      EXPECT_EQ(y[c], -7);
    }
}

TEST(CpuRows, FullSumInParts) {
  Runner run("graph @g(%x: f32[N]) -> f32[] {\n %y = sum %x {axes=[0]}\n return %y\n}");
  EXPECT_EQ(run.dense({{"N", 1 << 20}}).plan.finish, Finish::next_kernel);
  for (int64_t n : {0, 1, 15, 17, 1000, 100000, 1 << 20}) {
    const auto x = some_floats(n, 3);
    double sum = 0;
    for (float f : x) sum += f;
    float first = 0;
    for (int threads : {1, 2, 5}) {
      set_threads(threads);
      float y = -7;
      run({{(void*)x.data()}, {&y}}, {{"N", n}});
      EXPECT_NEAR(y, sum, 0.02 + std::abs(sum) * 1e-5) << n;
      if (threads == 1) first = y;
      EXPECT_EQ(y, first);
    }
  }
  set_threads(0);
}

TEST(CpuRows, ArgmaxTakesTheFirst) {
  Runner run("graph @g(%x: f32[R,C]) -> i64[R] {\n %y = argmax %x {axes=[1]}\n return %y\n}");
  for (int64_t c : {1, 5, 16, 17, 100, 1000}) {
    auto x = some_floats(4 * c, 9);
    for (float& f : x) f = std::round(f);
    if (c > 10) x[3 * c + 9] = x[3 * c + 4] = NAN;
    std::vector<int64_t> y(4, -7);
    run({{x.data()}, {y.data()}}, {{"R", 4}, {"C", c}});
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(y[i], std::max_element(&x[i * c], &x[i * c] + c) - &x[i * c]) << c;
    if (c > 10) { EXPECT_EQ(y[3], 4); }
  }
}

constexpr DType kTypes[] = {DType::boolean, DType::i8,  DType::i16,  DType::i32, DType::i64, DType::u8,     DType::u16,   DType::u32,
                            DType::u64,     DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2};

/// Values whose sums and products are exact in any order.
Tensor exact_sample(DType type, std::vector<int64_t> extents, uint64_t seed) {
  if (!is_float(type)) return sample(type, std::move(extents), seed);
  Tensor from{DType::f64, extents, {}}, out{type, extents, {}};
  const auto n = static_cast<size_t>(from.elements());
  from.data.resize(n * 8);
  out.data.resize(n * bytes(type));
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const double value = static_cast<double>(seed >> 40 & 3) - 1;
    std::memcpy(from.data.data() + i * 8, &value, 8);
  }
  convert(DType::f64, from.data.data(), type, out.data.data(), n);
  return out;
}

TEST(CpuRows, EveryReducerOnEveryTypeAndAxisSet) {
  const Op ops[] = {Op::sum, Op::prod, Op::reduce_min, Op::reduce_max, Op::any, Op::all, Op::argmax, Op::argmin};
  const std::vector<int64_t> sets[] = {{2}, {1}, {0}, {1, 2}, {0, 2}, {0, 1, 2}};
  for (DType type : kTypes)
    for (const auto& axes : sets) {
      GraphBuilder b("reduce");
      const Shape shape{Dim::symbol("A"), Dim::symbol("B"), Dim::symbol("C")};
      const Value x = b.input("x", {type, shape}), s = b.input("s", {type, shape});
      std::vector<Value> outputs;
      std::vector<std::string> names;
      for (Op op : ops) {
        const bool boolean = op == Op::any || op == Op::all;
        if (boolean != (type == DType::boolean) && (boolean || op == Op::sum || op == Op::prod)) continue;
        const bool sums = op == Op::sum || op == Op::prod;
        for (bool last : {false, true}) {
          const bool index = op == Op::argmax || op == Op::argmin;
          if (last && !index) continue;
          Attrs attrs;
          attrs.axes = axes;
          attrs.last = last;
          attrs.to = last ? DType::i32 : DType::i64;
          outputs.push_back(b.add(op, {sums ? s : x}, attrs));
          names.push_back(std::string(name(op)));
        }
      }
      Result<Graph> graph = std::move(b).finish(outputs);
      ASSERT_TRUE(graph) << graph.error().text();
      const Runner runner(print(*graph));
      for (auto [A, B, C] : {std::array<int64_t, 3>{3, 20, 70}, {1, 1, 1}, {2, 3, 17}, {5, 4, 64}, {1, 33, 129}, {0, 2, 3}}) {
        const std::vector<Tensor> inputs = {sample(type, {A, B, C}, 11), exact_sample(type, {A, B, C}, 12)};
        const Result<std::vector<Tensor>> want = evaluate(*graph, inputs);
        if (!want) continue;  // an index of nothing
        const std::vector<Tensor> got = run(runner, inputs, {{"A", A}, {"B", B}, {"C", C}});
        for (size_t i = 0; i < names.size(); ++i)
          EXPECT_EQ(difference(got[i], (*want)[i]), "")
              << names[i] << " " << name(type) << " over " << axes.size() << " axes from " << axes[0] << ", " << A << "," << B << "," << C;
      }
    }
}

}  // namespace
}  // namespace fusec::cpu
