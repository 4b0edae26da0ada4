// What build() makes of typical groups: axes merged, maps linear, one load for each view, sweeps in the right number, and a worded
// refusal where there is no kernel.

#include <gtest/gtest.h>

#include "lib/fusion/fuse.h"
#include "lib/ir/decompose.h"
#include "lib/kernel/kernel.h"

namespace fusec {
namespace {

Graph graph_of(const std::string& body) {
  Result<Graph> graph = parse(body, "test.fus");
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().text());
  Result<Graph> primitive = decompose(*graph);
  EXPECT_TRUE(primitive) << (primitive ? "" : primitive.error().text());
  return *primitive;
}

/// The whole graph as one group.
Group everything(const Graph& graph) {
  Group group;
  for (NodeId id = 0; id < graph.size(); id++) {
    const Node& node = graph.node(id);
    if (node.op == Op::input || (node.op == Op::constant && !node.type.shape.empty())) group.inputs.push_back(id);
    else if (!is_leaf(node.op)) group.nodes.push_back(id);
  }
  for (const Port& port : graph.outputs()) group.outputs.push_back(port.node);
  return group;
}

Kernel kernel_of(const std::string& body) {
  const Graph graph = graph_of(body);
  Result<Kernel> kernel = build(graph, everything(graph));
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().text());
  return kernel ? *kernel : Kernel{};
}

std::string refusal_of(const std::string& body) {
  const Graph graph = graph_of(body);
  Result<Kernel> kernel = build(graph, everything(graph));
  if (kernel) return "none:\n" + print(*kernel);
  return kernel.error().message.substr(0, kernel.error().message.find(':'));
}

size_t count(const Kernel& kernel, Kind kind) {
  size_t n = 0;
  for (const Inst& inst : kernel.values) n += inst.kind == kind;
  return n;
}

TEST(Build, MergesAxesOfAPointwiseChain) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,4,5], %y: f32[N,4,5]) -> f32[N,4,5] {
    %a = add %x, %y
    %b = relu %a
    return %b
  })");
  ASSERT_EQ(kernel.axes.size(), 1u) << print(kernel);
  EXPECT_EQ(kernel.axes[0].extent.text(), "20*N");
  EXPECT_EQ(kernel.sweeps.size(), 1u);
  EXPECT_EQ(kernel.in_place.size(), 2u);
}

TEST(Build, KeepsTheAxisOfABroadcastOperand) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,7,64], %b: f32[64]) -> f16[N,7,64] {
    %a = add %x, %b
    %c = cast %a {to=f16}
    return %c
  })");
  ASSERT_EQ(kernel.axes.size(), 2u) << print(kernel);
  EXPECT_EQ(kernel.axes[0].extent.text(), "7*N");
  EXPECT_EQ(kernel.axes[1].extent.text(), "64");
}

TEST(Build, LayerNormIsThreeSweepsOverOneLoad) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,64], %s: f32[64], %b: f32[64]) -> f32[N,64] {
    %y = layer_norm %x, %s, %b {axes=[1], eps=1e-05}
    return %y
  })");
  EXPECT_EQ(kernel.sweeps.size(), 3u) << print(kernel);
  EXPECT_EQ(count(kernel, Kind::load), 3u) << print(kernel);
  EXPECT_EQ(kernel.reductions.size(), 3u) << "x, deviations, their squares";
  ASSERT_EQ(kernel.axes.size(), 2u);
  EXPECT_FALSE(kernel.axes[0].reduced);
  EXPECT_TRUE(kernel.axes[1].reduced);
}

TEST(Build, SoftmaxReadsItsInputOnce) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: bf16[N,M]) -> bf16[N,M] {
    %y = softmax %x {axes=[1]}
    return %y
  })");
  EXPECT_EQ(count(kernel, Kind::load), 1u) << print(kernel);
  EXPECT_EQ(kernel.sweeps.size(), 3u);
}

TEST(Build, RowOnlyOutputBringsItsOwnReducedAxis) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,M]) -> f32[N] {
    %y = sum %x {axes=[1]}
    %z = mul %y, 0.5
    return %z
  })");
  ASSERT_EQ(kernel.axes.size(), 2u) << print(kernel);
  EXPECT_TRUE(kernel.axes[1].reduced);
  EXPECT_EQ(kernel.row_stores.size(), 1u);
  EXPECT_EQ(kernel.sweeps.size(), 1u);
}

TEST(Build, ColumnSumKeepsTheMemoryOrder) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,M]) -> f32[M] {
    %y = sum %x {axes=[0]}
    return %y
  })");
  ASSERT_EQ(kernel.axes.size(), 2u) << print(kernel);
  EXPECT_TRUE(kernel.axes[0].reduced);
  EXPECT_FALSE(kernel.axes[1].reduced);
}

TEST(Build, BatchNormStatisticsReduceTwoSegments) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[8,16,7,7]) -> f32[8,16,7,7] {
    %m = mean %x {axes=[0,2,3], keep=true}
    %d = sub %x, %m
    %q = mul %d, %d
    %v = mean %q {axes=[0,2,3], keep=true}
    %e = add %v, 1e-05
    %r = sqrt %e
    %y = div %d, %r
    return %y
  })");
  ASSERT_EQ(kernel.axes.size(), 3u) << print(kernel);
  EXPECT_TRUE(kernel.axes[0].reduced);
  EXPECT_FALSE(kernel.axes[1].reduced);
  EXPECT_TRUE(kernel.axes[2].reduced);
  EXPECT_EQ(kernel.axes[2].extent.text(), "49");
  EXPECT_EQ(kernel.sweeps.size(), 3u);
}

TEST(Build, TwoOutputsOfDifferentShapeShareARow) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,64]) -> (i8[N,64], f32[N,1]) {
    %a = abs %x
    %m = reduce_max %a {axes=[1], keep=true}
    %s = div %m, 127.0
    %q = div %x, %s
    %r = round_even %q
    %i = cast %r {to=i8}
    return %i, %s
  })");
  EXPECT_EQ(kernel.sweeps.size(), 2u) << print(kernel);
  EXPECT_EQ(kernel.row_stores.size(), 1u);
  EXPECT_EQ(count(kernel, Kind::load), 1u);
}

TEST(Build, ReductionBesideAFullOutputThatDoesNotNeedIt) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,64]) -> (f32[N,64], f32[N]) {
    %a = exp %x
    %m = reduce_max %x {axes=[1]}
    return %a, %m
  })");
  EXPECT_EQ(kernel.sweeps.size(), 1u) << print(kernel);
  EXPECT_EQ(count(kernel, Kind::load), 1u);
}

TEST(Build, ReshapeRefinesTheAxes) {
  // Group norm: [N, 32, 4*49] statistics over a view of [N, 128, 7, 7].
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,128,7,7], %s: f32[128], %b: f32[128]) -> f32[N,128,7,7] {
    %y = group_norm %x, %s, %b {groups=32, eps=1e-05}
    return %y
  })");
  EXPECT_EQ(count(kernel, Kind::load), 3u) << print(kernel);
  ASSERT_EQ(kernel.axes.size(), 4u) << print(kernel);
  EXPECT_EQ(kernel.sweeps.size(), 3u);
  for (const Inst& inst : kernel.values) EXPECT_NE(inst.op, Op::trunc_div) << print(kernel);
}

TEST(Build, UnalignedReshapeDividesIndices) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[6,5]) -> f32[3,10] {
    %t = transpose %x {perm=[1,0]}
    %y = reshape %t {shape=[3,10]}
    return %y
  })");
  EXPECT_EQ(kernel.sweeps.size(), 1u) << print(kernel);
  EXPECT_GT(count(kernel, Kind::iota), 0u) << print(kernel);
}

TEST(Build, TransposeIsAMap) {
  const Kernel kernel = kernel_of(R"(graph @g(%a: f32[N,M], %b: f32[M,N]) -> f32[N,M] {
    %t = transpose %b {perm=[1,0]}
    %y = add %a, %t
    return %y
  })");
  EXPECT_EQ(kernel.axes.size(), 2u) << print(kernel);
  EXPECT_EQ(count(kernel, Kind::load), 2u);
}

TEST(Build, ConcatOfEqualPiecesStoresEachPiece) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[N,128], %c: f32[64], %s: f32[64]) -> f32[N,128] {
    %a = slice %x {start=[0,0], stop=[N,64], step=[1,1]}
    %b = slice %x {start=[0,64], stop=[N,128], step=[1,1]}
    %ac = mul %a, %c
    %bs = mul %b, %s
    %bc = mul %b, %c
    %as = mul %a, %s
    %l = sub %ac, %bs
    %r = add %bc, %as
    %y = concat %l, %r {axis=1}
    return %y
  })");
  EXPECT_EQ(count(kernel, Kind::store), 2u) << print(kernel);
  EXPECT_EQ(count(kernel, Kind::load), 4u) << print(kernel);
}

TEST(Build, PadGuardsItsLoad) {
  const Kernel kernel = kernel_of(R"(graph @g(%x: f32[5]) -> f32[9] {
    %p = pad %x {low=[1], high=[3], value=2.0}
    %y = exp %p
    return %y
  })");
  bool guarded = false;
  for (const Inst& inst : kernel.values) guarded |= inst.kind == Kind::load && inst.map.guard != kNoVal;
  EXPECT_TRUE(guarded) << print(kernel);
}

TEST(Build, RankZeroAndSizeOne) {
  EXPECT_EQ(kernel_of("graph @g(%x: f32[]) -> f32[] {\n %y = exp %x\n return %y\n}").axes.size(), 1u);
  const Kernel sum = kernel_of("graph @g(%x: f32[1,1]) -> f32[] {\n %y = sum %x {axes=[0,1]}\n return %y\n}");
  EXPECT_EQ(sum.reductions.size(), 1u);
  EXPECT_NE(sum.reduced_axes(), 0u);
}

TEST(Build, StridedInputKeepsItsBlocks) {
  const Graph graph = graph_of("graph @g(%x: f32[N,8], %y: f32[N,8]) -> f32[N,8] {\n %z = add %x, %y\n return %z\n}");
  BuildOptions options;
  options.inputs = {Layout{0, true}, Layout{}};
  Result<Kernel> kernel = build(graph, everything(graph), options);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->axes.size(), 2u) << print(*kernel);
  EXPECT_EQ(kernel->operands[0].block_end.size(), 2u);
}

TEST(Build, RefusesWithAReason) {
  EXPECT_EQ(refusal_of(R"(graph @g(%x: f32[N,M]) -> (f32[N], f32[M]) {
    %a = sum %x {axes=[1]}
    %b = sum %x {axes=[0]}
    return %a, %b
  })").find("none"), std::string::npos);
  EXPECT_EQ(refusal_of(R"(graph @g(%x: f32[N,M]) -> f32[] {
    %a = sum %x {axes=[1]}
    %e = exp %a
    %b = sum %e {axes=[0]}
    return %b
  })"), "two-axis-sets");
  EXPECT_EQ(refusal_of(R"(graph @g(%x: f32[N,M], %y: f32[K,N,M]) -> f32[K,N,M] {
    %a = sum %x {axes=[1], keep=true}
    %b = add %y, %a
    return %b
  })"), "reduction-recomputed");
}

}  // namespace
}  // namespace fusec
