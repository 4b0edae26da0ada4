// Depth and size: nothing here may recurse, so 20,000 nodes in a row pass on a stack of 512 KB.

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "fusec/graph.h"
#include "lib/ir/literal.h"

namespace fusec {
namespace {

void on_small_stack(std::function<void()> f) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  ASSERT_EQ(pthread_attr_setstacksize(&attr, 512 * 1024), 0);
  pthread_t thread;
  const auto start = [](void* p) -> void* { return (*static_cast<std::function<void()>*>(p))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &attr, start, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
}

std::string chain(size_t depth) {
  std::string text = "graph @deep(%x: f32[2]) -> f32[2] {\n  %v0 = add %x, 1.0\n";
  for (size_t i = 1; i < depth; ++i) text += "  %v" + std::to_string(i) + " = add %v" + std::to_string(i - 1) + ", 1.0\n";
  return text + "  return %v" + std::to_string(depth - 1) + "\n}\n";
}

TEST(Deep, TwentyThousandNodesInARow) {
  on_small_stack([] {
    auto g = parse(chain(20000));
    ASSERT_TRUE(g) << g.error().text();
    ASSERT_EQ(g->size(), 20002u);
    EXPECT_TRUE(verify(*g));
    auto again = parse(print(*g));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->hash(), g->hash());
    auto x = parse_tensor("f32[2] [0, 1]");
    auto out = evaluate(*g, {&*x, 1});
    ASSERT_TRUE(out);
    EXPECT_EQ(text((*out)[0]), "f32[2] [20000.0, 20001.0]");
  });
}

TEST(Deep, ThousandsOfInputs) {
  // the sum of 6131 inputs, input i filled with i.
  GraphBuilder b("wide");
  std::vector<Tensor> inputs;
  Value sum;
  for (int i = 0; i < 6131; ++i) {
    const Value x = b.input("x" + std::to_string(i), {DType::i64, {4}});
    sum = i ? b.add(Op::add, {sum, x}) : x;
    auto t = parse_tensor("i64[4] " + std::to_string(i));
    inputs.push_back(*t);
  }
  auto g = std::move(b).finish({sum});
  ASSERT_TRUE(g);
  auto out = evaluate(*g, inputs);
  ASSERT_TRUE(out);
  EXPECT_EQ(text((*out)[0]), "i64[4] 18791515");
  EXPECT_EQ(parse(print(*g))->hash(), g->hash());
}

TEST(Deep, SharedValuesAreOneNode) {
  // A-093's shape: each value used twice; without sharing 2^64 nodes.
  GraphBuilder b("twice");
  Value a = b.input("x", {DType::f32, {}});
  for (int i = 0; i < 64; ++i) a = b.add(Op::add, {b.add(Op::mul, {a, a}), b.add(Op::neg, {a})});
  auto g = std::move(b).finish({a});
  ASSERT_TRUE(g);
  EXPECT_EQ(g->size(), 1u + 3 * 64);
  EXPECT_EQ(parse(print(*g))->hash(), g->hash());
}

TEST(Deep, AMillionNodesAndNoMore) {
  auto g = parse(chain(1000000));
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().message, "more than 1,000,000 nodes");
}

TEST(Deep, ManyEqualOutputsAndLabelsStaySmall) {
  std::string text = "graph @g(%x: f32[]) -> (f32[]", returns = "  return %x";
  for (int i = 1; i < 20000; ++i) text += ", f32[]", returns += ", %x";
  auto g = parse(text + ") {\n" + returns + "\n}\n");
  ASSERT_TRUE(g) << g.error().text();
  const std::string dump = print(*g);
  EXPECT_LT(dump.size(), 1000000u);
  EXPECT_EQ(parse(dump)->hash(), g->hash());
}

}  // namespace
}  // namespace fusec
