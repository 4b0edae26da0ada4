// What we feared: the runner itself reports something on a right kernel, or computes something else. Each kernel runs
// in five orders with the full detector, and its results are compared with sums taken in double.

#include <atomic>
#include <thread>

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
TEST(Simt, RingOfAClusterWithRowsFromACounter) { passes(kRingCluster); }

// --- the door ------------------------------------------------------------------------------------

TEST(Simt, CompileErrorsCarryLinesOfTheText) {
  Kernel kernel = Library::open().load("// one\nextern \"C\" __global__ void g0(float* x) {\n  x[0] = y;\n}\n");
  EXPECT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error().find("kernel:3:10: error: use of undeclared identifier 'y'"), std::string::npos)
      << kernel.error();
  EXPECT_FALSE(Library::open().load("#include <cstdio>\n").ok());
  EXPECT_NE(Library::open().load("int x;").error().find("no __global__"), std::string::npos);
}

TEST(Simt, LaunchesThatCannotBe) {
  Kernel kernel = load(
      "extern \"C\" __global__ void g0(float* x) { __shared__ float s[40000]; s[threadIdx.x] = 1.f; x[0] = s[0]; }");
  Memory memory;
  float* x = memory.allocate<float>(4, "x");
  EXPECT_NE(kernel.launch("g1", memory, {}, x).text.find("no kernel g1 in the text; it has: g0"), std::string::npos);
  EXPECT_EQ(kernel.launch("g0", memory, {.block = {2048}}, x).fault, SIMT_LAUNCH);
  EXPECT_EQ(kernel.launch("g0", memory, {.dynamic_bytes = 100'000}, x).fault, SIMT_LAUNCH);
  EXPECT_EQ(kernel.launch("g0", memory, {.grid = {3}, .cluster = 2}, x).fault, SIMT_LAUNCH);
  EXPECT_EQ(kernel.launch("g0", memory, {}, &x, 4).fault, SIMT_LAUNCH);
}

TEST(Simt, ParametersOfEveryShape) {
  Memory memory;
  double* out = memory.allocate<double>(1, "out");
  auto run = [&](const std::string& parameters, const std::string& sum, const auto& args) {
    Kernel kernel = load(
        "struct P { double* out; int a; }; struct Q { float a, b, c; }; struct R { double* out; char a; short b; "
        "double c[9]; };\n"
        "extern \"C\" __global__ void g0(" +
        parameters + ") { " + sum + "; }");
    *out = 0;
    Result result = kernel.launch("g0", memory, {}, args);
    EXPECT_EQ(result.text, "") << parameters;
    return *out;
  };
  struct P {
    double* out;
    int a;
  } p{out, 7};
  EXPECT_EQ(run("const __grid_constant__ P p", "*p.out = p.a", p), 7);
  struct Q {
    float a, b, c;
  };
  struct {
    double* out;
    Q q;
    bool yes;
    char c;
  } mixed{out, {1, 2, 4}, true, 16};
  EXPECT_EQ(run("double* out, Q q, bool yes, char c", "*out = q.a + q.b + q.c + (yes ? 8 : 0) + c", mixed), 31);
  struct R {
    double* out;
    char a;
    short b;
    double c[9];
  } r{out, 1, 2, {0, 0, 0, 0, 0, 0, 0, 0, 4}};
  EXPECT_EQ(run("const __grid_constant__ R r", "*r.out = r.a + r.b + r.c[8]", r), 7);
  EXPECT_EQ(run("R r", "r.a += 8; *r.out = r.a + r.b + r.c[threadIdx.x + 8]", r), 15);
  EXPECT_EQ(r.a, 1);  // a parameter is the thread's own
}

TEST(Simt, ManyThreadsMayUseIt) {
  std::string text = text_of("transpose");
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 3; k++) {
        Outcome outcome = run_transpose(Library::open().load(text + std::string(static_cast<size_t>(i + k), '\n')), {});
        right += outcome.result.ok() && outcome.error == 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 12);
}

TEST(Simt, TooManyLocalVariables) {
  Kernel kernel = Library::open().load(
      "extern \"C\" __global__ void g0(int* x) { int a[20000]; for (int i = 0; i < 20000; i++) a[i] = x[i]; x[0] = "
      "a[x[1]]; }");
  EXPECT_NE(kernel.error().find("80000 bytes of local variables"), std::string::npos) << kernel.error();
}

TEST(Simt, OverlappingRangesAreOneBuffer) {
  Kernel kernel = load("extern \"C\" __global__ void g0(float* x) { x[blockIdx.x] += 1.f; }");
  std::vector<float> all(64, 1.f);
  float* at = all.data();
  Memory memory;
  memory.add(at + 8, 4 * 8, "inner");
  memory.add(at, 4 * 40, "outer");
  memory.add(at + 30, 4 * 20, "tail");
  memory.add(at + 2, 4, "again");
  Result result = kernel.launch("g0", memory, {.grid = {50}}, at);
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(all[49], 2.f);
  EXPECT_EQ(kernel.launch("g0", memory, {.grid = {51}}, at).fault, SIMT_BOUNDS);
  EXPECT_EQ(all[50], 1.f);
}

TEST(Simt, ArithmeticOfTheDevice) {
  Kernel kernel = load(R"(
extern "C" __global__ void g0(int* x, float* f) {
  x[0] = (int)f[0], x[1] = (int)f[1], x[2] = (int)f[2];               // saturate, NaN to 0
  x[3] = x[10] / x[11], x[4] = x[12] / x[13];                        // never traps
  x[5] = __clz(0), x[6] = __ffs(8), x[7] = (int)__byte_perm(0x33221100u, 0x77665544u, 0x7520u);
  f[3] = fmaxf(f[2], 1.f), f[4] = fmaxf(-0.f, 0.f), f[5] = fminf(0.f, -0.f), f[6] = rintf(2.5f);
  x[8] = (int)(blockDim.x * 100 + gridDim.y * 10 + blockIdx.y);
})");
  Memory memory;
  int* x = memory.allocate<int>(16, "x");
  float* f = memory.allocate<float>(8, "f");
  f[0] = 1e20f, f[1] = -1e20f, f[2] = NAN;
  x[10] = 5, x[11] = 0, x[12] = INT32_MIN, x[13] = -1;
  struct {
    int* x;
    float* f;
  } args = {x, f};
  Result result = kernel.launch("g0", memory, {.block = {1}}, args);
  ASSERT_TRUE(result.ok()) << result.text;
  EXPECT_EQ(x[0], INT32_MAX);
  EXPECT_EQ(x[1], INT32_MIN);
  EXPECT_EQ(x[2], 0);
  EXPECT_EQ(x[3], -1);
  EXPECT_EQ(x[4], INT32_MIN);
  EXPECT_EQ(x[5], 32);
  EXPECT_EQ(x[6], 4);
  EXPECT_EQ(x[7], 0x77552200);
  EXPECT_EQ(f[3], 1.f);
  EXPECT_FALSE(std::signbit(f[4]));
  EXPECT_TRUE(std::signbit(f[5]));
  EXPECT_EQ(f[6], 2.f);
  EXPECT_EQ(x[8], 110);
}

TEST(Simt, VotesAndReductions) {
  Kernel kernel = load(R"(
extern "C" __global__ void g0(int* x) {
  int t = threadIdx.x;
  int any = __syncthreads_or(t == 70), all = __syncthreads_and(t < 95), count = __syncthreads_count(t & 1);
  unsigned ballot = __ballot_sync(~0u, t % 3 == 0);
  int least = __reduce_min_sync(~0u, 5 - t), sum = (int)__reduce_add_sync(~0u, (unsigned)t);
  long long far = __shfl_down_sync(~0u, (long long)t << 40, 1, 16);
  if (t == 32) x[0] = any, x[1] = all, x[2] = count, x[3] = (int)ballot, x[4] = least, x[5] = sum, x[6] = (int)(far >> 40);
  if (t == 47) x[7] = (int)(far >> 40);
})");
  Memory memory;
  int* x = memory.allocate<int>(8, "x");
  in_all_orders(
      [&](Launch how) {
        Result result = kernel.launch("g0", memory, how, x);
        ASSERT_TRUE(result.ok()) << result.text;
        const int kWant[] = {1, 0, 48, static_cast<int>(0x92492492u), 5 - 63, 32 * 47 + 16, 33, 47};
        for (int i = 0; i < 8; i++) EXPECT_EQ(x[i], kWant[i]) << i;
      },
      {.block = {96}});
}

}  // namespace
}  // namespace fusec::simt
