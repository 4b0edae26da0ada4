// The host processor, by LLVM's names. No target is initialised here: this is CPUID and a few files.
#include <llvm/Config/llvm-config.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/ADT/StringMap.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "codegen/cpu/cpu.h"

namespace fusec::cpu {
namespace {

int usable_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Device detect() {
  Device out;
  out.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
#if LLVM_VERSION_MAJOR >= 19
  const auto found = llvm::sys::getHostCPUFeatures();
#endif
  for (const auto& feature : found) features.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::sort(features.begin(), features.end());
  auto has = [&](const char* name) { return std::find(features.begin(), features.end(), name) != features.end(); };
  // AVX-512 counts only where masks and small types have it too; anything older than Skylake-X does not.
  if (has("+avx512f") && has("+avx512bw") && has("+avx512vl") && has("+avx512dq")) out.vector_bytes = 64;
  else if (has("+avx")) out.vector_bytes = 32;
  for (const std::string& feature : features) out.features += (out.features.empty() ? "" : ",") + feature;
  out.threads = usable_threads();
  if (const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE); l1 > 0) out.l1 = static_cast<size_t>(l1);
  if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) out.l2 = static_cast<size_t>(l2);
  return out;
}

}  // namespace

const Device& host() {
  static const Device device = detect();
  return device;
}

std::string identity(const Device& device) {
  return "llvm " LLVM_VERSION_STRING "; " + device.cpu + "; " + device.features;
}

}  // namespace fusec::cpu
