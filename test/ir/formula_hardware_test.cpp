// silu of bf16 on CUDA is a form of its own, out of ex2.approx and rcp.approx (silu_of_bf16 in cells.cuh). PTX promises them within 2^-22 and
// 2^-23: whatever they return within twice that, every operand gives the bits of the formula.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "fusec/fusec.h"

namespace fusec {
namespace {

uint16_t rounded(float x) {
  const uint32_t b = std::bit_cast<uint32_t>(x);
  return x != x ? 0x7fc0 : uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/// What flushes denormals flushes them.
double flushed(double x) { return std::fabs(x) < 0x1p-126 ? 0 : x; }

/// silu_of_bf16 with approximations that are off by these relative errors, but for what they return exactly.
float silu_of_bf16(float x, double ex2_error, double rcp_error) {
  if (x != x) return x;
  x = std::max(x, -98.0f);
  const float u = std::fma(x, -1.44269504f, -16.0f);
  const double power = std::exp2(double(u));
  const float sum = float(flushed(u == std::rint(u) ? power : power * (1 + ex2_error))) + 0x1p-16f;
  int exponent;
  const bool power_of_two = std::frexp(sum, &exponent) == 0.5f;
  const double inverse = flushed(power_of_two ? 1 / double(sum) : 1 / double(sum) * (1 + rcp_error));
  return float(double(x * 0x1.000022p-16f) * inverse);
}

TEST(FormulaHardware, SiluOfBf16HasTheBitsOfTheFormulaWhateverItsApproximationsReturn) {
  Tensor x = {DType::bf16, {65536}, std::vector<std::byte>(2 * 65536)};
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t word = uint16_t(i);
    std::memcpy(&x.data[2 * i], &word, 2);
  }
  GraphBuilder b("g");
  const Value y = b.add(Op::silu, {b.input("x", {DType::bf16, {65536}})}, Attrs{});
  const Result<Graph> graph = std::move(b).finish({y});
  ASSERT_TRUE(graph);
  const auto out = evaluate(*graph, std::span(&x, 1));
  ASSERT_TRUE(out);
  constexpr double e = 0x1p-21, r = 0x1p-22;
  size_t wrong = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const float operand = std::bit_cast<float>(i << 16);
    uint16_t want;
    std::memcpy(&want, &(*out)[0].data[2 * i], 2);
    if (operand != operand) want = 0x7fc0;
    for (const auto& [ex2_error, rcp_error] : {std::array{0.0, 0.0}, {e, r}, {e, -r}, {-e, r}, {-e, -r}})
      if (rounded(silu_of_bf16(operand, ex2_error, rcp_error)) != want && ++wrong < 10)
        ADD_FAILURE() << "silu of " << operand << " with errors " << ex2_error << " and " << rcp_error;
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace fusec
