// Programs on the CPU: sizes, strides, alignment, aliasing, odd outputs, errors, threads, and what a warm call may not do.

#include <fusec/fusec.h>
#include <fusec/fusec_c.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>

#if FUSEC_HAS_CPU
#include "runtime/cpu/threads.h"
#endif
#include "runtime/program.h"

// Every allocation of this process, so that a warm call can be seen to make none; and how many of this thread's succeed before one does not.
static std::atomic<uint64_t> allocations = 0;
static thread_local int64_t granted = -1;  // negative: all
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // gcc 12 sees free() without the malloc() that stands below
void* operator new(size_t bytes) {
  ++allocations;
  if (granted >= 0 && granted-- == 0) throw std::bad_alloc();
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return granted >= 0 && granted-- == 0 ? nullptr : std::malloc(bytes ? bytes : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace fusec {
namespace {

using Extents = std::vector<int64_t>;
using Floats = std::vector<float>;

Program compiled(const char* text, CompileOptions options = {}) {
  if (options.device == "auto") options.device = "cpu";
  options.cache = false;
  Result<Graph> graph = parse(text);
  EXPECT_TRUE(graph) << graph.error().text();
  Result<Program> program = compile(*graph, options);
  EXPECT_TRUE(program) << program.error().text();
  return *program;
}

Floats iota(size_t n) {
  Floats out(n);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

void expect_good(const Status& status) { EXPECT_TRUE(status) << status.error().text(); }
void expect_error(const Status& status, const std::string& part) {
  ASSERT_FALSE(status) << "expected: " << part;
  EXPECT_EQ(status.error().kind, Error::input);
  EXPECT_NE(status.error().text().find(part), std::string::npos) << status.error().text();
}

class ProgramTest : public testing::Test {
  void SetUp() override {
#if !FUSEC_HAS_CPU
    GTEST_SKIP() << "wants the CPU back end";
#endif
  }
};

const char kAddOne[] = "graph @f(%x: f32[N]) -> f32[N] { %y = add %x, 1.0 return %y }";
const char kRows[] = R"(graph @f(%x: f32[N,M]) -> f32[N,M] {
  %s = sum %x {axes=[1], keep=true}
  %y = sub %x, %s
  return %y
})";

TEST_F(ProgramTest, NewSizesOfOneScheduleCompileNothing) {
  const Program p = compiled(kAddOne);
  for (int64_t n : {1000, 1001, 1002, 1003, 999}) {
    Floats x = iota(n), y(n);
    const int64_t e[] = {n};
    expect_good(p.run({{x.data(), e}}, {{y.data(), e}}));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], float(i) + 1);
  }
  EXPECT_LE(p.stats().compilations, 2u);
  EXPECT_EQ(p.stats().calls, 5u);
  EXPECT_EQ(p.stats().cold, 5u);
}

TEST_F(ProgramTest, MisalignedPointersOfTheSameHandle) {
  const Program p = compiled(kAddOne);
  Floats buffer = iota(200), out(200);
  for (int64_t n = 1; n <= 67; ++n)
    for (int shift : {0, 1, 3}) {
      const int64_t e[] = {n};
      std::fill(out.begin(), out.end(), -777.0f);
      expect_good(p.run({{buffer.data() + shift, e}}, {{out.data() + 1, e}}));
      EXPECT_EQ(out[0], -777);
      EXPECT_EQ(out[n + 1], -777);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i + 1], float(i + shift + 1)) << n;
    }
}

TEST_F(ProgramTest, StridesOfInputsAndOutputs) {
  const Program p = compiled("graph @f(%a: f32[4,6], %b: f32[4,6]) -> f32[4,6] { %y = sub %a, %b return %y }");
  const int64_t e[] = {4, 6};
  Floats a = iota(64), b = iota(64);
  struct Case {
    std::vector<int64_t> a, b, y;
    int64_t a_first;
  };
  for (const Case& c : {Case{{6, 1}, {6, 1}, {6, 1}, 0}, Case{{1, 4}, {6, 1}, {6, 1}, 0}, Case{{10, 1}, {0, 1}, {8, 1}, 0},
                        Case{{6, -1}, {-6, 1}, {1, 4}, 5}, Case{{0, 0}, {12, 2}, {16, 2}, 7}}) {
    Floats y(80, -777.0f);
    const int64_t b_first = c.b[0] < 0 ? 18 : 0;
    expect_good(p.run({{a.data() + c.a_first, e, c.a}, {b.data() + b_first, e, c.b}}, {{y.data(), e, c.y}}));
    size_t written = 0;
    for (float v : y) written += v != -777;
    EXPECT_EQ(written, 24u) << "padding stays";
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 6; ++j)
        ASSERT_EQ(y[i * c.y[0] + j * c.y[1]], a[c.a_first + i * c.a[0] + j * c.a[1]] - b[b_first + i * c.b[0] + j * c.b[1]]);
  }
}

TEST_F(ProgramTest, StrideOfExtentOneMayBeAnything) {
  const Program p = compiled("graph @f(%a: f32[3,1]) -> f32[3,1] { %y = add %a, 1.0 return %y }");
  Floats a = iota(3), y(3);
  const int64_t e[] = {3, 1}, s[] = {1, 987654321};
  expect_good(p.run({{a.data(), e, s}}, {{y.data(), e, s}}));
  EXPECT_EQ(y, (Floats{1, 2, 3}));
}

TEST_F(ProgramTest, OutputsThatRepeatOrAreInputsOrConstants) {
  const Program p = compiled(R"(graph @f(%x: f32[3], %unused: f32[7]) -> (f32[3], f32[3], f32[3], f32[3], f32[2], i64[3]) {
    %t = add %x, 1.0
    %u = mul %t, 2.0
    %c = constant {value=f32[2] [5.0, -0.0]}
    %i = iota {shape=[3], to=i64, axis=0}
    return %t, %t, %u, %x, %c, %i
  })");
  Floats x{1, 2, 3}, unused(7), a(3), b(3), u(3), same(3), c(2);
  std::vector<int64_t> i(3);
  const int64_t three[] = {3}, seven[] = {7};
  expect_good(p.run({{x.data(), three}, {unused.data(), seven}}, {{a.data()}, {b.data()}, {u.data()}, {same.data()}, {c.data()}, {i.data()}}));
  EXPECT_EQ(a, (Floats{2, 3, 4}));
  EXPECT_EQ(b, a);
  EXPECT_EQ(u, (Floats{4, 6, 8}));
  EXPECT_EQ(same, x);
  EXPECT_EQ(c[0], 5);
  EXPECT_TRUE(std::signbit(c[1]));
  EXPECT_EQ(i, (std::vector<int64_t>{0, 1, 2}));
}

TEST_F(ProgramTest, InPlaceWhereTheKernelAllowsIt) {
  const Program p = compiled(kAddOne);
  Floats x = iota(5000);
  const int64_t e[] = {5000};
  expect_good(p.run({{x.data(), e}}, {{x.data(), e}}));
  for (int64_t i = 0; i < 5000; ++i) ASSERT_EQ(x[i], float(i) + 1);
  EXPECT_EQ(*p.workspace_bytes(std::vector<Buffer>{{x.data(), e}}, std::vector<Buffer>{{x.data(), e}}), 0u);
}

TEST_F(ProgramTest, InPlaceElsewhereGoesThroughATemporary) {
  // Transposed onto itself, and a row sum that is read after its row was overwritten.
  const Program t = compiled("graph @f(%x: f32[64,64]) -> f32[64,64] { %y = transpose %x {perm=[1,0]} return %y }");
  Floats x = iota(64 * 64);
  const int64_t e[] = {64, 64};
  expect_good(t.run({{x.data(), e}}, {{x.data(), e}}));
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) ASSERT_EQ(x[i * 64 + j], float(j * 64 + i));

  const Program two = compiled(R"(graph @f(%x: f32[8,8]) -> (f32[8,8], f32[8,8]) {
    %a = add %x, 1.0
    %b = transpose %x {perm=[1,0]}
    return %a, %b
  })");
  Floats z = iota(64), b(64);
  const int64_t eight[] = {8, 8};
  expect_good(two.run({{z.data(), eight}}, {{z.data(), eight}, {b.data(), eight}}));
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      ASSERT_EQ(z[i * 8 + j], float(i * 8 + j + 1));
      ASSERT_EQ(b[i * 8 + j], float(j * 8 + i));
    }
}

TEST_F(ProgramTest, OneBufferForTwoInputs) {
  const Program p = compiled("graph @f(%a: f32[5], %b: f32[5]) -> f32[5] { %y = sub %a, %b return %y }");
  Floats x = iota(5), y(5, 9.0f);
  const int64_t e[] = {5};
  expect_good(p.run({{x.data(), e}, {x.data(), e}}, {{y.data(), e}}));
  EXPECT_EQ(y, Floats(5, 0.0f));
}

TEST_F(ProgramTest, PartialOverlapIsAnError) {
  const Program p = compiled(kAddOne);
  Floats x = iota(100);
  const int64_t e[] = {50}, two[] = {2};
  expect_error(p.run({{x.data(), e}}, {{x.data() + 1, e}}), "overlaps in part");
  expect_good(p.run({{x.data(), e}}, {{x.data() + 50, e}}));
  x = iota(100);
  expect_good(p.run({{x.data(), e, two}}, {{x.data() + 1, e, two}}));  // even and odd elements
  for (int i = 0; i < 50; ++i) ASSERT_EQ(x[2 * i + 1], x[2 * i] + 1);
}

TEST_F(ProgramTest, OutputsThatOverlapThemselvesAreErrors) {
  const Program p = compiled(kAddOne);
  Floats x = iota(4), y(4);
  const int64_t e[] = {4}, zero[] = {0};
  expect_error(p.run({{x.data(), e}}, {{y.data(), e, zero}}), "several elements in one place");
  const Program two = compiled("graph @f(%x: f32[4]) -> (f32[4], f32[4]) { %a = add %x, 1.0 %b = mul %x, 2.0 return %a, %b }");
  expect_error(two.run({{x.data(), e}}, {{y.data(), e}, {y.data(), e}}), "overlaps");
}

TEST_F(ProgramTest, ZeroSizes) {
  const Program p = compiled(kRows);
  const int64_t none[] = {0, 7}, empty_rows[] = {3, 0};
  expect_good(p.run({{nullptr, none}}, {{nullptr, none}}));
  expect_good(p.run({{nullptr, empty_rows}}, {{nullptr, empty_rows}}));
  const Program sum = compiled("graph @f(%x: f32[N,M]) -> f32[N] { %s = sum %x {axes=[1]} return %s }");
  Floats y(3, 5.0f);
  const int64_t three[] = {3};
  expect_good(sum.run({{nullptr, empty_rows}}, {{y.data(), three}}));
  EXPECT_EQ(y, Floats(3, 0.0f));
  EXPECT_EQ(p.stats().kernels, 0u) << "nothing to do is not started";
}

TEST_F(ProgramTest, RankZero) {
  const Program p = compiled("graph @f(%x: f32[]) -> f32[] { %y = add %x, 1.0 return %y }");
  float x = 2, y = 0;
  expect_good(p.run({{&x}}, {{&y}}));
  EXPECT_EQ(y, 3);
}

TEST_F(ProgramTest, ErrorsNameTheFault) {
  const Program p = compiled("graph @f(%x: f32[N,4], %z: f32[N]) -> f32[N,4] { %y = add %x, 1.0 return %y }");
  Floats x(8), z(2), y(8);
  const int64_t e[] = {2, 4}, wrong[] = {2, 5}, flat[] = {8}, two[] = {2}, three[] = {3}, negative[] = {-2, 4};
  expect_error(p.run({{x.data(), e}}, {{y.data(), e}}), "2 inputs");
  expect_error(p.run({{x.data(), e}, {z.data(), two}}, {}), "1 outputs");
  expect_error(p.run({{x.data(), flat}, {z.data(), two}}, {{y.data(), e}}), "rank");
  expect_error(p.run({{x.data(), negative}, {z.data(), two}}, {{y.data(), e}}), "negative");
  expect_error(p.run({{x.data(), e}, {z.data(), two}}, {{y.data(), wrong}}), "[2,4]");
  expect_error(p.run({{nullptr, e}, {z.data(), two}}, {{y.data(), e}}), "its buffer is null");
  EXPECT_FALSE(p.run({{x.data(), wrong}, {z.data(), two}}, {{y.data(), e}}));
  EXPECT_FALSE(p.run({{x.data(), e}, {z.data(), three}}, {{y.data(), e}})) << "N is 2 and 3";
  expect_good(p.run({{x.data(), e}, {z.data(), two}}, {{y.data(), e}}));
  Result<Graph> graph = parse(kAddOne);
  EXPECT_NE(compile(*graph, {.device = "tpu"}).error().text().find("unknown device"), std::string::npos);
  EXPECT_NE(compile(*graph, {.device = "cpu", .sizes = {{"K", 3}}}).error().text().find("no dim K"), std::string::npos);
}

TEST_F(ProgramTest, ExtentsAndStridesBeyondAllMemoryAreErrors) {
  for (const char* device : {"cpu", "reference"}) {
    const Program p = compiled(kRows, {.device = device});
    Floats x(4), y(4);
    const int64_t most = INT64_MAX;
    for (const auto& [e0, e1, s0, s1] : {std::array<int64_t, 4>{most, 2, 2, 1}, {int64_t{1} << 40, int64_t{1} << 40, 0, 0}, {2, 2, most, 1},
                                         {2, 2, INT64_MIN, 1}, {3, 3, most / 2, most / 2}, {int64_t{1} << 59, 1, 1, 1}}) {
      const int64_t e[] = {e0, e1}, s[] = {s0, s1};
      expect_error(p.run({{x.data(), e, s}}, {{y.data(), e}}), "");
      expect_error(p.run({{x.data(), e}}, {{y.data(), e, s}}), "");
    }
  }
}

TEST_F(ProgramTest, EmptyBuffersOfLargeExtents) {
  const char text[] = "graph @f(%x: f32[A,B,C]) -> (f32[A,B,C], f32[]) {\n  %y = add %x, 1.0\n  %s = sum %x {axes=[0,1,2]}\n  return %y, %s\n}";
  for (const char* device : {"cpu", "reference"}) {
    const Program p = compiled(text, {.device = device});
    for (size_t zero = 0; zero < 3; ++zero) {
      Floats x(1), y(1), s{7};
      Extents e(3, int64_t{1} << 28);
      e[zero] = 0;
      expect_good(p.run({{x.data(), e}}, {{y.data(), e}, {s.data(), {}}}));
      EXPECT_EQ(s[0], 0) << device << ", no elements along axis " << zero;
      e.assign(3, int64_t{1} << 40);
      e[zero] = 0;
      expect_error(p.run({{x.data(), e}}, {{y.data(), e}, {s.data(), {}}}), "beyond any memory");
    }
  }
}

TEST_F(ProgramTest, ReferenceDeviceTakesTheSameBuffers) {
  const Program p = compiled(kRows, {.device = "reference"});
  Floats x = iota(20), y(20, -1.0f);
  const int64_t e[] = {2, 3}, s[] = {10, 2};
  expect_good(p.run({{x.data(), e, s}}, {{y.data(), e, s}}));
  EXPECT_EQ(y[0], -6);
  EXPECT_EQ(y[14], 14 - 36.0f);
  EXPECT_EQ(y[1], -1);
}

TEST_F(ProgramTest, WorkspaceOfTheCaller) {
  const char text[] = R"(graph @f(%x: f32[N]) -> f32[N] {
    %a = add %x, 1.0
    %b = mul %a, 3.0
    %y = sub %b, %x
    return %y
  })";
  const Program p = compiled(text, {.fuse = false});
  Floats x = iota(1000), y(1000);
  const int64_t e[] = {1000};
  const std::vector<Buffer> in{{x.data(), e}}, out{{y.data(), e}};
  Result<size_t> bytes = p.workspace_bytes(in, out);
  ASSERT_TRUE(bytes);
  EXPECT_GE(*bytes, 4000u);
  struct alignas(256) Block { std::byte bytes[256]; };
  std::vector<Block> memory(*bytes / 256 + 1);
  expect_good(p.run(in, out, {.workspace = memory.data(), .workspace_bytes = *bytes}));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(y[i], (i + 1) * 3.0f - i);
  expect_error(p.run(in, out, {.workspace = memory.data(), .workspace_bytes = 256}), "workspace");
  std::fill(y.begin(), y.end(), 0.0f);
  expect_good(p.run(in, out));
  EXPECT_EQ(y[999], 2001);
}

TEST_F(ProgramTest, WarmCallsAllocateNothing) {
  const Program p = compiled(kRows, {.fuse = false});  // several kernels and an arena
  Floats x = iota(64 * 32), y(64 * 32);
  const int64_t e[] = {64, 32};
  const std::vector<Buffer> in{{x.data(), e}}, out{{y.data(), e}};
  for (int i = 0; i < 3; ++i) expect_good(p.run(in, out));
  const uint64_t before = allocations, compilations = p.stats().compilations;
  for (int i = 0; i < 100; ++i)
    if (!p.run(in, out)) ADD_FAILURE();
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(p.stats().compilations, compilations);
}

/// Calls `f` with the first allocation failing, the second, and so on until it succeeds; each failure must be told, as the environment's.
template <class F> void expect_told(const char* what, F f) {
  int64_t failures = 0;
  for (;; ++failures) {
    ASSERT_LT(failures, 100'000) << what;
    granted = failures;
    auto result = f();
    const bool refused = granted < 0;
    granted = -1;
    if (!refused) {
      EXPECT_TRUE(result) << what << ": " << result.error().text();
      break;
    }
    if (result) continue;  // it could do without
    ASSERT_EQ(result.error().kind, Error::environment) << what << ", allocation " << failures << ": " << result.error().text();
    ASSERT_NE(result.error().text().find("memory"), std::string::npos) << what << ", allocation " << failures << ": " << result.error().text();
  }
  EXPECT_GT(failures, 0) << what;
}

// Wherever memory ends, the caller hears it, nothing is thrown, and the next call is as good as the first.
TEST(Program, AnyAllocationMayFail) {
  const std::string text = kRows;
  expect_told("parse", [&] { return parse(text); });
  const Result<Graph> graph = parse(text);
  ASSERT_TRUE(graph);
  const auto of_c = [](fusec_status status) -> Status {
    if (status == FUSEC_OK) return Done{};
    return Error{status == FUSEC_ENVIRONMENT ? Error::environment : Error::internal, fusec_error()};
  };
  expect_told("fusec_compile", [&] {
    fusec_program* program = nullptr;
    const fusec_status status = fusec_compile(kRows, "reference", FUSEC_STRICT, &program);
    fusec_release(program);
    return of_c(status);
  });
  Floats x = iota(6 * 70), y(x.size());
  for (const char* device : {"reference",
#if FUSEC_HAS_CPU
                             "cpu",
#endif
       }) {
    const Program program = compiled(kRows, {.device = device});
    const Extents first{6, 70}, second{7, 60};
    expect_good(program.run({{x.data(), first}}, {{y.data(), first}}));  // code is there: what a compiler does without memory is its own
    const Floats want = y;
    expect_told("compile", [&] { return compile(*graph, {.device = device, .cache = false, .ahead = false}); });  // all but the code
    expect_told("cold run", [&] { return program.run({{x.data(), second}}, {{y.data(), second}}); });
    const std::vector<Extents> of{first};
    expect_told("output_extents", [&] { return program.output_extents(of); });
    expect_good(program.run({{x.data(), first}}, {{y.data(), first}}));
    EXPECT_EQ(y, want) << device;
  }
}

TEST_F(ProgramTest, ManyThreadsOneHandle) {
#if FUSEC_HAS_CPU
  const Program p = compiled(kRows, {.fuse = false});
  for (const int workers : {1, 8}) {
    cpu::set_threads(workers);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < 1000; ++round) {
          const int64_t n = 1 + (t + round) % 5, m = 1 + (t * round) % 40;
          Floats x(n * m, float(t)), y(n * m);
          const int64_t e[] = {n, m};
          if (!p.run({{x.data(), e}}, {{y.data(), e}})) ++wrong;
          for (float v : y) wrong += v != float(t) - float(t) * float(m);
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0) << workers << " workers";
  }
  cpu::set_threads(0);
#endif
}

TEST_F(ProgramTest, KnownSizesAreCompiledAhead) {
  const Program p = compiled(kAddOne, {.sizes = {{"N", 4096}}});
  const uint64_t before = p.stats().compilations;
  EXPECT_GE(before, 1u);
  Floats x = iota(4097), y(4097);
  const int64_t e[] = {4096};
  expect_good(p.run({{x.data(), e}}, {{y.data(), e}}));
  expect_good(p.run({{x.data() + 1, e}}, {{y.data() + 1, e}}));
  EXPECT_EQ(p.stats().compilations, before) << "a misaligned pointer compiles nothing either";
}

TEST_F(ProgramTest, NothingIsCompiledAheadWhenToldSo) {
  const Program p = compiled(kRows, {.sizes = {{"N", 5}, {"M", 7}}, .ahead = false});
  EXPECT_EQ(p.stats().compilations, 0u);
  Floats block = iota(36), y(36), want(36);
  for (size_t offset : {size_t(1), size_t(0)}) {
    expect_good(p.run({{block.data() + offset, Extents{5, 7}}}, {{y.data() + offset, Extents{5, 7}}}));
    EXPECT_LE(p.stats().compilations, offset ? 1u : 2u) << "one kernel; the code that fits any address serves others too, where it is as good";
    expect_good(compiled(kRows).run({{block.data() + offset, Extents{5, 7}}}, {{want.data() + offset, Extents{5, 7}}}));
    EXPECT_EQ(y, want);
  }
}

TEST(Prepared, RepeatsACallWithWhatItsBuffersHoldThen) {
  // Two kernels (sums over different axes), partial states, an output on an input's memory.
  const char* text = "graph @g(%x: f32[300,4096]) -> (f32[300,4096], f32[4096]) {\n  %s = sum %x {axes=[0,1], keep=true}\n  %y = sub %x, %s\n"
                     "  %c = sum %x {axes=[0]}\n  return %y, %c\n}\n";
  for (const char* device : {"cpu", "reference"}) {
    const Program program = compiled(text, {.device = device});
    Floats x(300 * 4096, 1.0f), c(4096), y(x.size()), want(x.size()), sums(4096);
    const Extents e{300, 4096}, f{4096};
    std::optional<Prepared> prepared;
    {
      const Extents gone = e;  // the call keeps shapes of its own
      const std::vector<Buffer> in{{x.data(), gone}}, out{{y.data(), gone}, {c.data(), {}}};
      Result<Prepared> made = program.prepare(in, out);
      ASSERT_TRUE(made) << made.error().text();
      prepared.emplace(std::move(*made));
    }
    EXPECT_EQ(c[0], 0) << "preparing computes nothing";
    for (float value : {1.0f, 2.0f, 0.5f}) {
      std::fill(x.begin(), x.end(), value);
      expect_good(program.run({{x.data(), e}}, {{want.data(), e}, {sums.data(), f}}));
      expect_good(prepared->replay());
      EXPECT_EQ(y, want) << device;
      EXPECT_EQ(c, sums) << device;
    }
  }
}

TEST(Prepared, OutlivesItsProgramAndRefusesWrongCalls) {
  Floats x = iota(8), y(8);
  const Extents e{8}, wrong{7, 1};
  std::optional<Prepared> prepared;
  {
    const Program program = compiled("graph @g(%x: f32[N]) -> f32[N] { %y = mul %x, 2.0\n return %y }");
    const std::vector<Buffer> in{{x.data(), e}}, out{{y.data(), e}}, bad{{x.data(), wrong}};
    Result<Prepared> made = program.prepare(in, out);
    ASSERT_TRUE(made) << made.error().text();
    prepared.emplace(std::move(*made));
    EXPECT_FALSE(program.prepare(bad, out));
    EXPECT_FALSE(program.prepare(in, {}));
  }
  expect_good(prepared->replay());
  EXPECT_EQ(y[7], 14);
  const uint64_t before = allocations;
  for (int i = 0; i < 10; ++i) (void)prepared->replay();
  EXPECT_EQ(allocations, before) << "a replay allocates nothing";
}

}  // namespace
}  // namespace fusec
