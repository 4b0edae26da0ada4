// What the passes leave must still be what the planner and the kernel builder look for: one group a normalisation, and pairs of reductions
// that merge_sweeps finds. A rewrite that hides a mean or a max breaks this file, not a result.

#include <gtest/gtest.h>

#include "lib/fusion/fuse.h"
#include "lib/kernel/merge_sweeps.h"
#include "lib/passes/pipeline.h"

namespace fusec {
namespace {

struct Plan {
  size_t groups, sweeps, merged;  // kernels; sweeps of the first one as built, and after merge_sweeps
  bool operator==(const Plan&) const = default;
};
void PrintTo(const Plan& s, std::ostream* out) {
  *out << s.groups << " groups, " << s.sweeps << " sweeps, " << s.merged << " merged";
}

Plan plan_of(const std::string& header, const std::string& body, Numerics numerics = Numerics::strict) {
  const Result<Graph> written = parse("graph @g(" + header + " {\n" + body + "\n}");
  EXPECT_TRUE(written) << written.error().text();
  Trace trace;
  const Result<Graph> graph = run_pipeline(*written, {.numerics = numerics, .verify_each = true}, trace);
  EXPECT_TRUE(graph) << graph.error().text();
  const Result<GroupPlan> plan = fuse(*graph, {.numerics = numerics});
  EXPECT_TRUE(plan) << plan.error().text() << print(*graph);
  const Result<Kernel> kernel = build(*graph, plan->groups[0], {.numerics = numerics});
  EXPECT_TRUE(kernel) << kernel.error().text() << print(*graph);
  return {plan->groups.size(), kernel->sweeps.size(), merge_sweeps(*kernel).sweeps.size()};
}

TEST(Sweeps, Softmax) {
  for (const char* type : {"f32", "bf16", "f64"})
    for (const char* size : {"C", "4096", "1000"}) {
      const std::string t = std::string(type) + "[R," + size + "]";
      EXPECT_EQ(plan_of("%x: " + t + ") -> " + t, "%y: " + t + " = softmax %x {axes=[1]} return %y"), (Plan{1, 3, 2})) << t;
      EXPECT_EQ(plan_of("%x: " + t + ") -> " + t, "%y: " + t + " = log_softmax %x {axes=[1]} return %y"), (Plan{1, 3, 2})) << t;
      const std::string r = std::string(type) + "[R]";
      EXPECT_EQ(plan_of("%x: " + t + ") -> " + r, "%y: " + r + " = logsumexp %x {axes=[1]} return %y"), (Plan{1, 2, 1})) << t;
    }
}

TEST(Sweeps, Norms) {
  for (const char* type : {"f32", "f16"})
    for (const char* size : {"C", "4096", "1000"}) {
      const std::string c = size, t = std::string(type) + "[R," + c + "]", p = std::string(type) + "[" + c + "]", r = std::string(type) + "[R]";
      EXPECT_EQ(plan_of("%x: " + t + ", %g: " + p + ", %b: " + p + ") -> " + t,
                         "%y: " + t + " = layer_norm %x, %g, %b {axes=[1], eps=1e-5} return %y"), (Plan{1, 3, 2})) << t;
      EXPECT_EQ(plan_of("%x: " + t + ", %g: " + p + ") -> " + t, "%y: " + t + " = rms_norm %x, %g {axes=[1], eps=1e-5} return %y"),
                (Plan{1, 2, 2})) << t;
      EXPECT_EQ(plan_of("%x: " + t + ") -> " + r, "%y: " + r + " = var %x {axes=[1], ddof=1} return %y"), (Plan{1, 2, 1})) << t;
      // Mean and variance of one x share their sum.
      EXPECT_EQ(plan_of("%x: " + t + ") -> (" + r + ", " + r + ")",
                         "%m: " + r + " = mean %x {axes=[1]} %y: " + r + " = var %x {axes=[1]} return %m, %y"), (Plan{1, 2, 1})) << t;
    }
}

TEST(Sweeps, GroupNorm) {
  EXPECT_EQ(plan_of("%x: f32[N,32,H,W], %g: f32[32], %b: f32[32]) -> f32[N,32,H,W]",
                     "%y: f32[N,32,H,W] = group_norm %x, %g, %b {groups=8, eps=1e-5} return %y"), (Plan{1, 3, 2}));
}

// A sum of deviations that somebody wrote is what it says: only a composite's own may go when the pair is merged.
TEST(Sweeps, AWrittenSumOfDeviationsStays) {
  EXPECT_EQ(plan_of("%x: f32[R,4096]) -> (f32[R], f32[R])", R"(
    %m: f32[R,1] = mean %x {axes=[1], keep=true}
    %d: f32[R,4096] = sub %x, %m
    %q: f32[R,4096] = mul %d, %d
    %s: f32[R] = sum %d {axes=[1]}
    %v: f32[R] = mean %q {axes=[1]}
    return %s, %v)"), (Plan{1, 2, 2}));
}

// Written out by hand in strict mode: the pair is found, the arithmetic stays.
TEST(Sweeps, WrittenOutInStrictMode) {
  EXPECT_EQ(plan_of("%x: f32[R,C]) -> f32[R,C]", R"(
    %m: f32[R] = reduce_max %x {axes=[1]}
    %n: f32[R,1] = reshape %m {shape=[R,1]}
    %d: f32[R,C] = sub %x, %n
    %e: f32[R,C] = exp %d
    %s: f32[R,1] = sum %e {axes=[1], keep=true}
    %y: f32[R,C] = div %e, %s
    return %y)"), (Plan{1, 3, 2}));
  EXPECT_EQ(plan_of("%x: f32[R,4096]) -> f32[R,4096]", R"(
    %m: f32[R,1] = mean %x {axes=[1], keep=true}
    %d: f32[R,4096] = sub %x, %m
    %q: f32[R,4096] = mul %d, %d
    %v: f32[R,1] = mean %q {axes=[1], keep=true}
    %a: f32[R,1] = add %v, 1e-5
    %s: f32[R,1] = sqrt %a
    %y: f32[R,4096] = div %d, %s
    return %y)"), (Plan{1, 3, 2}));
  EXPECT_EQ(plan_of("%x: f32[R,768]) -> f32[R,768]", R"(
    %m: f32[R,1] = mean %x {axes=[1], keep=true}
    %d: f32[R,768] = sub %x, %m
    %q: f32[R,768] = pow %d, 2.0
    %v: f32[R,1] = mean %q {axes=[1], keep=true}
    %a: f32[R,1] = add %v, 1e-5
    %s: f32[R,1] = sqrt %a
    %y: f32[R,768] = div %d, %s
    return %y)"), (Plan{1, 3, 2}));
  // The addends of bf16 are rounded: three sweeps they are.
  EXPECT_EQ(plan_of("%x: bf16[R,C]) -> bf16[R,C]", R"(
    %m: bf16[R,1] = reduce_max %x {axes=[1], keep=true}
    %d: bf16[R,C] = sub %x, %m
    %e: bf16[R,C] = exp %d
    %s: bf16[R,1] = sum %e {axes=[1], keep=true}
    %y: bf16[R,C] = div %e, %s
    return %y)"), (Plan{1, 3, 3}));
}

}  // namespace
}  // namespace fusec
