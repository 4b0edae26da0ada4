// How many kernels a graph becomes, what each reads and writes, and why two stayed apart.

#include <gtest/gtest.h>

#include <chrono>

#include "lib/fusion/cost.h"
#include "lib/fusion/fuse.h"
#include "lib/ir/decompose.h"

namespace fusec {
namespace {

struct Planned {
  Graph graph;
  GroupPlan plan;
  std::string text() const {
    std::string out;
    for (const Group& group : plan.groups) out += print(*build(graph, group)) + "\n";
    for (const Refusal& refusal : plan.refusals) out += refusal.code + ": " + refusal.reason + "\n";
    return out;
  }
};

Planned plan_of(const std::string& source) {
  Result<Graph> graph = parse(source, "test.fus");
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().text());
  Result<Graph> primitive = decompose(*graph);
  Result<GroupPlan> plan = fuse(*primitive);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
  return {*primitive, plan ? *plan : GroupPlan{}};
}

TEST(Fuse, HandWrittenLayerNormIsOneKernelWithOneRead) {
  const Planned p = plan_of(R"(graph @ln(%x: f32[N,1024], %g: f32[1024], %b: f32[1024]) -> f32[N,1024] {
    %s = sum %x {axes=[1], keep=true}
    %m = div %s, 1024.0
    %d = sub %x, %m
    %q = mul %d, %d
    %t = sum %q {axes=[1], keep=true}
    %v = div %t, 1024.0
    %e = add %v, 1e-05
    %r = sqrt %e
    %n = div %d, %r
    %w = mul %n, %g
    %y = add %w, %b
    return %y
  })");
  ASSERT_EQ(p.plan.groups.size(), 1u) << p.text();
  EXPECT_EQ(p.plan.groups[0].inputs.size(), 3u);
}

TEST(Fuse, ChainOfTwenty) {
  std::string body = "graph @chain(%x: f32[N,64]) -> f32[N,64] {\n  %v0 = exp %x\n";
  for (int k = 1; k < 20; k++)
    body += "  %v" + std::to_string(k) + " = " + (k % 2 ? "mul" : "add") + " %v" + std::to_string(k - 1) + ", 0." + std::to_string(k) + "\n";
  EXPECT_EQ(plan_of(body + "  return %v19\n}").plan.groups.size(), 1u);
}

TEST(Fuse, ResidualAddLayerNormStoresBoth) {
  const Planned p = plan_of(R"(graph @g(%x: bf16[N,4096], %r: bf16[N,4096], %g: bf16[4096], %b: bf16[4096]) -> (bf16[N,4096], bf16[N,4096]) {
    %h = add %x, %r
    %y = layer_norm %h, %g, %b {axes=[1], eps=1e-05}
    return %y, %h
  })");
  ASSERT_EQ(p.plan.groups.size(), 1u) << p.text();
  EXPECT_EQ(p.plan.groups[0].outputs.size(), 2u);
}

TEST(Fuse, TwoReductionsOverTheSameRows) {
  const Planned p = plan_of(R"(graph @g(%x: f32[N,512]) -> (f32[N], f32[N]) {
    %s = sum %x {axes=[1]}
    %m = reduce_max %x {axes=[1]}
    return %s, %m
  })");
  EXPECT_EQ(p.plan.groups.size(), 1u) << p.text();
}

TEST(Fuse, SiblingsShareTheirInput) {
  const Planned p = plan_of(R"(graph @g(%x: f32[N,512]) -> (f32[N,512], f32[N,512]) {
    %s = exp %x
    %m = sqrt %x
    return %s, %m
  })");
  EXPECT_EQ(p.plan.groups.size(), 1u) << p.text();
}

TEST(Fuse, TwoAxisSetsStayApartWithAReason) {
  const Planned p = plan_of(R"(graph @g(%x: f32[7,512]) -> f32[] {
    %s = sum %x {axes=[1]}
    %e = exp %s
    %m = reduce_max %e {axes=[0]}
    return %m
  })");
  EXPECT_EQ(p.plan.groups.size(), 2u) << p.text();
  ASSERT_EQ(p.plan.refusals.size(), 1u);
  EXPECT_EQ(p.plan.refusals[0].code, "two-axis-sets");
  EXPECT_EQ(p.plan.refusals[0].bytes, 2 * 7 * 4) << "what is written and read again, not the launch";
}

TEST(Fuse, SoftmaxOverOneLongRowIsTwoSteps) {
  const Planned p = plan_of(R"(graph @g(%x: f32[67108864]) -> f32[67108864] {
    %y = softmax %x {axes=[0]}
    return %y
  })");
  EXPECT_GE(p.plan.groups.size(), 2u) << p.text();
  EXPECT_FALSE(p.plan.refusals.empty());
}

TEST(Fuse, CheapProducerIsComputedTwice) {
  // The cast feeds two reductions over different axes: storing it would cost a write and two reads.
  const Planned p = plan_of(R"(graph @g(%x: bf16[N,512]) -> (f32[N], f32[512]) {
    %c = cast %x {to=f32}
    %s = sum %c {axes=[1]}
    %m = sum %c {axes=[0]}
    return %s, %m
  })");
  ASSERT_EQ(p.plan.groups.size(), 2u) << p.text();
  for (const Group& group : p.plan.groups) EXPECT_EQ(p.graph.node(group.inputs[0]).op, Op::input);
}

TEST(Fuse, DeepChainInLinearTime) {
  GraphBuilder b("deep");
  Value x = b.input("x", {DType::f32, {Dim(2)}});
  for (int k = 0; k < 20000; k++) x = b.add(Op::add, {x, b.scalar(DType::f32, 1)});
  Result<Graph> graph = std::move(b).finish({x});
  ASSERT_TRUE(graph);
  const auto start = std::chrono::steady_clock::now();
  Result<GroupPlan> plan = fuse(*graph);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20.0);
  size_t nodes = 0;
  for (const Group& group : plan->groups) nodes += group.nodes.size();
  EXPECT_EQ(nodes, 20000u);
}

TEST(Fuse, ThousandsOfInputsSplit) {
  GraphBuilder b("wide");
  Value sum;
  for (int k = 0; k < 1100; k++) {
    Value x = b.input("x" + std::to_string(k), {DType::i64, {Dim(4)}});
    sum = k ? b.add(Op::add, {sum, x}) : x;
  }
  Result<Graph> graph = std::move(b).finish({sum});
  ASSERT_TRUE(graph);
  Result<GroupPlan> plan = fuse(*graph);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_GT(plan->groups.size(), 20u);
  EXPECT_LT(plan->groups.size(), 80u);
  for (const Group& group : plan->groups) EXPECT_LE(group.inputs.size() + group.outputs.size(), 48u);
}

TEST(Fuse, DiamondOfDoubledValuesStaysSmall) {
  GraphBuilder b("doubling");
  Value x = b.input("x", {DType::f32, {}});
  for (int k = 0; k < 64; k++) x = b.add(Op::add, {b.add(Op::sin, {x}), b.add(Op::cos, {x})});
  Result<Graph> graph = std::move(b).finish({x});
  ASSERT_TRUE(graph);
  Result<GroupPlan> plan = fuse(*graph);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->groups.size(), 1u);
}

TEST(Fuse, EveryValueReadIsWritten) {
  // From an ONNX loss: the mask is computed beside one copy of its reader, and read from memory by the other copy.
  const Planned p = plan_of(R"(graph @loss(%x: f32[3,5,2], %t: i64[3,2]) -> f32[] {
    %e = reshape %t {shape=[3,1,2]}
    %mask = eq %e, 1
    %n = select %mask, 0, %e
    %i = iota {shape=[1,5,1], to=i64, axis=1}
    %h = eq %n, %i
    %s = select %h, %x, -inf
    %g = reduce_max %s {axes=[1], keep=true}
    %m = reshape %mask {shape=[3,2]}
    %z = constant {value=f32[] 0.0}
    %w = select %m, %z, 1.0
    %l = reshape %g {shape=[3,2]}
    %k = mul %l, %w
    %a = sum %k {axes=[0,1]}
    %b = sum %w {axes=[0,1]}
    %y = div %a, %b
    return %y
  })");
  std::vector<char> there(p.graph.size(), false);
  for (NodeId id = 0; id < p.graph.size(); id++) there[id] = is_leaf(p.graph.node(id).op);
  for (const Group& group : p.plan.groups) {
    for (NodeId id : group.inputs) EXPECT_TRUE(there[id]) << p.text();
    for (NodeId id : group.outputs) there[id] = true;
  }
  EXPECT_LE(p.plan.groups.size(), 4u) << p.text();
}

TEST(Fuse, TwoReadersThatStayApartSayWhy) {
  const Planned p = plan_of(R"(graph @g(%x: f32[4096,1024]) -> (f32[4096], f32[1024]) {
    %rows = sum %x {axes=[1]}
    %columns = sum %x {axes=[0]}
    return %rows, %columns
  })");
  EXPECT_EQ(p.plan.groups.size(), 2u) << p.text();
  ASSERT_EQ(p.plan.refusals.size(), 1u) << p.text();
  const Refusal& refusal = p.plan.refusals[0];
  EXPECT_TRUE(refusal.siblings());
  EXPECT_EQ(refusal.shared, p.graph.inputs()[0].node);
  EXPECT_EQ(refusal.producer, p.graph.outputs()[0].node);
  EXPECT_EQ(refusal.consumer, p.graph.outputs()[1].node);
  EXPECT_EQ(refusal.bytes, 4096 * 1024 * 4);
  EXPECT_FALSE(refusal.code.empty());
}

TEST(Fuse, UnrelatedOutputsAreKernelsOfTheirOwn) {
  GraphBuilder b("many");
  std::vector<Value> outputs;
  for (int k = 0; k < 200; k++) outputs.push_back(b.add(Op::neg, {b.input("x" + std::to_string(k), {DType::f32, {64}})}));
  Result<Graph> graph = std::move(b).finish(outputs);
  ASSERT_TRUE(graph) << graph.error().text();
  Result<GroupPlan> plan = fuse(*graph);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->groups.size(), 200u);
  EXPECT_TRUE(plan->refusals.empty()) << "nothing was even tried";
}

}  // namespace
}  // namespace fusec
