// Whole models from nowhere: cut at every byte, damaged, with attributes out of all proportion, large. Reading ends, and what
// can be run is run; nothing is touched that is not there (tools/check runs this under ASan and UBSan).

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "runtime/extern_model.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;

std::vector<float> numbers(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i % 5) * 0.5f - 1;
  return out;
}

/// Every extern operator once, an If and a reshape.
Model network() {
  Model m{.opset = 17};
  m.inputs = {value("x", kFloat, {1, 2, 6, 6})};
  m.outputs = {value("y", kFloat, {}), value("h", kFloat, {})};
  m.initializers = {floats("f", {4, 2, 3, 3}, numbers(72)),
                    floats("b", {4}, numbers(4)),
                    floats("g", {4, 1, 2, 2}, numbers(16)),
                    longs("to", {4, 1, 9}),
                    floats("scales", {4}, {1, 1, 1.5f, 1}),
                    floats("w", {1, 8, 9}, numbers(72)),
                    floats("r", {1, 8, 2}, numbers(16)),
                    floats("v", {2, 3}, numbers(6)),
                    floats("u", {1, 6, 9}, numbers(54)),
                    floats("s", {1, 6, 2}, numbers(12)),
                    longs("two", {-1, 2})};
  m.nodes = {node("Conv", {"x", "f", "b"}, {"c"},
                  {integers("pads", {1, 1, 1, 1}), integers("strides", {2, 2}), integers("dilations", {1, 1}),
                   integer("group", 1)}),
             node("Relu", {"c"}, {"d"}),
             node("MaxPool", {"d"}, {"p"}, {integers("kernel_shape", {2, 2}), integers("pads", {1, 1, 0, 0})}),
             node("AveragePool", {"p"}, {"a"},
                  {integers("kernel_shape", {1, 2}), integers("strides", {1, 1}), integers("pads", {0, 1, 0, 0})}),
             node("Resize", {"a", "", "scales"}, {"z"}, {text("mode", "linear")}),
             node("Resize", {"z", "", "", "sizes"}, {"e"}),
             node("ConvTranspose", {"e", "g"}, {"t"}, {integers("strides", {2, 2}), integer("group", 4)}),
             node("GlobalAveragePool", {"t"}, {"q"}),
             node("Mul", {"a", "q"}, {"o"}),
             node("Reshape", {"o", "to"}, {"l"}),
             node("LSTM", {"l", "w", "r"}, {"k", "h"}, {integer("hidden_size", 2)}),
             node("GRU", {"l", "u", "s"}, {"j"}, {integer("hidden_size", 2)}),
             node("Add", {"k", "j"}, {"i"}),
             node("Reshape", {"i", "two"}, {"n"}),
             node("Gemm", {"n", "v"}, {"m"}),
             node("MatMul", {"n", "v"}, {"mm"}),
             node("Add", {"m", "mm"}, {"y"})};
  m.initializers.push_back(longs("sizes", {1, 4, 3, 3}));
  return m;
}

/// The quantised ones.
Model quantized_network() {
  Model m{.opset = 17};
  m.inputs = {value("x", kFloat, {1, 2, 4, 4})};
  m.outputs = {value("h", kFloat, {}), value("j", kFloat, {}), value("o", kUint8, {})};
  const std::string bytes(72, '\3');
  m.initializers = {raw("f", kInt8, {2, 2, 3, 3}, bytes.substr(0, 36)), raw("d", kInt8, {4, 3}, bytes.substr(0, 12)), raw("zf", kInt8, {2}, bytes.substr(0, 2)),
                    raw("zd", kInt8, {3}, bytes.substr(0, 3)), longs("flat", {8, 4}), longs("steps", {4, 2, 4}), raw("g", kUint8, {1, 2, 1, 1}, bytes.substr(0, 2)),
                    floats("one", {}, {1}), raw("zero", kUint8, {}, "\3"), raw("b", kInt32, {1}, bytes.substr(0, 4)), raw("e", kUint8, {4, 2}, bytes.substr(0, 8)),
                    raw("w", kInt8, {1, 4, 8}, bytes.substr(0, 32)), raw("r", kInt8, {1, 2, 8}, bytes.substr(0, 16)), floats("s", {1}, {0.1f}), raw("z", kInt8, {1}, "\1")};
  m.nodes = {node("DynamicQuantizeLinear", {"x"}, {"q", "qs", "qz"}),
             node("ConvInteger", {"q", "f", "qz", "zf"}, {"c"}, {integers("pads", {1, 1, 1, 1}), integers("strides", {2, 2})}),
             node("Reshape", {"q", "flat"}, {"a"}),
             node("MatMulInteger", {"a", "d", "qz", "zd"}, {"p"}),
             node("Cast", {"c"}, {"h"}, {integer("to", kFloat)}),
             node("QLinearConv", {"q", "qs", "qz", "g", "one", "zero", "one", "zero", "b"}, {"t"}),
             node("QLinearMatMul", {"t", "one", "zero", "e", "one", "zero", "one", "zero"}, {"o"}),
             node("Reshape", {"x", "steps"}, {"l"}),
             node("DynamicQuantizeLSTM", {"l", "w", "r", "", "", "", "", "", "s", "z", "s", "z"}, {"k"}, {integer("hidden_size", 2)}, "", "com.microsoft"),
             node("Relu", {"k"}, {"j"}),
             node("Cast", {"p"}, {"unused"}, {integer("to", kFloat)})};
  return m;
}

/// Open dims, windows of steps over them, shapes computed in i32 and i64.
Model open_network() {
  Model m{.opset = 17};
  m.inputs = {value("x", kFloat, {"n", 2, "h", ""})};
  m.outputs = {value("y", kFloat, {}), value("z", kFloat, {})};
  m.initializers = {floats("f", {2, 2, 3, 3}, numbers(36)), longs("zero", {0}), longs("two", {2}), raw("rest", kInt32, {1}, std::string("\xff\xff\xff\xff")), longs("pads", {0, 0, 1, 1, 0, 0, 0, 1})};
  const std::vector<Bytes> half = {integers("strides", {2, 2}), integers("pads", {1, 1, 1, 1})};
  m.nodes = {node("Pad", {"x", "pads"}, {"p"}, {text("mode", "reflect")}),
             node("Conv", {"p", "f"}, {"a"}, half),
             node("Conv", {"p", "f"}, {"b"}, {integers("strides", {2, 2}), text("auto_pad", "SAME_UPPER")}),
             node("Add", {"a", "b"}, {"c"}),
             node("MaxPool", {"c"}, {"d"}, {integers("kernel_shape", {3, 3}), integers("strides", {2, 3}), integer("ceil_mode", 1)}),
             node("Shape", {"d"}, {"s"}),
             node("Cast", {"s"}, {"t"}, {integer("to", kInt32)}),
             node("Slice", {"t", "zero", "two"}, {"u"}),
             node("Concat", {"u", "rest"}, {"v"}, {integer("axis", 0)}),
             node("Cast", {"v"}, {"w"}, {integer("to", kInt64)}),
             node("Reshape", {"d", "w"}, {"e"}),
             node("Softmax", {"e"}, {"y"}),
             node("AveragePool", {"d"}, {"g"}, {integers("kernel_shape", {1, 1}), integers("strides", {4, 1})}),
             node("Relu", {"g"}, {"z"})};
  return m;
}

/// Small enough to run in a test?
bool small(const WholeModel& model) {
  int64_t all = 0;
  for (const ModelTensor& t : model.tensors) {
    if (!t.type) continue;
    const std::optional<int64_t> n = elements(t.type->shape).value({});
    if (!n || *n > 100'000 || (all += *n) > 1'000'000) return false;
  }
  for (const ModelBoundary& b : model.boundaries)
    for (const onnx::Attribute& a : b.message->attributes)
      for (int64_t i : a.ints)
        if (a.name == "kernel_shape" && i > 1000) return false;
  return true;
}

/// Reads it and, where that is possible and soon done, runs it. True when it ran.
bool try_model(const std::string& bytes) {
  Result<WholeModel> model = read_model_bytes(bytes);
  if (!model || !small(*model)) return false;
  std::vector<Tensor> inputs;
  for (size_t t : model->inputs) {
    Tensor& in = inputs.emplace_back();
    in.dtype = model->tensors[t].type->dtype;
    size_t size = fusec::bytes(in.dtype);
    for (const Dim& d : model->tensors[t].type->shape) {
      if (!d.is_constant()) return false;
      in.extents.push_back(d.constant());
      size *= static_cast<size_t>(d.constant());
    }
    in.data.resize(size);
  }
  Result<ModelProgram> program =
      ModelProgram::make(std::make_shared<const WholeModel>(std::move(*model)), {.device = "reference"});
  return program && program->run(inputs);
}

TEST(ModelHostile, CutAtEveryByte) {
  for (const std::string& whole : {network().bytes(), quantized_network().bytes()}) {
    EXPECT_EQ(try_model(whole), static_cast<bool>(product_library()));
    for (size_t n = 0; n < whole.size(); ++n) try_model(whole.substr(0, n));
  }
}

/// Whoever knows the sizes from the start sees what the quotients say.
TEST(ModelHostile, OpenDimsMeanTheirSizes) {
  const std::string bytes = open_network().bytes();
  const Result<WholeModel> open = read_model_bytes(bytes);
  ASSERT_TRUE(open) << open.error().text();
  for (const ModelBoundary& b : open->boundaries) EXPECT_EQ(b.why, Boundary::outside) << b.op << ": " << b.reason;
  for (int64_t h = 7; h < 40; ++h) {
    Sizes sizes = {{"n", 2}, {"h", h}, {"x.3", h + 5}};
    const Result<WholeModel> closed = read_model_bytes(bytes, "", {.sizes = sizes});
    ASSERT_TRUE(closed) << closed.error().text();
    add_quotients(open->quotients, sizes);
    size_t same = 0;
    for (const ModelTensor& t : open->tensors)
      for (const ModelTensor& u : closed->tensors) {
        if (t.name != u.name || t.kind == ModelTensor::weight) continue;
        ASSERT_TRUE(t.type && u.type) << t.name;
        Shape shape;
        for (const Dim& d : t.type->shape) shape.push_back(d.value(sizes).value());
        EXPECT_EQ(text(Type{t.type->dtype, shape}), text(*u.type)) << t.name << " h=" << h;
        ++same;
      }
    EXPECT_GE(same, 8u);
  }
}

TEST(ModelHostile, Damaged) {
  const std::string all[] = {network().bytes(), quantized_network().bytes(), open_network().bytes()};
  std::mt19937 random(1);
  size_t ran = 0;
  for (int round = 0; round < 9000; ++round) {
    std::string bytes = all[round % 3];
    for (size_t k = 1 + random() % 3; k-- > 0;) bytes[random() % bytes.size()] = static_cast<char>(random());
    ran += try_model(bytes);
  }
  EXPECT_TRUE(ran > 1000 || !product_library()) << ran;  // most of the bytes are weights
}

TEST(ModelHostile, AttributesOutOfAllProportion) {
  for (const int64_t n : {int64_t{-1}, int64_t{0}, int64_t{1} << 31, int64_t{1} << 40, INT64_MAX, INT64_MIN})
    for (const char* name : {"strides", "pads", "dilations", "kernel_shape", "output_padding", "output_shape", "group",
                             "axis", "batch_dims", "layout"})
      for (const char* op :
           {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Gather", "GatherND", "TopK", "LSTM", "GRU", "Gemm"}) {
        Model m{.opset = 13};
        m.inputs = {value("x", kFloat, {1, 4, 6, 6}), value("f", kFloat, {4, 4, 3, 3}), value("i", kInt64, {300, 2})};
        m.outputs = {value("y", kFloat, {})};
        const std::string named = name;
        std::vector<Bytes> attributes{
            named == "group" || named == "axis" || named == "batch_dims" || named == "layout"
                ? integer(name, n)
                : integers(name, named == "pads" ? std::vector<int64_t>{n, n, n, n} : std::vector<int64_t>{n, n})};
        if (std::string(op).ends_with("Pool") && named != "kernel_shape")
          attributes.push_back(integers("kernel_shape", {2, 2}));
        m.nodes = {node(op, {"x", std::string(op).starts_with("Gather") ? "i" : "f"}, {"y"}, attributes)};
        try_model(m.bytes());
      }
}

TEST(ModelHostile, ManyNodesOfAnyKindTakeSeconds) {
  const auto start = std::chrono::steady_clock::now();
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {2, 2})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {2, 2}, numbers(4))};
  const char* const kOps[] = {"Nowhere", "MatMul", "NonZero", "Relu", "Reshape"};
  std::string last = "x", before = "x";
  for (int k = 0; k < 100'000; ++k) {
    const std::string name = "v" + std::to_string(k), op = kOps[k % 5];
    m.nodes.push_back(op == "MatMul"    ? node(op, {before, "w"}, {name})
                      : op == "Reshape" ? node(op, {"x", last}, {name})
                                        : node(op, {last}, {name}));
    before = k % 7 ? before : last;
    last = name;
  }
  m.nodes.push_back(node("Identity", {last}, {"y"}));
  Result<WholeModel> model = read_model_bytes(m.bytes());
  EXPECT_TRUE(model) << model.error().text();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// One value that every other node reads, alternating with boundaries: many groups, each next to many.
TEST(ModelHostile, ManyEdgesBetweenGroupsTakeSeconds) {
  const auto start = std::chrono::steady_clock::now();
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {2, 2})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {2, 2}, numbers(4))};
  std::string last = "x";
  for (int k = 0; k < 5'000; ++k) {
    const std::string n = std::to_string(k);
    m.nodes.push_back(node("MatMul", {last, "w"}, {"m" + n}));
    m.nodes.push_back(node("Add", {"m" + n, k > 3 ? "a" + std::to_string(k / 2) : "x"}, {"a" + n}));
    last = "a" + n;
  }
  m.nodes.push_back(node("Identity", {last}, {"y"}));
  Result<WholeModel> model = read_model_bytes(m.bytes());
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->boundaries.size(), 5'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace fusec
