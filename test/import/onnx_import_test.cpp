// Operators at the versions where their meaning changed, weights and inputs, shapes as values, what an error says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lib/import/onnx.h"
#include "lib/ir/convert.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;

constexpr float kInf = INFINITY;

Tensor tensor(std::vector<int64_t> extents, std::vector<float> v, DType dtype = DType::f32) {
  Tensor f{DType::f32, extents, {}};
  f.data.resize(v.size() * 4);
  if (!v.empty()) std::memcpy(f.data.data(), v.data(), f.data.size());
  if (dtype == DType::f32) return f;
  Tensor out{dtype, extents, std::vector<std::byte>(v.size() * bytes(dtype))};
  convert(DType::f32, f.data.data(), dtype, out.data.data(), v.size());
  return out;
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.elements(); ++i) out.push_back(element(t, i));
  return out;
}

std::string message(const Result<Imported>& r) { return r ? "no error" : r.error().text(); }

/// One node y = op(x…) on data; the operands are inputs x0, x1 ….
Model one(int64_t opset, const std::string& op, const std::vector<Bytes>& inputs, std::vector<std::string> names,
          std::vector<Bytes> attributes = {}, int out_type = kFloat) {
  return {.opset = opset,
          .nodes = {node(op, names, {"y"}, attributes, "n")},
          .inputs = inputs,
          .outputs = {value("y", out_type, {})}};
}

std::vector<double> eval(const Model& m, std::vector<Tensor> operands, const ImportOptions& options = {}) {
  const Result<Imported> imported = import_onnx_bytes(m.bytes(), "", options);
  EXPECT_TRUE(imported) << message(imported);
  if (!imported) return {};
  for (size_t k = operands.size(); k < imported->defaults.size(); ++k) {
    EXPECT_TRUE(imported->defaults[k]);
    if (imported->defaults[k]) operands.push_back(*imported->defaults[k]);
  }
  const Result<std::vector<Tensor>> out = evaluate(imported->graph, operands);
  EXPECT_TRUE(out) << (out ? "" : out.error().text());
  return out ? numbers(out->at(0)) : std::vector<double>{};
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(got[i])) << i;
    else if (std::isinf(want[i])) EXPECT_EQ(got[i], want[i]) << i;
    else EXPECT_NEAR(got[i], want[i], tolerance) << i;
  }
}

std::string error_of(const Model& m, const ImportOptions& options = {}) {
  const Result<Imported> imported = import_onnx_bytes(m.bytes(), "", options);
  EXPECT_FALSE(imported) << "expected an error";
  return message(imported);
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

// --- operator versions
// ------------------------------------------------------------------------------------------------------

TEST(OnnxVersions, SoftmaxIsAMatrixBefore13) {
  const auto x = value("x", kFloat, {1, 2, 2});
  const Tensor data = tensor({1, 2, 2}, {0, 1, 2, 3});
  for (int64_t opset : {7, 11, 12})
    expect_near(eval(one(opset, "Softmax", {x}, {"x"}), {data}), {0.0320586, 0.0871443, 0.2368828, 0.6439143});
  for (int64_t opset : {13, 28})
    expect_near(eval(one(opset, "Softmax", {x}, {"x"}), {data}), {0.2689414, 0.7310586, 0.2689414, 0.7310586});
  expect_near(eval(one(11, "Softmax", {x}, {"x"}, {integer("axis", 3)}), {data}), {1, 1, 1, 1});
  expect_near(eval(one(12, "LogSoftmax", {x}, {"x"}), {data}), {-3.4401897, -2.4401897, -1.4401897, -0.4401897});
  expect_near(eval(one(12, "Hardmax", {x}, {"x"}), {data}), {0, 0, 0, 1});
  expect_near(eval(one(13, "Hardmax", {x}, {"x"}), {data}), {0, 1, 0, 1});
}

TEST(OnnxVersions, ClipTakesBoundsAsAttributesThenOperands) {
  const auto x = value("x", kFloat, {3});
  const Tensor data = tensor({3}, {0, 1.5, 3});
  expect_near(eval(one(7, "Clip", {x}, {"x"}, {real("min", 2), real("max", 1)}), {data}), {1, 1, 1});
  Model m = one(13, "Clip", {x}, {"x", "lo", "hi"});
  m.initializers = {floats("lo", {}, {2}), floats("hi", {}, {1})};
  expect_near(eval(m, {data}), {1, 1, 1});
  m.nodes = {node("Clip", {"x", "", "hi"}, {"y"})};
  expect_near(eval(m, {data}), {0, 1, 1});
  EXPECT_SAYS(error_of(one(11, "Clip", {x}, {"x"}, {real("min", 2)})), "attribute \"min\"");
  EXPECT_SAYS(error_of(one(10, "Clip", {x, value("lo", kFloat, {})}, {"x", "lo"})), "2 inputs, at most 1 expected");
}

TEST(OnnxVersions, NoopWithEmptyAxesStillDoesTheElementPart) {
  const auto x = value("x", kFloat, {2});
  const auto noop = integer("noop_with_empty_axes", 1);
  const Tensor data = tensor({2}, {2, -3});
  expect_near(eval(one(18, "ReduceSumSquare", {x}, {"x"}, {noop}), {data}), {4, 9});
  expect_near(eval(one(18, "ReduceL1", {x}, {"x"}, {noop}), {data}), {2, 3});
  expect_near(eval(one(18, "ReduceL2", {x}, {"x"}, {noop}), {data}), {2, 3});
  expect_near(eval(one(18, "ReduceMean", {x}, {"x"}, {noop}), {data}), {2, -3});
  expect_near(eval(one(18, "ReduceLogSumExp", {x}, {"x"}, {noop}), {data}), {2, -3});
  expect_near(eval(one(18, "ReduceLogSum", {x}, {"x"}, {noop}), {tensor({2}, {1, 4})}), {0, 1.3862944});
  Model m = one(18, "ReduceL1", {x}, {"x", "axes"}, {noop});
  m.initializers = {longs("axes", {})};
  expect_near(eval(m, {data}), {2, 3});
  EXPECT_SAYS(error_of(one(17, "ReduceL1", {x}, {"x"}, {noop})), "noop_with_empty_axes");
}

TEST(OnnxVersions, AxesMoveFromAttributeToOperand) {
  const auto x = value("x", kFloat, {2, 2});
  const Tensor data = tensor({2, 2}, {1, -2, 3, -4});
  const auto attribute = integers("axes", {1});
  expect_near(eval(one(13, "ReduceL1", {x}, {"x"}, {attribute}), {data}), {3, 7});
  expect_near(eval(one(17, "ReduceL1", {x}, {"x"}, {attribute}), {data}), {3, 7});
  EXPECT_SAYS(error_of(one(18, "ReduceL1", {x}, {"x"}, {attribute})), "attribute \"axes\"");
  EXPECT_SAYS(error_of(one(13, "ReduceSum", {x}, {"x"}, {attribute})), "attribute \"axes\"");
  Model m = one(18, "ReduceL1", {x}, {"x", "axes"});
  m.initializers = {longs("axes", {-1})};
  expect_near(eval(m, {data}), {3, 7});
  m.nodes = {node("ReduceSum", {"x", "axes"}, {"y"})};
  m.opset = 13;
  expect_near(eval(m, {data}), {-1, -1});
  m.initializers = {longs("axes", {1, -1})};
  EXPECT_SAYS(error_of(m), "twice");
  m.initializers = {longs("axes", {2})};
  EXPECT_SAYS(error_of(m), "axis 2");
  EXPECT_SAYS(error_of(one(13, "ReduceMax", {value("x", kFloat, {})}, {"x"}, {integers("axes", {0})})),
              "axis 0 of a tensor of rank 0");
}

TEST(OnnxVersions, RoundGoesToEvenOnTies) {
  for (auto [code, dtype] : {std::pair(kFloat, DType::f32), {kFloat16, DType::f16}}) {
    const Model m = one(11, "Round", {value("x", code, {5})}, {"x"}, {}, code);
    const auto y = eval(m, {tensor({5}, {0.5, 1.5, 2.5, -0.5, -2.5}, dtype)});
    expect_near(y, {0, 2, 2, -0.0, -2}, 0);
    EXPECT_TRUE(std::signbit(y.at(3)));
  }
  EXPECT_SAYS(error_of(one(10, "Round", {value("x", kFloat, {5})}, {"x"})), "which operator set 10 does not have");
}

TEST(OnnxVersions, ModOfFloatsWithoutFmodIsNew) {
  const std::vector<Bytes> in{value("x", kFloat, {5}), value("d", kFloat, {5})};
  const std::vector<Tensor> data{tensor({5}, {-4.5, 4.5, -0.0f, 5, 5}), tensor({5}, {2, -2, 3, kInf, -kInf})};
  EXPECT_SAYS(error_of(one(13, "Mod", in, {"x", "d"})), "fmod=1");
  expect_near(eval(one(28, "Mod", in, {"x", "d"}), data), {1.5, -1.5, 0, 5, -kInf});
  expect_near(eval(one(13, "Mod", in, {"x", "d"}, {integer("fmod", 1)}), data), {-0.5, 0.5, 0, 5, 5});
}

TEST(OnnxVersions, LayerNormalizationKeepsSquaresInF32) {
  Model m{.opset = 17,
          .nodes = {node("LayerNormalization", {"x", "scale"}, {"y", "mean", "inv"}, {real("epsilon", 0)})},
          .inputs = {value("x", kFloat16, {2})},
          .outputs = {value("y", kFloat16, {2}), value("mean", kFloat, {1}), value("inv", kFloat, {1})},
          .initializers = {raw("scale", kFloat16, {2}, bytes_of(std::vector<uint16_t>{0x3c00, 0x3c00}))}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  const auto out = evaluate(imported->graph, std::vector<Tensor>{tensor({2}, {256, -256}, DType::f16)});
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_EQ(numbers(out->at(0)), (std::vector<double>{1, -1}));
  EXPECT_EQ(out->at(1).dtype, DType::f32);
  EXPECT_EQ(numbers(out->at(1)), (std::vector<double>{0}));
  EXPECT_EQ(numbers(out->at(2)), (std::vector<double>{0.00390625}));
  m.nodes = {node("LayerNormalization", {"x", "scale"}, {"y", "mean", "inv"}, {integer("stash_type", 16)})};
  EXPECT_SAYS(error_of(m), "stash_type BFLOAT16");
}

TEST(OnnxVersions, CastToFloat8Saturates) {
  const auto x = value("x", kFloat, {7});
  const Tensor data = tensor({7}, {448, 464, 465, 1000, kInf, NAN, -1000});
  const auto to = integer("to", kE4m3);
  expect_near(eval(one(19, "Cast", {x}, {"x"}, {to}, kE4m3), {data}), {448, 448, 448, 448, 448, NAN, -448});
  // 464 lies half way between 448 and the next step: to even is 448, as in ml_dtypes.
  expect_near(eval(one(19, "Cast", {x}, {"x"}, {to, integer("saturate", 0)}, kE4m3), {data}),
              {448, 448, NAN, NAN, NAN, NAN, NAN});
  expect_near(eval(one(19, "Cast", {x}, {"x"}, {integer("to", kE5m2)}, kE5m2),
                   {tensor({7}, {kInf, -kInf, 1e6, 57344, 61439, 61441, NAN})}),
              {57344, -57344, 57344, 57344, 57344, 57344, NAN});
  EXPECT_SAYS(error_of(one(18, "Cast", {x}, {"x"}, {to, integer("saturate", 0)}, kE4m3)), "saturate");
  EXPECT_SAYS(error_of(one(18, "Cast", {x}, {"x"}, {integer("to", kString)})), "STRING is not supported");
  EXPECT_SAYS(error_of(one(18, "Cast", {x}, {"x"})), "attribute to is missing");
}

TEST(OnnxVersions, SqueezeSplitSliceAndPadChangeTheirForm) {
  const auto x = value("x", kFloat, {1, 4});
  const Tensor data = tensor({1, 4}, {1, 2, 3, 4});
  expect_near(eval(one(11, "Squeeze", {x}, {"x"}, {integers("axes", {0})}), {data}), {1, 2, 3, 4});
  EXPECT_SAYS(error_of(one(13, "Squeeze", {x}, {"x"}, {integers("axes", {0})})), "attribute \"axes\"");
  EXPECT_SAYS(error_of(one(11, "Squeeze", {x}, {"x"}, {integers("axes", {1})})), "is not 1");
  expect_near(
      eval(one(9, "Slice", {x}, {"x"}, {integers("starts", {1}), integers("ends", {-1}), integers("axes", {1})}),
           {data}),
      {2, 3});
  Model m = one(10, "Slice", {x}, {"x", "s", "e", "a", "p"});
  m.initializers = {longs("s", {-1}), longs("e", {INT64_MIN}), longs("a", {1}), longs("p", {-2})};
  expect_near(eval(m, {data}), {4, 2});
  m.initializers = {longs("s", {-1}), longs("e", {0}), longs("a", {1}), longs("p", {-1})};
  expect_near(eval(m, {data}), {4, 3, 2});
  m.initializers = {longs("s", {9}), longs("e", {-9}), longs("a", {1}), longs("p", {-3})};
  expect_near(eval(m, {data}), {4, 1});
  m.initializers = {longs("s", {0}), longs("e", {4}), longs("a", {1}), longs("p", {0})};
  EXPECT_SAYS(error_of(m), "step of 0");
  expect_near(eval(one(10, "Pad", {x}, {"x"}, {integers("pads", {0, -1, 0, 2}), real("value", 9)}), {data}),
              {2, 3, 4, 9, 9});
  Model p = one(19, "Pad", {x}, {"x", "pads", "", "axes"}, {text("mode", "wrap")});
  p.initializers = {longs("pads", {2, 1}), longs("axes", {1})};
  expect_near(eval(p, {data}), {3, 4, 1, 2, 3, 4, 1});
  p.opset = 18;
  EXPECT_SAYS(error_of(p), "mode \"wrap\"");
  Model s{.opset = 18,
          .nodes = {node("Split", {"x"}, {"a", "b", "y"}, {integer("axis", 1), integer("num_outputs", 3)})},
          .inputs = {x},
          .outputs = {value("y", kFloat, {})}};
  EXPECT_EQ(eval(s, {data}).size(), 0u);  // parts of 2, 2, 0
  s.opset = 13;
  EXPECT_SAYS(error_of(s), "num_outputs");
}

TEST(OnnxVersions, GroupNormalizationScalesGroupsThenChannels) {
  const auto x = value("x", kFloat, {1, 4});
  const Tensor data = tensor({1, 4}, {1, 3, 10, 30});
  const auto groups = integer("num_groups", 2), eps = real("epsilon", 0);
  Model m = one(18, "GroupNormalization", {x}, {"x", "s", "b"}, {groups, eps});
  m.initializers = {floats("s", {2}, {2, 5}), floats("b", {2}, {0, 1})};
  expect_near(eval(m, {data}), {-2, 2, -4, 6});
  m.opset = 21;
  EXPECT_SAYS(error_of(m), "channels");
  m.initializers = {floats("s", {4}, {1, 2, 3, 4}), floats("b", {4}, {0, 0, 0, 1})};
  expect_near(eval(m, {data}), {-1, 2, -3, 5});
}

TEST(OnnxVersions, PowKeepsTheTypeOfTheBase) {
  Model m = one(15, "Pow", {value("x", kInt32, {3})}, {"x", "e"}, {}, kInt32);
  m.initializers = {floats("e", {3}, {0.5, 2, -1})};
  EXPECT_EQ(eval(m, {tensor({3}, {16, 3, 2}, DType::i32)}), (std::vector<double>{4, 9, 0}));
}

// --- operators that are made of several ops
// -----------------------------------------------------------------------------------

Tensor whole(std::vector<int64_t> extents, std::vector<int64_t> v) {
  Tensor t{DType::i64, std::move(extents), std::vector<std::byte>(v.size() * 8)};
  if (!v.empty()) std::memcpy(t.data.data(), v.data(), t.data.size());
  return t;
}

TEST(OnnxGather, ByKnownIndicesAndByOthers) {
  const auto x = value("x", kFloat, {3, 2});
  const Tensor data = tensor({3, 2}, {1, 2, 3, -0.0f, NAN, -kInf});
  Model m = one(13, "Gather", {x}, {"x", "i"});
  m.initializers = {longs("i", {2, 0, 1, -1})};
  const std::vector<double> want{NAN, -kInf, 1, 2, 3, -0.0, NAN, -kInf};
  expect_near(eval(m, {data}), want, 0);
  m.initializers = {};
  m.inputs.push_back(value("i", kInt64, {4}));
  const auto got = eval(m, {data, whole({4}, {2, 0, 1, -1})});
  expect_near(got, want, 0);
  EXPECT_TRUE(std::signbit(got.at(5)));
  expect_near(eval(m, {data, whole({4}, {3, -4, 0, 0})}), {0, 0, 0, 0, 1, 2, 1, 2}, 0);  // outside: zero
  // A long axis and one of unknown length: the bounds are those of the call.
  m.inputs = {value("x", kFloat, {"N", 2}), value("i", kInt64, {4})};
  expect_near(eval(m, {data, whole({4}, {2, 0, 3, -1})}), {NAN, -kInf, 1, 2, 0, 0, NAN, -kInf}, 0);
  // A scalar index takes the axis away.
  Model column = one(13, "Gather", {x}, {"x", "i"}, {integer("axis", 1)});
  column.initializers = {raw("i", kInt64, {}, bytes_of(std::vector<int64_t>{0}))};
  expect_near(eval(column, {data}), {1, 3, NAN}, 0);
  column.initializers = {raw("i", kInt64, {}, bytes_of(std::vector<int64_t>{2}))};
  EXPECT_SAYS(error_of(column), "index 2 of an axis of 2");
  Model elements = one(13, "GatherElements", {x, value("i", kInt64, {1, 2})}, {"x", "i"});
  expect_near(eval(elements, {data, whole({1, 2}, {1, -3})}), {3, 2}, 0);
}

TEST(OnnxScan, OfBoolsIsAnError) {
  Model m = one(14, "CumSum", {value("x", kBool, {8})}, {"x", "axis"}, {}, kBool);
  m.initializers = {raw("axis", kInt64, {}, bytes_of(std::vector<int64_t>{0}))};
  EXPECT_SAYS(error_of(m), "takes a number");
}

TEST(OnnxGather, ReversesSequencesOfAnyLength) {
  Model m = one(10, "ReverseSequence", {value("x", kFloat, {3, 2}), value("n", kInt64, {2})}, {"x", "n"});
  const Tensor x = tensor({3, 2}, {1, 10, 2, 20, 3, 30});
  expect_near(eval(m, {x, whole({2}, {3, 2})}), {3, 20, 2, 10, 1, 30}, 0);
  expect_near(eval(m, {x, whole({2}, {0, 1})}), {1, 10, 2, 20, 3, 30}, 0);
}

TEST(OnnxScan, SumsAndProductsInAllFourForms) {
  Model m = one(14, "CumSum", {value("x", kFloat, {2, 3})}, {"x", "axis"});
  m.initializers = {raw("axis", kInt32, {}, bytes_of(std::vector<int32_t>{-1}))};
  const Tensor data = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_near(eval(m, {data}), {1, 3, 6, 4, 9, 15});
  m.nodes = {node("CumSum", {"x", "axis"}, {"y"}, {integer("exclusive", 1)})};
  expect_near(eval(m, {data}), {0, 1, 3, 0, 4, 9});
  m.nodes = {node("CumSum", {"x", "axis"}, {"y"}, {integer("reverse", 1)})};
  expect_near(eval(m, {data}), {6, 5, 3, 15, 11, 6});
  m.opset = 26;
  m.nodes = {node("CumProd", {"x", "axis"}, {"y"}, {integer("reverse", 1), integer("exclusive", 1)})};
  expect_near(eval(m, {data}), {6, 3, 1, 30, 6, 1});
}

TEST(OnnxScan, RunsAlongAnAxisOfAnyLength) {
  Model m = one(14, "CumSum", {value("x", kFloat, {"N", 2})}, {"x", "axis"});
  m.initializers = {raw("axis", kInt64, {}, bytes_of(std::vector<int64_t>{0}))};
  expect_near(eval(m, {tensor({3, 2}, {1, 2, 3, 4, 5, 6})}), {1, 2, 4, 6, 9, 12});
}

TEST(OnnxLoss, IgnoredTargetsWeighNothing) {
  Model m = one(13, "NegativeLogLikelihoodLoss", {value("x", kFloat, {3, 2}), value("t", kInt64, {3})}, {"x", "t", "w"},
                {integer("ignore_index", -1)});
  m.initializers = {floats("w", {2}, {2, 3})};
  // Targets 0, ignored, 1: losses 2·1, 0, 3·6; weights 2 + 3.
  expect_near(eval(m, {tensor({3, 2}, {-1, -2, -3, -4, -5, -6}), whole({3}, {0, -1, 1})}), {20.0 / 5});
  m.nodes = {node("NegativeLogLikelihoodLoss", {"x", "t"}, {"y"}, {text("reduction", "none")})};
  expect_near(eval(m, {tensor({3, 2}, {-1, -2, -3, -4, -5, -6}), whole({3}, {0, 0, 1})}), {1, 3, 6});
}

TEST(OnnxQuantize, RoundsToEvenThenSaturates) {
  Model m = one(13, "QuantizeLinear", {value("x", kFloat, {5})}, {"x", "s", "z"}, {}, kInt8);
  m.initializers = {floats("s", {}, {2}), raw("z", kInt8, {}, "\x01")};
  expect_near(eval(m, {tensor({5}, {1, 3, -5, 1000, -1000})}), {1, 3, -1, 127, -128}, 0);
  Model d = one(13, "DequantizeLinear", {value("x", kInt8, {2, 2})}, {"x", "s"}, {integer("axis", 0)});
  d.initializers = {floats("s", {2}, {0.5, 10})};
  expect_near(eval(d, {tensor({2, 2}, {1, 2, 3, 4}, DType::i8)}), {0.5, 1, 30, 40}, 0);
}

TEST(OnnxVersions, OldAndNewOperatorSets) {
  // Operator sets outside the supported range, and the last one inside.
  const auto x = value("x", kFloat, {1});
  for (int64_t opset : {int64_t{0}, int64_t{29}, int64_t{99}, INT64_MAX, int64_t{-3}})
    EXPECT_SAYS(error_of(one(opset, "Relu", {x}, {"x"})), "operator set");
  EXPECT_SAYS(error_of(one(6, "Add", {x}, {"x", "x"})), "which operator set 6 does not have");
  expect_near(eval(one(28, "Relu", {x}, {"x"}), {tensor({1}, {-1})}), {0});
  expect_near(eval(one(24, "Swish", {x}, {"x"}, {real("alpha", 2)}), {tensor({1}, {1})}), {0.8807971});
  expect_near(eval(one(28, "SwiGLU", {x, value("z", kFloat, {1})}, {"x", "z"}), {tensor({1}, {1}), tensor({1}, {2})}),
              {1.4621172});
}

// --- weights, inputs, names
// -----------------------------------------------------------------------------------------------

TEST(OnnxInputs, InitialisersInAndOutOfTheInputList) {
  Model m{.opset = 9,
          .ir = 8,
          .nodes = {node("Add", {"a", "b"}, {"y"})},
          .inputs = {value("a", kFloat, {1})},
          .outputs = {value("y", kFloat, {1})},
          .initializers = {floats("b", {1}, {42})}};
  expect_near(eval(m, {tensor({1}, {1})}), {43});
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->graph.inputs().size(), 1u);
  EXPECT_EQ(imported->graph.inputs()[0].name, "a");
  m.ir = 3;
  m.inputs.push_back(value("b", kFloat, {1}));
  expect_near(eval(m, {tensor({1}, {1})}), {43});
}

TEST(OnnxInputs, AnInitialiserThatIsAnInputIsOnlyADefault) {
  const Model m{.opset = 9,
                .nodes = {node("Add", {"a", "b"}, {"y"})},
                .inputs = {value("a", kFloat, {1}), value("b", kFloat, {1})},
                .outputs = {value("y", kFloat, {1})},
                .initializers = {floats("b", {1}, {1})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  ASSERT_EQ(imported->file_inputs, 2u);
  EXPECT_EQ(imported->defaults[0], nullptr);
  ASSERT_NE(imported->defaults[1], nullptr);
  expect_near(eval(m, {tensor({1}, {2})}), {3});
  expect_near(eval(m, {tensor({1}, {2}), tensor({1}, {5})}), {7});
}

TEST(OnnxInputs, LargeWeightsAreInputsWithData) {
  const std::vector<float> weights(20000, 2.0f);
  const Model m{.nodes = {node("Mul", {"x", "w"}, {"p"}), node("Add", {"p", "small"}, {"y"})},
                .inputs = {value("x", kFloat, {20000})},
                .outputs = {value("y", kFloat, {20000})},
                .initializers = {floats("w", {20000}, weights), floats("small", {1}, {1}), floats("unused", {1}, {1})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  ASSERT_EQ(imported->graph.inputs().size(), 2u);
  EXPECT_EQ(imported->file_inputs, 1u);
  EXPECT_EQ(imported->graph.inputs()[1].name, "w");
  ASSERT_NE(imported->defaults[1], nullptr);
  EXPECT_EQ(imported->defaults[1]->elements(), 20000);
  EXPECT_EQ(eval(m, {tensor({20000}, std::vector<float>(20000, 3.0f))}).at(19999), 7);
}

TEST(OnnxInputs, NamesAreData) {
  for (const std::string& name : {std::string("layer1.weight"), std::string("1234"), std::string("a/b:0"),
                                  std::string(" "), std::string(5000, 'n')}) {
    const Model m{.nodes = {node("Exp", {name}, {name + "'"})},
                  .inputs = {value(name, kFloat, {1})},
                  .outputs = {value(name + "'", kFloat, {1})}};
    const Result<Imported> imported = import_onnx_bytes(m.bytes());
    ASSERT_TRUE(imported) << message(imported);
    EXPECT_EQ(imported->graph.inputs()[0].name, name);
    EXPECT_EQ(imported->graph.outputs()[0].name, name + "'");
  }
}

TEST(OnnxInputs, ValuesKeepTheirNamesAsLabels) {
  const Model m{.nodes = {node("Exp", {"x"}, {"inner"}), node("Neg", {"inner"}, {"y"})},
                .inputs = {value("x", kFloat, {1})},
                .outputs = {value("y", kFloat, {1})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported);
  const Graph& g = imported->graph;
  EXPECT_EQ(g.label(g.node(g.outputs()[0].node).args[0]), "inner");
}

// --- shapes
// -----------------------------------------------------------------------------------------------------------------

TEST(OnnxShapes, SymbolsStayAndSizesFixThem) {
  const Model m{.nodes = {node("Relu", {"x"}, {"y"})},
                .inputs = {value("x", kFloat, {"batch", "", 4})},
                .outputs = {value("y", kFloat, {})}};
  Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  EXPECT_EQ(imported->graph.symbols(), (std::vector<std::string>{"batch", "x.1"}));
  imported = import_onnx_bytes(m.bytes(), "", {.sizes = {{"batch", 2}, {"x.1", 3}}});
  ASSERT_TRUE(imported) << message(imported);
  EXPECT_EQ(imported->graph.node(0).type, (Type{DType::f32, {2, 3, 4}}));
}

/// x[N,4] reshaped to [N*2, 2] by way of Shape, Gather, Mul, Concat, as exporters write it.
TEST(OnnxShapes, ShapeArithmeticStaysInDims) {
  const Model m{
      .opset = 13,
      .nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}), node("Mul", {"n", "two"}, {"n2"}),
                node("Unsqueeze", {"n2", "axis"}, {"n2v"}),
                node("Concat", {"n2v", "axis2"}, {"to"}, {integer("axis", 0)}), node("Reshape", {"x", "to"}, {"y"})},
      .inputs = {value("x", kFloat, {"N", 4})},
      .outputs = {value("y", kFloat, {})},
      .initializers = {raw("zero", kInt64, {}, bytes_of(std::vector<int64_t>{0})),
                       raw("two", kInt64, {}, bytes_of(std::vector<int64_t>{2})), longs("axis", {0}),
                       longs("axis2", {2})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  const Graph& g = imported->graph;
  EXPECT_EQ(text(g.node(g.outputs()[0].node).type), text(Type{DType::f32, {Dim(2) * Dim::symbol("N"), 2}}));
  expect_near(eval(m, {tensor({1, 4}, {1, 2, 3, 4})}), {1, 2, 3, 4});
}

/// TensorFlow's and PaddlePaddle's exporters compute shapes in i32, and write 10^9 for "to the end".
TEST(OnnxShapes, ShapeArithmeticInI32) {
  const auto i32 = [](const std::string& name, const std::vector<int32_t>& v) { return raw(name, kInt32, {static_cast<int64_t>(v.size())}, bytes_of(v)); };
  const Model m{.opset = 13,
                .nodes = {node("Shape", {"x"}, {"s"}), node("Cast", {"s"}, {"s32"}, {integer("to", kInt32)}),
                          node("Slice", {"s32", "zero", "one", "zero"}, {"n"}), node("Mul", {"n", "two32"}, {"n2"}),
                          node("Concat", {"n2", "two32"}, {"to32"}, {integer("axis", 0)}), node("Cast", {"to32"}, {"to"}, {integer("to", kInt64)}),
                          node("Reshape", {"x", "to"}, {"r"}), node("Slice", {"r", "one", "end", "zero"}, {"y"}),
                          node("Cast", {"n2"}, {"z"}, {integer("to", kFloat)})},
                .inputs = {value("x", kFloat, {"N", 4})},
                .outputs = {value("y", kFloat, {}), value("n2", kInt32, {1}), value("z", kFloat, {1})},
                .initializers = {longs("zero", {0}), longs("one", {1}), longs("end", {1'000'000'000}), i32("two32", {2})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  const Graph& g = imported->graph;
  EXPECT_EQ(text(g.node(g.outputs()[0].node).type), "f32[2*N-1,2]");
  EXPECT_EQ(text(g.node(g.outputs()[1].node).type), "i32[1]");
  const Result<std::vector<Tensor>> got = evaluate(g, std::vector<Tensor>{tensor({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(element((*got)[0], 0), 3);
  EXPECT_EQ(element((*got)[0], 5), 8);
  EXPECT_EQ(element((*got)[1], 0), 4);
  EXPECT_EQ(element((*got)[2], 0), 4);
}

/// Modes of Pad that repeat data, on an axis of open length: too short a call is an error of that call.
TEST(OnnxShapes, PadsOfAnOpenAxis) {
  for (const auto& [mode, want] : {std::pair<const char*, std::vector<double>>{"reflect", {3, 2, 1, 2, 3, 4, 3}}, {"edge", {1, 1, 1, 2, 3, 4, 4}}, {"wrap", {3, 4, 1, 2, 3, 4, 1}}}) {
    const Model m{.opset = 19, .nodes = {node("Pad", {"x", "p"}, {"y"}, {text("mode", mode)})}, .inputs = {value("x", kFloat, {"N"})}, .outputs = {value("y", kFloat, {})},
                  .initializers = {longs("p", {2, 1})}};
    const Result<Imported> imported = import_onnx_bytes(m.bytes());
    ASSERT_TRUE(imported) << message(imported);
    EXPECT_EQ(text(imported->graph.node(imported->graph.outputs()[0].node).type), "f32[N+3]");
    const Result<std::vector<Tensor>> got = evaluate(imported->graph, std::vector<Tensor>{tensor({4}, {1, 2, 3, 4})});
    ASSERT_TRUE(got) << got.error().text();
    for (int64_t k = 0; k < 7; ++k) EXPECT_EQ(element((*got)[0], k), want[size_t(k)]) << mode << " " << k;
    EXPECT_FALSE(evaluate(imported->graph, std::vector<Tensor>{tensor({0}, {})})) << mode;
  }
}

/// PyTorch's expand: Where(shape == -1, ones, shape).
TEST(OnnxShapes, ExpandWithSymbols) {
  const Model m{.opset = 13,
                .nodes = {node("Shape", {"x"}, {"s"}),
                          node("ConstantOfShape", {"two"}, {"ones"}, {tensor_attribute("value", longs("", {1}))}),
                          node("Mul", {"ones", "minus"}, {"m"}), node("Equal", {"s", "m"}, {"e"}),
                          node("Where", {"e", "ones", "s"}, {"to"}), node("Expand", {"row", "to"}, {"y"})},
                .inputs = {value("x", kFloat, {"N", 2}), value("row", kFloat, {1, 2})},
                .outputs = {value("y", kFloat, {})},
                .initializers = {longs("two", {2}), raw("minus", kInt64, {}, bytes_of(std::vector<int64_t>{-1}))}};
  expect_near(eval(m, {tensor({3, 2}, std::vector<float>(6)), tensor({1, 2}, {1, 2})}), {1, 2, 1, 2, 1, 2});
}

TEST(OnnxShapes, SizesAsData) {
  const Model m{.opset = 13,
                .nodes = {node("Shape", {"x"}, {"s"}), node("Cast", {"s"}, {"y"}, {integer("to", kFloat)})},
                .inputs = {value("x", kFloat, {"N", 2})},
                .outputs = {value("y", kFloat, {2})}};
  expect_near(eval(m, {tensor({3, 2}, std::vector<float>(6))}), {3, 2});
}

TEST(OnnxShapes, AnInputThatShapesIsFixedToItsValue) {
  Model m = one(13, "Reshape", {value("x", kFloat, {4}), value("to", kInt64, {2})}, {"x", "to"});
  EXPECT_SAYS(error_of(m), "depends on input \"to\"");
  Tensor to{DType::i64, {2}, std::vector<std::byte>(16)};
  const int64_t dims[] = {2, -1};
  std::memcpy(to.data.data(), dims, 16);
  const ImportOptions options{.values = {{"to", std::make_shared<const Tensor>(to)}}};
  Result<Imported> imported = import_onnx_bytes(m.bytes(), "", options);
  ASSERT_TRUE(imported) << message(imported);
  EXPECT_EQ(imported->fixed, (std::vector<std::string>{"to"}));
  EXPECT_EQ(imported->file_inputs, 1u);
  // By way of a node, and with a default in the file.
  m.nodes = {node("Neg", {"to"}, {"minus"}), node("Reshape", {"x", "minus"}, {"y"})};
  m.initializers = {longs("to", {-2, -2})};
  imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << message(imported);
  EXPECT_EQ(imported->fixed, (std::vector<std::string>{"to"}));
}

// --- data
// -------------------------------------------------------------------------------------------------------------------

Bytes typed(int data_type, std::vector<int64_t> dims, int field, const std::vector<int32_t>& v) {
  Bytes out;
  pbf_writer w(out);
  for (int64_t d : dims) w.add_int64(1, d);
  w.add_enum(2, data_type);
  w.add_packed_int32(static_cast<protozero::pbf_tag_type>(field), v.begin(), v.end());
  return out;
}

std::vector<double> constant(const Bytes& t, int data_type) {
  return eval(
      {.nodes = {node("Constant", {}, {"y"}, {tensor_attribute("value", t)})}, .outputs = {value("y", data_type, {})}},
      {});
}

TEST(OnnxData, Bfloat16InBothFields) {
  const std::vector<double> want{0.25, 0.5, -1.5, kInf};
  EXPECT_EQ(constant(raw("", kBfloat16, {4}, std::string("\x80\x3e\x00\x3f\xc0\xbf\x80\x7f", 8)), kBfloat16), want);
  EXPECT_EQ(constant(typed(kBfloat16, {4}, 5, {16000, 16128, 49088, 32640}), kBfloat16), want);
}

TEST(OnnxData, SmallTypesLieInInt32Data) {
  EXPECT_EQ(constant(typed(kInt8, {3}, 5, {-1, 127, -128}), kInt8), (std::vector<double>{-1, 127, -128}));
  EXPECT_EQ(constant(typed(kBool, {3}, 5, {0, 1, 2}), kBool), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(constant(typed(kFloat16, {1}, 5, {0x3c00}), kFloat16), (std::vector<double>{1}));
  EXPECT_EQ(constant(typed(kE4m3, {2}, 5, {0x38, 0x7e}), kE4m3), (std::vector<double>{1, 448}));
}

// --- what is missing
// -----------------------------------------------------------------------------------------------------

TEST(OnnxErrors, AllMissingOperatorsAreNamed) {
  const Model m{.opset = 17,
                .nodes = {node("Relu", {"x"}, {"a"}), node("Conv", {"a", "a"}, {"b"}, {}, "conv1"),
                          node("Conv", {"b", "b"}, {"c"}), node("MaxPool", {"c"}, {"d"}),
                          node("FusedGelu", {"d"}, {"e"}, {}, "", "com.microsoft"), node("Gelu", {"e"}, {"y"})},
                .inputs = {value("x", kFloat, {1})},
                .outputs = {value("y", kFloat, {})}};
  const std::string e = error_of(m);
  EXPECT_SAYS(e, "node 1 \"conv1\" (Conv, operator set 17): not supported: \"Conv\"");
  EXPECT_SAYS(e, "2 nodes of it");
  EXPECT_SAYS(e, "also not supported: \"MaxPool\" (1 node)");
  EXPECT_SAYS(e, "also not supported: \"FusedGelu\" of domain \"com.microsoft\" (1 node)");
  EXPECT_SAYS(e, "also not supported: \"Gelu\", which operator set 17 does not have (1 node)");
}

TEST(OnnxErrors, SparseInitialisersAreNotTaken) {
  const Model m{.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value("x", kFloat, {1})}, .outputs = {value("y", kFloat, {1})}};
  Bytes bytes = m.bytes(), sparse;
  pbf_writer more(bytes), graph(sparse);
  graph.add_message(15, floats("values", {1}, {1}));
  more.add_message(7, sparse);  // a message that is there twice is merged
  const Result<Imported> imported = import_onnx_bytes(bytes);
  ASSERT_FALSE(imported);
  EXPECT_SAYS(imported.error().text(), "sparse initialisers are not supported");
}

/// Left out within, left out at the end, not there at all; results that nobody wants.
TEST(OnnxInputs, OptionalNamesMayBeEmpty) {
  const auto x = value("x", kFloat, {2});
  Model m = one(13, "Clip", {x}, {"x", "", "hi"});
  m.initializers = {floats("hi", {}, {1})};
  expect_near(eval(m, {tensor({2}, {-3, 3})}), {-3, 1});
  m.nodes = {node("Clip", {"x", "", ""}, {"y"})};
  expect_near(eval(m, {tensor({2}, {-3, 3})}), {-3, 3});
  m.nodes = {node("Clip", {"x"}, {"y"})};
  expect_near(eval(m, {tensor({2}, {-3, 3})}), {-3, 3});
  m.nodes = {node("LayerNormalization", {"x", "hi2"}, {"y", "", "inverse"})};
  m.opset = 17;
  m.initializers = {floats("hi2", {2}, {1, 1})};
  expect_near(eval(m, {tensor({2}, {-3, 3})}), {-1, 1});
  EXPECT_SAYS(error_of(one(13, "Add", {x}, {"x", ""})), "input 1 is missing");
  EXPECT_SAYS(error_of(one(13, "Add", {x}, {"", "x"})), "input 0 is missing");
}

TEST(OnnxErrors, EachNamesItsNode) {
  const auto x = value("x", kFloat, {2});
  for (const char* op : {"If", "Loop", "Scan"})
    EXPECT_SAYS(error_of(one(17, op, {x}, {"x"})), std::string("node 0 \"n\" (") + op + ", operator set 17)");
  EXPECT_SAYS(error_of(one(17, "Add", {x, value("z", kFloat, {3})}, {"x", "z"})),
              "node 0 \"n\" (Add, operator set 17): add: f32[2] and f32[3] do not broadcast");
  EXPECT_SAYS(error_of(one(17, "Add", {x}, {"x"})), "input 1 is missing");
  EXPECT_SAYS(error_of(one(17, "Add", {x}, {"x", "nowhere"})), "\"nowhere\" is no input");
  EXPECT_SAYS(error_of(one(17, "LeakyRelu", {x}, {"x"}, {integer("alpha", 1)})),
              "attribute alpha is of type INT, not FLOAT");
  EXPECT_SAYS(error_of(one(17, "LeakyRelu", {x}, {"x"}, {real("alpha", 1), real("alpha", 2)})), "there twice");
  EXPECT_SAYS(error_of(one(17, "Relu", {value("x", kString, {2})}, {"x"})), "input \"x\": STRING");
  Model unknown = one(17, "Relu", {x}, {"x"});
  unknown.domain = "com.example";
  EXPECT_SAYS(error_of(unknown), "no operator set of the default domain");
}

}  // namespace
}  // namespace fusec
