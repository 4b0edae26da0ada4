// fusec devices: what this build and this machine can run on; --measure adds the rate at which each copies memory.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "runtime/backend.h"
#include "tools/fusec/command.h"
#include "tools/fusec/ceilings.h"
#if FUSEC_HAS_CPU
#include "codegen/cpu/cpu.h"
#include "runtime/cpu/threads.h"
#endif

namespace fusec::cli {
namespace {

int run(bool measure) {
  std::cout << "reference: the evaluator, always there\n";
  auto rate = [&](const std::string& device) -> std::string {
    if (!measure) return "";
    Result<std::shared_ptr<const Backend>> found = backend(device);
    Result<double> bytes = found ? copy_rate(**found, Flush(), size_t{256} << 20, 15) : Result<double>(found.error());
    if (found && bytes)
      if (Result<double> adds = add_rate(**found, 11)) return ", copies " + size_text(*bytes) + "/s (read + written), adds " + fixed(*adds * 1e-12, 2) + " T f32/s";
    return bytes ? ", copies " + size_text(*bytes) + "/s (read + written)" : ", copy rate: " + bytes.error().message;
  };
#if FUSEC_HAS_CPU
  const cpu::Device& host = cpu::host();
  std::cout << "cpu: " << host.cpu << ", " << cpu::threads() << " threads, vectors of " << host.vector_bytes << " bytes" << rate("cpu") << "\n";
#else
  std::cout << "cpu: " << cpu_backend().error().message << "\n";
#endif
  const int gpus = cuda_devices();
  for (int i = 0; i < gpus; ++i) {
    const std::string device = "cuda:" + std::to_string(i);
    Result<std::shared_ptr<const Backend>> gpu = backend(device);
    std::cout << device << ": " << (gpu ? (*gpu)->description() : gpu.error().message) << (gpu ? rate(device) : "") << "\n";
  }
  if (gpus == 0) std::cout << "cuda: " << cuda_backend(0).error().message << "\n";
  Result<std::shared_ptr<const Backend>> simt = simt_backend();
  std::cout << "simt: " << (simt ? "CUDA text on the host, for tests" : simt.error().message) << "\n";
  return 0;
}

}  // namespace

Action add_devices(CLI::App& app) {
  auto measure = std::make_shared<bool>(false);
  app.add_flag("--measure", *measure, "measure the rates at which each copies memory and adds");
  return [measure] { return run(*measure); };
}

}  // namespace fusec::cli
