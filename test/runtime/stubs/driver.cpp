// A CUDA driver with one device and faults, which FUSEC_STUB names: the entries that fail, and with what, as in "cuMemAlloc=2 cuInit=100", or
// only its third call, "cuMemAlloc=2@3"; those that did are lines of the file that FUSEC_STUB_SEEN names. Every other entry succeeds and does nothing but what the ones below do. Built as libcuda.so.1 for
// cuda_faults_test; with STUB_OLD it has no cuGetProcAddress_v2, and FUSEC_STUB=lacks=NAME takes one entry away.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace {

std::string chosen() {
  const char* text = std::getenv("FUSEC_STUB");
  return text ? text : "";
}

/// What an entry of this name returns.
[[maybe_unused]] int result(const std::string& name) {
  const std::string faults = " " + chosen(), fault = " " + name + "=";
  const size_t at = faults.find(fault);
  if (at == faults.npos) return 0;
  static int calls = 0;  // of the entries that fail, which is one where a call is asked for
  const size_t which = faults.find_first_of("@ ", at + 1);
  if (which != faults.npos && faults[which] == '@' && ++calls != std::atoi(faults.c_str() + which + 1)) return 0;
  if (const char* seen = std::getenv("FUSEC_STUB_SEEN"))
    if (std::FILE* file = std::fopen(seen, "a")) std::fputs((name + "\n").c_str(), file), std::fclose(file);
  return std::atoi(faults.c_str() + at + fault.size());
}

int mem_alloc(uint64_t* at, size_t bytes) {
  if (const int failed = result("cuMemAlloc")) return failed;
  return *at = reinterpret_cast<uint64_t>(std::calloc(1, bytes + 512)), 0;
}
int mem_free(uint64_t at) { return std::free(reinterpret_cast<void*>(at)), result("cuMemFree"); }
int init(unsigned) { return result("cuInit"); }
int version(int* v) { return *v = 13000, result("cuDriverGetVersion"); }
int count(int* n) { return *n = chosen() == "devices=0" ? 0 : 1, result("cuDeviceGetCount"); }
int get_device(int* device, int) { return *device = 0, result("cuDeviceGet"); }
int name_of(char* name, int size, int) { return std::strncpy(name, "stub", size_t(size)), result("cuDeviceGetName"); }
int total(size_t* bytes, int) { return *bytes = size_t{1} << 30, result("cuDeviceTotalMem"); }
int attribute(int* value, int which, int) { return *value = which == 75 ? 9 : 0, result("cuDeviceGetAttribute"); }  // compute capability 9.0
int context(void** c, int) { return *c = c, result("cuDevicePrimaryCtxRetain"); }
int current(void** c) { return *c = nullptr, result("cuCtxGetCurrent"); }
int error_name(int error, const char** text) { return *text = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_STUB", 0; }
int error_text(int error, const char** text) { return *text = error == 2 ? "out of memory" : "a fault of the stub", 0; }
int load_library(void** l, const void*, void*, void**, unsigned, void*, void**, unsigned) { return *l = l, result("cuLibraryLoadData"); }
int load_module(void** m, const void*, unsigned, int*, void**) { return *m = m, result("cuModuleLoadDataEx"); }
int get_kernel(void** k, void*, const char*) { return *k = k, result("cuLibraryGetKernel"); }
int get_function(void** f, void*) { return *f = f, result("cuKernelGetFunction"); }
int module_function(void** f, void*, const char*) { return *f = f, result("cuModuleGetFunction"); }
int launch_ex(const void*, void*, void**, void**) { return result("cuLaunchKernel"); }
int launch(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) { return result("cuLaunchKernel"); }
int synchronize(void*) { return result("cuStreamSynchronize"); }
int elapsed(float* ms, void*, void*) { return *ms = 1, result("cuEventElapsedTime"); }

// All other entries: the k-th that is asked for is the k-th of these.
std::array<std::string, 64> others;
template <size_t K> int other() { return result(others[K]); }
template <size_t... K> std::array<void*, sizeof...(K)> addresses(std::index_sequence<K...>) { return {reinterpret_cast<void*>(&other<K>)...}; }
[[maybe_unused]] void* other_entry(const std::string& name) {
  static const auto kAddresses = addresses(std::make_index_sequence<64>());
  size_t k = 0;
  while (k + 1 < others.size() && !others[k].empty() && others[k] != name) ++k;
  return others[k] = name, kAddresses[k];
}

struct Entry {
  const char* name;
  void* address;
};
#define ENTRY(name, function) {name, reinterpret_cast<void*>(&function)}
const Entry kEntries[] = {
    ENTRY("cuMemAlloc", mem_alloc), ENTRY("cuMemFree", mem_free), ENTRY("cuInit", init), ENTRY("cuDriverGetVersion", version),
    ENTRY("cuDeviceGetCount", count), ENTRY("cuDeviceGet", get_device), ENTRY("cuDeviceGetName", name_of), ENTRY("cuDeviceTotalMem", total),
    ENTRY("cuDeviceGetAttribute", attribute), ENTRY("cuDevicePrimaryCtxRetain", context), ENTRY("cuCtxGetCurrent", current),
    ENTRY("cuGetErrorName", error_name), ENTRY("cuGetErrorString", error_text), ENTRY("cuLibraryLoadData", load_library),
    ENTRY("cuModuleLoadDataEx", load_module), ENTRY("cuLibraryGetKernel", get_kernel), ENTRY("cuKernelGetFunction", get_function),
    ENTRY("cuModuleGetFunction", module_function), ENTRY("cuLaunchKernelEx", launch_ex), ENTRY("cuLaunchKernel", launch),
    ENTRY("cuStreamSynchronize", synchronize), ENTRY("cuEventElapsedTime", elapsed)};

}  // namespace

#ifndef STUB_OLD
extern "C" int cuGetProcAddress_v2(const char* name, void** address, int, uint64_t, int* status) {
  if (status) *status = 0;
  if (chosen() == std::string("lacks=") + name) return *address = nullptr, 500;
  *address = other_entry(name);
  for (const Entry& entry : kEntries)
    if (std::strcmp(entry.name, name) == 0) *address = entry.address;
  return 0;
}
#endif
