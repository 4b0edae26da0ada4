// What we feared: the runner itself reports something on a right kernel, or computes something else. Each kernel runs in five orders with the
// full detector, and its results are compared with sums taken in double.

#include "test/simt/cases.h"

namespace fusec::simt {
namespace {

void passes(const Case& one) {
  Kernel kernel = load(text_of(one.kernel));
  in_all_orders([&](Launch how) {
    Outcome outcome = one.run(kernel, how);
    EXPECT_TRUE(outcome.result.ok()) << outcome.result.text;
    EXPECT_LT(outcome.error, one.tolerance);
  });
}

TEST(Simt, LayerNorm) { passes(kLayerNorm); }
TEST(Simt, Softmax) { passes(kSoftmax); }
TEST(Simt, ColumnSumWithLastBlock) { passes(kColumnSum); }
TEST(Simt, ClusterSum) { passes(kClusterSum); }
TEST(Simt, Transpose) { passes(kTranspose); }
TEST(Simt, Ring) { passes(kRing); }

}  // namespace
}  // namespace fusec::simt
