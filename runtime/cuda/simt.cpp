// Device simt: CUDA text of the same schedules, run on the host by libfusec_simt.so, with its checks on. A tool for tests: the library
// belongs to them (test/simt) and is opened when it is asked for: FUSEC_SIMT, or beside or below the executable.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "codegen/cuda/cuda.h"
#include "runtime/backend.h"
#include "runtime/host_memory.h"

namespace fusec {
namespace {

// The part of test/simt/c_api.h that is called here; simt_api_version says whether it still fits.
constexpr int kOldest = 1, kNewest = 2;  // what changed between them is not used here
struct SimtOptions {
  uint64_t seed;
  int32_t order, races;
  uint64_t limit;
  uint32_t resident;
  int32_t traffic;
};
struct SimtResult {
  int32_t fault;
  const char* text;
};
struct Functions {
  int (*api_version)();
  void* (*load)(const char* text, size_t bytes, char** error);
  void (*unload)(void* kernel);
  void (*free_text)(char* text);
  void* (*memory_new)();
  void (*memory_free)(void* memory);
  void (*add)(void* memory, void* begin, size_t bytes, const char* name, int unwritten);
  const SimtResult* (*launch)(void* kernel, const char* entry, void* memory, const uint32_t grid[3], const uint32_t block[3], uint32_t cluster,
                              uint32_t shared, const void* args, size_t arg_bytes, const SimtOptions* options);
  void (*result_free)(const SimtResult* result);
};

Result<Functions> open() {
  std::vector<std::string> places;
  const char* given = std::getenv("FUSEC_SIMT");
  if (given && !*given) given = nullptr;
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  std::string folder(path, length > 0 ? size_t(length) : 0);
  folder.resize(std::min(folder.find_last_of('/'), folder.size()));
  if (given) places.push_back(given);  // that one, or none
  else for (const char* below : {"/", "/simt/", "/test/simt/", "/../lib/"}) places.push_back(folder + below + "libfusec_simt.so");
  void* library = nullptr;
  std::string why;
  for (const std::string& place : places)
    if ((library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
    else why = ::dlerror();
  if (!library && given) return environment_error("device simt: FUSEC_SIMT cannot be used: " + why);
  if (!library) return environment_error("device simt: no libfusec_simt.so (built with the tests; FUSEC_SIMT names it): " + why);
  Functions f{};
  std::string missing;
  auto find = [&](const char* name, auto& entry) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
    if (!entry) missing = name;
  };
  find("simt_api_version", f.api_version), find("simt_load", f.load), find("simt_unload", f.unload), find("simt_free_text", f.free_text);
  find("simt_memory_new", f.memory_new), find("simt_memory_free", f.memory_free), find("simt_add", f.add);
  find("simt_launch", f.launch), find("simt_result_free", f.result_free);
  if (!missing.empty()) return environment_error("device simt: libfusec_simt.so has no " + missing);
  if (f.api_version() < kOldest || f.api_version() > kNewest) return environment_error("device simt: libfusec_simt.so is of another version");
  return f;
}

struct SimtCode final : Loaded {
  std::shared_ptr<void> kernel;
  mutable std::atomic<uint64_t> launches = 0;  // each in an order of its own, the same in every process
};

class SimtBackend final : public Backend {
 public:
  explicit SimtBackend(const Functions& f) : f_(f), device_(cuda::device(90)) {}

  const std::string& name() const override { return name_; }
  std::string description() const override { return "sm_90 on the host"; }
  Schedule schedule(const Kernel& kernel, const Facts& facts) const override { return cuda::schedule(kernel, facts, device_); }
  Launch launch(const Kernel& kernel, const Schedule& schedule, const Facts& facts) const override {
    return cuda::launch(kernel, schedule, facts, device_);
  }
  std::string settle(const Kernel& kernel, const Facts& facts, Schedule& schedule) const override {
    return cuda::settle(kernel, facts, device_, schedule);
  }
  std::string_view fields(const Schedule& s) const override { return cuda::fields(s); }
  std::vector<Candidate> candidates(const Kernel& kernel, const Facts& facts) const override { return cuda::candidates(*this, kernel, facts); }
  void follow(Schedule& schedule) const override { cuda::follow(schedule, device_); }
  Occupancy occupancy(const Artifact& artifact, const Launch& launch) const override { return cuda::occupancy(artifact, launch, device_); }
  std::string device_key() const override { return "simt"; }
  std::string target_key() const override { return "sm_" + std::to_string(device_.sm); }

  Result<std::shared_ptr<const Loaded>> load(const Kernel& kernel, const Schedule& schedule, Cache&) const override {
    Code code = cuda::emit(kernel, schedule);
    char* error = nullptr;
    std::shared_ptr<void> made(f_.load(code.text.data(), code.text.size(), &error), f_.unload);
    if (!made) {
      Error fault = internal_error("generated text does not compile for simt");
      if (error) fault.notes.push_back(error), f_.free_text(error);
      return fault;
    }
    auto loaded = std::make_shared<SimtCode>();
    loaded->kernel = std::move(made);
    Artifact artifact;
    artifact.target = "simt", artifact.entry = code.entry, artifact.slots = std::move(code.slots), artifact.schedule = code.schedule;
    loaded->artifact = std::make_shared<const Artifact>(std::move(artifact));
    return std::shared_ptr<const Loaded>(std::move(loaded));
  }

  std::vector<std::pair<std::string, std::string>> texts(const Kernel& kernel, const Schedule& schedule) const override {
    return {{".cu", cuda::emit(kernel, schedule).text}};
  }

  Status may_prepare(void*) const override { return Done{}; }
  bool captured(void*) const override { return false; }
  bool wants_regions() const override { return true; }

  Status start(const Loaded& loaded, const Launch& launch, std::span<const std::byte> args, std::span<const Region> regions, void*) const override {
    const SimtCode& code = static_cast<const SimtCode&>(loaded);
    const std::unique_ptr<void, void (*)(void*)> memory(f_.memory_new(), f_.memory_free);
    for (const Region& region : regions)
      if (region.bytes) f_.add(memory.get(), const_cast<void*>(region.begin), region.bytes, "operand", 0);
    const uint32_t block[3] = {launch.block, 1, 1};
    // Random order, all races, and side by side what waits for each other.
    const SimtOptions options{++code.launches, 0, 2, 0, launch.together ? launch.grid[0] : 1, 0};
    const SimtResult* result = f_.launch(code.kernel.get(), code.artifact->entry.c_str(), memory.get(), launch.grid, block, launch.cluster,
                                         launch.shared, args.data(), args.size(), &options);
    Status done = result->fault == 0 ? Status(Done{}) : Status(internal_error(std::string("simt: ") + result->text));
    f_.result_free(result);
    return done;
  }

  Result<std::unique_ptr<Memory>> allocate(size_t bytes) const override { return allocate_host(bytes); }
  Status upload(void* to, const void* from, size_t bytes) const override { return copy_host(to, from, bytes); }
  Status download(void* to, const void* from, size_t bytes) const override { return upload(to, from, bytes); }
  Status copy(void* to, const void* from, size_t bytes, void*) const override { return upload(to, from, bytes); }
  Status fill(void* data, uint8_t byte, size_t bytes, void*) const override {
    std::memset(data, byte, bytes);
    return Done{};
  }
  Status wait(void*) const override { return Done{}; }
  Status sweep(const void*, size_t, void*) const override { return Done{}; }  // no time of simt says anything
  size_t cache_bytes() const override { return 0; }

 private:
  Functions f_;
  cuda::Device device_;
  std::string name_ = "simt";
};

}  // namespace

Result<std::shared_ptr<const Backend>> simt_backend() {
  static const Result<Functions> kFunctions = open();
  if (!kFunctions) return kFunctions.error();
  static const std::shared_ptr<const Backend> kBackend = std::make_shared<SimtBackend>(*kFunctions);
  return kBackend;
}

}  // namespace fusec
