#pragma once
// For tests that run kernels: the library, texts of kernels/*.cu, mutants of them, and the three orders.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "test/simt/simt.h"

namespace fusec::simt {

inline std::string text_of(const std::string& name) {
  std::ifstream in(std::string(FUSEC_SOURCE_DIR) + "/test/simt/kernels/" + name + ".cu");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The line that carries //mark//; 0 when none does.
inline uint32_t line_of(const std::string& text, const std::string& mark) {
  size_t at = text.find("//" + mark + "//");
  if (at == std::string::npos) return 0;
  return static_cast<uint32_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n')) + 1;
}

/// The text with `from`, which must be in it once or more, replaced; line numbers stay.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

/// The text without what stands on the line that carries //mark//.
inline std::string without(std::string text, const std::string& mark) {
  size_t at = text.find("//" + mark + "//");
  EXPECT_NE(at, std::string::npos) << mark;
  size_t begin = text.rfind('\n', at) + 1;
  return text.erase(begin, at - begin);
}

inline Kernel load(const std::string& text) {
  Library library = Library::open();
  EXPECT_TRUE(library.ok()) << library.error();
  Kernel kernel = library.load(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error();
  return kernel;
}

/// Runs a case in order, in reverse and in three random orders.
inline void in_all_orders(const std::function<void(Launch)>& run, Launch how = {}) {
  for (auto [order, seed] :
       {std::pair{SIMT_FORWARD, 1}, {SIMT_REVERSE, 1}, {SIMT_RANDOM, 1}, {SIMT_RANDOM, 2}, {SIMT_RANDOM, 3}}) {
    SCOPED_TRACE("order " + std::to_string(order) + ", seed " + std::to_string(seed));
    how.order = order;
    how.seed = static_cast<uint64_t>(seed);
    run(how);
  }
}

/// Something like random in [-0.5, 0.5), the same everywhere.
inline float sample(uint32_t i) {
  i *= 2654435761u;
  i ^= i >> 15;
  i *= 2246822519u;
  i ^= i >> 13;
  return static_cast<float>(i & 0xffff) / 65536.f - 0.5f;
}

}  // namespace fusec::simt
