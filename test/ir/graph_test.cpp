// Dims, types, interning and the order that `finish` gives.

#include "fusec/graph.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fusec {
namespace {

const Dim N = Dim::symbol("N"), M = Dim::symbol("M");

TEST(Dim, IsAPolynomialInOneForm) {
  EXPECT_EQ((N * 2 + 3).text(), "2*N+3");
  EXPECT_EQ((N * M - M * N).text(), "0");
  EXPECT_EQ(((N + 1) * (N - 1)).text(), "N*N-1");
  EXPECT_EQ((Dim(0) - N).text(), "-N");
  EXPECT_EQ((N + M).symbols(), (std::vector<std::string>{"M", "N"}));
  EXPECT_EQ((N * N * 2 + 1).value({{"N", 3}}), 19);
  EXPECT_EQ(N.value({}), std::nullopt);
  EXPECT_EQ((N * N).value({{"N", int64_t{1} << 40}}), std::nullopt);
  EXPECT_THROW(Dim(INT64_MAX) + 1, std::overflow_error);
  EXPECT_THROW(Dim(INT64_MIN) - N - 1, std::overflow_error);
}

TEST(Dim, TextComesBack) {
  for (const Dim& d : {Dim(0), Dim(INT64_MIN), Dim(INT64_MAX), N, N * 2 + 3, N * M * N * -7 - 1, Dim(5) - N,
                       Dim::symbol("a b\n\"") * 2 + Dim::symbol("2")})
    EXPECT_EQ(Dim::parse(d.text()), d) << d.text();
  for (const char* bad : {"", "+", "N+", "2N", "N**2", "9223372036854775808", "N-", "(N)", "\"a", "- -1"})
    EXPECT_EQ(Dim::parse(bad), std::nullopt) << bad;
}

TEST(Dim, DividesOnlyExactly) {
  EXPECT_EQ(exact_quotient(N * 4, N), Dim(4));
  EXPECT_EQ(exact_quotient(N * N - 1, N + 1), N - 1);
  EXPECT_EQ(exact_quotient(N * 4 + 2, 2), N * 2 + 1);
  EXPECT_EQ(exact_quotient(N * 4 + 2, 4), std::nullopt);
  EXPECT_EQ(exact_quotient(N, M), std::nullopt);
  EXPECT_EQ(exact_quotient(N, 0), std::nullopt);
  EXPECT_EQ(exact_quotient(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(exact_quotient(0, N), Dim(0));
}

TEST(Type, BroadcastsConstantOnesOnly) {
  EXPECT_EQ(broadcast({N, 1}, {4}), (Shape{N, 4}));
  size_t axis = 9;
  EXPECT_EQ(broadcast({4, 8}, {3}, &axis), std::nullopt);
  EXPECT_EQ(axis, 1u);
  EXPECT_EQ(broadcast({N}, {M}), std::nullopt);
  EXPECT_EQ(broadcast({N}, {4}), std::nullopt);
  EXPECT_EQ(dense_strides({2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(text(Type{DType::f8e4m3, {N, 4}}), "f8e4m3[N,4]");
  for (int i = 0; i < kDTypes; ++i) EXPECT_EQ(dtype(name(static_cast<DType>(i))), static_cast<DType>(i));
}

TEST(Op, NamesComeBackWithoutUnderscore) {
  EXPECT_EQ(name(Op::and_), "and");
  for (int i = 0; i < kOps; ++i) EXPECT_EQ(op(name(static_cast<Op>(i))), static_cast<Op>(i));
  EXPECT_EQ(op("and_"), std::nullopt);
}

TEST(Builder, EqualNodesAreOne) {
  GraphBuilder b("g");
  const Value x = b.input("x", {DType::f32, {4}}), y = b.input("y", {DType::f32, {4}});
  EXPECT_NE(x.id, y.id);
  EXPECT_EQ(b.add(Op::add, {x, y}), b.add(Op::add, {x, y}));
  EXPECT_NE(b.add(Op::add, {x, y}).id, b.add(Op::add, {y, x}).id);
  EXPECT_EQ(b.scalar(DType::f32, 0.5), b.scalar(DType::f32, 0.5));
  EXPECT_NE(b.scalar(DType::f32, 0.0).id, b.scalar(DType::f32, -0.0).id);
  Attrs all, listed;
  listed.axes = {0};
  EXPECT_EQ(b.add(Op::sum, {x}, all), b.add(Op::sum, {x}, listed));
}

/// The type of the result, or the error.
std::string of_type(Op op, std::optional<DType> to) {
  GraphBuilder b("g");
  const bool leaf = op == Op::iota;
  const Value x = b.input("x", {DType::f32, {4, 8}});
  Attrs attrs;
  attrs.to = to;
  if (leaf) attrs.shape = {4};
  const Value y = leaf ? b.add(op, {}, attrs) : b.add(op, {x}, attrs);
  auto g = std::move(b).finish({y});
  return g ? std::string(name(g->node(g->outputs()[0].node).type.dtype)) : g.error().message;
}

TEST(Builder, ATypeThatIsGivenIsTakenOrRefused) {
  for (const Op op : {Op::argmax, Op::argmin}) {
    EXPECT_EQ(of_type(op, std::nullopt), "i64");
    for (int t = 0; t < kDTypes; ++t) {
      const std::string type(name(DType(t)));
      const bool holds = type == "i32" || type == "i64" || type == "u32" || type == "u64";
      EXPECT_EQ(of_type(op, DType(t)), holds ? type : std::string(name(op)) + ": an index of type " + type + ": i32, i64, u32 and u64 hold one");
    }
  }
  for (const Op op : {Op::cast, Op::bitcast, Op::iota}) EXPECT_EQ(of_type(op, std::nullopt), "f32") << name(op);
  for (int t = 0; t < kDTypes; ++t) EXPECT_EQ(of_type(Op::cast, DType(t)), name(DType(t)));
}

TEST(Builder, FinishDropsDeadNodesAndKeepsInputs) {
  GraphBuilder b("g");
  const Value c = b.scalar(DType::f32, 2);
  const Value x = b.input("x", {DType::f32, {4}});
  b.input("unused", {DType::f32, {4}});
  b.add(Op::exp, {x});
  const Value y = b.add(Op::mul, {x, c}), z = b.add(Op::add, {y, y});
  auto g = std::move(b).finish({z, y});
  ASSERT_TRUE(g);
  ASSERT_EQ(g->size(), 5u);
  EXPECT_EQ(g->inputs()[1].name, "unused");
  EXPECT_TRUE(g->is_scalar_constant(2));
  EXPECT_EQ(g->outputs()[0].name, "0");
  EXPECT_EQ(g->use_counts(), (std::vector<uint32_t>{1, 0, 1, 3, 1}));
  EXPECT_EQ(g->users()[3], (std::vector<NodeId>{4}));
}

TEST(Builder, TheFirstErrorIsReported) {
  GraphBuilder b("g");
  const Value x = b.input("x", {DType::f32, {4, 8}}), y = b.input("y", {DType::f32, {3}});
  const Value bad = b.add(Op::mul, {x, y});
  EXPECT_FALSE(bad.valid());
  EXPECT_FALSE(b.add(Op::exp, {bad}).valid());
  auto g = std::move(b).finish({bad});
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().message,
            "mul: f32[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3 on the right");
}

}  // namespace
}  // namespace fusec
