#pragma once
// What compiled kernels may call, by name.

namespace fusec::simt {

struct Symbol {
  const char* name;
  void* address;
};
extern const Symbol kSymbols[];
extern const unsigned kSymbolCount;

}  // namespace fusec::simt
