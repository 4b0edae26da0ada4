// The benchmark's graphs: each becomes one kernel that reads every input once.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/fusion/fuse.h"
#include "lib/ir/decompose.h"

namespace fusec {
namespace {

TEST(Workloads, EachIsOneKernel) {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FUSEC_SOURCE_DIR "/tools/bench/workloads")) {
    std::ifstream file(entry.path());
    std::stringstream source;
    source << file.rdbuf();
    const std::string name = entry.path().filename().string();
    Result<Graph> graph = parse(source.str(), name);
    ASSERT_TRUE(graph) << graph.error().text();
    Result<Graph> primitive = decompose(*graph);
    ASSERT_TRUE(primitive) << primitive.error().text();
    Result<GroupPlan> plan = fuse(*primitive);
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_EQ(plan->groups.size(), 1u) << name << "\n" << print(*primitive);
    for (const Refusal& refusal : plan->refusals) ADD_FAILURE() << name << ": " << refusal.code << ": " << refusal.reason;
    EXPECT_EQ(plan->groups[0].inputs.size(), graph->inputs().size()) << name;
    seen++;
  }
  EXPECT_EQ(seen, 27u);
}

}  // namespace
}  // namespace fusec
