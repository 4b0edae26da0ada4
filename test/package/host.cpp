// A host with a compiler of its own: another libLLVM is in the process, its symbols global, before libfusec.so comes and while it
// compiles and runs. Neither may notice the other.
//
//   host LIBLLVM LIBFUSEC      exit status 0: both worked, before and after

#include <dlfcn.h>
#include <fusec/fusec_c.h>

#include <cstdio>
#include <cstring>

namespace {

template <class Function>
Function* function(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (!found) std::printf("%s is not there\n", name);
  return reinterpret_cast<Function*>(found);
}

/// Does the host's LLVM print the module that it is asked to make?
bool llvm_works(void* llvm) {
  auto* const create = function<void*(const char*)>(llvm, "LLVMModuleCreateWithName");
  auto* const text = function<char*(void*)>(llvm, "LLVMPrintModuleToString");
  auto* const free_text = function<void(char*)>(llvm, "LLVMDisposeMessage");
  auto* const release = function<void(void*)>(llvm, "LLVMDisposeModule");
  if (!create || !text || !free_text || !release) return false;
  void* const module = create("host");
  char* const printed = text(module);
  const bool good = std::strstr(printed, "source_filename = \"host\"") != nullptr;
  free_text(printed);
  release(module);
  return good;
}

/// exp needs a kernel that is compiled now: the cache is empty.
bool fusec_works(void* fusec) {
  auto* const compile = function<decltype(fusec_compile)>(fusec, "fusec_compile");
  auto* const run = function<decltype(fusec_run)>(fusec, "fusec_run");
  auto* const release = function<decltype(fusec_release)>(fusec, "fusec_release");
  auto* const error = function<decltype(fusec_error)>(fusec, "fusec_error");
  if (!compile || !run || !release || !error) return false;
  fusec_program* program = nullptr;
  float x[3] = {0, 1, -1}, y[3] = {};
  const int64_t extents[] = {3};
  const fusec_buffer in = {x, extents, nullptr, 1}, out = {y, extents, nullptr, 1};
  if (compile("graph @g(%x: f32[N]) -> f32[N] {\n  %e: f32[N] = exp %x\n  %y: f32[N] = mul %e, 2.0\n  return %y\n}\n", "cpu", FUSEC_STRICT,
              &program) != FUSEC_OK ||
      run(program, &in, 1, &out, 1, nullptr, nullptr, 0) != FUSEC_OK)
    return std::puts(error()), false;
  release(program);
  return y[0] == 2 && y[1] > 5.43f && y[1] < 5.44f && y[2] > 0.73f && y[2] < 0.74f;
}

}  // namespace

int main(int, char** arguments) {
  void* const llvm = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  if (!llvm) return std::puts(dlerror()), 1;
  if (!llvm_works(llvm)) return std::puts("the host's LLVM does not work"), 1;
  void* const fusec = dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL);
  if (!fusec) return std::puts(dlerror()), 1;
  if (!fusec_works(fusec)) return std::puts("fusec does not work beside it"), 1;
  if (!llvm_works(llvm)) return std::puts("the host's LLVM no longer works"), 1;
  return 0;
}
