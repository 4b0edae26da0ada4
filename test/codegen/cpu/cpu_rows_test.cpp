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
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(y[i], std::max_element(&x[i * c], &x[i * c] + c) - &x[i * c]) << c;
    if (c > 10) { EXPECT_EQ(y[3], 4); }
  }
}

constexpr DType kTypes[] = {DType::boolean, DType::i8,  DType::i16, DType::i32,    DType::i64,
                            DType::u8,      DType::u16, DType::u32, DType::u64,    DType::f16,
                            DType::bf16,    DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2};

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
      for (auto [A, B, C] : {std::array<int64_t, 3>{3, 20, 70},
                             {1, 1, 1},
                             {2, 3, 17},
                             {5, 4, 64},
                             {1, 33, 129},
                             {0, 2, 3},
                             {3, 40, 5},
                             {1, 100, 8}}) {
        const std::vector<Tensor> inputs = {sample(type, {A, B, C}, 11), exact_sample(type, {A, B, C}, 12)};
        const Result<std::vector<Tensor>> want = evaluate(*graph, inputs);
        if (!want) continue;  // an index of nothing
        const std::vector<Tensor> got = run(runner, inputs, {{"A", A}, {"B", B}, {"C", C}});
        for (size_t i = 0; i < names.size(); ++i)
          EXPECT_EQ(difference(got[i], (*want)[i]), "")
              << names[i] << " " << name(type) << " over " << axes.size() << " axes from " << axes[0] << ", " << A
              << "," << B << "," << C;
      }
    }
}

/// Largest difference in units of the last place of the larger value, at least those of `least`; NaN and infinities
/// must match.
double distance(const Tensor& got, const Tensor& want, double least) {
  const double ulp = want.dtype == DType::f32 ? 0x1p-23 : want.dtype == DType::bf16 ? 0x1p-7 : 0x1p-10;
  double worst = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double a = element(got, i), b = element(want, i);
    if (a == b || (a != a && b != b)) continue;
    if (!(std::abs(a - b) < 1e30)) return INFINITY;
    worst = std::max(worst, std::abs(a - b) / (ulp * std::max(least, std::max(std::abs(a), std::abs(b)))));
  }
  return worst;
}

TEST(CpuRows, SoftmaxOnEveryKindOfRow) {
  for (const char* type : {"f32", "f16", "bf16"})
    for (const char* op : {"softmax", "log_softmax"}) {
      const std::string t = type;
      const Runner runner("graph @g(%x: " + t + "[R,C]) -> " + t + "[R,C] {\n %y = " + op +
                          " %x {axes=[1]}\n return %y\n}");
      for (int64_t c : {0, 1, 2, 7, 15, 16, 17, 64, 65, 100, 1000, 4099}) {
        const int64_t r = c == 7 ? 77 : 14;
        Tensor x{DType::f32, {r, c}, std::vector<std::byte>(static_cast<size_t>(r * c) * 4)};
        auto* p = reinterpret_cast<float*>(x.data.data());
        const auto noise = some_floats(static_cast<size_t>(r * c), 17);
        for (int64_t i = 0; i < r; ++i)
          for (int64_t j = 0; j < c; ++j) {
            float& v = p[i * c + j] = noise[i * c + j];
            if (i == 1) v = -INFINITY;
            if (i == 2) v = j == c - 1 ? 3 : -INFINITY;
            if (i == 3 && j == c / 2) v = INFINITY;
            if (i == 4 && j == c / 2) v = NAN;
            if (i == 5) v = static_cast<float>(j) * 9;      // the maximum grows all the way
            if (i == 6) v = static_cast<float>(c - j) * 9;  // and falls
            if (i == 7) v = j > 20 ? 200 : -200;
            if (i == 8) v = 1e4f * v;
            if (i == 9) v = j % 40 == 39 ? 3e4f : -3e4f;
            if (i == 10) v = 5;
            if (i == 11) v = j == 0 ? NAN : INFINITY;
            if (i == 12) v = static_cast<float>(j / 16) * 59;
          }
        const DType dtype = runner.graph.node(runner.graph.inputs()[0].node).type.dtype;
        Tensor in{dtype, {r, c}, std::vector<std::byte>(static_cast<size_t>(r * c) * bytes(dtype))};
        convert(DType::f32, x.data.data(), dtype, in.data.data(), static_cast<size_t>(r * c));
        const Result<std::vector<Tensor>> want = evaluate(runner.graph, std::vector<Tensor>{in});
        ASSERT_TRUE(want) << want.error().text();
        const std::vector<Tensor> got = run(runner, {in}, {{"R", r}, {"C", c}});
        const double least = std::string(op) == "softmax" ? 1e-3 : 1;
        EXPECT_LT(distance(got[0], (*want)[0], least), dtype == DType::f32 ? 40 : 1.01)
            << type << " " << op << " " << c;
      }
    }
}

TEST(CpuRows, NothingToReduce) {
  const Runner runner(
      "graph @e(%x: f32[2,0]) -> (f32[2], f32[2]) {\n %m = mean %x {axes=[1]}\n %v = var %x {axes=[1]}\n return %m, "
      "%v\n}");
  const std::vector<Tensor> got = run(runner, {Tensor{DType::f32, {2, 0}, {}}});
  for (const Tensor& t : got)
    for (int64_t i = 0; i < 2; ++i) EXPECT_TRUE(std::isnan(element(t, i)));
}

TEST(CpuRows, NormsAgreeWithTheReference) {
  const char* texts[] = {
      "graph @l(%x: f32[R,C], %s: f32[C], %b: f32[C]) -> f32[R,C] {\n %y = layer_norm %x, %s, %b {axes=[1], "
      "eps=1e-05}\n return %y\n}",
      "graph @l(%x: bf16[R,C], %s: bf16[C], %b: bf16[C]) -> bf16[R,C] {\n %y = layer_norm %x, %s, %b {axes=[1], "
      "eps=1e-05}\n return %y\n}",
      "graph @m(%x: f32[R,C], %s: f32[C]) -> f32[R,C] {\n %y = rms_norm %x, %s {axes=[1], eps=1e-05}\n return %y\n}",
      "graph @c(%x: f32[R,C]) -> f32[R,C] {\n %y = softmax %x {axes=[0]}\n return %y\n}",
      "graph @e(%x: f32[R,C]) -> f32[R] {\n %y = logsumexp %x {axes=[1]}\n return %y\n}",
      "graph @v(%x: f32[R,C]) -> f32[C] {\n %m = var %x {axes=[0], ddof=1}\n return %m\n}",
      "graph @g(%x: f32[2,R,C], %s: f32[R], %b: f32[R]) -> f32[2,R,C] {\n %y = group_norm %x, %s, %b {groups=1, "
      "eps=1e-05}\n return %y\n}",
      "graph @q(%x: f32[R,C]) -> (i8[R,C], f32[R,1]) {\n %a = abs %x\n %m = reduce_max %a {axes=[1], keep=true}\n %s = "
      "div %m, 127.0\n"
      " %q = div %x, %s\n %r = round_even %q\n %i = cast %r {to=i8}\n return %i, %s\n}"};
  for (const char* text : texts) {
    const Runner runner(text);
    for (auto [r, c] :
         {std::pair<int64_t, int64_t>{5, 4096}, {3, 1}, {70, 33}, {1, 100000}, {2, 17}, {300, 8}, {77, 3}}) {
      std::vector<Tensor> inputs;
      const Sizes sizes{{"R", r}, {"C", c}};
      for (const Port& port : runner.graph.inputs()) {
        const Type& type = runner.graph.node(port.node).type;
        std::vector<int64_t> extents;
        for (const Dim& d : type.shape) extents.push_back(*d.value(sizes));
        Tensor x{DType::f32, extents, {}}, in{type.dtype, extents, {}};
        const auto n = static_cast<size_t>(x.elements());
        const auto noise = some_floats(n, 23 + static_cast<uint32_t>(inputs.size()));
        in.data.resize(n * bytes(type.dtype));
        convert(DType::f32, reinterpret_cast<const std::byte*>(noise.data()), type.dtype, in.data.data(), n);
        inputs.push_back(std::move(in));
      }
      const Result<std::vector<Tensor>> want = evaluate(runner.graph, inputs);
      ASSERT_TRUE(want) << want.error().text();
      std::vector<Tensor> first;
      for (int threads : {1, 2, 5}) {
        set_threads(threads);
        const std::vector<Tensor> got = run(runner, inputs, sizes);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_LT(distance(got[i], (*want)[i], 1), got[i].dtype == DType::f32 ? 40 : 1.01)
              << text << " " << r << "x" << c;
        if (threads == 1) first = got;
        EXPECT_EQ(got, first) << text << " " << r << "x" << c << ": the bits depend on the number of threads";
      }
    }
  }
  set_threads(0);
}

}  // namespace
}  // namespace fusec::cpu
