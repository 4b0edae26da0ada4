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

// Blocks of a team know by the number beside a word that it belongs to this meeting, and fold no row on before three others are stored: without
// either, a state of another row is taken for this one's.
TEST(Orders, StatesOfTeamsBelongToTheirMeeting) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const Skeleton* team = nullptr;
  for (const Skeleton& skeleton : kSkeletons)
    if (std::string(skeleton.name) == "ring_of_team") team = &skeleton;
  ASSERT_NE(team, nullptr);
  const Subject s = subject(team->text);
  const std::vector<Tensor> inputs = inputs_of(*team, s);
  How how = how_of(*team);
  how.order = SIMT_FORWARD;
  const Ran right = run(s, team->sizes, inputs, how);
  ASSERT_EQ(right.trouble, "");
  struct Fault {
    const char *from, *to;
  };
  for (const Fault& fault : {Fault{">> 32) == number", ">> 32) != 0"}, {"(u64)number << 32", "(u64)1 << 32"},
                             {"post(boards_at(counters) + i, 0)", "(void)0"}}) {
    how.edit = [&](std::string& text) {
      const size_t at = text.find(fault.from);
      ASSERT_NE(at, text.npos) << fault.from;
      text.replace(at, std::string(fault.from).size(), fault.to);
    };
    bool seen = false;
    for (simt_order order : {SIMT_FORWARD, SIMT_REVERSE, SIMT_RANDOM}) {
      how.order = order;
      const Ran now = run(s, team->sizes, inputs, how);
      seen |= now.trouble != "" || now.outputs != right.outputs;
    }
    EXPECT_TRUE(seen) << fault.from << " -> " << fault.to;
  }
}

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
