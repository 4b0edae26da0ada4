#pragma once
// Runs the text of a CUDA kernel on the host and says what is wrong with it. Opens libfusec_simt.so when it is first
// needed.
//
//   simt::Library library = simt::Library::open();             // library.error() says why not
//   simt::Kernel kernel = library.load(text);                  // kernel.error(): clang's messages
//   simt::Memory memory = library.memory();
//   float* x = memory.allocate<float>(1024, "x");
//   struct { const float* x; float* y; } args = {x, y};
//   simt::Result result = kernel.launch("g0", memory, {.grid = {4}, .block = {256}}, args);
//   if (!result.ok()) puts(result.text.c_str());  // race on x+64 …: read by block (0,0,0) thread (5,0,0) at line 12 …
//
// Header only: standard library and dlopen, no header of clang or LLVM.

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/simt/c_api.h"

namespace fusec::simt {

struct Launch {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};  // missing numbers count as 1
  uint32_t cluster = 1;                                   // blocks along x
  uint32_t dynamic_bytes = 0;                             // of extern __shared__
  simt_order order = SIMT_RANDOM;
  uint64_t seed = 1;
  simt_races races = SIMT_RACES_ALL;
  uint64_t limit = 0;
  uint32_t resident = 0;
  bool traffic = false;
};

/// Counts of one load or store of the text: simt_count, with the lines of the calls inlined around it.
struct Count : simt_count {
  std::vector<uint32_t> all_lines;

  bool at(uint32_t wanted) const { return std::find(all_lines.begin(), all_lines.end(), wanted) != all_lines.end(); }
};

struct Result {
  simt_fault fault = SIMT_OK;
  std::string text;  // "" when ok
  std::array<uint32_t, 3> block{}, thread{};
  uint32_t line = 0;  // of the kernel's text, innermost; `lines` adds the calls inlined around it
  std::vector<uint32_t> lines;
  uint64_t steps = 0, switches = 0;
  std::vector<Count> counts;

  bool ok() const { return fault == SIMT_OK; }
};

namespace detail {

#define FUSEC_SIMT_FUNCTIONS(X)                                                                                     \
  X(simt_api_version)                                                                                               \
  X(simt_load) X(simt_unload) X(simt_free_text) X(simt_memory_new) X(simt_memory_free) X(simt_allocate) X(simt_add) \
      X(simt_remove) X(simt_launch) X(simt_result_free)

struct Functions {
#define FUSEC_SIMT_FIELD(name) decltype(&::name) name = nullptr;
  FUSEC_SIMT_FUNCTIONS(FUSEC_SIMT_FIELD)
#undef FUSEC_SIMT_FIELD
  std::string error;
};

/// Where the library may be: FUSEC_SIMT, or beside or below the executable.
inline std::vector<std::string> places() {
  if (const char* given = std::getenv("FUSEC_SIMT")) return {given};
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string folder(path, length > 0 ? static_cast<size_t>(length) : 0);
  folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/'));
  std::vector<std::string> all;
  for (const char* below : {"/", "/simt/", "/test/simt/", "/../lib/"})
    all.push_back(folder + below + "libfusec_simt.so");
  return all;
}

inline Functions find_functions() {
  Functions functions;
  void* library = nullptr;
  for (const std::string& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* why = dlerror();
    functions.error += (functions.error.empty() ? "" : "; ") + std::string(why ? why : place);
  }
  if (!library) return functions;
  functions.error.clear();
#define FUSEC_SIMT_FIND(name)                                                  \
  functions.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (!functions.name) functions.error = "libfusec_simt.so has no " #name;
  FUSEC_SIMT_FUNCTIONS(FUSEC_SIMT_FIND)
#undef FUSEC_SIMT_FIND
  if (functions.error.empty() && functions.simt_api_version() != SIMT_API_VERSION)
    functions.error = "libfusec_simt.so is of another version";
  return functions;
}

inline const Functions& functions() {
  static const Functions found = find_functions();
  return found;
}

}  // namespace detail

/// Buffers of global memory, with names for reports. Only when Library::open().ok().
class Memory {
 public:
  Memory() : handle_(nullptr, detail::functions().simt_memory_free) {
    if (detail::functions().error.empty()) handle_.reset(detail::functions().simt_memory_new());
  }

  /// 256-byte aligned, red zones around, every byte 0xff. unwritten: reading what no kernel wrote is a fault.
  template <class T>
  T* allocate(size_t count, const std::string& name, bool unwritten = false) {
    return static_cast<T*>(
        detail::functions().simt_allocate(handle_.get(), count * sizeof(T), name.c_str(), unwritten));
  }
  /// The caller's own memory, without red zones.
  void add(void* begin, size_t bytes, const std::string& name, bool unwritten = false) {
    detail::functions().simt_add(handle_.get(), begin, bytes, name.c_str(), unwritten);
  }
  bool remove(void* begin) { return detail::functions().simt_remove(handle_.get(), begin) != 0; }

 private:
  friend class Kernel;
  std::unique_ptr<simt_memory, decltype(&simt_memory_free)> handle_;
};

class Kernel {
 public:
  bool ok() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }

  /// args: the bytes of the parameters at their natural alignment; for a kernel of one struct, the struct.
  Result launch(const std::string& entry, Memory& memory, const Launch& how, const void* args, size_t bytes) const {
    const detail::Functions& f = detail::functions();
    uint32_t grid[3], block[3];
    for (int i = 0; i < 3; i++)
      grid[i] = how.grid[i] ? how.grid[i] : i > 0, block[i] = how.block[i] ? how.block[i] : i > 0;
    simt_options options{how.seed, how.order, how.races, how.limit, how.resident, how.traffic};
    const simt_result* r = f.simt_launch(handle_.get(), entry.c_str(), memory.handle_.get(), grid, block, how.cluster,
                                         how.dynamic_bytes, args, bytes, &options);
    Result result;
    result.fault = static_cast<simt_fault>(r->fault);
    result.text = r->text;
    result.block = {r->block[0], r->block[1], r->block[2]};
    result.thread = {r->thread[0], r->thread[1], r->thread[2]};
    result.line = r->line;
    result.lines.assign(r->lines, r->lines + r->line_count);
    result.steps = r->steps;
    result.switches = r->switches;
    for (size_t i = 0; i < r->count_count; i++)
      result.counts.push_back({r->counts[i], {r->counts[i].lines, r->counts[i].lines + r->counts[i].line_count}});
    f.simt_result_free(r);
    return result;
  }
  template <class Args>
  Result launch(const std::string& entry, Memory& memory, const Launch& how, const Args& args) const {
    return launch(entry, memory, how, &args, sizeof args);
  }

 private:
  friend class Library;
  std::unique_ptr<simt_kernel, decltype(&simt_unload)> handle_{nullptr, nullptr};
  std::string error_;
};

class Library {
 public:
  /// The library, opened once for the process.
  static Library open() { return {}; }
  bool ok() const { return error().empty(); }
  const std::string& error() const { return detail::functions().error; }

  /// Compiles (some 30 ms); a kernel may be launched many times.
  Kernel load(const std::string& text) const {
    const detail::Functions& f = detail::functions();
    Kernel kernel;
    char* why = nullptr;
    if (!ok()) kernel.error_ = error();
    if (!ok()) return kernel;
    kernel.handle_ = {f.simt_load(text.data(), text.size(), &why), f.simt_unload};
    if (why) kernel.error_ = why, f.simt_free_text(why);
    return kernel;
  }
  Memory memory() const { return {}; }
};

}  // namespace fusec::simt
