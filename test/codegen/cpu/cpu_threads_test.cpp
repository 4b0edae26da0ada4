// The parallel loop: every item once, nested, from many threads, after fork, by a host's own loop; and what kernels
// must not touch.

#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <cstring>
#include <thread>

#include "test/codegen/cpu/run.h"

namespace fusec::cpu {
namespace {

/// Runs a loop and says whether every item was visited exactly once.
bool covers(int64_t items, int64_t min_items) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(items));
  parallel_for(items, min_items, [&](int64_t a, int64_t z) {
    for (int64_t i = a; i < z; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (const auto& s : seen)
    if (s != 1) return false;
  return true;
}

TEST(CpuThreads, EveryItemOnce) {
  for (int n : {1, 2, 5}) {
    set_threads(n);
    EXPECT_EQ(threads(), n);
    for (int64_t items : {0, 1, 2, 7, 1000})
      for (int64_t least : {0, 1, 3, 5000}) EXPECT_TRUE(covers(items, least)) << items << " " << least << " " << n;
  }
  set_threads(0);
}

TEST(CpuThreads, NestedLoopsAndManyCallers) {
  set_threads(3);
  std::atomic<int> inner{0};
  parallel_for(8, 1, [&](int64_t a, int64_t z) {
    for (int64_t i = a; i < z; ++i)
      parallel_for(10, 1, [&](int64_t b, int64_t e) { inner += static_cast<int>(e - b); });
  });
  EXPECT_EQ(inner, 80);
  std::vector<std::thread> callers;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t)
    callers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) good += covers(64, 1);
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(good, 8 * 200);
  set_threads(0);
}

TEST(CpuThreads, SurviveFork) {
  set_threads(3);
  EXPECT_TRUE(covers(100, 1));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(covers(100, 1) && covers(1000, 1) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(covers(100, 1));
  set_threads(0);
}

TEST(CpuThreads, AHostsOwnLoop) {
  int64_t called = 0;
  set_parallel_for([&](int64_t items, int64_t, const Range& body) {
    called = items;
    for (int64_t i = items; i-- > 0;) body(i, i + 1);
  });
  EXPECT_TRUE(covers(100, 1));
  EXPECT_EQ(called, 100);
  set_parallel_for({});
  called = 0;
  EXPECT_TRUE(covers(100, 1));
  EXPECT_EQ(called, 0);
}

TEST(CpuThreads, OneKernelFromManyThreads) {
  const std::string text = "graph @g(%x: f32[N]) -> f32[N] {\n %y = add %x, 1.0\n return %y\n}";
  std::vector<std::thread> callers;
  std::atomic<int> good{0};
  const Runner shared(text);
  for (int t = 0; t < 8; ++t)
    callers.emplace_back([&, t] {
      const Runner own(text);  // 8 first compilations at once
      for (int k = 0; k < 50; ++k) {
        const auto n = static_cast<size_t>(100 * t + k);
        std::vector<float> x(n, static_cast<float>(k)), y(n), z(n);
        shared({{x.data()}, {y.data()}}, {{"N", static_cast<int64_t>(n)}});
        own({{x.data()}, {z.data()}}, {{"N", static_cast<int64_t>(n)}});
        good += y == std::vector<float>(n, static_cast<float>(k + 1)) && z == y;
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(good, 400);
}

#if defined(__x86_64__)
TEST(CpuThreads, TheControlWordStaysAndDenormalsCount) {
  const unsigned before = _mm_getcsr();
  const Runner run(
      "graph @g(%x: f32[N]) -> (f32[N], f16[N]) {\n %y = mul %x, 0.5\n %h = cast %y {to=f16}\n return %y, %h\n}");
  std::vector<float> x(100, 1e-40f), y(100);
  std::vector<uint16_t> h(100);
  run({{x.data()}, {y.data()}, {h.data()}}, {{"N", 100}});
  EXPECT_EQ(y[50], 5e-41f);
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu);  // exception flags may be set, nothing else
}
#endif

TEST(CpuThreads, DamagedObjectsAreErrors) {
  const Runner run("graph @g(%x: f32[N]) -> f32[N] {\n %y = add %x, 1.0\n return %y\n}");
  const Artifact artifact = run.dense({{"N", 1000}}).artifact;
  for (size_t keep : {size_t{0}, size_t{10}, size_t{64}, artifact.bytes.size() / 2}) {
    std::vector<uint8_t> cut(artifact.bytes.begin(), artifact.bytes.begin() + static_cast<long>(keep));
    EXPECT_FALSE(load(cut, artifact.entry)) << keep;
  }
  EXPECT_FALSE(load(artifact.bytes, "no_such_entry"));
  EXPECT_TRUE(load(artifact.bytes, artifact.entry));
}

/// 3052 parts of 2^15 elements: one after another their sum is 2.5e-5 off; in a tree it is as many times a part's, whatever lanes a part is added by, and
/// the same bits for any number of threads.
TEST(CpuThreads, PartsMeetInATree) {
  const auto sum_of = [](const std::string& count) {
    return Runner("graph @g(%x: f32[1]) -> f32[] {\n %b = broadcast %x {shape=[" + count + "]}\n %s = sum %b {axes=[0]}\n return %s\n}");
  };
  Tensor x = sample(DType::f32, {1}, 1);
  const float one = 1.1f;
  std::memcpy(x.data.data(), &one, sizeof one);
  std::vector<float> sums;
  for (const auto& [threads, count] : {std::pair{1, "32768"}, std::pair{1, "100007936"}, std::pair{3, "100007936"}}) {
    set_threads(threads);
    const std::vector<Tensor> got = run(sum_of(count), {x});
    ASSERT_EQ(got.size(), 1u);
    std::memcpy(&sums.emplace_back(), got[0].data.data(), sizeof(float));
  }
  set_threads(0);
  EXPECT_EQ(sums[1], sums[2]);
  EXPECT_NEAR(sums[1], 3052.0 * sums[0], 3052.0 * sums[0] * 2e-6);
}

}  // namespace
}  // namespace fusec::cpu
