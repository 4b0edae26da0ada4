// Text to cubin through NVRTC, opened at run time: one table of functions a process, filled once, never closed. NVRTC compiles
// concurrently, so there is no lock around it.

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/toolkit.h"
#include "lib/support/stopwatch.h"

namespace fusec::cuda {
namespace {

const std::initializer_list<const char*> kNames = {"libnvrtc.so.13", "libnvrtc.so.12"};

typedef struct NvrtcProgram* Program;  // nvrtcProgram
typedef int Status;                    // nvrtcResult: 0 is success

struct Nvrtc {
  void* handle = nullptr;
  std::string path, error;
  int major = 0, minor = 0;
  Status (*version)(int*, int*) = nullptr;
  Status (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  Status (*compile)(Program, int, const char* const*) = nullptr;
  Status (*destroy)(Program*) = nullptr;
  Status (*cubin_size)(Program, size_t*) = nullptr;
  Status (*cubin)(Program, char*) = nullptr;
  Status (*ptx_size)(Program, size_t*) = nullptr;
  Status (*ptx)(Program, char*) = nullptr;
  Status (*log_size)(Program, size_t*) = nullptr;
  Status (*log)(Program, char*) = nullptr;
  const char* (*error_string)(Status) = nullptr;
  // Of 11.2; without them every architecture is tried.
  Status (*architecture_count)(int*) = nullptr;
  Status (*architectures)(int*) = nullptr;
};

Nvrtc open_nvrtc() {
  Nvrtc n;
  n.handle = open_toolkit_library(kNames);
  if (!n.handle) {
    n.error = "NVRTC was not found: neither libnvrtc.so.13 nor libnvrtc.so.12 is on the loader's path, in $CUDA_PATH/lib64 or in /usr/local/cuda/lib64";
    return n;
  }
  const bool complete = find(n.handle, "nvrtcVersion", n.version) && find(n.handle, "nvrtcCreateProgram", n.create) &&
                        find(n.handle, "nvrtcCompileProgram", n.compile) && find(n.handle, "nvrtcDestroyProgram", n.destroy) &&
                        find(n.handle, "nvrtcGetCUBINSize", n.cubin_size) && find(n.handle, "nvrtcGetCUBIN", n.cubin) &&
                        find(n.handle, "nvrtcGetPTXSize", n.ptx_size) && find(n.handle, "nvrtcGetPTX", n.ptx) &&
                        find(n.handle, "nvrtcGetProgramLogSize", n.log_size) && find(n.handle, "nvrtcGetProgramLog", n.log) &&
                        find(n.handle, "nvrtcGetErrorString", n.error_string);
  if (!find(n.handle, "nvrtcGetNumSupportedArchs", n.architecture_count) || !find(n.handle, "nvrtcGetSupportedArchs", n.architectures)) n.architecture_count = nullptr;
  if (!complete) n.error = "NVRTC was found, but functions are missing from it";
  else n.version(&n.major, &n.minor);
  return n;
}

Stopwatch opening;

const Nvrtc& nvrtc() {
  static const Nvrtc one = [] {
    const Stopwatch::Running running(opening);
    return open_nvrtc();
  }();
  return one;
}

struct Holder {
  const Nvrtc& n;
  Program program = nullptr;
  ~Holder() {
    if (program) n.destroy(&program);
  }
};

std::string log_of(const Nvrtc& n, Program program) {
  size_t size = 0;
  if (n.log_size(program, &size) || size < 2) return "";
  std::string out(size, '\0');
  if (n.log(program, out.data())) return "";
  out.resize(std::strlen(out.c_str()));
  return out;
}

/// The number in front of `unit` in a line of ptxas, or after it: "Used 31 registers", "0 bytes spill stores".
int64_t number_before(const std::string& log, const char* unit) {
  const size_t at = log.find(unit);
  if (at == std::string::npos) return 0;
  size_t begin = at;
  while (begin > 0 && log[begin - 1] == ' ') --begin;
  size_t end = begin;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  int64_t out = 0;
  std::from_chars(log.data() + begin, log.data() + end, out);
  return out;
}

/// Compiles; `target` is "sm_90" for a cubin, "compute_90" for PTX only.
Result<Done> build(const Nvrtc& n, const std::string& text, const std::string& target, Holder& holder) {
  if (!n.error.empty()) return environment_error(n.error);
  if (Status s = n.create(&holder.program, text.c_str(), "fusec.cu", 0, nullptr, nullptr))
    return environment_error(std::string("NVRTC refuses to make a program: ") + n.error_string(s));
  // The only options; all of them are part of what compiler_identity stands for, being constant. --no-cache: a hit of NVRTC's own
  // cache prints no register counts.
  const std::string arch = "--gpu-architecture=" + target;
  const char* const options[] = {arch.c_str(),       "--std=c++17",          "--fmad=false", "--minimal",
                                 "-default-device",  "--no-source-include",  "--ptxas-options=-v", "--no-cache", "-w"};
  const Status status = n.compile(holder.program, static_cast<int>(std::size(options)), options);
  if (status) {
    const std::string log = log_of(n, holder.program);
    return environment_error(std::string("NVRTC cannot compile for ") + target + ": " + n.error_string(status)).note(log.substr(0, 4000));
  }
  return Done{};
}

/// `sm`, or, where NVRTC does not know that architecture, the newest older one.
int known_architecture(const Nvrtc& n, int sm) {
  int count = 0;
  if (!n.architecture_count || n.architecture_count(&count) || count <= 0) return sm;
  std::vector<int> all(static_cast<size_t>(count));
  if (n.architectures(all.data())) return sm;
  int best = 0;
  for (int known : all)
    if (known <= sm) best = std::max(best, known);
  return best ? best : sm;
}

using Clock = std::chrono::steady_clock;
Artifact artifact_of(const Code& code, int sm, std::vector<uint8_t> bytes, Clock::time_point start) {
  Artifact out;
  out.bytes = std::move(bytes);
  out.target = "sm_" + std::to_string(sm);
  out.entry = code.entry;
  out.slots = code.slots;
  out.schedule = code.schedule;
  out.facts["compile_us"] = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
  return out;
}

}  // namespace

Result<Artifact> compile_for_gpu(const Code& code, int sm) {
  const Nvrtc& n = nvrtc();
  const int known = known_architecture(n, sm);
  if (known == sm) return compile(code, sm);
  const auto start = Clock::now();
  const Result<std::string> text = ptx(code, known);
  if (!text) return text.error();
  return artifact_of(code, sm, {text->c_str(), text->c_str() + text->size() + 1}, start);  // with its end, which the driver looks for
}

Result<Artifact> compile(const Code& code, int sm) {
  const Nvrtc& n = nvrtc();
  const auto start = Clock::now();
  Holder holder{n};
  const std::string target = "sm_" + std::to_string(sm);
  if (auto done = build(n, code.text, target, holder); !done) return done.error();
  size_t size = 0;
  if (n.cubin_size(holder.program, &size) || !size) return environment_error("NVRTC gave no cubin for " + target);
  std::vector<uint8_t> bytes(size);
  if (n.cubin(holder.program, reinterpret_cast<char*>(bytes.data()))) return environment_error("NVRTC gave no cubin for " + target);
  const std::string log = log_of(n, holder.program);
  Artifact out = artifact_of(code, sm, std::move(bytes), start);
  out.facts["registers"] = number_before(log, " registers");
  out.facts["spill_bytes"] = number_before(log, " bytes spill stores") + number_before(log, " bytes spill loads");
  out.facts["stack_bytes"] = number_before(log, " bytes stack frame");
  out.facts["shared_bytes"] = number_before(log, " bytes smem");
  return out;
}

Result<std::string> ptx(const Code& code, int sm) {
  const Nvrtc& n = nvrtc();
  Holder holder{n};
  if (auto done = build(n, code.text, "compute_" + std::to_string(sm), holder); !done) return done.error();
  size_t size = 0;
  if (n.ptx_size(holder.program, &size) || !size) return environment_error("NVRTC gave no PTX");
  std::string out(size, '\0');
  if (n.ptx(holder.program, out.data())) return environment_error("NVRTC gave no PTX");
  out.resize(std::strlen(out.c_str()));
  return out;
}

std::string compiler_identity() {
  // A library on the loader's own path is found by asking for it without loading it; otherwise the folders are tried in order.
  static const std::string one = [] {
    std::vector<std::string> paths;
    for (const char* name : kNames) {
      for (const char* folder : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "/usr/lib/"}) paths.push_back(std::string(folder) + name);
      for (const std::string& folder : toolkit_folders()) paths.push_back(folder + name);
    }
    if (const char* extra = std::getenv("LD_LIBRARY_PATH")) {
      std::string all = extra;
      std::vector<std::string> first;
      for (size_t at = 0; at <= all.size();) {
        const size_t end = std::min(all.find(':', at), all.size());
        if (end > at)
          for (const char* name : kNames) first.push_back(all.substr(at, end - at) + "/" + name);
        at = end + 1;
      }
      paths.insert(paths.begin(), first.begin(), first.end());
    }
    for (const std::string& path : paths) {
      char real[PATH_MAX];
      struct stat info;
      if (!realpath(path.c_str(), real) || stat(real, &info)) continue;
      return std::string(real) + ":" + std::to_string(info.st_size) + ":" + std::to_string(info.st_mtim.tv_sec) + "." +
             std::to_string(info.st_mtim.tv_nsec);
    }
    // Only the loader knows where it is (ld.so.cache): open it and ask for its version.
    const Nvrtc& n = nvrtc();
    return n.error.empty() ? "nvrtc " + std::to_string(n.major) + "." + std::to_string(n.minor) : std::string();
  }();
  return one;
}

double compiler_opening() { return opening.seconds(); }

}  // namespace fusec::cuda
