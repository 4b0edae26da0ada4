#pragma once
// A compiled kernel: entries to call, the places in its text that the hooks speak of, its shared variables.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fusec::simt {

/// One load, store or runtime call in the text.
struct Site {
  std::vector<uint32_t> lines;  // innermost first; the rest are the calls that were inlined
  uint32_t bytes = 0, align = 1;
  bool write = false, is_volatile = false;
};

struct SharedVariable {
  std::string name;
  uint64_t offset, bytes;
};

struct EntryPoint {
  void (*call)(const void* args) = nullptr;
  uint64_t arg_bytes = 0;
};

struct Range {
  const char* begin;
  const char* end;
};

struct Code;  // what keeps the machine code alive

struct Kernel {
  std::vector<Site> sites;  // [0]: nowhere
  std::vector<SharedVariable> shared;
  uint64_t shared_bytes = 0;    // declared, without the zones between variables
  uint64_t dynamic_offset = 0;  // where `extern __shared__` begins in the arena
  bool dynamic = false;
  std::vector<Range> globals;  // the module's own variables
  std::map<std::string, EntryPoint> entries;
  std::shared_ptr<Code> code;
};

/// Compiles the text of one or more kernels, or returns what it made of the same text lately.
/// Returns null and says why in `error`: clang's messages, with lines of the text.
std::shared_ptr<const Kernel> compile(const std::string& text, std::string& error);

}  // namespace fusec::simt
