#pragma once
// Libraries of the CUDA toolkit, opened at run time.

#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace fusec::cuda {

/// Folders to look in behind the loader's own, in order, each with a slash: lib64 and lib of $CUDA_PATH and of $CUDA_HOME,
/// /usr/local/cuda/lib64.
std::vector<std::string> toolkit_folders();

/// The first of the names that opens: on the loader's path or in toolkit_folders(), all of them before the next name. Null: none does.
/// Never closed.
void* open_toolkit_library(std::initializer_list<const char*> names);

/// Looks a function up: is it there?
template <class F> bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace fusec::cuda
