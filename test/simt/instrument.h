#pragma once
// The pass over a kernel's optimised module: see instrument.cpp.

#include <string>
#include <vector>

#include "test/simt/kernel.h"

namespace llvm {
class Module;
}

namespace fusec::simt {

/// What the code generator made, by name, for the loader to look up.
struct Names {
  struct Entry {
    std::string name, symbol;
    uint64_t arg_bytes;
  };
  struct Global {
    std::string symbol;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  std::vector<Global> globals;
};

/// Puts hooks into the module and lays out its shared memory; fills the kernel's sites and shared variables.
/// Returns "" or what the text does that cannot run here.
std::string instrument(llvm::Module& module, Kernel& kernel, Names& names);

}  // namespace fusec::simt
