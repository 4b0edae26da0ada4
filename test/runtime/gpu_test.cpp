// Programs on a GPU: streams, capture, contexts, forks, threads, misaligned pointers. Without a GPU: the errors say what is missing.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#if FUSEC_HAS_CUDA

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <numeric>
#include <thread>

#include "runtime/backend.h"
#include "runtime/cuda/driver.h"
#include "runtime/program.h"

namespace fusec {
namespace {

using Floats = std::vector<float>;

#define GOOD(expression)                                                      \
  do {                                                                        \
    const Status status_ = (expression);                                      \
    ASSERT_TRUE(status_) << status_.error().text();                           \
  } while (0)

TEST(Gpu, ErrorsWithoutADriverSayIt) {
  if (cuda_devices() > 0) GTEST_SKIP() << "there is a GPU";
  Result<Graph> graph = parse("graph @f(%x: f32[2]) -> f32[2] { %y = neg %x return %y }");
  Result<Program> program = compile(*graph, {.device = "cuda"});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().kind, Error::environment);
  EXPECT_NE(program.error().text().find("CUDA"), std::string::npos) << program.error().text();
}

/// A driver entry that only this test calls.
template <class F>
F* entry(const char* name) {
  static void* const kLibrary = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F*>(::dlsym(kLibrary, name));
}

struct GpuTest : testing::Test {
  void SetUp() override {
    if (cuda_devices() == 0) GTEST_SKIP() << "no GPU";
    device = *backend("cuda:0");
    gpu = *cuda::gpu(0);
  }
  Program compiled(const char* text, CompileOptions options = {}) {
    options.device = "cuda:0";
    options.cache = false;
    Result<Graph> graph = parse(text);
    EXPECT_TRUE(graph) << graph.error().text();
    Result<Program> program = compile(*graph, options);
    EXPECT_TRUE(program) << program.error().text();
    return *program;
  }
  std::unique_ptr<Memory> upload(const Floats& data) {
    auto memory = std::move(*device->allocate(data.size() * 4));
    EXPECT_TRUE(device->upload(memory->data, data.data(), data.size() * 4));
    return memory;
  }
  Floats download(const Memory& memory, size_t n) {
    Floats out(n);
    EXPECT_TRUE(device->download(out.data(), memory.data, n * 4));
    return out;
  }
  CUstream stream() {
    cuda::Current current(*gpu);
    CUstream s = nullptr;
    EXPECT_EQ(gpu->driver->cuStreamCreate_(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return s;
  }
  std::shared_ptr<const Backend> device;
  const cuda::Gpu* gpu = nullptr;
};

Floats iota(size_t n) {
  Floats out(n);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

const char kAddOne[] = "graph @f(%x: f32[N]) -> f32[N] { %y = add %x, 1.0 return %y }";
const char kSoftmax[] = "graph @f(%x: f32[N,M]) -> f32[N,M] { %y = softmax %x {axes=[1]} return %y }";

TEST_F(GpuTest, RunsOnTheCallersStreamAndPutsTheContextBack) {
  const Program p = compiled(kAddOne);
  auto x = upload(iota(100000)), y = upload(Floats(100000));
  const int64_t e[] = {100000};
  CUcontext before = nullptr, after = nullptr;
  gpu->driver->cuCtxGetCurrent_(&before);
  const CUstream s = stream();
  GOOD(p.run({{x->data, e}}, {{y->data, e}}, {.stream = s}));
  gpu->driver->cuCtxGetCurrent_(&after);
  EXPECT_EQ(before, after);
  GOOD(device->wait(s));
  const Floats got = download(*y, 100000);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], float(i) + 1);
}

TEST_F(GpuTest, MisalignedPointersCompileNothing) {
  const Program p = compiled(kAddOne, {.sizes = {{"N", 4096}}});
  const uint64_t before = p.stats().compilations;
  auto x = upload(iota(5000)), y = upload(Floats(5000, -777.0f));
  const int64_t e[] = {4096};
  for (int shift : {0, 1, 2, 3, 5}) {
    GOOD(p.run({{static_cast<float*>(x->data) + shift, e}}, {{static_cast<float*>(y->data) + 1, e}}));
    GOOD(device->wait(nullptr));
    const Floats got = download(*y, 5000);
    EXPECT_EQ(got[0], -777);
    EXPECT_EQ(got[4097], -777);
    for (size_t i = 0; i < 4096; ++i) ASSERT_EQ(got[i + 1], float(i + shift + 1));
  }
  EXPECT_EQ(p.stats().compilations, before);
}

TEST_F(GpuTest, ManyThreadsAndStreams) {
  const Program p = compiled(kSoftmax, {.fuse = false});  // several kernels, an arena for each stream
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const CUstream s = stream();
      for (int round = 0; round < 25; ++round) {
        const int64_t n = 1 + round % 7, m = 8 + (t * 5 + round) % 90;
        auto x = upload(Floats(n * m, float(t))), y = upload(Floats(n * m));
        const int64_t e[] = {n, m};
        if (!p.run({{x->data, e}}, {{y->data, e}}, {.stream = s}) || !device->wait(s)) ++wrong;
        for (float v : download(*y, n * m)) wrong += std::abs(v - 1.0f / float(m)) > 1e-6f;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(GpuTest, CaptureWantsAWarmCall) {
  auto begin = entry<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2");
  auto end = entry<CUresult(CUstream, CUgraph*)>("cuStreamEndCapture");
  auto instantiate = entry<CUresult(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags");
  auto launch = entry<CUresult(CUgraphExec, CUstream)>("cuGraphLaunch");
  ASSERT_TRUE(begin && end && instantiate && launch);
  const Program p = compiled(kSoftmax, {.fuse = false});
  const int64_t e[] = {16, 64}, other[] = {8, 32};
  auto x = upload(Floats(16 * 64, 1.0f)), y = upload(Floats(16 * 64));
  const CUstream s = stream();
  for (int i = 0; i < 2; ++i) GOOD(p.run({{x->data, e}}, {{y->data, e}}, {.stream = s}));
  GOOD(device->wait(s));

  ASSERT_EQ(begin(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  const Status cold = p.run({{x->data, other}}, {{y->data, other}}, {.stream = s});
  EXPECT_FALSE(cold);
  EXPECT_NE(cold ? std::string::npos : cold.error().text().find("captured"), std::string::npos);
  const Status warm = p.run({{x->data, e}}, {{y->data, e}}, {.stream = s});
  EXPECT_TRUE(warm) << warm.error().text();
  CUgraph graph = nullptr;
  ASSERT_EQ(end(s, &graph), CUDA_SUCCESS) << "the capture stayed valid";
  CUgraphExec exec = nullptr;
  cuda::Current current(*gpu);
  ASSERT_EQ(instantiate(&exec, graph, 0), CUDA_SUCCESS);
  for (int round = 0; round < 10; ++round) {
    Floats data = iota(16 * 64);
    for (float& v : data) v *= float(round) / 100;
    GOOD(device->upload(x->data, data.data(), data.size() * 4));
    ASSERT_EQ(launch(exec, s), CUDA_SUCCESS);
    GOOD(p.run({{x->data, other}}, {{y->data, other}}));  // another call, on another stream, has a workspace of its own
    GOOD(device->wait(s));
    GOOD(device->wait(nullptr));
    ASSERT_EQ(launch(exec, s), CUDA_SUCCESS);
    GOOD(device->wait(s));
    const Floats got = download(*y, 16 * 64);
    for (int r = 0; r < 16; ++r) EXPECT_NEAR(std::accumulate(&got[r * 64], &got[r * 64] + 64, 0.0f), 1.0f, 1e-5f);
    EXPECT_GE(got[63], got[0]);
  }
}

TEST_F(GpuTest, TwoDevicesInTurn) {
  if (cuda_devices() < 2) GTEST_SKIP() << "one GPU";
  Result<Graph> graph = parse(kAddOne);
  const Program programs[2] = {*compile(*graph, {.device = "cuda:0", .cache = false}), *compile(*graph, {.device = "cuda:1", .cache = false})};
  const std::shared_ptr<const Backend> devices[2] = {*backend("cuda:0"), *backend("cuda:1")};
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      const int64_t e[] = {5000};
      for (int round = 0; round < 100; ++round) {
        const int d = (t + round) % 2;
        auto x = std::move(*devices[d]->allocate(20000)), y = std::move(*devices[d]->allocate(20000));
        const Floats data(5000, float(round));
        Floats got(5000);
        CUcontext before = nullptr, after = nullptr;
        gpu->driver->cuCtxGetCurrent_(&before);
        const bool good = devices[d]->upload(x->data, data.data(), 20000) && programs[d].run({{x->data, e}}, {{y->data, e}}) &&
                          devices[d]->wait(nullptr) && devices[d]->download(got.data(), y->data, 20000);
        gpu->driver->cuCtxGetCurrent_(&after);
        wrong += !good || before != after || got != Floats(5000, float(round) + 1);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(GpuTest, AForkedChildHearsWhy) {
  const Program p = compiled(kAddOne);
  auto x = upload(iota(10)), y = upload(Floats(10));
  const int64_t e[] = {10};
  GOOD(p.run({{x->data, e}}, {{y->data, e}}));
  GOOD(device->wait(nullptr));
  const pid_t child = ::fork();
  if (child == 0) {
    const Status status = p.run({{x->data, e}}, {{y->data, e}});
    ::_exit(!status && status.error().text().find("forked") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(GpuTest, AFailedCallLeavesTheProgramUsable) {
  const Program p = compiled(kAddOne);
  const int64_t huge[] = {int64_t{1} << 45};
  EXPECT_FALSE(device->allocate(size_t{1} << 50));
  auto x = upload(iota(10)), y = upload(Floats(10));
  const int64_t e[] = {10};
  (void)huge;
  GOOD(p.run({{x->data, e}}, {{y->data, e}}));
  GOOD(device->wait(nullptr));
  EXPECT_EQ(download(*y, 10)[9], 10);
}

TEST_F(GpuTest, WarmCallsCostLittle) {
  const Program p = compiled(kAddOne);
  auto x = upload(iota(1024)), y = upload(Floats(1024));
  const int64_t e[] = {1024};
  const std::vector<Buffer> in{{x->data, e}}, out{{y->data, e}};
  for (int i = 0; i < 100; ++i) GOOD(p.run(in, out));
  GOOD(device->wait(nullptr));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) (void)p.run(in, out);
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 1000;
  GOOD(device->wait(nullptr));
  std::cout << "a warm call takes " << us << " us on the host, the launch included\n";
  EXPECT_LT(us, 50);
}

TEST_F(GpuTest, PreparedCallsAreGraphs) {
  // Partial states with counters, and two kernels in a row.
  const Program p = compiled("graph @g(%x: f32[1048576]) -> (f32[], f32[1048576]) {\n  %s = sum %x {axes=[0]}\n  %y = sub %x, %s\n  return %s, %y\n}\n");
  const size_t n = 1048576;
  auto x = upload(Floats(n, 0.25f)), s = upload(Floats(1)), y = upload(Floats(n));
  const int64_t e[] = {int64_t(n)};
  const std::vector<Buffer> in{{x->data, e}}, out{{s->data, {}}, {y->data, e}};
  Result<Prepared> prepared = p.prepare(in, out);
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_EQ(download(*s, 1)[0], 0) << "preparing computes nothing";
  for (float value : {0.25f, 0.5f, -2.0f}) {
    const Floats data(n, value);
    GOOD(device->upload(x->data, data.data(), n * 4));
    for (int i = 0; i < 3; ++i) GOOD(prepared->replay());
    GOOD(device->wait(nullptr));
    EXPECT_EQ(download(*s, 1)[0], value * float(n));
    EXPECT_EQ(download(*y, n)[n - 1], value - value * float(n));
  }
}

}  // namespace
}  // namespace fusec

#endif
