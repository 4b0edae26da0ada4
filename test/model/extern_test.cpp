// Whole models run: extern operators against loops written out here and against ONNX's own node tests (Debian:
// libonnx-testdata), and a network of both kinds of steps against itself on another device.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "lib/import/onnx_tensor.h"
#include "runtime/extern_model.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;
namespace fs = std::filesystem;

#define NEEDS_BLAS() \
  if (Status s = product_library(); !s) GTEST_SKIP() << s.error().message

Tensor tensor(std::vector<int64_t> extents, const std::vector<float>& v) {
  Tensor out{DType::f32, std::move(extents), std::vector<std::byte>(v.size() * 4)};
  if (!v.empty()) std::memcpy(out.data.data(), v.data(), out.data.size());
  return out;
}

std::vector<float> floats_of(const Tensor& t) {
  std::vector<float> out(t.data.size() / 4);
  if (!out.empty()) std::memcpy(out.data(), t.data.data(), t.data.size());
  return out;
}

std::vector<float> numbers(size_t n, uint32_t seed = 1) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return out;
}

Result<std::vector<Tensor>> run(const std::string& bytes, std::span<const Tensor> inputs,
                                const std::string& device = "reference", const ImportOptions& options = {}) {
  Result<WholeModel> model = read_model_bytes(bytes, "", options);
  if (!model) return model.error();
  Result<ModelProgram> program =
      ModelProgram::make(std::make_shared<const WholeModel>(std::move(*model)), {.device = device, .cache = false});
  if (!program) return program.error();
  return program->run(inputs);
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double most = 1e-6;
  for (float w : want)
    if (std::isfinite(w)) most = std::max(most, std::abs(static_cast<double>(w)));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(got[i] == want[i] || std::abs(got[i] - want[i]) <= tolerance * most)
        << what << " element " << i << ": " << got[i] << ", not " << want[i];
}

/// One node over inputs x, w, b.
Model one_node(const Bytes& node, const std::vector<std::vector<Extent>>& shapes) {
  Model m{.opset = 17};
  const char* const names[] = {"x", "w", "b"};
  for (size_t k = 0; k < shapes.size(); ++k) m.inputs.push_back(value(names[k], kFloat, shapes[k]));
  m.outputs = {value("y", kFloat, {})};
  m.nodes = {node};
  return m;
}

TEST(Extern, ConvolutionIsItsDefinition) {
  NEEDS_BLAS();
  struct Case {
    int64_t groups, channels, filters, kernel_h, kernel_w, stride, dilation, pad;
  };
  for (const Case& c : {Case{1, 3, 4, 3, 3, 1, 1, 1}, Case{1, 3, 4, 3, 2, 2, 1, 0}, Case{2, 4, 6, 3, 3, 1, 2, 2},
                        Case{4, 4, 4, 3, 3, 2, 1, 1}, Case{4, 4, 8, 5, 1, 1, 1, 2}, Case{1, 5, 7, 1, 1, 1, 1, 0},
                        Case{1, 2, 3, 1, 1, 3, 1, 0}, Case{1, 1, 2, 7, 7, 1, 1, 3}}) {
    const int64_t h = 9, w = 8, batch = 2, per_group = c.channels / c.groups;
    const int64_t out_h = (h + 2 * c.pad - (c.kernel_h - 1) * c.dilation - 1) / c.stride + 1,
                  out_w = (w + 2 * c.pad - (c.kernel_w - 1) * c.dilation - 1) / c.stride + 1;
    const std::vector<float> x = numbers(batch * c.channels * h * w),
                             f = numbers(c.filters * per_group * c.kernel_h * c.kernel_w, 2), b = numbers(c.filters, 3);
    std::vector<float> want;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t m = 0; m < c.filters; ++m)
        for (int64_t i = 0; i < out_h; ++i)
          for (int64_t j = 0; j < out_w; ++j) {
            double sum = b[m];
            for (int64_t k = 0; k < per_group; ++k)
              for (int64_t u = 0; u < c.kernel_h; ++u)
                for (int64_t v = 0; v < c.kernel_w; ++v) {
                  const int64_t y = i * c.stride - c.pad + u * c.dilation, z = j * c.stride - c.pad + v * c.dilation;
                  if (y < 0 || y >= h || z < 0 || z >= w) continue;
                  const int64_t channel = m / (c.filters / c.groups) * per_group + k;
                  sum += double(x[((n * c.channels + channel) * h + y) * w + z]) *
                         f[((m * per_group + k) * c.kernel_h + u) * c.kernel_w + v];
                }
            want.push_back(static_cast<float>(sum));
          }
    const Model m = one_node(
        node("Conv", {"x", "w", "b"}, {"y"},
             {integer("group", c.groups), integers("strides", {c.stride, c.stride}),
              integers("dilations", {c.dilation, c.dilation}), integers("pads", {c.pad, c.pad, c.pad, c.pad})}),
        {{batch, c.channels, h, w}, {c.filters, per_group, c.kernel_h, c.kernel_w}, {c.filters}});
    const Result<std::vector<Tensor>> got =
        run(m.bytes(), std::vector{tensor({batch, c.channels, h, w}, x),
                                   tensor({c.filters, per_group, c.kernel_h, c.kernel_w}, f), tensor({c.filters}, b)});
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ((*got)[0].extents, (std::vector<int64_t>{batch, c.filters, out_h, out_w}));
    expect_near(floats_of((*got)[0]), want, 1e-5,
                "groups " + std::to_string(c.groups) + " kernel " + std::to_string(c.kernel_h) + " stride " +
                    std::to_string(c.stride));
  }
}

TEST(Extern, ProductsBroadcastTheirBatches) {
  NEEDS_BLAS();
  const std::vector<float> a = numbers(2 * 3 * 4 * 5), b = numbers(3 * 5 * 6, 2);
  std::vector<float> want;
  for (int64_t batch = 0; batch < 6; ++batch)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 6; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 5; ++k) sum += double(a[(batch * 4 + i) * 5 + k]) * b[((batch % 3) * 5 + k) * 6 + j];
        want.push_back(static_cast<float>(sum));
      }
  const Result<std::vector<Tensor>> got =
      run(one_node(node("MatMul", {"x", "w"}, {"y"}), {{2, 3, 4, 5}, {3, 5, 6}}).bytes(),
          std::vector{tensor({2, 3, 4, 5}, a), tensor({3, 5, 6}, b)});
  ASSERT_TRUE(got) << got.error().text();
  expect_near(floats_of((*got)[0]), want, 1e-5, "MatMul");
}

/// A transformer-like block behind a convolution: norms, activations, reshapes and transposes around four boundaries.
Model network() {
  Model m{.opset = 20};
  m.inputs = {value("image", kFloat, {"N", 3, 8, 8})};
  m.outputs = {value("p", kFloat, {})};
  m.initializers = {floats("f", {16, 3, 4, 4}, numbers(768)),
                    floats("fb", {16}, numbers(16, 2)),
                    longs("tokens", {0, 16, 4}),
                    floats("g", {16}, numbers(16, 3)),
                    floats("s", {16}, numbers(16, 4)),
                    floats("w", {16, 16}, numbers(256, 5)),
                    floats("v", {16, 10}, numbers(160, 6)),
                    floats("vb", {10}, numbers(10, 7)),
                    longs("one", {1})};
  m.nodes = {node("Conv", {"image", "f", "fb"}, {"c"}, {integers("strides", {4, 4})}),
             node("Reshape", {"c", "tokens"}, {"r"}),
             node("Transpose", {"r"}, {"t"}, {integers("perm", {0, 2, 1})}),
             node("LayerNormalization", {"t", "g", "s"}, {"n"}),
             node("MatMul", {"n", "w"}, {"h"}),
             node("Gelu", {"h"}, {"a"}),
             node("Add", {"a", "t"}, {"u"}),
             node("ReduceMean", {"u", "one"}, {"q"}, {integer("keepdims", 0)}),
             node("Gemm", {"q", "v", "vb"}, {"o"}),
             node("Softmax", {"o"}, {"p"})};
  return m;
}

TEST(Extern, ANetworkRunsTheSameOnEveryDevice) {
  NEEDS_BLAS();
  const std::vector<Tensor> in{tensor({2, 3, 8, 8}, numbers(384))};
  const ImportOptions options{.sizes = {{"N", 2}}};
  const Result<std::vector<Tensor>> want = run(network().bytes(), in, "reference", options);
  ASSERT_TRUE(want) << want.error().text();
  const std::vector<float> p = floats_of((*want)[0]);
  ASSERT_EQ(p.size(), 20u);
  for (int row = 0; row < 2; ++row) {
    double sum = 0;
    for (int k = 0; k < 10; ++k) sum += p[row * 10 + k];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  for (const std::string& device : devices()) {
    const Result<std::vector<Tensor>> got = run(network().bytes(), in, device, options);
    ASSERT_TRUE(got) << device << ": " << got.error().text();
    expect_near(floats_of((*got)[0]), p, 1e-5, device);
  }
}

TEST(Extern, RowsOfALongTable) {
  NEEDS_BLAS();
  const std::vector<float> table = numbers(400 * 3);
  std::vector<Tensor> inputs{tensor({400, 3}, table), Tensor{DType::i64, {4}, std::vector<std::byte>(32)}};
  const auto gather = [&](std::vector<int64_t> indices) {
    std::memcpy(inputs[1].data.data(), indices.data(), 32);
    Model m{.opset = 13};
    m.inputs = {value("t", kFloat, {400, 3}), value("i", kInt64, {4})};
    m.outputs = {value("y", kFloat, {})};
    m.nodes = {node("Gather", {"t", "i"}, {"y"})};
    return run(m.bytes(), inputs);
  };
  const Result<std::vector<Tensor>> got = gather({0, 399, -1, 7});
  ASSERT_TRUE(got) << got.error().text();
  std::vector<float> want;
  for (int64_t row : {0, 399, 399, 7}) want.insert(want.end(), table.begin() + row * 3, table.begin() + row * 3 + 3);
  EXPECT_EQ(floats_of((*got)[0]), want);
}

TEST(Extern, AViewOfABoundaryIsAnOutput) {
  NEEDS_BLAS();
  Model m = one_node(node("MatMul", {"x", "w"}, {"h"}), {{2, 3}, {3, 4}});
  m.initializers = {longs("to", {8})};
  m.nodes.push_back(node("Reshape", {"h", "to"}, {"y"}));
  const Result<std::vector<Tensor>> got =
      run(m.bytes(),
          std::vector{tensor({2, 3}, {1, 0, 0, 0, 1, 0}), tensor({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(floats_of((*got)[0]), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Extern, NamesWhatCannotBeRun) {
  Model m = one_node(node("NonZero", {"x"}, {"n"}), {{2, 3}});
  m.nodes.push_back(node("Cast", {"n"}, {"y"}, {integer("to", kFloat)}));
  const Result<std::vector<Tensor>> got = run(m.bytes(), {});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().text().find("NonZero: 1 node"), std::string::npos) << got.error().text();
  EXPECT_EQ(got.error().text().find("Cast"), std::string::npos) << got.error().text();
  Model narrow = one_node(node("MatMul", {"x", "x"}, {"y"}), {{2, 3}});
  const Result<std::vector<Tensor>> unfit = run(narrow.bytes(), {});
  ASSERT_FALSE(unfit);
  EXPECT_NE(unfit.error().text().find("node 0 (MatMul), which gives \"y\": no shape follows from f32[2,3], f32[2,3]"), std::string::npos)
      << unfit.error().text();
  const Result<std::vector<Tensor>> open = run(network().bytes(), {});
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().text().find("N"), std::string::npos);
}

/// Integers, u8 or i8.
Tensor integers_of(DType type, std::vector<int64_t> extents, const std::vector<int>& v) {
  Tensor out{type, std::move(extents), {}};
  for (int x : v) out.data.own().push_back(static_cast<std::byte>(x));
  return out;
}
std::vector<int> small_numbers(size_t n, int low, int high, uint32_t seed) {
  std::vector<int> out(n);
  for (int& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = low + static_cast<int>((seed >> 8) % uint32_t(high - low + 1));
  }
  return out;
}

/// Weights are widened at the first call and kept; operands that come with the call are not.
TEST(Extern, KeptWeightsAreThoseOfTheFile) {
  NEEDS_BLAS();
  Model model{.opset = 17};
  model.inputs = {value("a", kUint8, {2, 3}), value("z", kUint8, {})};
  model.outputs = {value("y", kInt32, {}), value("v", kInt32, {})};
  model.initializers = {raw("w", kInt8, {3, 2}, std::string("\1\2\3\4\5\6")), raw("k", kInt8, {}, std::string("\1"))};
  model.nodes = {node("MatMulInteger", {"a", "w", "z", "k"}, {"y"}), node("MatMulInteger", {"w", "a", "k", "z"}, {"v"})};
  Result<WholeModel> whole = read_model_bytes(model.bytes());
  ASSERT_TRUE(whole) << whole.error().text();
  Result<ModelProgram> program = ModelProgram::make(std::make_shared<const WholeModel>(std::move(*whole)), {.device = "reference"});
  ASSERT_TRUE(program) << program.error().text();
  for (int round = 0; round < 3; ++round) {
    const std::vector<int> a = {round, 1, 2, 3, 4, 250};
    const Result<std::vector<Tensor>> got = program->run(std::vector{integers_of(DType::u8, {2, 3}, a), integers_of(DType::u8, {}, {round})});
    ASSERT_TRUE(got) << got.error().text();
    const auto* y = reinterpret_cast<const int32_t*>(std::as_const((*got)[0].data).data());
    const auto* v = reinterpret_cast<const int32_t*>(std::as_const((*got)[1].data).data());
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        int want = 0;
        for (int x = 0; x < 3; ++x) want += (a[size_t(i * 3 + x)] - round) * (2 * x + j);
        EXPECT_EQ(y[2 * i + j], want) << round;
      }
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        int want = 0;
        for (int x = 0; x < 2; ++x) want += (2 * i + x) * (a[size_t(x * 3 + j)] - round);
        EXPECT_EQ(v[3 * i + j], want) << round;
      }
  }
}

/// Maxima and means by their definition, over padding, steps and dilations; a NaN is the maximum of every window that has it.
TEST(Extern, PoolingIsItsDefinition) {
  struct Case {
    int64_t kernel, stride, dilation, low, high;
  };
  for (const Case& c : {Case{3, 1, 1, 1, 1}, Case{2, 2, 1, 0, 0}, Case{3, 2, 1, 1, 0}, Case{3, 3, 2, 2, 1}, Case{1, 2, 1, 0, 0}, Case{5, 1, 1, 2, 2}})
    for (const bool with_padding : {false, true}) {
      const int64_t h = 9, w = 13, out_h = (h + c.low + c.high - (c.kernel - 1) * c.dilation - 1) / c.stride + 1, out_w = (w + c.low + c.high - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
      std::vector<float> x = numbers(2 * h * w);
      x[17] = NAN;
      std::vector<float> most, mean;
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t i = 0; i < out_h; ++i)
          for (int64_t j = 0; j < out_w; ++j) {
            float top = -INFINITY;
            double sum = 0;
            int count = 0;
            for (int64_t u = 0; u < c.kernel; ++u)
              for (int64_t v = 0; v < c.kernel; ++v) {
                const int64_t a = i * c.stride - c.low + u * c.dilation, b = j * c.stride - c.low + v * c.dilation;
                const bool inside = a >= 0 && a < h && b >= 0 && b < w;
                count += with_padding || inside;
                if (!inside) continue;
                const float value = x[size_t((n * h + a) * w + b)];
                sum += value;
                top = std::isnan(top) || std::isnan(value) ? NAN : std::max(top, value);
              }
            most.push_back(top), mean.push_back(static_cast<float>(sum / count));
          }
      for (const char* op : {"MaxPool", "AveragePool"}) {
        const bool average = op[0] == 'A';
        std::vector<Bytes> attributes = {integers("kernel_shape", {c.kernel, c.kernel}), integers("strides", {c.stride, c.stride}), integers("dilations", {c.dilation, c.dilation}),
                                         integers("pads", {c.low, c.low, c.high, c.high})};
        if (average) attributes.push_back(integer("count_include_pad", with_padding));
        Model m = one_node(node(op, {"x"}, {"y"}, attributes), {{1, 2, h, w}});
        m.opset = 19;
        const Result<std::vector<Tensor>> got = run(m.bytes(), std::vector{tensor({1, 2, h, w}, x)});
        ASSERT_TRUE(got) << got.error().text();
        const std::vector<float> y = floats_of((*got)[0]), &want = average ? mean : most;
        ASSERT_EQ(y.size(), want.size());
        for (size_t k = 0; k < y.size(); ++k) ASSERT_TRUE(std::isnan(want[k]) ? std::isnan(y[k]) : std::abs(y[k] - want[k]) < 1e-5) << op << " " << k << ": " << y[k] << ", not " << want[k];
      }
    }
}

/// Extents that a file only states may be 0.
TEST(Extern, WindowsOverNothing) {
  NEEDS_BLAS();
  for (const char* op : {"MaxPool", "AveragePool", "Conv"})
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{4, 0}, {0, 4}, {0, 0}}) {
      std::vector<Bytes> attributes = {integers("pads", {1, 1, 1, 1})};
      if (*op != 'C') attributes.push_back(integers("kernel_shape", {2, 2}));
      const std::string bytes = Model{.opset = 17, .nodes = {node(op, {"x", "w"}, {"y"}, attributes)}}.bytes();
      const Result<onnx::ModelMessage> message = onnx::read_model(bytes);
      ASSERT_TRUE(message);
      std::vector<float> x(static_cast<size_t>(in * 3)), w(4, 1), y(static_cast<size_t>(out * 4), 7);
      ExternCall call{message->nodes[0], 17, {ExternValue{DType::f32, {1, 1, in, 3}, x.data()}}, {ExternValue{DType::f32, {1, 1, out, 4}, y.data()}}};
      if (*op == 'C') call.inputs.push_back(ExternValue{DType::f32, {1, 1, 2, 2}, w.data()});
      (void)run_extern(call);  // an error or none: what counts is that it ends
    }
}

/// Sums beyond 2^24, where a product in f32 would lose bits.
TEST(Extern, QuantizedProductsHaveEveryBit) {
  NEEDS_BLAS();
  const int64_t m = 3, n = 40, k = 5000;
  const std::vector<int> a = small_numbers(size_t(m * k), 200, 255, 1), b = small_numbers(size_t(k * n), -128, -100, 2), zeros = small_numbers(size_t(n), 100, 127, 3);
  Model model{.opset = 17};
  model.inputs = {value("a", kUint8, {m, k}), value("b", kInt8, {k, n}), value("za", kUint8, {}), value("zb", kInt8, {n})};
  model.outputs = {value("y", kInt32, {})};
  model.nodes = {node("MatMulInteger", {"a", "b", "za", "zb"}, {"y"})};
  const Result<std::vector<Tensor>> got =
      run(model.bytes(), std::vector{integers_of(DType::u8, {m, k}, a), integers_of(DType::i8, {k, n}, b), integers_of(DType::u8, {}, {3}), integers_of(DType::i8, {n}, zeros)});
  ASSERT_TRUE(got) << got.error().text();
  const auto* sums = reinterpret_cast<const int32_t*>(std::as_const((*got)[0].data).data());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t want = 0;
      for (int64_t x = 0; x < k; ++x) want += int64_t{a[size_t(i * k + x)] - 3} * (b[size_t(x * n + j)] - zeros[size_t(j)]);
      ASSERT_GT(std::abs(want), 1 << 24);
      ASSERT_EQ(sums[i * n + j], want) << i << " " << j;
    }
}

TEST(Extern, QuantizedConvolutionIsItsDefinition) {
  NEEDS_BLAS();
  for (const auto& [groups, channels, filters, kernel] : {std::tuple<int64_t, int64_t, int64_t, int64_t>{1, 3, 4, 3}, {4, 4, 4, 3}, {1, 1, 16, 5}, {2, 4, 6, 1}}) {
    const int64_t h = 7, w = 9, per_group = channels / groups, pad = kernel / 2;
    const std::vector<int> x = small_numbers(size_t(channels * h * w), 0, 255, 1), f = small_numbers(size_t(filters * per_group * kernel * kernel), -128, 127, 2),
                           zeros = small_numbers(size_t(filters), -20, 20, 3);
    Model model{.opset = 17};
    model.inputs = {value("x", kUint8, {1, channels, h, w}), value("w", kInt8, {filters, per_group, kernel, kernel}), value("zx", kUint8, {}), value("zw", kInt8, {filters})};
    model.outputs = {value("y", kInt32, {})};
    model.nodes = {node("ConvInteger", {"x", "w", "zx", "zw"}, {"y"}, {integer("group", groups), integers("pads", {pad, pad, pad, pad})})};
    const Result<std::vector<Tensor>> got = run(model.bytes(), std::vector{integers_of(DType::u8, {1, channels, h, w}, x), integers_of(DType::i8, {filters, per_group, kernel, kernel}, f),
                                                                           integers_of(DType::u8, {}, {128}), integers_of(DType::i8, {filters}, zeros)});
    ASSERT_TRUE(got) << got.error().text();
    const auto* sums = reinterpret_cast<const int32_t*>(std::as_const((*got)[0].data).data());
    for (int64_t m = 0; m < filters; ++m)
      for (int64_t i = 0; i < h; ++i)
        for (int64_t j = 0; j < w; ++j) {
          int64_t want = 0;
          for (int64_t c = 0; c < per_group; ++c)
            for (int64_t u = 0; u < kernel; ++u)
              for (int64_t v = 0; v < kernel; ++v) {
                const int64_t a = i - pad + u, b = j - pad + v, channel = m / (filters / groups) * per_group + c;
                if (a < 0 || a >= h || b < 0 || b >= w) continue;  // the padding is the zero point
                want += int64_t{x[size_t((channel * h + a) * w + b)] - 128} * (f[size_t(((m * per_group + c) * kernel + u) * kernel + v)] - zeros[size_t(m)]);
              }
          ASSERT_EQ(sums[(m * h + i) * w + j], want) << groups << " " << kernel << " " << m << " " << i << " " << j;
        }
  }
}

/// With weights and values that eight bits hold without loss, it is the LSTM itself.
TEST(Extern, DynamicQuantizeLstm) {
  NEEDS_BLAS();
  const int64_t steps = 3, input = 4, hidden = 2, gates = 4 * hidden;
  const std::vector<int> w = small_numbers(size_t(input * gates), -128, 127, 1);
  std::vector<float> plain_w(w.size()), x = numbers(size_t(steps * input));
  for (int64_t i = 0; i < input; ++i)  // the other way round
    for (int64_t g = 0; g < gates; ++g) plain_w[size_t(g * input + i)] = 0.01f * float(w[size_t(i * gates + g)] - 5);
  for (float& v : x) v = std::nearbyint(v * 100);  // whole numbers; with 0 and 255 among them the scale is 1
  x[0] = 155, x[1] = -100;
  Model plain{.opset = 17}, packed{.opset = 17};
  plain.inputs = packed.inputs = {value("x", kFloat, {steps, 1, input})};
  plain.outputs = packed.outputs = {value("y", kFloat, {})};
  plain.initializers = {floats("w", {1, gates, input}, plain_w), floats("r", {1, gates, hidden}, std::vector<float>(size_t(gates * hidden), 0.0f))};
  plain.nodes = {node("LSTM", {"x", "w", "r"}, {"y"}, {integer("hidden_size", hidden)})};
  std::string w_bytes;
  for (int v : w) w_bytes += static_cast<char>(v);
  packed.initializers = {raw("w", kInt8, {1, input, gates}, w_bytes), raw("r", kInt8, {1, hidden, gates}, std::string(size_t(hidden * gates), '\0')),
                         floats("ws", {1}, {0.01f}), raw("wz", kInt8, {1}, "\5"), floats("rs", {1}, {1}), raw("rz", kInt8, {1}, std::string(1, '\0'))};
  packed.nodes = {node("DynamicQuantizeLSTM", {"x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"}, {"y"}, {integer("hidden_size", hidden)}, "", "com.microsoft")};
  const std::vector<Tensor> inputs{tensor({steps, 1, input}, x)};
  const Result<std::vector<Tensor>> want = run(plain.bytes(), inputs), got = run(packed.bytes(), inputs);
  ASSERT_TRUE(want && got) << (want ? got : want).error().text();
  EXPECT_EQ((*got)[0].extents, (*want)[0].extents);
  expect_near(floats_of((*got)[0]), floats_of((*want)[0]), 1e-5, "LSTM");
}

// --- ONNX's node tests
// ----------------------------------------------------------------------------------------------------

const char* const kOperators[] = {"MatMul",      "Gemm",   "Conv",     "ConvTranspose", "MaxPool",
                                  "AveragePool", "Resize", "Upsample", "LSTM",          "GRU",
                                  "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"};

/// Forms that extern operators say that they do not take.
const std::set<std::string> kRefused = {
    "test_gru_batchwise",
    "test_lstm_batchwise",
    "test_maxpool_2d_uint8",
    "test_maxpool_with_argmax_2d_precomputed_pads",
    "test_maxpool_with_argmax_2d_precomputed_strides",
};
const char* const kRefusedPrefixes[] = {"test_resize_downsample_scales_cubic", "test_resize_downsample_sizes_cubic",
                                        "test_resize_upsample_scales_cubic", "test_resize_upsample_sizes_cubic",
                                        "test_resize_tf_crop_and_resize"};

bool refused(const std::string& test) {
  for (const char* prefix : kRefusedPrefixes)
    if (test.starts_with(prefix)) return true;
  return kRefused.contains(test);
}

/// Tensors of input_0.pb, input_1.pb …
std::vector<Tensor> data(const fs::path& folder, const std::string& kind) {
  std::vector<Tensor> out;
  for (int k = 0;; ++k) {
    const fs::path path = folder / (kind + "_" + std::to_string(k) + ".pb");
    if (!fs::exists(path)) return out;
    Result<onnx::NamedTensor> tensor = onnx::read_tensor_file(path.string());
    EXPECT_TRUE(tensor) << path;
    out.push_back(tensor ? tensor->tensor : Tensor{});
  }
}

TEST(Extern, OnnxNodeTests) {
  NEEDS_BLAS();
  const fs::path folder = "/usr/share/libonnx-testdata/data/node";
  if (!fs::is_directory(folder)) GTEST_SKIP() << "no libonnx-testdata here";
  size_t passed = 0, refusals = 0;
  std::vector<fs::path> tests;
  for (const auto& entry : fs::directory_iterator(folder)) tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  for (const fs::path& test : tests) {
    const std::string name = test.filename().string();
    Result<std::string> bytes = onnx::read_file((test / "model.onnx").string());
    ASSERT_TRUE(bytes) << name;
    Result<onnx::ModelMessage> message = onnx::read_model(*bytes);
    if (!message || message->nodes.size() != 1) continue;
    if (std::find(std::begin(kOperators), std::end(kOperators), message->nodes[0].op) == std::end(kOperators)) continue;
    ImportOptions options;
    std::vector<Tensor> all = data(test / "test_data_set_0", "input"), inputs;
    for (size_t k = 0, given = 0; k < message->inputs.size() && given < all.size(); ++k)
      options.values[std::string(message->inputs[k].name)] = std::make_shared<const Tensor>(all[given++]);
    Result<WholeModel> model = read_model_bytes(*bytes, "", options);
    ASSERT_TRUE(model) << name << ": " << model.error().text();
    for (size_t t : model->inputs) inputs.push_back(*options.values[model->tensors[t].name]);
    Result<ModelProgram> program =
        ModelProgram::make(std::make_shared<const WholeModel>(std::move(*model)), {.device = "reference"});
    Result<std::vector<Tensor>> got = program ? program->run(inputs) : Result<std::vector<Tensor>>(program.error());
    EXPECT_EQ(static_cast<bool>(got), !refused(name))
        << name << ": " << (got ? "runs, though it is listed as refused" : got.error().text());
    if (!got) {
      ++refusals;
      continue;
    }
    const std::vector<Tensor> want = data(test / "test_data_set_0", "output");
    ASSERT_EQ(got->size(), want.size()) << name;
    for (size_t k = 0; k < want.size(); ++k)
      if (want[k].dtype == DType::f32) expect_near(floats_of((*got)[k]), floats_of(want[k]), 1e-4, name);
      else EXPECT_EQ((*got)[k], want[k]) << name;
    ++passed;
  }
  EXPECT_GE(passed, 81u);
  std::cout << passed << " node tests of extern operators, " << refusals << " refused\n";
}

}  // namespace
}  // namespace fusec
