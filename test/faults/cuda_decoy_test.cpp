// NVRTC reads nothing of the surroundings: no header of the working directory, of CPATH or of a CUDA_PATH that leads nowhere.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/codegen/cuda_kernels.h"

namespace fusec {
namespace {

TEST(Decoys, AreNotRead) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("fusec-decoys-" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (const char* header : {"cuda_fp16.h", "cuda_bf16.h", "cuda_runtime.h", "cstdint", "stdint.h", "math.h"})
    std::ofstream(folder / header) << "#error a decoy was read\n";
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  for (const char* name : {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "INCLUDE", "CUDA_HOME"}) setenv(name, folder.c_str(), 1);
  setenv("CUDA_PATH", (folder / "nowhere").c_str(), 1);
  for (const Named& named : kGraphs) {
    const Kernel kernel = kernel_of(named.text);
    const Facts f = facts(kernel, dense_binding(kernel, named.sizes));
    const Code code = cuda::emit(kernel, cuda::schedule(kernel, f, cuda::device(90)));
    EXPECT_EQ(code.text.find("#include"), std::string::npos) << named.name;
    if (&named != kGraphs) continue;
    const Result<Artifact> artifact = cuda::compile(code, 90);
    if (!artifact && artifact.error().kind == Error::environment && cuda::compiler_identity().empty()) continue;  // no NVRTC
    EXPECT_TRUE(artifact) << artifact.error().text();
  }
  fs::current_path(before);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace fusec
