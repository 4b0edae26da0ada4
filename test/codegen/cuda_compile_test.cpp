// Every skeleton compiles for every architecture, without spills, the same text twice, and nothing of a user in it.

#include "test/codegen/cuda_kernels.h"

#include <cstdio>

namespace fusec {
namespace {

class Compiles : public ::testing::TestWithParam<Named> {};

TEST_P(Compiles, ForEveryArchitecture) {
  const Kernel kernel = kernel_of(GetParam().text);
  ASSERT_FALSE(kernel.values.empty());
  if (!formulas_known(kernel)) GTEST_SKIP() << "waits for a formula";
  if (getenv("SHOW")) puts(print(kernel).c_str());
  const Facts f = facts(kernel, dense_binding(kernel, GetParam().sizes));
  for (int sm : {80, 90, 100}) {
    if (getenv("SM") && atoi(getenv("SM")) != sm) continue;
    const cuda::Device device = cuda::device(sm);
    const Schedule s = cuda::schedule(kernel, f, device);
    const Code code = cuda::emit(kernel, s);
    EXPECT_EQ(code.text, cuda::emit(kernel, s).text);
    if (getenv("SHOW")) puts(code.text.substr(code.text.find("template <int S> struct RawOf;")).c_str());
    if (getenv("DUMP")) { FILE* o = fopen(getenv("DUMP"), "w"); fputs(code.text.c_str(), o); fclose(o); }
    Result<Artifact> artifact = cuda::compile(code, sm);
    ASSERT_TRUE(artifact) << artifact.error().text() << code.text.substr(code.text.find("template <int S> struct RawOf;"));
    EXPECT_EQ(artifact->facts["spill_bytes"], 0) << print(s);
    printf("%-20s sm_%d %s: %d regs, %d spill, %d stack, %d us\n", GetParam().name, sm, print(s).c_str(), int(artifact->facts["registers"]),
           int(artifact->facts["spill_bytes"]), int(artifact->facts["stack_bytes"]), int(artifact->facts["compile_us"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, Compiles, ::testing::ValuesIn(kGraphs), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusec
