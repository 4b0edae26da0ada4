// The workloads of tools/bench: each kernel that compile() makes of each compiles for sm_90 without a spill.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/plan.h"
#include "test/codegen/cuda_kernels.h"

namespace fusec {
namespace {

TEST(CudaWorkloads, CompileWithoutSpills) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(FUSEC_SOURCE_DIR) + "/tools/bench/workloads"))
    if (entry.path().extension() == ".fus") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    Result<Graph> graph = parse(text.str(), file.filename().string());
    ASSERT_TRUE(graph) << graph.error().text();
    Result<ProgramPlan> plan = make_plan(*graph, {});
    ASSERT_TRUE(plan) << plan.error().text();
    for (const PlanStep& step : plan->steps) {
      Result<Kernel> kernel = build(*step.graph, step.group);
      ASSERT_TRUE(kernel) << kernel.error().text();
      if (!formulas_known(*kernel)) {
        printf("%-36s waits for a formula\n", file.stem().c_str());
        continue;
      }
      Sizes sizes;
      for (const std::string& symbol : graph->symbols()) sizes[symbol] = 4096;
      const cuda::Device device = cuda::device(90);
      const Facts f = facts(*kernel, dense_binding(*kernel, sizes));
      const Schedule s = cuda::schedule(*kernel, f, device);
      const Code code = cuda::emit(*kernel, s);
      Result<Artifact> artifact = cuda::compile(code, device.sm);
      ASSERT_TRUE(artifact) << file.filename() << "\n" << artifact.error().text();
      printf("%-36s %s: %d regs, %d spill, %d us\n", file.stem().c_str(), print(s).c_str(), int(artifact->facts["registers"]),
             int(artifact->facts["spill_bytes"]), int(artifact->facts["compile_us"]));
      EXPECT_EQ(artifact->facts["spill_bytes"], 0) << file.filename();
      EXPECT_EQ(code.text.find(" warm(") != std::string::npos, code.text.find("  warmed();") != std::string::npos) << "a block ends with copies on their way";
    }
  }
}

}  // namespace
}  // namespace fusec
