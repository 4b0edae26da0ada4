// Kernels without reductions: chains, broadcasts, tails, strides, guards, at sizes around the vector's.

#include "test/codegen/cpu/run.h"

#include <cmath>
#include <numeric>

namespace fusec::cpu {
namespace {

const int64_t kSizes[] = {0, 1, 7, 15, 16, 17, 31, 33, 67, 1000, 4099};

std::vector<float> some_floats(size_t n, uint32_t seed = 1) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(static_cast<int32_t>(seed)) / (1 << 28);
  }
  return out;
}

TEST(CpuFlat, ChainAtEverySizeAndOffset) {
  Runner run(R"(graph @g(%x: f32[N], %y: f32[N]) -> f32[N] {
    %a = add %x, %y
    %b = relu %a
    %c = mul %b, %x
    return %c
  })", {{"N", 1000}});
  for (int64_t n : kSizes)
    for (size_t off : {0, 1}) {
      const auto x = some_floats(n + 1, 1), y = some_floats(n + 1, 2);
      std::vector<float> z(n + 3, -7);
      run({{(void*)(x.data() + off)}, {(void*)(y.data())}, {z.data() + 1}}, {{"N", n}});
      EXPECT_EQ(z[0], -7);
      EXPECT_EQ(z[n + 1], -7);
      for (int64_t i = 0; i < n; ++i) {
        const float a = x[i + off] + y[i];
        ASSERT_EQ(z[i + 1], (a < 0 ? 0.f : a) * x[i + off]) << i << " of " << n;
      }
    }
}

}  // namespace
}  // namespace fusec::cpu
