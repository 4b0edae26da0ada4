// What is around the CUDA back end and can be missing or broken: NVRTC and the driver, each played by a stub library that the loader finds
// first. Every fault is an error of the environment with a sentence that names it, and the program ends by itself.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "lib/support/files.h"
#include "runtime/cuda/driver.h"
#include "test/folder.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

struct CudaFaults : testing::Test {
  CudaFaults() {
    std::ofstream(dir / "f.fus") << "graph @f(%x: f32[8,16]) -> f32[8,16] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n";
    ::setenv("FUSEC_CACHE_DIR", (dir / "cache").c_str(), 1);
    ::setenv("TMPDIR", dir.c_str(), 1);
  }

  /// `fusec ARGUMENTS` with the stubs of some folders in front: its status, and what it said.
  std::pair<int, std::string> run(const std::string& arguments, const std::string& stubs, const std::string& fault) {
    std::string folders;
    for (size_t at = 0; at < stubs.size();) {
      const size_t end = std::min(stubs.find(' ', at), stubs.size());
      folders += (fs::path(FUSEC_BINARY_DIR "/test/stubs") / stubs.substr(at, end - at)).string() + ":";  // or an absolute one
      at = end + 1;
    }
    const std::string out = (dir / "out").string();
    const std::string command = "cd '" + dir.string() + "' && LD_LIBRARY_PATH='" + folders + "' FUSEC_STUB='" + fault + "' '" FUSEC_BINARY_DIR "/fusec' " +
                                arguments + " >'" + out + "' 2>&1 </dev/null";
    const int status = std::system(command.c_str());
    const auto text = read_file(out);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text ? *text : ""};
  }
  void expect(const std::string& arguments, const std::string& stubs, const std::string& fault, const std::string& part) {
    const auto [status, text] = run(arguments, stubs, fault);
    EXPECT_EQ(status, 3) << fault << ": " << text;
    EXPECT_NE(text.find("error: "), std::string::npos) << fault << ": " << text;
    EXPECT_NE(text.find(part), std::string::npos) << fault << ": " << text;
  }

  const Folder folder{"cuda"};
  const fs::path dir = folder.path;
};

const char kCubin[] = "emit f.fus --target sm_90 --as cubin -o code";
const char kRun[] = "run f.fus --device cuda -q";

TEST_F(CudaFaults, NvrtcThatFails) {
  EXPECT_EQ(run(kCubin, "nvrtc", "").first, 0) << "the stub without a fault";
  expect(kCubin, "nvrtc", "create", "NVRTC refuses to make a program: NVRTC_ERROR_STUB");
  expect(kCubin, "nvrtc", "compile", "the stub does not like this");
  expect(kCubin, "nvrtc", "no_log", "NVRTC cannot compile for sm_90: NVRTC_ERROR_STUB");
  expect(kCubin, "nvrtc", "no_cubin", "NVRTC gave no cubin for sm_90");
  expect("emit f.fus --target sm_90 --as ptx", "nvrtc", "", "NVRTC gave no PTX");
}

TEST_F(CudaFaults, NvrtcThatIsTooOld) { expect(kCubin, "nvrtc_old", "", "functions are missing from it"); }

// A GPU of an architecture that it does not know gets PTX of the newest older one; a cubin for it there is none.
TEST_F(CudaFaults, NvrtcThatIsOlderThanTheGpu) {
  const auto [status, text] = run(kRun, "driver nvrtc", "older");
  EXPECT_EQ(status, 0) << text;
  expect(kCubin, "nvrtc", "older", "NVRTC gave no cubin for sm_90");
}

TEST_F(CudaFaults, NvrtcThatIsMissing) {
  // A view of the machine without CUDA's folders, where that is allowed.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    for (const char* folder : {"/usr/local"})
      if (fs::exists(folder) && ::mount("tmpfs", folder, "tmpfs", 0, "size=64k") != 0) ::_exit(77);
    const auto [status, text] = run(kCubin, "", "");
    if (status == 0) ::_exit(77);  // a distribution's own, on the loader's path
    ::_exit(status == 3 && text.find("NVRTC was not found") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "NVRTC cannot be hidden here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(CudaFaults, DriverThatIsMissing) {
  // What the loader finds first is no library.
  fs::create_directories(dir / "empty");
  std::ofstream(dir / "empty/libcuda.so.1");
  expect(kRun, (dir / "empty").string(), "", "no CUDA driver: ");
}

TEST_F(CudaFaults, DriverThatFails) {
  expect(kRun, "driver_old", "", "the CUDA driver is too old: it has no cuGetProcAddress_v2");
  expect(kRun, "driver nvrtc", "lacks=cuLaunchKernelEx", "the CUDA driver is too old: it has no cuLaunchKernelEx");
  expect(kRun, "driver nvrtc", "cuInit=100", "cuInit: CUDA_ERROR_STUB: a fault of the stub");
  expect(kRun, "driver nvrtc", "devices=0", "there are 0 CUDA devices");
  expect(kRun, "driver nvrtc", "cuDeviceGet=101", "cuDeviceGet: ");
  expect(kRun, "driver nvrtc", "cuDevicePrimaryCtxRetain=2", "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  expect(kRun, "driver nvrtc", "cuCtxGetCurrent=201", "cuCtxGetCurrent: ");
  expect(kRun, "driver nvrtc", "cuLaunchKernel=700", "cuLaunchKernel: ");
}

// Each entry in turn: what a command calls must be looked at, whichever it is.
TEST_F(CudaFaults, EveryEntryOfTheDriverThatFails) {
  const std::string seen = (dir / "seen").string();
  ::setenv("FUSEC_STUB_SEEN", seen.c_str(), 1);
  // What gives back has nobody to tell, an error without a name is told by its number, and who refuses a library is given a module.
  const std::set<std::string> kUnheard = {"cuMemFree", "cuCtxPopCurrent", "cuCtxSynchronize", "cuLibraryUnload", "cuModuleUnload", "cuStreamDestroy",
                                          "cuEventDestroy", "cuGraphDestroy", "cuGraphExecDestroy", "cuGetErrorName", "cuGetErrorString", "cuLibraryLoadData"};
  std::string never;
  size_t looked_at = 0;
#define FUSEC_NAME(name, version) #name,
  for (const std::string entry : {FUSEC_DRIVER_ENTRIES(FUSEC_NAME)}) {
    bool called = false;
    for (const char* command : {kRun, "run f.fus --device cuda -q --time", "bench f.fus --device cuda --flush --no-check --runs 1"}) {
      fs::remove(seen);
      const std::string first = entry.starts_with("cuModule") ? "cuLibraryLoadData=801 " : "";  // for a driver that refuses a library
      const auto [status, text] = run(command, "driver nvrtc", first + entry + "=999");
      const Result<std::string> failed = read_file(seen);
      if (!failed || failed->find(entry + "\n") == failed->npos) continue;
      called = true;
      if (kUnheard.contains(entry)) continue;
      EXPECT_EQ(status, 3) << entry << " of " << command << ": " << text;
      EXPECT_NE(text.find(entry + ": CUDA_ERROR_STUB"), std::string::npos) << command << ": " << text;
    }
    if (called) ++looked_at;
    else never += entry + " ";
  }
#undef FUSEC_NAME
  ::unsetenv("FUSEC_STUB_SEEN");
  EXPECT_GT(looked_at, 35u) << "no command calls " << never;
}

TEST_F(CudaFaults, MemoryOfTheDeviceIsExhausted) {
  EXPECT_EQ(run(kRun, "driver nvrtc", "").first, 0) << "the stub without a fault: " << run(kRun, "driver nvrtc", "").second;
  expect(kRun, "driver nvrtc", "cuMemAlloc=2", "CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  // At any of its pieces: operands, what lies between two kernels, counters.
  std::ofstream(dir / "s.fus") << "graph @s(%x: f32[1048576]) -> f32[1048576] {\n  %s = sum %x {axes=[0]}\n  %y = sub %x, %s\n  return %y\n}\n";
  const char kTwo[] = "run s.fus --device cuda -q --time";
  int piece = 1;
  for (; piece < 50; ++piece) {
    const auto [status, text] = run(kTwo, "driver nvrtc", "cuMemAlloc=2@" + std::to_string(piece));
    if (status == 0) break;
    EXPECT_EQ(status, 3) << piece << ": " << text;
    EXPECT_NE(text.find("CUDA_ERROR_OUT_OF_MEMORY: out of memory"), std::string::npos) << piece << ": " << text;
  }
  EXPECT_GT(piece, 3) << "two operands, and what is between the kernels";
  EXPECT_LT(piece, 50);
}

}  // namespace
}  // namespace fusec
