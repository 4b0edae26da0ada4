#include "codegen/cuda/toolkit.h"

#include <cstdlib>

namespace fusec::cuda {

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> out;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"})
    if (const char* root = std::getenv(variable); root && *root) {
      out.push_back(std::string(root) + "/lib64/");
      out.push_back(std::string(root) + "/lib/");
    }
  out.push_back("/usr/local/cuda/lib64/");
  return out;
}

void* open_toolkit_library(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    for (const std::string& folder : toolkit_folders())
      if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace fusec::cuda
