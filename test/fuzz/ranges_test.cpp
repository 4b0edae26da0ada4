// How far a device may be off: wide where addends cancel, every bit where nothing is added, and narrow enough to see a lost element.

#include "lib/fuzz/ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lib/fuzz/order.h"
#include "lib/ir/convert.h"

namespace fusec {
namespace {

Tensor tensor(DType type, std::vector<int64_t> extents, const std::vector<double>& values) {
  Tensor out{type, std::move(extents), std::vector<std::byte>(values.size() * bytes(type))};
  convert(DType::f64, reinterpret_cast<const std::byte*>(values.data()), type, out.data.data(), values.size());
  return out;
}

fuzz::Ranges ranges(const std::string& text, const std::vector<Tensor>& inputs, Numerics numerics = Numerics::strict) {
  const Result<Graph> graph = parse(text);
  EXPECT_TRUE(graph) << graph.error().text();
  Result<std::vector<fuzz::Ranges>> out = fuzz::evaluate_ranges(*graph, inputs, numerics);
  EXPECT_TRUE(out) << out.error().text();
  return (*out)[0];
}

bool may_be(const fuzz::Ranges& r, double value, int64_t at = 0) {
  Tensor got = r.value;
  convert(DType::f64, reinterpret_cast<const std::byte*>(&value), got.dtype, got.data.data() + size_t(at) * bytes(got.dtype), 1);
  return !fuzz::outside(r, got);
}

TEST(Order, NeighboursAreOneApart) {
  for (int t = 0; t < kDTypes; ++t) {
    const DType type = DType(t);
    const fuzz::Order order(type);
    EXPECT_LT(order.lowest(), order.highest());
    for (double x : {-3.0, -1.0, 0.0, 1.0, 2.0, 100.0}) {
      if (x < 0 && !is_signed(type)) continue;
      if (type == DType::boolean && x > 1) continue;
      EXPECT_EQ(order.number(order.nearest(x)), type == DType::f8e5m2 && x == 100 ? 96 : type == DType::f8e4m3 && x == 100 ? 96 : x) << name(type);
      if (x > 0) {
        EXPECT_GT(order.nearest(x), order.nearest(0)) << name(type);
      }
    }
    if (!is_float(type)) continue;
    EXPECT_EQ(order.zero_above() - order.zero_below(), 1u);
    EXPECT_EQ(std::signbit(order.number(order.zero_below())), true);
    EXPECT_EQ(order.above(order.highest(), 5), order.highest());
    EXPECT_EQ(order.below(order.lowest() + 2, 5), order.lowest());
  }
}

TEST(Ranges, TanAcrossItsPoleMayBeAnything) {
  const char* text = "graph @g(%x: f32[3]) -> f32[] { %s = sum %x\n %y = tan %s\n return %y }";
  for (double middle : {0.0, 1.565, 4.705}) {
    const fuzz::Ranges r = ranges(text, {tensor(DType::f32, {3}, {1e5, -1e5, middle})});
    EXPECT_FALSE(r.exact());
    for (double y : {-400.0, 400.0, -9.0, 9.0}) EXPECT_EQ(may_be(r, y), middle != 0) << middle << ": " << y;
  }
}

/// Every op of one float that may turn within a range: what it gives anywhere in the range is allowed.
TEST(Ranges, HoldWhatAnOpGivesBetweenTheirEnds) {
  size_t ops = 0;
  for (int k = 0; k < kOps; ++k) {
    const OpInfo& op = info(Op(k));
    if (op.form != Form::formula || op.arity != 1) continue;
    ++ops;
    const std::string attrs = op.name == "elu" || op.name == "leaky_relu" ? " {alpha=-0.5}" : "";
    const std::string body = " = " + std::string(op.name) + " ";
    for (double middle = -6; middle < 6; middle += 0.0625) {
      const std::vector<Tensor> inputs = {tensor(DType::f32, {3}, {1e5, -1e5, middle})};
      const fuzz::Ranges x = ranges("graph @g(%x: f32[3]) -> f32[] { %s = sum %x\n return %s }", inputs);
      const fuzz::Ranges y = ranges("graph @g(%x: f32[3]) -> f32[] { %s = sum %x\n %y" + body + "%s" + attrs + "\n return %y }", inputs);
      const double low = element(x.low, 0), high = element(x.high, 0);
      ASSERT_GT(high, low + 0.01);
      std::vector<double> between;
      for (int i = 0; i <= 32; ++i) between.push_back(low + (high - low) * i / 32);
      const Result<Graph> graph = parse("graph @g(%x: f32[33]) -> f32[33] { %y" + body + "%x" + attrs + "\n return %y }");
      ASSERT_TRUE(graph) << graph.error().text();
      const Result<std::vector<Tensor>> got = evaluate(*graph, std::vector<Tensor>{tensor(DType::f32, {33}, between)});
      ASSERT_TRUE(got);
      for (int i = 0; i <= 32; ++i) {
        const double value = element((*got)[0], i);
        ASSERT_TRUE(std::isnan(value) || may_be(y, value)) << op.name << "(" << between[size_t(i)] << ") = " << value << " in " << low << " to " << high;
      }
    }
  }
  EXPECT_GT(ops, 25u);
}

TEST(Ranges, AZeroBetweenTheirEndsHasEitherSign) {
  // Found as seed 8008956: relu keeps -0, which a product that vanishes may be.
  for (const char* op : {"relu", "sqrt", "neg", "asinh"}) {
    const fuzz::Ranges r = ranges("graph @g(%x: f32[3]) -> f32[] { %s = sum %x\n %y = " + std::string(op) + " %s\n return %y }", {tensor(DType::f32, {3}, {1e5, -1e5, 0.001})});
    EXPECT_TRUE(may_be(r, 0.0)) << op;
    EXPECT_TRUE(may_be(r, -0.0)) << op;
  }
}

TEST(Ranges, ElementwiseIsHeldToEveryBit) {
  const fuzz::Ranges r = ranges("graph @g(%x: f32[3]) -> f32[3] { %y = exp %x\n return %y }", {tensor(DType::f32, {3}, {1, NAN, -INFINITY})});
  EXPECT_TRUE(r.exact());
  EXPECT_FALSE(may_be(r, std::nextafterf(float(std::exp(1.0)), 9)));
  EXPECT_FALSE(may_be(r, 1, 1)) << "a NaN stays";
  EXPECT_FALSE(may_be(r, -0.0, 2));
}

TEST(Ranges, CancellationWidensThem) {
  // Found as seed 4258: what is left of 1e15 - 1e15 is the order's.
  const fuzz::Ranges r = ranges("graph @g(%x: f64[4]) -> f64[] { %y = sum %x\n return %y }", {tensor(DType::f64, {4}, {3e18, 464, -3e18, 1})});
  EXPECT_TRUE(may_be(r, 0));
  EXPECT_TRUE(may_be(r, 512));
  EXPECT_FALSE(may_be(r, 1e6));
  const fuzz::Ranges small = ranges("graph @g(%x: f32[4]) -> f32[] { %y = sum %x\n return %y }", {tensor(DType::f32, {4}, {1, 2, -3, 1})});
  EXPECT_FALSE(may_be(small, 1.001));
  EXPECT_TRUE(may_be(small, std::nextafterf(1, 2)));
}

TEST(Ranges, AProductThatVanishesOnTheWay) {
  // Found as seed 17219: a partial product is a denormal, what follows is large.
  const fuzz::Ranges r = ranges("graph @g(%x: f32[4]) -> f32[] { %y = prod %x\n return %y }", {tensor(DType::f32, {4}, {1e-30, 1.5e-14, 1e20, 1e18})});
  EXPECT_TRUE(may_be(r, 0)) << "1e-30 * 1.5e-14 is less than half a denormal";
  EXPECT_FALSE(may_be(r, 1));
  const fuzz::Ranges o = ranges("graph @g(%x: f32[3]) -> f32[] { %y = prod %x\n return %y }", {tensor(DType::f32, {3}, {1e30, 1e30, 1e-30})});
  EXPECT_TRUE(may_be(o, INFINITY)) << "another order overflows";
  const fuzz::Ranges plain = ranges("graph @g(%x: f32[3]) -> f32[] { %y = prod %x\n return %y }", {tensor(DType::f32, {3}, {3, 5, 7})});
  EXPECT_TRUE(may_be(plain, 105));
  EXPECT_FALSE(may_be(plain, 104.99));
}

TEST(Ranges, ALostElementOfALongSumIsSeen) {
  std::vector<double> ones(4000, 1.0);
  const fuzz::Ranges r = ranges("graph @g(%x: f32[4000]) -> f32[] { %y = sum %x\n return %y }", {tensor(DType::f32, {4000}, ones)});
  EXPECT_TRUE(may_be(r, 4000.5));
  EXPECT_FALSE(may_be(r, 3990));
}

TEST(Ranges, NaNAndInfinityOfSumsAreHeldTo) {
  const std::string sum = "graph @g(%x: f32[3]) -> f32[] { %y = sum %x\n return %y }";
  for (auto [c, want] : {std::pair{INFINITY, INFINITY}, {-INFINITY, -INFINITY}, {double(NAN), double(NAN)}}) {
    const fuzz::Ranges r = ranges(sum, {tensor(DType::f32, {3}, {1, c, 2})});
    EXPECT_TRUE(may_be(r, want));
    EXPECT_FALSE(may_be(r, 3));
    EXPECT_EQ(may_be(r, NAN), std::isnan(want));
  }
  const fuzz::Ranges both = ranges(sum, {tensor(DType::f32, {3}, {INFINITY, -INFINITY, 2})});
  EXPECT_FALSE(may_be(both, 0));
  const fuzz::Ranges overflow = ranges(sum, {tensor(DType::f32, {3}, {3e38, 3e38, -3e38})});
  EXPECT_TRUE(may_be(overflow, INFINITY));
  EXPECT_TRUE(may_be(overflow, 3e38));
}

TEST(Ranges, TheyAreCarriedThroughTheGraph) {
  const Tensor x = tensor(DType::f32, {4}, {1, 2, 3, 4.5});
  // A jump within the range may fall on either side; far from it, it may not.
  const fuzz::Ranges on = ranges("graph @g(%x: f32[4]) -> f32[] { %s = sum %x\n %d = mul %s, 2.0\n %y = floor %d\n return %y }", {x});
  EXPECT_TRUE(may_be(on, 21));
  EXPECT_TRUE(may_be(on, 20)) << "21 may be a little less";
  EXPECT_FALSE(may_be(on, 19));
  const fuzz::Ranges off = ranges("graph @g(%x: f32[4]) -> f32[] { %s = sum %x\n %y = floor %s\n return %y }", {x});
  EXPECT_FALSE(may_be(off, 11));
  // 1 / (something around 0) may be anything.
  const fuzz::Ranges pole = ranges("graph @g(%x: f32[4]) -> f32[] { %s = sum %x\n %d = sub %s, 10.5\n %y = reciprocal %d\n return %y }", {x});
  EXPECT_TRUE(may_be(pole, 1e30));
  EXPECT_TRUE(may_be(pole, -1e30));
  // Views carry both ends.
  const fuzz::Ranges view = ranges(R"(graph @g(%x: f32[2,2]) -> f32[3] { %s = sum %x {axes=[1]}
      %r = reverse %s {axes=[0]}
      %y = pad %r {low=[1], high=[0], value=8.0}
      return %y })", {tensor(DType::f32, {2, 2}, {1, 2, 3, 4.5})});
  EXPECT_FALSE(may_be(view, std::nextafterf(8, 9), 0));
  EXPECT_TRUE(may_be(view, std::nextafterf(7.5, 9), 1));
  EXPECT_TRUE(may_be(view, std::nextafterf(3, 9), 2));
  EXPECT_FALSE(may_be(view, 3.01, 2));
}

TEST(Ranges, CompositesAreHeldClosely) {
  std::vector<double> row(64);
  for (size_t k = 0; k < row.size(); ++k) row[k] = std::sin(double(k)) * 3;
  const Tensor x = tensor(DType::f32, {64}, row);
  for (const char* op : {"softmax %x {axes=[0]}", "layer_norm %x {axes=[0], eps=1e-05}", "log_softmax %x {axes=[0]}"}) {
    const fuzz::Ranges r = ranges("graph @g(%x: f32[64]) -> f32[64] { %y = " + std::string(op) + "\n return %y }", {x});
    for (int64_t k = 0; k < 64; ++k) {
      const double value = element(r.value, k);
      EXPECT_TRUE(may_be(r, value * (1 + 1e-7), k)) << op;
      EXPECT_FALSE(may_be(r, value + 1e-3, k)) << op;
    }
  }
}

TEST(Ranges, ASignOfANaNIsOpen) {
  const Tensor x = tensor(DType::f32, {2}, {NAN, 4});
  const fuzz::Ranges sign = ranges("graph @g(%x: f32[2]) -> f32[2] { %s = sqrt %x\n %y = copysign 3.0, %s\n return %y }", {x});
  EXPECT_TRUE(may_be(sign, -3));
  EXPECT_TRUE(may_be(sign, 3));
  EXPECT_FALSE(may_be(sign, -3, 1));
  const fuzz::Ranges bits = ranges("graph @g(%x: f32[2]) -> i32[2] { %s = sqrt %x\n %y = bitcast %s {to=i32}\n return %y }", {x});
  EXPECT_TRUE(may_be(bits, 7));
  EXPECT_FALSE(may_be(bits, 7, 1));
}

TEST(Ranges, WiderModesAreWider) {
  const std::string text = "graph @g(%x: bf16[2]) -> bf16[2] { %a = mul %x, %x\n %y = add %a, %x\n return %y }";
  const Tensor x = tensor(DType::bf16, {2}, {1.0078125, 3});
  EXPECT_FALSE(may_be(ranges(text, {x}), 2.015625));
  EXPECT_TRUE(may_be(ranges(text, {x}, Numerics::fused), 2.015625)) << "a product that is not rounded may fall to the other side";
  EXPECT_FALSE(may_be(ranges(text, {x}, Numerics::fast), 2.25));
  // The formula gives 0 where e^-x overflows, the short form may give the number below 2^-126 that it is.
  const std::string sigmoid = "graph @g(%x: f32[1]) -> f32[1] { %y = sigmoid %x\n return %y }";
  EXPECT_FALSE(may_be(ranges(sigmoid, {tensor(DType::f32, {1}, {-97.7})}), 3.59e-43));
  EXPECT_TRUE(may_be(ranges(sigmoid, {tensor(DType::f32, {1}, {-97.7})}, Numerics::fast), 3.59e-43));
}

}  // namespace
}  // namespace fusec
