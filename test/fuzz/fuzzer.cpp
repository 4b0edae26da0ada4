// libFuzzer's door: one program for all targets, so that it travels as one file. --target=NAME chooses; libFuzzer itself skips options of
// two dashes and gives them to the processes it starts.
//
//   fusec_fuzz --target=onnx -fork=8 -max_total_time=600 found/ test/fuzz/corpus/onnx

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "test/fuzz/targets.h"

namespace {
const fusec::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i)
    if (const std::string_view word = (*argv)[i]; word.starts_with(kOption))
      for (const fusec::fuzz::Target& target : fusec::fuzz::targets())
        if (word.substr(kOption.size()) == target.name) chosen = &target;
  if (chosen) return 0;
  std::fprintf(stderr, "--target=NAME is expected:\n");
  for (const fusec::fuzz::Target& target : fusec::fuzz::targets()) std::fprintf(stderr, "  %-12s %s\n", target.name, target.what);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = chosen->run({reinterpret_cast<const char*>(data), size});
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", chosen->name, fault.c_str());
  std::abort();
}
