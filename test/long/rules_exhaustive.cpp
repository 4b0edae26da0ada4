// Every exact rule row over all values: one variable of 8 or 16 bits, two of 8 bits, a variable and a constant of 8 bits; 2^22 drawn pairs of
// 16-bit types, special and 2^16 drawn values of wider ones. Minutes; docs/numerics.md has its last result.
//
//   ninja -C build rules_exhaustive && build/test/rules_exhaustive

#include <chrono>
#include <iostream>

#include "test/rule_rows.h"

namespace fusec {
namespace {

TEST(Rules, HoldForAllValues) {
  size_t rows = 0, typings = 0, graphs = 0;
  double tuples = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const RewriteRule* rule : all_rules()) {
    const Compared c = compare_row(*rule, kMinutes);
    EXPECT_GT(c.graphs, 0u) << rule->name;
    if (std::getenv("FUSEC_PROGRESS")) std::cout << rule->name << " " << uint64_t(c.tuples) << std::endl;
    rows++, typings += c.typings, graphs += c.graphs, tuples += c.tuples;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
  std::cout << rows << " rows, " << typings << " typings, " << graphs << " graphs, " << uint64_t(tuples / 1e6) << " million tuples in " << seconds << " s\n";
}

}  // namespace
}  // namespace fusec
