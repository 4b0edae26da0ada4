// Composites in the reference: overflow, masked rows, empty rows, accuracy far from zero. Cases.

#include <gtest/gtest.h>

#include <cmath>

#include "fusec/graph.h"
#include "lib/ir/convert.h"
#include "lib/ir/literal.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

Tensor node(const std::string& call, const std::string& input, const std::string& result_type) {
  auto g = parse("graph @t(%x: " + input.substr(0, input.find(' ')) + ") -> " + result_type + " { %r = " + call + " return %r }");
  auto x = parse_tensor(input);
  EXPECT_TRUE(g) << (g ? "" : g.error().text());
  EXPECT_TRUE(x) << (x ? "" : x.error().text());
  if (!g || !x) return {};
  auto out = evaluate(*g, {&*x, 1});
  EXPECT_TRUE(out) << (out ? "" : out.error().text());
  return out ? std::move((*out)[0]) : Tensor{};
}

void expect_near(const Tensor& t, std::initializer_list<double> expected, double relative, const std::string& what) {
  ASSERT_EQ(t.elements(), static_cast<int64_t>(expected.size())) << what;
  int64_t i = 0;
  for (double e : expected) {
    const double v = element(t, i++);
    if (std::isnan(e)) EXPECT_TRUE(std::isnan(v)) << what << " element " << i - 1 << " is " << v;
    else if (std::isinf(e) || e == 0) EXPECT_EQ(v, e) << what << " element " << i - 1;
    else EXPECT_NEAR(v, e, std::abs(e) * relative) << what << " element " << i - 1;
  }
}

constexpr double nan = NAN, inf = INFINITY;

TEST(Composite, SoftmaxOfMaskedAndInfiniteRows) {
  expect_near(node("softmax %x {axes=[1]}", "f32[4,2] [-inf,-inf, 0,-inf, 0,inf, nan,0]", "f32[4,2]"),
              {nan, nan, 1, 0, nan, nan, nan, nan}, 0, "softmax");
  expect_near(node("softmax %x {axes=[0]}", "f32[3] [0.5,nan,3.5]", "f32[3]"), {nan, nan, nan}, 0, "softmax of NaN");
  expect_near(node("softmax %x {axes=[1]}", "f32[2,3] [1000,1000,1000, -1e30,0,0]", "f32[2,3]"), {1 / 3., 1 / 3., 1 / 3., 0, 0.5, 0.5}, 1e-6, "softmax");
}

TEST(Composite, LogSumExpDoesNotOverflow) {
  expect_near(node("logsumexp %x", "f16[2] [11,11]", "f16[]"), {11.693147}, 1e-3, "f16");
  expect_near(node("logsumexp %x {axes=[0]}", "f32[4] [250,248,255,251]", "f32[]"), {255.02563}, 1e-6, "f32");
  expect_near(node("logsumexp %x {axes=[1]}", "f32[2,2] [1000,1000,-1000,-1001]", "f32[2]"), {1000.69318, -999.68677}, 1e-6, "large");
  expect_near(node("logsumexp %x {axes=[1]}", "f32[4,2] [-inf,-inf, 0,inf, nan,0, -inf,2]", "f32[4]"), {-inf, inf, nan, 2}, 1e-6, "infinities");
  expect_near(node("logsumexp %x {axes=[1]}", "f32[2,0] []", "f32[2]"), {-inf, -inf}, 0, "empty");
}

// The mean is rounded to f32, so deviations are off by up to half a unit of x: 0.0005 here, against a deviation of 0.0045.
// What must not happen is E[x²] - E[x]², which is worth nothing at this distance from zero.
TEST(Composite, VarianceFarFromZero) {
  std::string x = "f32[16] [10000";
  for (int i = 1; i < 16; ++i) x += "," + number_text(10000 + i * 0.0009765625);
  expect_near(node("var %x", x + "]", "f32[]"), {2.02655792e-05}, 1e-6, "var");
  expect_near(node("var %x {axes=[0]}", "f32[1000] 0.1", "f32[]"), {0}, 0, "a constant row");
}

TEST(Composite, DivisorsOfVarianceAndMean) {
  expect_near(node("var %x {ddof=1}", "f32[1] [3]", "f32[]"), {nan}, 0, "0 / 0");
  expect_near(node("var %x {ddof=3}", "f32[2] [1,2]", "f32[]"), {inf}, 0, "0.5 / 0");
  expect_near(node("mean %x {axes=[1]}", "f32[2,0] []", "f32[2]"), {nan, nan}, 0, "empty mean");
  expect_near(node("var %x {axes=[1]}", "f32[2,0] []", "f32[2]"), {nan, nan}, 0, "empty var");
  expect_near(node("mean %x", "f32[] 3.5", "f32[]"), {3.5}, 0, "rank 0");
}

TEST(Composite, HalfStatisticsAreInF32) {
  expect_near(node("layer_norm %x {axes=[0], eps=1e-5}", "f16[2] [1000,-1000]", "f16[2]"), {1, -1}, 1e-3, "variance beyond f16");
  expect_near(node("layer_norm %x {axes=[0]}", "f16[2] [256,-256]", "f16[2]"), {1, -1}, 1e-3, "eps 0");
  expect_near(node("rms_norm %x {axes=[0]}", "bf16[2] [3,-3]", "bf16[2]"), {1, -1}, 1e-2, "rms");
  expect_near(node("norm_l2 %x", "f16[2] [300,400]", "f16[]"), {500}, 1e-3, "squares beyond f16");
  expect_near(node("mean %x", "f16[4096] 1000", "f16[]"), {1000}, 0, "sum beyond f16");
}

}  // namespace
}  // namespace fusec
