// Every rule row on a sample of values (rule_rows.h; test/long/rules_exhaustive.cpp tries all). A row fails when an exact one differs in a bit
// (any NaN equals any NaN), when it does not lower the measure that ends rewriting, or when nothing can make it fire.

#include "test/rule_rows.h"

namespace fusec {
namespace {

class RuleRow : public testing::TestWithParam<const RewriteRule*> {};

TEST_P(RuleRow, BothSidesAreEqual) {
  EXPECT_GT(compare_row(*GetParam(), kSeconds).graphs, 0u) << GetParam()->name << " can never fire";
}

/// Rules before it in the list must not always be faster: some graph is rewritten by this very row.
TEST_P(RuleRow, FiresInItsPass) {
  const RewriteRule& rule = *GetParam();
  const Uses uses = uses_of(rule);
  std::mt19937_64 random(11);
  const bool activation = rule.holds == Holds::fused;
  static const RuleSet simplify_rules(simplify_tables()), activation_rules({&activations()});
  for (const Types& types : typings(uses))
    for (const std::vector<Tensor>& constants : constant_choices(rule, uses.constants.size(), types.constants, false, random)) {
      auto instance = instantiate(rule, rule.find, uses, types, 1, constants);
      if (!instance) continue;
      const Result<Graph> graph = std::move(instance->b).finish({instance->find});
      ASSERT_TRUE(graph);
      RuleControl control;
      const Result<Graph> result = rewrite(*graph, activation ? activation_rules : simplify_rules, Numerics::fast, control);
      ASSERT_TRUE(result) << result.error().text();
      if (control.firings.contains(rule.name)) return;
    }
  FAIL() << rule.name << " never fires in its pass: others take its place";
}

// --- termination ---------------------------------------------------------------------------------------------------------

struct Measure {
  int base = 0;
  std::array<int, kPatternValues> of{};  // how often each variable counts
};

Measure measure(const Pattern& p) {
  Measure m;
  if (p.kind == Pattern::value) {
    m.of[p.index] = 1;
    return m;
  }
  if (p.kind != Pattern::node) {  // a constant
    m.base = 1;
    return m;
  }
  const Weight w = weight(p.op);
  m.base = w.base;
  for (const Pattern& arg : p.args) {
    const Measure inner = measure(arg);
    m.base += w.factor * inner.base;
    for (size_t k = 0; k < m.of.size(); k++) m.of[k] += w.factor * inner.of[k];
  }
  return m;
}

TEST_P(RuleRow, LowersTheMeasure) {
  const RewriteRule& rule = *GetParam();
  const Measure find = measure(rule.find), put = measure(rule.put);
  int gain = find.base - put.base;
  bool may_broadcast = false;
  for (size_t k = 0; k < kPatternValues; k++) {
    EXPECT_LE(put.of[k], find.of[k]) << "a variable must not count more often in put";
    gain += find.of[k] - put.of[k];  // a variable weighs at least 1
    may_broadcast |= find.of[k] > 0 && put.of[k] == 0;
  }
  EXPECT_GT(gain, may_broadcast ? weight(Op::broadcast).base : 0) << text(rule.find) << " -> " << text(rule.put);
}

INSTANTIATE_TEST_SUITE_P(Tables, RuleRow, testing::ValuesIn(all_rules()), [](const auto& param) {
  std::string name = param.param->name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(Tables, NamesAreUnique) {
  std::set<std::string> names;
  for (const RewriteRule* rule : all_rules()) EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
  EXPECT_GE(names.size(), 60u);
}

}  // namespace
}  // namespace fusec
