// Threads that compile and run at the same time: the same program, different ones, through one cache and one pool of threads. Its own
// checks see wrong results; built with -DFUSEC_SANITIZE=thread (tools/check) it sees races, too.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "fusec/fusec.h"
#include "runtime/cache.h"

namespace fusec {
namespace {

constexpr int kThreads = 8;

struct Concurrent : testing::Test {
  static void SetUpTestSuite() {
    static char name[] = "/tmp/fusec-threads-XXXXXX";
    folder = ::mkdtemp(name);
    ::setenv("FUSEC_CACHE_DIR", folder.c_str(), 1);
    ::setenv("FUSEC_THREADS", "4", 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder); }
  static inline std::string folder;
};

template <class F> void on_threads(F body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& t : threads) t.join();
}

TEST_F(Concurrent, CacheOfTheSameAndOfDifferentKeys) {
  for (const char* path : {folder.c_str(), ""}) {
    Cache cache(CacheOptions{.path = *path ? folder + "/cache" : "", .capacity = 1 << 20, .memory = 20'000, .warn = false});
    std::atomic<int> wrong = 0;
    on_threads([&](int t) {
      for (int round = 0; round < 50; ++round) {
        const int n = round % 2 ? round % 7 : 100 + t;
        const auto got = cache.get(cache_key({"concurrent", std::to_string(n)}), [&]() -> Result<Artifact> {
          if (n == 3) return environment_error("not today");
          Artifact a;
          a.entry = "g" + std::to_string(n);
          a.bytes.assign(5000, uint8_t(n));
          return a;
        });
        if (n == 3 ? bool(got) : !got || (*got)->entry != "g" + std::to_string(n)) ++wrong;
        (void)cache.stats();
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

#if FUSEC_HAS_CPU
Result<Graph> graph_of(int kind) {
  GraphBuilder b("g" + std::to_string(kind));
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N"), 64}});
  Attrs rows;
  rows.axes = {1};
  Value y = b.add(Op::mul, {x, b.scalar(DType::f32, 1 + kind)});
  if (kind % 2) y = b.add(Op::softmax, {y}, rows);
  if (kind % 3 == 0) rows.keep = true, y = b.add(Op::sub, {y, b.add(Op::reduce_max, {y}, rows)});
  return std::move(b).finish({y});
}

std::vector<float> run(const Program& program, int64_t rows) {
  std::vector<float> x(size_t(rows) * 64), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97) / 16;
  const int64_t extents[] = {rows, 64};
  const Status done = program.run({{x.data(), extents}}, {{y.data()}});
  return done ? y : std::vector<float>();
}

TEST_F(Concurrent, CompileAndRunTheSameProgramsAndDifferentOnes) {
  constexpr int kKinds = 4;
  const int64_t kRows[] = {1, 300, 5000};
  std::vector<std::vector<std::vector<float>>> wanted(kKinds);
  for (int k = 0; k < kKinds; ++k) {
    const auto graph = graph_of(k);
    ASSERT_TRUE(graph);
    const auto program = compile(*graph, {.device = "cpu"});
    ASSERT_TRUE(program) << program.error().text();
    for (int64_t rows : kRows) wanted[k].push_back(run(*program, rows));
  }
  std::filesystem::remove_all(folder);  // and with it what they compiled
  const auto graph = graph_of(1);
  const auto shared = compile(*graph, {.device = "cpu"});
  ASSERT_TRUE(shared);
  std::atomic<int> wrong = 0;
  on_threads([&](int t) {
    for (int round = 0; round < 3; ++round)
      for (int k = 0; k < kKinds; ++k) {
        const auto own = graph_of((k + t) % kKinds);
        const auto program = compile(*own, {.device = "cpu", .cache = t % 2 == 0});
        for (int r = 0; r < 3; ++r) {
          if (!program || run(*program, kRows[r]) != wanted[(k + t) % kKinds][r]) ++wrong;
          if (run(*shared, kRows[(r + t) % 3]) != wanted[1][(r + t) % 3]) ++wrong;
        }
        (void)shared->stats();
      }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Concurrent, OneProgramColdOnAllThreads) {
  const auto graph = graph_of(3);
  const auto program = compile(*graph, {.device = "cpu"});
  ASSERT_TRUE(program);
  std::atomic<int> failed = 0;
  on_threads([&](int t) {
    for (int64_t rows = 1; rows < 40; ++rows)
      if (run(*program, rows + t).empty()) ++failed;
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(program->stats().calls, uint64_t(kThreads * 39));
}
#endif

}  // namespace
}  // namespace fusec
