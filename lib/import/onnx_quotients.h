#pragma once
// Dims that are no polynomials of others: a convolution of step 2 over a side of unknown length has floor((side + 1) / 2) positions.
//
// Such a dim is a symbol of its own. The same quotient is the same symbol wherever it comes up, so what two branches compute still
// lies on each other.

#include <set>

#include "lib/import/onnx.h"

namespace fusec::onnx {

class Quotients {
 public:
  /// Begins anew; these names are others' already.
  void begin(std::set<std::string> taken);
  /// of / by, rounded down; by > 0, and `of` is never negative. "side/2" is a symbol for a quotient of what is side, or side and a
  /// number; others are called `name`. A name that is taken gets a stroke. nullopt: there are kMost already.
  std::optional<Dim> divide(const Dim& of, int64_t by, const std::string& name);
  bool has(const std::string& symbol) const { return symbols_.contains(symbol); }
  const std::vector<Quotient>& all() const { return all_; }

 private:
  static constexpr size_t kMost = 1000;
  std::vector<Quotient> all_;
  std::set<std::string> taken_, symbols_;
};

}  // namespace fusec::onnx
