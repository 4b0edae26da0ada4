#pragma once
// The .cuh files of this folder, embedded as text at build time.

namespace fusec::cuda {

struct Text {
  const char* name;  // "rows.cuh"; the last row is null
  const char* text;
};
extern const Text kTexts[];

}  // namespace fusec::cuda
