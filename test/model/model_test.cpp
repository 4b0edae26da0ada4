// Whole models: which nodes are left to others, which shapes are known behind them, and how the rest is cut into regions.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "lib/import/model.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;

WholeModel read(const Model& m, ImportOptions options = {}) {
  Result<WholeModel> model = read_model_bytes(m.bytes(), "", options);
  EXPECT_TRUE(model) << (model ? "" : model.error().text());
  return model ? std::move(*model) : WholeModel{};
}

std::vector<float> numbers(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i % 7) * 0.25f - 0.5f;
  return out;
}

/// "add relu; Conv; mul": the steps, each with its ops or its operator.
std::string steps_text(const WholeModel& model) {
  std::string out;
  for (const ModelStep& step : model.steps) {
    out += out.empty() ? "" : "; ";
    if (!step.is_region()) {
      out += model.boundaries[*step.boundary].op;
      continue;
    }
    std::string ops;
    for (const Node& node : model.regions[*step.region].graph.nodes())
      if (!is_leaf(node.op)) ops += (ops.empty() ? "" : " ") + std::string(name(node.op));
    out += ops;
  }
  return out;
}

const ModelTensor& tensor(const WholeModel& model, const std::string& name) {
  for (const ModelTensor& t : model.tensors)
    if (t.name == name) return t;
  ADD_FAILURE() << "no tensor " << name;
  return model.tensors.front();
}

std::string type_text(const WholeModel& model, const std::string& name) {
  const ModelTensor& t = tensor(model, name);
  return t.type ? text(*t.type) : "unknown";
}

/// Every operand of a step is an input, a weight, a view of what is there, or was computed by an earlier step.
void expect_in_order(const WholeModel& model) {
  for (size_t s = 0; s < model.steps.size(); ++s)
    for (std::optional<size_t> t : model.steps[s].inputs) {
      if (!t) continue;
      while (model.tensors[*t].view_of) t = model.tensors[*t].view_of;
      const ModelTensor& tensor = model.tensors[*t];
      if (tensor.kind == ModelTensor::computed) {
        ASSERT_TRUE(tensor.producer) << tensor.name;
        EXPECT_LT(*tensor.producer, s) << tensor.name;
      }
      EXPECT_TRUE(std::count(tensor.readers.begin(), tensor.readers.end(), s)) << tensor.name;
    }
}

Model block() {
  Model m{.opset = 17};
  m.inputs = {value("x", kFloat, {"N", 8, 16})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {16, 32}, numbers(512)), floats("b", {32}, numbers(32)),
                    floats("v", {32, 16}, numbers(512)), floats("scale", {16}, numbers(16)),
                    floats("shift", {16}, numbers(16)),  longs("to", {-1, 8, 32})};
  m.nodes = {node("LayerNormalization", {"x", "scale", "shift"}, {"n"}),
             node("MatMul", {"n", "w"}, {"h"}),
             node("Add", {"h", "b"}, {"hb"}),
             node("Gelu", {"hb"}, {"g"}),
             node("Reshape", {"g", "to"}, {"r"}),
             node("MatMul", {"r", "v"}, {"o"}),
             node("Add", {"o", "x"}, {"y"})};
  m.opset = 20;
  return m;
}

TEST(Model, RegionsLieBetweenBoundaries) {
  const WholeModel model = read(block());
  EXPECT_EQ(model.nodes, 7u);
  ASSERT_EQ(model.boundaries.size(), 2u);
  EXPECT_EQ(model.boundaries[0].op, "MatMul");
  EXPECT_EQ(model.boundaries[0].why, Boundary::outside);
  ASSERT_EQ(model.regions.size(), 3u);
  EXPECT_EQ(type_text(model, "h"), "f32[N,8,32]");  // the symbol stays
  EXPECT_EQ(type_text(model, "o"), "f32[N,8,16]");
  EXPECT_EQ(steps_text(model).substr(0, 18), "layer_norm; MatMul") << steps_text(model);
  EXPECT_TRUE(steps_text(model).ends_with("MatMul; add")) << steps_text(model);
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_EQ(model.tensors[model.outputs[0]].name, "y");
  expect_in_order(model);
}

TEST(Model, DimsAreNumbersOnceTheyAreGiven) {
  const WholeModel model = read(block(), {.sizes = {{"N", 3}}});
  EXPECT_EQ(type_text(model, "h"), "f32[3,8,32]");
  for (const ModelRegion& region : model.regions) EXPECT_TRUE(region.graph.symbols().empty());
}

TEST(Model, ShapeArithmeticIsFoldedThroughBoundaries) {
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {"N", 6, 4})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {4, 8}, numbers(32)), longs("first", {0}), longs("rest", {2, 3, 8})};
  m.nodes = {node("MatMul", {"x", "w"}, {"h"}),     node("Shape", {"h"}, {"s"}),
             node("Gather", {"s", "first"}, {"n"}), node("Concat", {"n", "rest"}, {"to"}, {integer("axis", 0)}),
             node("Reshape", {"h", "to"}, {"r"}),   node("Relu", {"r"}, {"y"})};
  const WholeModel model = read(m);
  EXPECT_EQ(steps_text(model), "MatMul; reshape relu");
  EXPECT_EQ(type_text(model, "y"), "f32[N,2,3,8]");
}

TEST(Model, AReshapeBetweenBoundariesIsAView) {
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {6, 4})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {4, 8}, numbers(32)), longs("to", {12, 4})};
  m.nodes = {node("MatMul", {"x", "w"}, {"h"}), node("Reshape", {"h", "to"}, {"r"}), node("MatMul", {"r", "w"}, {"y"})};
  const WholeModel model = read(m);
  EXPECT_EQ(steps_text(model), "MatMul; MatMul");
  ASSERT_TRUE(tensor(model, "r").view_of);
  EXPECT_EQ(model.tensors[*tensor(model, "r").view_of].name, "h");
  EXPECT_EQ(tensor(model, "h").readers, std::vector<size_t>{1});
  expect_in_order(model);
}

// relu reads what Conv reads and add joins both: relu waits for add, since no path leads from it through Conv.
TEST(Model, ABranchGoesWhereItIsRead) {
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {1, 4, 8, 8})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {4, 4, 3, 3}, numbers(144))};
  m.nodes = {node("Relu", {"x"}, {"a"}), node("Conv", {"x", "w"}, {"c"}, {integers("pads", {1, 1, 1, 1})}),
             node("Add", {"a", "c"}, {"y"})};
  EXPECT_EQ(steps_text(read(m)), "Conv; relu add");
  m.nodes[1] = node("Conv", {"a", "w"}, {"c"}, {integers("pads", {1, 1, 1, 1})});  // now one does
  const WholeModel model = read(m);
  EXPECT_EQ(steps_text(model), "relu; Conv; add");
  expect_in_order(model);
}

TEST(Model, WhatHangsOnWeightsAloneIsComputedOnce) {
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {2, 200})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {100, 200}, numbers(20000))};  // too large for a constant
  m.nodes = {node("Transpose", {"w"}, {"t"}), node("MatMul", {"x", "t"}, {"y"})};
  const WholeModel model = read(m);
  EXPECT_EQ(steps_text(model), "transpose; MatMul");
  ASSERT_EQ(model.regions.size(), 1u);
  EXPECT_TRUE(model.regions[0].once);
  EXPECT_EQ(tensor(model, "w").kind, ModelTensor::weight);
}

TEST(Model, SaysWhyANodeIsLeftOut) {
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {2, 4}), value("k", kInt64, {2})};
  m.outputs = {value("y", kFloat, {}), value("z", kFloat, {})};
  m.initializers = {floats("table", {300, 4}, numbers(1200)), longs("shape", {4, 2})};
  m.nodes = {node("Custom", {"x"}, {"c"}, {}, "", "somewhere"), node("Relu", {"c"}, {"y"}),
             node("NonZero", {"x"}, {"nz"}), node("Reshape", {"x", "k"}, {"z"})};
  const WholeModel model = read(m);
  ASSERT_EQ(model.boundaries.size(), 4u);
  EXPECT_EQ(model.boundaries[0].why, Boundary::unknown);
  EXPECT_EQ(model.boundaries[0].domain, "somewhere");
  EXPECT_EQ(model.boundaries[1].why, Boundary::unshaped);
  EXPECT_EQ(model.boundaries[2].why, Boundary::outside);
  EXPECT_EQ(model.boundaries[3].why, Boundary::form);
  EXPECT_NE(model.boundaries[3].reason.find("has to be known"), std::string::npos) << model.boundaries[3].reason;
  EXPECT_EQ(type_text(model, "y"), "unknown");
}

/// Control flow that nothing decides stays a node, with what it is called; what lies around it is fused all the same.
TEST(Model, ControlFlowIsNamedAndTheRestGoesOn) {
  for (const std::string op : {"If", "Loop", "Scan"}) {
    Model m{.opset = 17};
    m.inputs = {value("x", kFloat, {2, 4}), value("c", kBool, {})};
    m.outputs = {value("y", kFloat, {2, 4}), value("z", kFloat, {})};
    m.nodes = {node("Exp", {"x"}, {"e"}), node("Neg", {"e"}, {"n"}), node(op, {"c", "n"}, {"l"}, {}, "turns"),
               node("Relu", {"l"}, {"y"}), node("Tanh", {"n"}, {"z"})};
    const WholeModel model = read(m);
    ASSERT_EQ(model.boundaries.size(), 2u) << op;
    EXPECT_EQ(model.boundaries[0].op, op);
    EXPECT_EQ(model.boundaries[0].name, "turns");
    EXPECT_EQ(model.boundaries[0].why, Boundary::outside);
    EXPECT_EQ(model.boundaries[1].why, Boundary::unshaped);  // the file does not say what shape "l" has
    EXPECT_EQ(model.regions.size(), 1u) << op;
  }
}

TEST(Model, ShapesOfBoundaries) {
  struct Case {
    Bytes node;
    std::string shape;
    int64_t opset = 17;
  };
  const std::vector<Bytes> same = {text("auto_pad", "SAME_UPPER"), integers("strides", {2, 2})};
  const Case cases[] = {
      {node("Conv", {"x", "w"}, {"y"}), "f32[2,6,8,7]"},
      {node("Conv", {"x", "w"}, {"y"},
            {integers("strides", {2, 1}), integers("dilations", {2, 1}), integers("pads", {1, 0, 2, 0})}),
       "f32[2,6,5,7]"},
      {node("Conv", {"x", "w"}, {"y"}, same), "f32[2,6,5,5]"},
      {node("ConvTranspose", {"c", "w"}, {"y"}, {integers("strides", {2, 2}), integers("output_padding", {1, 0})}),
       "f32[2,4,22,19]"},
      {node("MaxPool", {"x"}, {"y"}, {integers("kernel_shape", {3, 3}), integers("strides", {2, 2})}), "f32[2,4,4,4]"},
      {node("MaxPool", {"x"}, {"y"},
            {integers("kernel_shape", {3, 3}), integers("strides", {2, 2}), integer("ceil_mode", 1)}),
       "f32[2,4,5,4]"},
      {node("AveragePool", {"x"}, {"y"}, {integers("kernel_shape", {2, 1})}), "f32[2,4,9,9]"},
      {node("Resize", {"x", "", "scales"}, {"y"}), "f32[2,4,20,13]"},
      {node("Resize", {"x", "", "", "sizes"}, {"y"}), "f32[2,4,3,5]"},
      {node("Gemm", {"a", "b"}, {"y"}, {integer("transA", 1)}), "f32[5,3]"},
      {node("Einsum", {"x", "x"}, {"y"}, {text("equation", "abij,abkj->aik")}), "f32[2,10,10]"},
      {node("TopK", {"x", "two"}, {"y"}), "f32[2,4,10,2]"},
      {node("GatherND", {"x", "ids"}, {"y"}), "f32[3,10,9]"},
      {node("MatMul", {"x", "v"}, {"y"}), "f32[2,4,10]"},
  };
  for (const Case& c : cases) {
    Model m{.opset = c.opset};
    m.inputs = {value("x", kFloat, {2, 4, 10, 9}), value("c", kFloat, {2, 6, 10, 9}), value("a", kFloat, {4, 5}),
                value("b", kFloat, {4, 3}),        value("v", kFloat, {9}),           value("ids", kInt64, {3, 2})};
    m.outputs = {value("y", kFloat, {})};
    m.initializers = {floats("w", {6, 4, 3, 3}, numbers(216)), floats("scales", {4}, {1, 1, 2, 1.5f}),
                      longs("sizes", {2, 4, 3, 5}), longs("two", {2})};
    m.nodes = {c.node};
    EXPECT_EQ(type_text(read(m), "y"), c.shape);
  }
}

/// Sides of unknown length behind windows of any step: with sizes put in, the shapes are those of a model that had them from the start.
TEST(Model, ShapesOfWindowsOverSymbols) {
  const Bytes nodes[] = {
      node("Conv", {"x", "w"}, {"y"}, {integers("strides", {2, 3}), integers("pads", {1, 0, 1, 2})}),
      node("Conv", {"x", "w"}, {"y"}, {integers("strides", {3, 2}), integers("dilations", {2, 1})}),
      node("Conv", {"x", "w"}, {"y"}, {integers("strides", {2, 2}), text("auto_pad", "SAME_LOWER")}),
      node("Conv", {"x", "w"}, {"y"}, {integers("strides", {2, 2}), text("auto_pad", "VALID")}),
      node("MaxPool", {"x"}, {"y"}, {integers("kernel_shape", {3, 2}), integers("strides", {2, 2})}),
      node("MaxPool", {"x"}, {"y"}, {integers("kernel_shape", {3, 3}), integers("strides", {2, 2}), integer("ceil_mode", 1), integers("pads", {1, 1, 1, 1})}),
  };
  for (const Bytes& n : nodes) {
    Model m{.opset = 17, .nodes = {n}, .inputs = {value("x", kFloat, {1, 4, "h", "w/2"})}, .outputs = {value("y", kFloat, {})}};
    m.initializers = {floats("w", {6, 4, 3, 3}, numbers(216))};
    const WholeModel open = read(m);
    ASSERT_TRUE(tensor(open, "y").type);
    for (int64_t h = 5; h < 20; ++h) {
      Sizes sizes = {{"h", h}, {"w/2", h + 3}};
      const std::string want = type_text(read(m, {.sizes = sizes}), "y");
      add_quotients(open.quotients, sizes);
      Shape shape;
      for (const Dim& d : tensor(open, "y").type->shape) shape.push_back(d.value(sizes).value());
      EXPECT_EQ(text(Type{DType::f32, shape}), want);
    }
  }
  // Where the last window may begin in the padding, the length is no quotient.
  Model m{.opset = 17, .inputs = {value("x", kFloat, {1, 4, "h"})}, .outputs = {value("y", kFloat, {})}};
  m.nodes = {node("MaxPool", {"x"}, {"y"}, {integers("kernel_shape", {2}), integers("strides", {2}), integer("ceil_mode", 1), integers("pads", {1, 1})})};
  EXPECT_FALSE(tensor(read(m), "y").type);
}

/// A block of a residual network that halves its sides: both branches have the same quotient, so they are joined and what follows is fused.
TEST(Model, BranchesOfTheSameQuotientMeet) {
  Model m{.opset = 17, .inputs = {value("x", kFloat, {"n", 4, "h", "h/2"})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {floats("w", {4, 4, 3, 3}, numbers(144)), floats("v", {4, 4, 1, 1}, numbers(16)), floats("u", {4, 4, 3, 3}, numbers(144))};
  const std::vector<Bytes> half = {integers("strides", {2, 2}), integers("pads", {1, 1, 1, 1})};
  m.nodes = {node("Conv", {"x", "w"}, {"a"}, half),
             node("Conv", {"x", "v"}, {"b"}, {integers("strides", {2, 2})}),
             node("Add", {"a", "b"}, {"c"}), node("Relu", {"c"}, {"d"}),
             node("Conv", {"d", "u"}, {"e"}, half), node("Sigmoid", {"e"}, {"y"})};
  const WholeModel model = read(m);
  EXPECT_EQ(steps_text(model), "Conv; Conv; add relu; Conv; sigmoid");
  EXPECT_EQ(type_text(model, "y"), "f32[n,4,\"h/2'/2\",\"h/8\"]");  // "h/2" is a side of its own here
  ASSERT_EQ(model.quotients.size(), 4u);
  EXPECT_EQ(model.quotients[0].symbol, "h/2'");
  EXPECT_EQ(model.quotients[0].of.text(), "h+1");
  EXPECT_EQ(model.quotients[1].symbol, "h/4");
}

/// Symbols for quotients have a limit; beyond it shapes are not known.
TEST(Model, EndlessHalving) {
  Model m{.opset = 17, .inputs = {value("x", kFloat, {1, 1, "h"})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {floats("w", {1, 1, 3}, numbers(3))};
  const int n = 20'000;
  for (int k = 0; k < n; ++k)
    m.nodes.push_back(node("Conv", {k ? "v" + std::to_string(k) : "x", "w"}, {k + 1 < n ? "v" + std::to_string(k + 1) : "y"}, {integers("strides", {2})}));
  const WholeModel model = read(m);
  EXPECT_EQ(model.quotients.size(), 1000u);
  EXPECT_EQ(type_text(model, "y"), "unknown");
  EXPECT_LT(model.quotients.back().symbol.size(), 1000u);
}

// --- If with a known condition
// -----------------------------------------------------------------------------------------------

/// A branch: an attribute of If.
Bytes branch(const std::string& which, const std::vector<Bytes>& nodes, const std::string& output,
             const std::vector<Bytes>& initializers = {}) {
  Bytes graph;
  pbf_writer g(graph);
  for (const Bytes& n : nodes) g.add_message(1, n);
  for (const Bytes& t : initializers) g.add_message(5, t);
  g.add_message(12, value(output, kFloat, {}));
  return attribute(which, 5, [&](pbf_writer& w) { w.add_message(6, graph); });
}

// A branch and the model have a value "t"; the inner If lies in that branch, reads its t, and both of its branches have a "t2".
Model choices(const Bytes& condition) {
  Model m{.opset = 17};
  m.inputs = {value("x", kFloat, {"N", 4}), value("rate", kInt64, {})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {longs("one", {1}), raw("sixteen", kInt64, {}, bytes_of(std::vector<int64_t>{16}))};
  const Bytes inner = node("If", {"c"}, {"i"},
                           {branch("then_branch", {node("Exp", {"t"}, {"t2"})}, "t2"),
                            branch("else_branch", {node("Tanh", {"t"}, {"t2"})}, "t2")});
  m.nodes = {node("Abs", {"x"}, {"t"}),
             node("Shape", {"x"}, {"s"}),
             node("Slice", {"s", "zero", "one"}, {"n"}),
             condition,
             node("Squeeze", {"k"}, {"c"}),
             node("If", {"c"}, {"u"},
                  {branch("then_branch", {node("Mul", {"t", "w"}, {"m"}), node("Relu", {"m"}, {"r"})}, "r",
                          {floats("w", {4}, numbers(4))}),
                   branch("else_branch", {node("Sigmoid", {"x"}, {"t"}), inner, node("Add", {"i", "t"}, {"r"})}, "r")}),
             node("Sub", {"u", "t"}, {"y"})};
  m.initializers.push_back(longs("zero", {0}));
  return m;
}

TEST(Branches, AConditionOnShapesPutsOneInPlace) {
  const Model m = choices(node("Equal", {"n", "one"}, {"k"}));
  EXPECT_EQ(steps_text(read(m, {.sizes = {{"N", 1}}})), "abs mul relu sub");
  EXPECT_EQ(steps_text(read(m, {.sizes = {{"N", 3}}})), "abs sigmoid tanh add sub");
  const WholeModel open = read(m);
  ASSERT_FALSE(open.boundaries.empty());
  EXPECT_NE(steps_text(open).find("If"), std::string::npos);
}

TEST(Branches, AGivenValueDecides) {
  const Model m = choices(node("Equal", {"rate", "sixteen"}, {"k"}));
  const auto rate = [](int64_t n) {
    Tensor t{DType::i64, {}, std::vector<std::byte>(8)};
    std::memcpy(t.data.data(), &n, 8);
    return std::make_shared<const Tensor>(std::move(t));
  };
  const WholeModel sixteen = read(m, {.values = {{"rate", rate(16)}}});
  EXPECT_EQ(steps_text(sixteen), "abs mul relu sub");
  EXPECT_EQ(sixteen.fixed, std::vector<std::string>{"rate"});
  EXPECT_EQ(steps_text(read(m, {.values = {{"rate", rate(8)}}})), "abs sigmoid tanh add sub");
}

TEST(Branches, ADamagedBranchStaysANode) {
  Model m = choices(node("Equal", {"n", "one"}, {"k"}));
  m.nodes[5] = node("If", {"c"}, {"u"},
                    {attribute("then_branch", 5, [](pbf_writer& w) { w.add_message(6, Bytes("\x0a\x7f")); })});
  const WholeModel model = read(m, {.sizes = {{"N", 1}}});
  EXPECT_NE(steps_text(model).find("If"), std::string::npos);
}

// --- the partition itself, against its definition on random graphs
// --------------------------------------------------------------------

struct Random {
  Graph graph;
  std::vector<Gap> gaps;
};

Random random_graph(uint32_t seed) {
  std::mt19937 random(seed);
  GraphBuilder b("g");
  const Type type{DType::f32, {4}};
  std::vector<Value> values{b.input("x", type), b.input("y", type)};
  std::vector<std::pair<Value, Value>> gaps;
  const auto pick = [&] {
    return values[std::max(random() % values.size(), random() % values.size())];
  };  // rather late ones
  for (int k = 0; k < 30; ++k) {
    if (random() % 4 == 0) {
      const Value in = pick(), out = b.input("g" + std::to_string(k), type);
      gaps.emplace_back(in, out);
      values.push_back(out);
    } else {
      values.push_back(b.add(random() % 2 ? Op::add : Op::mul, {pick(), pick()}));
    }
  }
  std::vector<Value> outputs;
  for (const auto& [in, out] : gaps) outputs.push_back(in);
  for (Value v : values) outputs.push_back(v);  // all stay
  Random out;
  Result<Graph> graph = std::move(b).finish(outputs);
  EXPECT_TRUE(graph);
  out.graph = std::move(*graph);
  for (size_t k = 0; k < gaps.size(); ++k)
    out.gaps.push_back({{out.graph.outputs()[k].node}, {out.graph.inputs()[k + 2].node}});
  return out;
}

/// Pieces' direct steps: edges[p] has q when q reads what p computes.
std::vector<std::vector<bool>> steps_between(const Random& r, const Partition& p) {
  const size_t n = p.groups + r.gaps.size();
  std::vector<uint32_t> piece = p.group;
  for (size_t g = 0; g < r.gaps.size(); ++g)
    for (NodeId w : r.gaps[g].writes) piece[w] = static_cast<uint32_t>(p.groups + g);
  std::vector<std::vector<bool>> edges(n, std::vector<bool>(n));
  const auto add = [&](uint32_t from, uint32_t to) {
    if (from != Partition::kNone && to != Partition::kNone && from != to) edges[from][to] = true;
  };
  for (NodeId id = 0; id < r.graph.size(); ++id)
    for (NodeId a : r.graph.node(id).args) add(piece[a], piece[id]);
  for (size_t g = 0; g < r.gaps.size(); ++g)
    for (NodeId read : r.gaps[g].reads) add(piece[read], static_cast<uint32_t>(p.groups + g));
  return edges;
}

TEST(Partition, IsConvexAndMaximalOnRandomGraphs) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Random r = random_graph(seed);
    const Partition p = partition(r.graph, r.gaps, std::vector<bool>(r.graph.inputs().size()));
    const std::vector<std::vector<bool>> edges = steps_between(r, p);
    const size_t n = edges.size();
    ASSERT_EQ(p.order.size(), n) << seed;
    std::vector<size_t> place(n, n);
    for (size_t k = 0; k < n; ++k) place[p.order[k]] = k;
    for (size_t a = 0; a < n; ++a)
      for (size_t c = 0; c < n; ++c)
        EXPECT_TRUE(!edges[a][c] || place[a] < place[c])
            << seed;  // an order of the pieces: no cycle, so all are convex
    std::vector<std::vector<bool>> reach = edges;
    for (size_t k = 0; k < n; ++k)
      for (size_t a = 0; a < n; ++a)
        for (size_t c = 0; c < n; ++c)
          if (reach[a][k] && reach[k][c]) reach[a][c] = true;
    for (size_t a = 0; a < p.groups; ++a)
      for (size_t c = 0; c < p.groups; ++c) {
        if (!edges[a][c]) continue;
        bool other = false;
        for (size_t k = 0; k < n; ++k) other |= k != c && edges[a][k] && reach[k][c];
        EXPECT_TRUE(other) << "seed " << seed << ": groups " << a << " and " << c << " could be one";
      }
  }
}

// Twenty thousand nodes on one chain with a gap behind each: levels are as deep, walks are not.
TEST(Partition, DeepModels) {
  Model m{.opset = 13};
  m.inputs = {value("x", kFloat, {2, 2})};
  m.outputs = {value("y", kFloat, {})};
  m.initializers = {floats("w", {2, 2}, numbers(4))};
  std::string last = "x";
  for (int k = 0; k < 10'000; ++k) {
    const std::string n = std::to_string(k);
    m.nodes.push_back(node("MatMul", {last, "w"}, {"m" + n}));
    m.nodes.push_back(node("Sigmoid", {"m" + n}, {"s" + n}));
    last = "s" + n;
  }
  m.nodes.push_back(node("Identity", {last}, {"y"}));
  const WholeModel model = read(m);
  EXPECT_EQ(model.regions.size(), 10'000u);
  EXPECT_EQ(model.steps.size(), 20'000u);
}

}  // namespace
}  // namespace fusec
