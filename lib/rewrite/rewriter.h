#pragma once
// Applies rules bottom-up until none fires.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/rewrite/rule.h"

namespace fusec {

/// What travels with one compilation: which rules are off, how many may still fire, and what fired.
struct RuleControl {
  std::set<std::string, std::less<>> disabled;
  int64_t stop_after = -1;  // no rule fires once `fired` has reached it; -1 = never
  int64_t fired = 0;
  std::map<std::string, int64_t, std::less<>> firings;  // by rule

  bool may_fire(std::string_view rule) const {
    return (stop_after < 0 || fired < stop_after) && (disabled.empty() || !disabled.contains(rule));
  }
  void count(std::string_view rule) {
    fired++;
    firings[std::string(rule)]++;
  }
  /// The rule turned out not to fire after all.
  void uncount(std::string_view rule) {
    fired--;
    firings[std::string(rule)]--;
  }
};

/// Rules by the op at their root, in the order they are tried.
class RuleSet {
 public:
  explicit RuleSet(const std::vector<const std::vector<RewriteRule>*>& lists);
  std::span<const RewriteRule* const> at(Op op) const { return by_op_[size_t(op)]; }

 private:
  std::vector<const RewriteRule*> by_op_[kOps];
};

/// The graph in normal form (canonical.h) with no rule of `rules` left that could fire.
/// Takes    any verified graph. Returns an equal one: bit for bit under strict, else as far as rows marked `fast` allow.
/// Ends     because each row lowers `measure` (below) and the normal form has one spelling; test/tables_test.cpp holds every row to it.
/// Cost     near linear: each node is matched against the few rules of its op; stack use does not grow with the graph.
/// Errors   internal only: a row that builds an ill-typed node.
Result<Graph> rewrite(const Graph& graph, const RuleSet& rules, Numerics numerics, RuleControl& control);

/// The measure that every row lowers: a node weighs `base` plus `factor` times its operands; values and constants weigh 1 or
/// more, a broadcast adds 1. The factor is 2 for pow, so that pow(x, 2) may become x * x; 1 otherwise.
struct Weight {
  int base, factor;
};
Weight weight(Op op);

}  // namespace fusec
