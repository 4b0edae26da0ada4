// Every skeleton in fifty orders of threads, blocks and copies, with the race detector on: no race, no fault, and the same bits each time.

#include "test/codegen/cuda_skeletons.h"

namespace fusec {
namespace {

constexpr uint64_t kOrders = 50;

class Orders : public ::testing::TestWithParam<Skeleton> {};

TEST_P(Orders, GiveTheSameBits) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Subject s = subject(GetParam().text);
  const std::vector<Tensor> inputs = inputs_of(GetParam(), s);
  How how = how_of(GetParam());
  how.order = SIMT_FORWARD;
  const Ran first = run(s, GetParam().sizes, inputs, how);
  ASSERT_EQ(first.trouble, "") << print(first.schedule);
  const auto want = evaluate(s.graph, inputs);
  ASSERT_TRUE(want);
  for (size_t k = 0; k < want->size(); ++k)
    for (int64_t i = 0; i < (*want)[k].elements(); ++i) {
      const double a = element(first.outputs[k], i), b = element((*want)[k], i);
      ASSERT_LE(std::abs(a - b), 1e-2 * std::max(1.0, std::abs(b))) << "element " << i;
    }
  how.order = SIMT_REVERSE;
  for (how.seed = 0; how.seed < kOrders; ++how.seed) {
    const Ran ran = run(s, GetParam().sizes, inputs, how);
    ASSERT_EQ(ran.trouble, "") << print(ran.schedule) << " order " << how.seed;
    ASSERT_EQ(ran.outputs, first.outputs) << "order " << how.seed;
    how.order = SIMT_RANDOM;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, Orders, ::testing::ValuesIn(kSkeletons), [](const auto& info) { return info.param.name; });

TEST(Skeletons, HoldEveryTemplate) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  std::map<std::string, std::string> left = template_files();
  for (const Skeleton& skeleton : kSkeletons) {
    const Subject s = subject(skeleton.text);
    const std::string text = run(s, skeleton.sizes, inputs_of(skeleton, s), how_of(skeleton)).text;
    std::erase_if(left, [&](const auto& file) { return text.find(file.second) != text.npos; });
  }
  for (const auto& [name, text] : left) ADD_FAILURE() << name << " is run by no row of kSkeletons";
}

}  // namespace
}  // namespace fusec
