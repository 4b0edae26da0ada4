#pragma once
// Objects in memory become functions. One engine a process, made under a lock on first use; each object lives in a
// library of its own, which goes away, memory included, with the handle. Loading never starts the code generator. Code
// sees no symbol of the host but the few it may need (fmod and friends, memory moves): never what happens to be in the
// process.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fusec/result.h"

namespace fusec::cpu {

/// extern "C" void entry(const void* args, int64_t begin, int64_t end)
using Entry = void (*)(const void* args, int64_t begin, int64_t end);

/// A loaded object. Copies share it; the code is unmapped when the last one dies.
struct Code {
  Entry entry = nullptr;
  Entry finish = nullptr;  // second phase of a split reduction
  std::shared_ptr<void> owner;
};

/// Thread-safe. `finish_entry` may be empty.
Result<Code> load(std::span<const uint8_t> object, const std::string& entry, const std::string& finish_entry = "");

}  // namespace fusec::cpu
