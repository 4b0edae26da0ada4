// The table of devices by name.

#include "runtime/backend.h"

#include <charconv>
#include <chrono>
#include <mutex>

namespace fusec {

#if !FUSEC_HAS_CPU
Result<std::shared_ptr<const Backend>> cpu_backend() {
  return environment_error("device cpu: this fusec was built without LLVM (FUSEC_CPU=OFF)");
}
#endif
#if !FUSEC_HAS_CUDA
Result<std::shared_ptr<const Backend>> cuda_backend(int) {
  return environment_error("device cuda: this fusec was built without the CUDA toolkit (FUSEC_CUDA=OFF)");
}
Result<std::shared_ptr<const Backend>> simt_backend() {
  return environment_error("device simt: it runs CUDA text, and this fusec was built without the CUDA toolkit (FUSEC_CUDA=OFF)");
}
int cuda_devices() { return 0; }
#endif

Result<std::vector<double>> Backend::time(int count, const std::function<Status()>& before, const std::function<Status()>& call) const {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) {
    if (Status s = before(); !s) return s.error();
    if (Status s = wait(nullptr); !s) return s.error();
    const auto start = std::chrono::steady_clock::now();
    if (Status s = call(); !s) return s.error();
    if (Status s = wait(nullptr); !s) return s.error();
    out.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return out;
}

Result<std::shared_ptr<const Recorded>> Backend::record(const std::function<Status(void*)>&) const { return std::shared_ptr<const Recorded>(); }
Status Backend::replay(const Recorded&, void*) const { return internal_error("device " + name() + " records nothing"); }

Result<std::function<Status()>> Backend::empty_launch(size_t) const { return environment_error("device " + name() + ": a call is no launch"); }

Result<std::shared_ptr<const Backend>> backend(const std::string& device) {
  if (device == "cpu") return cpu_backend();
  if (device == "simt") return simt_backend();
  if (device == "auto") return cuda_devices() > 0 ? cuda_backend(0) : cpu_backend();
  if (device == "cuda") return cuda_backend(0);
  if (device.starts_with("cuda:")) {
    int index = -1;
    const auto [end, error] = std::from_chars(device.data() + 5, device.data() + device.size(), index);
    if (error == std::errc() && end == device.data() + device.size() && index >= 0) return cuda_backend(index);
  }
  return input_error("unknown device '" + device + "': auto, cpu, cuda, cuda:N, simt and reference are known");
}

std::vector<std::string> devices() {
  std::vector<std::string> out{"reference"};
  if (cpu_backend()) out.push_back("cpu");
  for (int i = 0; i < cuda_devices(); ++i) out.push_back("cuda:" + std::to_string(i));
  return out;
}

}  // namespace fusec
