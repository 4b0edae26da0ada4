// Variances where rounding or overflow would show, in every skeleton that takes mean and squares in one sweep, and in the others: rows of equal
// elements have none, and numbers whose squares are infinite have one as long as their deviations' are not.

#include "test/codegen/cuda_skeletons.h"

namespace fusec {
namespace {

const char* const kText = R"(graph @g(%x: f32[N,C]) -> (f32[N], f32[N,C]) {
  %v = var %x {axes=[1]}
  %y = layer_norm %x {axes=[1], eps=1e-5}
  return %v, %y })";

void merged(Schedule& s) { s.merged = true; }
/// Lanes without a warp's state: nothing meets nothing.
void three_warps(Schedule& s) { skeletons::ring(s), s.threads = s.lanes_per_row = 96; }
template <void (*change)(Schedule&)> void merged_after(Schedule& s) { change(s), s.merged = true; }

const Skeleton kWays[] = {
    {"rows", kText, {{"N", 5}, {"C", 1024}}},
    {"rows_merged", kText, {{"N", 5}, {"C", 1024}}, merged},
    {"rows_tail", kText, {{"N", 5}, {"C", 1003}}},
    {"rows_looped", kText, {{"N", 5}, {"C", 1024}}, merged_after<skeletons::looped>},
    {"rows_shared", kText, {{"N", 5}, {"C", 1024}}, merged_after<skeletons::shared>},
    {"rows_cluster", kText, {{"N", 5}, {"C", 1024}}, merged_after<skeletons::cluster>, 8},
    {"ring", kText, {{"N", 5}, {"C", 1024}}, merged_after<skeletons::ring>, 1},
    {"ring_of_three_warps", kText, {{"N", 5}, {"C", 1024}}, merged_after<three_warps>, 1},
    {"ring_of_clusters", kText, {{"N", 5}, {"C", 1100}}, merged_after<skeletons::ring_of_clusters>, 4},
    {"ring_of_team", kText, {{"N", 5}, {"C", 1100}}, merged_after<skeletons::ring_of_team>},
    {"ring_of_teams", kText, {{"N", 5}, {"C", 1024}}, merged_after<skeletons::ring_of_teams>},
    {"ring_again", kText, {{"N", 5}, {"C", 1024}}, merged_after<skeletons::ring_again>, 1},
};

class CudaVariance : public testing::TestWithParam<Skeleton> {};

TEST_P(CudaVariance, OfEqualElementsIsZero) {
  const Skeleton& way = GetParam();
  const float values[] = {0.1f, 12345.678f, 1e20f, -7.7f, 3e-20f};
  const int64_t C = way.sizes.at("C");
  Tensor x{DType::f32, {5, C}, std::vector<std::byte>(size_t(5 * C) * 4)};
  for (int64_t i = 0; i < 5 * C; ++i) std::memcpy(x.data.data() + i * 4, &values[i / C], 4);
  const Subject s = subject(kText);
  const Ran got = run(s, way.sizes, {x}, how_of(way));
  ASSERT_EQ(got.trouble, "") << print(got.schedule);
  for (const Tensor& out : got.outputs)
    for (int64_t i = 0; i < out.elements(); ++i) ASSERT_EQ(element(out, i), 0) << i << " " << print(got.schedule);
}

TEST_P(CudaVariance, OfLargeNumbersIsThatOfTheirDeviations) {
  const Skeleton& way = GetParam();
  const int64_t C = way.sizes.at("C");
  Tensor x{DType::f32, {5, C}, std::vector<std::byte>(size_t(5 * C) * 4)};
  fuzz::Random random(3);
  for (int64_t i = 0; i < 5 * C; ++i) {
    const float e = float(1e20 * (1 + 1e-3 * (2 * random.unit() - 1)));
    std::memcpy(x.data.data() + i * 4, &e, 4);
  }
  const Subject s = subject(kText);
  const Ran got = run(s, way.sizes, {x}, how_of(way));
  ASSERT_EQ(got.trouble, "") << print(got.schedule);
  const std::vector<Tensor> inputs{x};
  const Result<std::vector<Tensor>> want = evaluate(s.graph, inputs);
  ASSERT_TRUE(want);
  for (int64_t i = 0; i < 5; ++i) EXPECT_NEAR(element(got.outputs[0], i) / element((*want)[0], i), 1, 1e-4) << print(got.schedule);
  for (int64_t i = 0; i < 5 * C; ++i) ASSERT_NEAR(element(got.outputs[1], i), element((*want)[1], i), 1e-3) << i << " " << print(got.schedule);
}

INSTANTIATE_TEST_SUITE_P(, CudaVariance, testing::ValuesIn(kWays), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusec
