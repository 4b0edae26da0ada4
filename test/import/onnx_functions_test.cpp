// A model's own operators become their bodies; names, attributes, operator sets; and the text that names come back in.

#include <gtest/gtest.h>

#include "lib/import/onnx.h"
#include "lib/import/onnx_text.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;

std::string said(const Model& m) {
  const Result<Imported> r = import_onnx_bytes(m.bytes());
  return r ? "no error" : r.error().text();
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Model calling(std::vector<std::string> nodes, std::vector<std::string> functions) {
  return {.opset = 17,
          .nodes = std::move(nodes),
          .inputs = {value("x", kFloat, {"N", 3})},
          .outputs = {value("y", kFloat, {"N", 3})},
          .functions = std::move(functions)};
}

std::string text_of(const Model& m) {
  const Result<Imported> r = import_onnx_bytes(m.bytes(), "", {.sources = true});
  return r ? import_text(*r) : r.error().text();
}

// twice(a, slope) = LeakyRelu(a + a), of an operator set of its own.
std::string twice(const std::vector<std::string>& defaults = {}) {
  return function("local", "Twice", {"a", "unused"}, {"b", "h"},
                  {node("Add", {"a", "a"}, {"h"}), node("LeakyRelu", {"h"}, {"b"}, {reference("alpha", 1, "slope")}, "leak")}, 14, defaults);
}

TEST(OnnxFunctions, BecomeTheirBodies) {
  const Model m = calling({node("Twice", {"x"}, {"t"}, {real("slope", 0.5)}, "first", "local"),
                           node("Twice", {"t"}, {"y"}, {}, "second", "local")},
                          {twice({real("slope", 0.25)})});
  EXPECT_EQ(text_of(m), R"(; ONNX, operator set 17
graph @test(%x: f32[N,3]) -> f32[N,3] {
  ; node 0 Add of function "Twice" of domain "local" of node 0 "first"
  %first.h: f32[N,3] = add %x, %x
  ; node 1 LeakyRelu "leak" of function "Twice" of domain "local" of node 0 "first"
  %t: f32[N,3] = leaky_relu %first.h {alpha=0.5}
  ; node 0 Add of function "Twice" of domain "local" of node 1 "second"
  %second.h: f32[N,3] = add %t, %t
  ; node 1 LeakyRelu "leak" of function "Twice" of domain "local" of node 1 "second"
  %y: f32[N,3] = leaky_relu %second.h {alpha=0.25}
  return %y
}
)");
}

TEST(OnnxFunctions, WithinFunctionsAndPassedThrough) {
  const auto same = function("local", "Same", {"a"}, {"a"}, {}, 17);
  const auto outer = function("local", "Outer", {"a"}, {"b"}, {node("Twice", {"a"}, {"c"}, {real("slope", 1)}, "", "local"), node("Same", {"c"}, {"b"}, {}, "", "local")}, 17);
  EXPECT_EQ(said(calling({node("Outer", {"x"}, {"y"}, {}, "", "local")}, {twice(), same, outer})), "no error");
}

TEST(OnnxFunctions, ErrorsNameTheCall) {
  const auto circle = function("local", "Circle", {"a"}, {"b"}, {node("Circle", {"a"}, {"b"}, {}, "", "local")}, 17);
  EXPECT_SAYS(said(calling({node("Circle", {"x"}, {"y"}, {}, "", "local")}, {circle})), "in a circle: \"Circle\"");
  EXPECT_SAYS(said(calling({node("Twice", {"x"}, {"y"}, {}, "", "local")}, {twice(), twice()})), "is there twice");
  EXPECT_SAYS(said(calling({node("Twice", {"x", "x", "x"}, {"y"}, {}, "", "local")}, {twice()})), "the call more");
  const auto bad = function("local", "Bad", {"a"}, {"b"}, {node("Add", {"a"}, {"b"}, {}, "half")}, 17);
  EXPECT_SAYS(said(calling({node("Bad", {"x"}, {"y"}, {}, "call", "local")}, {bad})),
              "node 0 \"half\" (Add, operator set 17) of function \"Bad\" of domain \"local\" of node 0 \"call\": input 1 is missing");
  const auto loop = function("local", "Loops", {"a"}, {"b"}, {node("Loop", {"", "", "a"}, {"b"})}, 17);
  EXPECT_SAYS(said(calling({node("Loops", {"x"}, {"y"}, {}, "", "local")}, {loop})), "(Loop, operator set 17) of function");
  // Thirty levels of two calls each would be 2^30 nodes.
  std::vector<std::string> levels{function("local", "F0", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})}, 17)};
  for (int k = 1; k < 30; ++k) {
    const std::string f = "F" + std::to_string(k - 1);
    levels.push_back(function("local", "F" + std::to_string(k), {"a"}, {"b"}, {node(f, {"a"}, {"c"}, {}, "", "local"), node(f, {"c"}, {"b"}, {}, "", "local")}, 17));
  }
  EXPECT_SAYS(said(calling({node("F29", {"x"}, {"y"}, {}, "", "local")}, levels)), "nodes, with functions expanded");
}

TEST(OnnxText, ShortNamesAndTheFilesOwnInComments) {
  const Model m = calling({node("Relu", {"x"}, {"/block.0/act/Relu_output_0"}, {}, "/block.0/act/Relu"),
                           node("Softmax", {"/block.0/act/Relu_output_0"}, {"17"}),
                           node("Neg", {"17"}, {"/block.1/Relu_output_0"}), node("Abs", {"/block.1/Relu_output_0"}, {"y"})},
                          {});
  EXPECT_EQ(text_of(m), R"(; ONNX, operator set 17
graph @test(%x: f32[N,3]) -> f32[N,3] {
  ; node 0 Relu "/block.0/act/Relu": "/block.0/act/Relu_output_0"
  %Relu: f32[N,3] = relu %x
  ; node 1 Softmax: "17"
  %v17: f32[N,3] = softmax %Relu {axes=[1]}
  ; node 2 Neg: "/block.1/Relu_output_0"
  %Relu.1: f32[N,3] = neg %v17
  ; node 3 Abs
  %y: f32[N,3] = abs %Relu.1
  return %y
}
)");
  const std::string path = "LayerNormalization_of_the_third_block_function_scaled";
  const Model longer = calling({node("Constant", {}, {"half"}, {real("value_float", 0.5)}), node("Mul", {"x", "half"}, {path}), node("Neg", {path}, {"y"})}, {});
  EXPECT_EQ(text_of(longer), R"(; ONNX, operator set 17
graph @test(%x: f32[N,3]) -> f32[N,3] {
  ; node 1 Mul: "LayerNormalization_of_the_third_block_function_scaled"
  %of_the_third_block_function_scaled: f32[N,3] = mul %x, 0.5
  ; node 2 Neg
  %y: f32[N,3] = neg %of_the_third_block_function_scaled
  return %y
}
)");
  const Result<Graph> back = parse(text_of(m));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->inputs().size(), 1u);
}

}  // namespace
}  // namespace fusec
