// What is drawn: every op on every type that it takes, layouts of every kind, the same for the same seed.

#include "lib/fuzz/random_graph.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lib/fuzz/random_input.h"

namespace fusec {
namespace {

bool takes(Op op, DType type) {
  if (op == Op::size) return type == DType::i64;
  if (op == Op::bitcast && type == DType::boolean) return false;  // a bool has no bits of its own
  return accepts(info(op).domain, type);
}

TEST(RandomGraph, EveryOpIsDrawnOnEveryTypeItTakes) {
  std::map<Op, std::map<DType, int>> drawn;
  std::set<std::pair<DType, DType>> casts;
  std::set<size_t> ranks, parameters;
  size_t deepest = 0, most_outputs = 0, symbolic = 0, empty = 0;
  for (uint64_t seed = 0; seed < 60000; ++seed) {
    const fuzz::Drawn graph = fuzz::random_graph(seed);
    ASSERT_GT(graph.graph.size(), 0u) << "seed " << seed;
    ASSERT_TRUE(verify(graph.graph)) << "seed " << seed;
    bool nothing = false;
    for (const Node& node : graph.graph.nodes()) {
      const auto operand = [&](size_t k) { return graph.graph.node(node.args[k]).type.dtype; };
      ++drawn[node.op][node.op == Op::select ? operand(1) : node.args.empty() ? node.type.dtype : operand(0)];
      if (node.op == Op::cast && operand(0) != node.type.dtype) casts.insert({operand(0), node.type.dtype});
      if (info(node.op).rule == Rule::keep && node.args.size() > 1) parameters.insert(operand(0) == operand(1));
      ranks.insert(node.type.shape.size());
      for (const Dim& dim : node.type.shape) nothing |= dim.value(graph.sizes) == 0;
    }
    deepest = std::max(deepest, graph.graph.size());
    most_outputs = std::max(most_outputs, graph.graph.outputs().size());
    symbolic += !graph.graph.symbols().empty();
    empty += nothing;
  }
  std::string missing;
  for (int k = 0; k < kOps; ++k)
    for (int t = 0; t < kDTypes && info(Op(k)).form != Form::reserved; ++t)
      if (takes(Op(k), DType(t)) != (drawn[Op(k)][DType(t)] > 0)) missing += " " + std::string(name(Op(k))) + ":" + std::string(name(DType(t)));
  EXPECT_EQ(missing, "");
  EXPECT_EQ(casts.size(), size_t(kDTypes * (kDTypes - 1)));
  EXPECT_EQ(ranks, (std::set<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(parameters.size(), 2u) << "of the data's type, and of another";
  EXPECT_GT(deepest, 150u);
  EXPECT_GT(most_outputs, 40u);
  EXPECT_GT(symbolic, 12000u);
  EXPECT_GT(empty, 2500u);
}

TEST(RandomGraph, TheSameForTheSameSeed) {
  for (uint64_t seed = 0; seed < 200; ++seed) EXPECT_EQ(print(fuzz::random_graph(seed).graph), print(fuzz::random_graph(seed).graph));
}

TEST(RandomInput, LayoutsAreOfEveryKindAndWithinTheirBlock) {
  int dense = 0, odd = 0, repeated = 0, backwards = 0, moved = 0, gaps = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const std::vector<int64_t> extents = {3, 4, 5};
    const fuzz::Placed p = fuzz::random_input("x", DType::i16, extents, seed);
    int64_t least = p.layout.offset, most = p.layout.offset;
    for (size_t k = 0; k < 3; ++k) (p.layout.strides[k] < 0 ? least : most) += (extents[k] - 1) * p.layout.strides[k];
    ASSERT_GE(least, 0);
    ASSERT_LT(most, p.layout.elements);
    ASSERT_EQ(p.block.size(), size_t(p.layout.elements) * 2);
    dense += p.layout.strides == std::vector<int64_t>{20, 5, 1};
    odd += p.layout.offset == 1;
    moved += p.layout.strides[0] == 1 || p.layout.strides[1] == 1;
    for (int64_t s : p.layout.strides) repeated += s == 0, backwards += s < 0;
    gaps += p.layout.strides[1] > 5;
  }
  for (int count : {dense, odd, repeated, backwards, moved, gaps}) EXPECT_GT(count, 40);
}

TEST(RandomInput, EmptyOnesTakeNoMemoryHoweverLongTheirOtherAxes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    EXPECT_LT(fuzz::random_input("x", DType::u64, {8192, 8192, 4096, 0}, seed).layout.elements, 8);
    EXPECT_LT(fuzz::output_block("y", DType::u64, {0, 8192, 8192, 4096}, seed).layout.elements, 8);
  }
}

TEST(RandomInput, WhatAnOutputLeavesAloneIsSeen) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    fuzz::Placed p = fuzz::output_block("y", DType::f32, {3, 5}, seed);
    std::vector<std::byte> memory = p.block;
    const size_t at = size_t(p.layout.offset + 2 * p.layout.strides[0] + 4 * p.layout.strides[1]) * 4;
    memory[at] = std::byte{1};
    EXPECT_TRUE(read_output(memory, p));
    EXPECT_EQ(p.tensor.data[14 * 4], std::byte{1});
    if (p.layout.elements == 15) continue;
    for (size_t k = 0; k < memory.size(); ++k) {
      std::vector<std::byte> spoilt = memory;
      spoilt[k] ^= std::byte{8};
      fuzz::Placed again = p;
      const bool seen = !read_output(spoilt, again);
      EXPECT_EQ(seen, again.tensor.data == p.tensor.data) << "a byte is an element's or a neighbour's";
    }
  }
}

}  // namespace
}  // namespace fusec
