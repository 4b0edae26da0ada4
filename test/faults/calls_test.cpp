// Known faults that no graph alone shows: memory in unusual places, graphs too deep or too wide, many compilations at once. Each on every
// device that uses the host's memory. test/faults/cases.txt names the tests that hold each case.

#include <fusec/fusec.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <locale>
#include <sstream>
#include <thread>

#include "test/folder.h"

namespace fusec {
namespace {

using Extents = std::vector<int64_t>;

Result<Program> compiled(const std::string& text, const std::string& device) {
  const Result<Graph> graph = parse(text);
  if (!graph) return graph.error();
  return compile(*graph, {.device = device, .cache = false});
}

/// Devices of this build that take pointers of the host.
std::vector<std::string> host_devices(bool simt = true) {
  std::vector<std::string> out;
  for (const char* device : {"reference", "cpu", "simt"})
    if ((simt || std::string(device) != "simt") && compiled("graph @g(%x: f32[1]) -> f32[1] { %y = neg %x return %y }", device)) out.push_back(device);
  return out;
}

#define ASSERT_GOOD(result) ASSERT_TRUE(result) << (result).error().text()

/// Runs `body` in a thread whose stack has 512 KB.
void on_small_stack(std::function<void()> body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, [](void* f) -> void* { return (*static_cast<std::function<void()>*>(f))(), nullptr; }, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// First in this file: no engine has been made before.
TEST(Threads, SixteenMakeTheFirstEngineTogether) {
  std::vector<std::thread> threads;
  std::vector<std::string> faults(16);
  for (int k = 0; k < 16; ++k)
    threads.emplace_back([&faults, k] {
      const std::string c = std::to_string(k) + ".0";
      const Result<Program> program = compiled("graph @g(%x: f32[4]) -> f32[4] { %m = mul %x, " + c + "\n %y = add %m, 0.5 return %y }", host_devices(false).back());
      if (!program) return void(faults[size_t(k)] = program.error().text());
      const float x[] = {0, 1, 2, 3};
      float y[4] = {};
      const int64_t four[] = {4};
      const Status s = program->run({{const_cast<float*>(x), four}}, {{y, four}});
      if (!s) faults[size_t(k)] = s.error().text();
      else if (y[3] != 3 * float(k) + 0.5f) faults[size_t(k)] = "a wrong result";
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

TEST(Memory, PermutedInputOfExactSize) {
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compiled(R"(graph @g(%x: f32[2,3,4]) -> (f32[2,3,4], f32[2,4]) {
      %d = mul %x, 2.0
      %y = add %d, 1.0
      %s = sum %y {axes=[1]}
      return %y, %s })", device);
    ASSERT_GOOD(program);
    std::vector<float> x(24), y(24), s(8);
    for (size_t i = 0; i < 24; ++i) x[i] = float(i);
    const Extents shape{2, 3, 4}, strides{12, 1, 3}, row{2, 4};
    const Status done = program->run({{x.data(), shape, strides}}, {{y.data(), shape}, {s.data(), row}});
    ASSERT_GOOD(done);
    for (size_t i = 0; i < 2; ++i)
      for (size_t k = 0; k < 4; ++k) {
        float total = 0;
        for (size_t j = 0; j < 3; ++j) {
          const float want = 2 * x[12 * i + j + 3 * k] + 1;
          EXPECT_EQ(y[(i * 3 + j) * 4 + k], want) << device;
          total += want;
        }
        EXPECT_EQ(s[i * 4 + k], total) << device;
      }
  }
}

TEST(Memory, PaddingOfAnOutputStays) {
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compiled("graph @g(%x: f32[16,8]) -> f32[16,8] { %y = add %x, %x return %y }", device);
    ASSERT_GOOD(program);
    std::vector<float> x(128), y(256, -777);
    for (size_t i = 0; i < 128; ++i) x[i] = float(i);
    const Extents shape{16, 8}, strides{16, 1};
    const Status done = program->run({{x.data(), shape}}, {{y.data(), shape, strides}});
    ASSERT_GOOD(done);
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(y[i], i % 16 < 8 ? 2 * x[i / 16 * 8 + i % 16] : -777) << device << " " << i;
  }
}

// 92 bytes a row: rows of the output begin anywhere between 16-byte pieces, and the first one behind its own alignment only.
TEST(Memory, OutputLessAlignedThanItsInput) {
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compiled("graph @g(%x: bf16[N,46]) -> bf16[N,46] { %y = neg %x return %y }", device);
    ASSERT_GOOD(program);
    alignas(64) static uint16_t x[46 * 33], y[46 * 33 + 64];
    for (size_t i = 0; i < 46 * 33; ++i) x[i] = uint16_t(i);
    const Extents shape{33, 46};
    for (size_t offset : {0, 1, 2, 3, 5}) {
      std::memset(y, 0x55, sizeof y);
      const Status done = program->run({{x, shape}}, {{y + offset, shape}});
      ASSERT_GOOD(done);
      for (size_t i = 0; i < 46 * 33; ++i) ASSERT_EQ(y[offset + i], uint16_t(i ^ 0x8000)) << device << " " << offset;
      EXPECT_EQ(y[offset + 46 * 33], 0x5555);
      if (offset) {
        EXPECT_EQ(y[offset - 1], 0x5555);
      }
    }
  }
}

TEST(Memory, StridesLeftOutZeroNegativeAndMeaningless) {
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compiled("graph @g(%x: f32[2,3]) -> f32[2,3] { %y = mul %x, 10.0 return %y }", device);
    ASSERT_GOOD(program);
    float x[] = {0, 1, 2, 3, 4, 5}, y[6];
    const Extents shape{2, 3};
    const auto check = [&](float* data, const Extents& strides, const std::vector<float>& want) {
      const Status done = program->run({{data, shape, strides}}, {{y, shape}});
      ASSERT_GOOD(done);
      for (size_t i = 0; i < 6; ++i) EXPECT_EQ(y[i], want[i]) << device << " " << i;
    };
    check(x, {}, {0, 10, 20, 30, 40, 50});
    check(x, {1, 2}, {0, 20, 40, 10, 30, 50});
    check(x, {0, 1}, {0, 10, 20, 0, 10, 20});
    check(x + 5, {-3, -1}, {50, 40, 30, 20, 10, 0});
    const Result<Program> row = compiled("graph @g(%x: f32[1,3], %s: f32[]) -> f32[1,3] { %y = mul %x, %s return %y }", device);
    ASSERT_GOOD(row);
    const Extents one{1, 3}, garbage{-123456789012345, 1}, none{};
    float s = 2;
    const Status done = row->run({{x, one, garbage}, {&s, none, none}}, {{y, one}});
    ASSERT_GOOD(done);
    EXPECT_EQ(y[2], 4) << device;
  }
}

std::string chain(int length) {
  std::string text = "graph @g(%x: f32[2]) -> f32[2] {\n";
  for (int k = 0; k < length; ++k) text += "  %v" + std::to_string(k) + " = add " + (k ? "%v" + std::to_string(k - 1) : std::string("%x")) + ", 1.0\n";
  return text + "  return %v" + std::to_string(length - 1) + "\n}\n";
}

TEST(Size, TwentyThousandInARowOnASmallStack) {
  for (const std::string& device : host_devices(false))
    on_small_stack([&] {
      const Result<Program> program = compiled(chain(20000), device);
      ASSERT_GOOD(program);
      float x[] = {0, 1}, y[2];
      const int64_t two[] = {2};
      const Status done = program->run({{x, two}}, {{y, two}});
      ASSERT_GOOD(done);
      EXPECT_EQ(y[0], 20000) << device;
      EXPECT_EQ(y[1], 20001) << device;
    });
}

/// A sum of inputs, one after another.
std::string sum_of(int inputs, const std::string& type) {
  std::string header, body;
  for (int k = 0; k < inputs; ++k) {
    header += (k ? ", %x" : "%x") + std::to_string(k) + ": " + type;
    if (k) body += "  %s" + std::to_string(k) + " = add " + (k == 1 ? "%x0" : "%s" + std::to_string(k - 1)) + ", %x" + std::to_string(k) + "\n";
  }
  return "graph @g(" + header + ") -> " + type + " {\n" + body + "  return %s" + std::to_string(inputs - 1) + "\n}\n";
}

TEST(Size, ThousandsOfInputs) {
  for (const std::string& device : host_devices(false)) {
    const Result<Program> program = compiled(sum_of(6131, "i64[4]"), device);
    ASSERT_GOOD(program);
    std::vector<std::array<int64_t, 4>> data(6131);
    std::vector<Buffer> inputs;
    const Extents four{4};
    for (size_t k = 0; k < data.size(); ++k) data[k].fill(int64_t(k)), inputs.push_back({data[k].data(), four});
    int64_t y[4] = {};
    const std::vector<Buffer> out{{y, four}};
    const Status done = program->run(inputs, out);
    ASSERT_GOOD(done);
    for (int64_t v : y) EXPECT_EQ(v, 18791515) << device;
  }
}

// Six strides an operand: a kernel's parameters run out long before its inputs do.
TEST(Size, ManyInputsWithSixStrides) {
  for (const std::string& device : host_devices())
    for (int inputs : {300, 520, 1100}) {
      if (device == "simt" && inputs > 300) continue;  // the same split; clang takes a second a kernel
      const Result<Program> program = compiled(sum_of(inputs, "i64[1,2,1,2,1,2]"), device);
      ASSERT_GOOD(program);
      const Extents shape{1, 2, 1, 2, 1, 2}, strides{64, 23, 17, 7, 5, 2};
      std::vector<std::array<int64_t, 64>> data{size_t(inputs)};
      std::vector<Buffer> buffers;
      for (size_t k = 0; k < data.size(); ++k) {
        for (size_t i = 0; i < 64; ++i) data[k][i] = int64_t(k * 64 + i);
        buffers.push_back({data[k].data(), shape, strides});
      }
      int64_t y[8] = {};
      const std::vector<Buffer> out{{y, shape}};
      const Status done = program->run(buffers, out);
      ASSERT_GOOD(done);
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t at = (i >> 2 & 1) * 23 + (i >> 1 & 1) * 7 + (i & 1) * 2;
        EXPECT_EQ(y[i], int64_t(inputs) * (inputs - 1) / 2 * 64 + inputs * at) << device << " " << inputs;
      }
    }
}

TEST(Size, ThousandsOfOutputs) {
  constexpr int kCount = 2000;
  std::string header, types, body, results;
  for (int k = 0; k < kCount; ++k) {
    const std::string n = std::to_string(k), comma = k ? ", " : "";
    header += ", %x" + n + ": i64[3]";
    types += comma + "i64[3]";
    body += "  %y" + n + " = add %x" + n + ", %shift\n";
    results += comma + "%y" + n;
  }
  for (const std::string& device : host_devices(false)) {
    const Result<Program> program = compiled("graph @g(%shift: i64[3]" + header + ") -> (" + types + ") {\n" + body + "  return " + results + "\n}\n", device);
    ASSERT_GOOD(program);
    std::vector<std::array<int64_t, 3>> x(kCount + 1), y(kCount);
    const Extents three{3};
    std::vector<Buffer> in, out;
    for (size_t k = 0; k <= kCount; ++k) x[k].fill(int64_t(k * k)), in.push_back({x[k].data(), three});
    x[0] = {1, 2, 3};
    for (size_t k = 0; k < kCount; ++k) out.push_back({y[k].data(), three});
    const Status done = program->run(in, out);
    ASSERT_GOOD(done);
    for (size_t k = 0; k < kCount; ++k)
      for (size_t i = 0; i < 3; ++i) ASSERT_EQ(y[k][i], int64_t((k + 1) * (k + 1) + i + 1)) << device;
  }
}

// 46 operands that are tiled and 46 that are dense, half of them for each of two joined results.
TEST(Size, StridedAndDenseOperandsJoined) {
  std::string header, body;
  for (int half = 0; half < 2; ++half) {
    std::string last;
    for (int k = 0; k < 23; ++k) {
      const std::string n = std::to_string(half * 23 + k);
      header += std::string(header.empty() ? "" : ", ") + "%v" + n + ": i32[4,1], %m" + n + ": i32[4,10]";
      body += "  %b" + n + " = broadcast %v" + n + " {shape=[4,10]}\n  %t" + n + " = add %b" + n + ", %m" + n + "\n";
      if (k) body += "  %s" + n + " = add " + last + ", %t" + n + "\n";
      last = (k ? "%s" : "%t") + n;
    }
  }
  const std::string text = "graph @g(" + header + ") -> i32[8,10] {\n" + body + "  %y = concat %s22, %s45 {axis=0}\n  return %y\n}\n";
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compiled(text, device);
    ASSERT_GOOD(program);
    std::vector<std::array<int32_t, 8>> v(46);
    std::vector<std::array<int32_t, 40>> m(46);
    const Extents column{4, 1}, strides{2, 1}, whole{4, 10}, result{8, 10};
    std::vector<Buffer> in;
    for (size_t k = 0; k < 46; ++k) {
      for (size_t i = 0; i < 8; ++i) v[k][i] = int32_t(1000 * k + i);
      for (size_t i = 0; i < 40; ++i) m[k][i] = int32_t(i * k);
      in.push_back({v[k].data(), column, strides});
      in.push_back({m[k].data(), whole});
    }
    int32_t y[80] = {};
    const std::vector<Buffer> out{{y, result}};
    const Status done = program->run(in, out);
    ASSERT_GOOD(done);
    for (size_t i = 0; i < 80; ++i) {
      int32_t want = 0;
      for (size_t k = i < 40 ? 0 : 23; k < (i < 40 ? 23 : 46); ++k) want += v[k][i % 40 / 10 * 2] + m[k][i % 40];
      EXPECT_EQ(y[i], want) << device << " " << i;
    }
  }
}

TEST(Size, ValuesUsedTwiceSixtyFourTimes) {
  std::string text = "graph @g(%x: f32[1]) -> f32[1] {\n", last = "%x";
  for (int k = 0; k < 64; ++k) {
    const std::string n = std::to_string(k);
    text += "  %s" + n + " = sin " + last + "\n  %c" + n + " = cos " + last + "\n  %a" + n + " = add %s" + n + ", %c" + n + "\n";
    last = "%a" + n;
  }
  text += "  return " + last + "\n}\n";
  for (const std::string& device : host_devices(false)) {
    const auto start = std::chrono::steady_clock::now();
    const Result<Program> program = compiled(text, device);
    ASSERT_GOOD(program);
    float x = 0.3f, y = 0;
    const int64_t one[] = {1};
    const Status done = program->run({{&x, one}}, {{&y, one}});
    ASSERT_GOOD(done);
    EXPECT_NEAR(y, 1.2587283, 1e-4) << device;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << device;
  }
}

TEST(Cache, ConstantsAreInItsKey) {
  for (const std::string& device : host_devices())
    for (const auto& [constant, bits] : std::vector<std::pair<const char*, uint32_t>>{
             {"0.5", 0x3f000000}, {"1.0", 0x3f800000}, {"-0.0", 0x80000000}, {"0.0", 0}, {"2.5", 0x40200000}, {"nan(0x7fc00001)", 0x7fc00001},
             {"nan(0x7fc00002)", 0x7fc00002}, {"nan(0xffc00002)", 0xffc00002}}) {  // a select copies
      const Result<Graph> graph = parse("graph @g(%x: f32[2], %b: bool[2]) -> f32[2] { %y = select %b, %x, " + std::string(constant) + "\n return %y }");
      ASSERT_GOOD(graph);
      const Result<Program> program = compile(*graph, {.device = device});  // with the cache
      ASSERT_GOOD(program);
      float x[] = {7, 7}, y[2];
      bool b[] = {true, false};
      const int64_t two[] = {2};
      const Status done = program->run({{x, two}, {b, two}}, {{y, two}});
      ASSERT_GOOD(done);
      uint32_t got;
      std::memcpy(&got, y + 1, 4);
      EXPECT_EQ(got, bits) << device << " " << constant;
    }
}

TEST(Names, OneNameForTwoGraphsThatComeAndGo) {
  const std::string device = host_devices(false).back();
  const auto resident = [] {  // pages
    int64_t all = 0, here = 0;
    std::ifstream("/proc/self/statm") >> all >> here;
    return here;
  };
  int64_t before = 0;
  for (int round = 0; round < 200; ++round) {
    if (round == 100) before = resident();
    const std::string a = std::to_string(round) + ".0";
    Result<Program> first = compiled("graph @same(%x: f32[1]) -> f32[1] { %y = mul %x, " + a + "\n return %y }", device);
    const Result<Program> second = compiled("graph @same(%x: f32[1]) -> f32[1] { %y = sub %x, " + a + "\n return %y }", device);
    ASSERT_GOOD(first);
    ASSERT_GOOD(second);
    first = input_error("gone");
    float x = 3, y = 0;
    const int64_t one[] = {1};
    const Status done = second->run({{&x, one}}, {{&y, one}});
    ASSERT_GOOD(done);
    EXPECT_EQ(y, 3 - float(round));
  }
  const int64_t grown = (resident() - before) * ::sysconf(_SC_PAGESIZE);
  EXPECT_LT(grown, 1 << 20) << "what is dropped goes back";
}

// A sum of many numbers, fifty times, while other threads are at work.
TEST(Determinism, TheSameSumFiftyTimes) {
  const std::string device = host_devices(false).back();
  const Result<Program> program = compiled("graph @g(%x: f32[N]) -> f32[] { %y = sum %x {axes=[0]} return %y }", device);
  ASSERT_GOOD(program);
  std::vector<float> x(1 << 20);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(int32_t(uint32_t(i * 2654435761u))) * 0x1p-20f;
  const Extents n{int64_t(x.size())}, none{};
  std::vector<std::thread> threads;
  std::vector<float> sums(50);
  for (size_t t = 0; t < 5; ++t)
    threads.emplace_back([&, t] {
      for (size_t k = t * 10; k < t * 10 + 10; ++k)
        if (!program->run({{x.data(), n}}, {{&sums[k], none}})) sums[k] = NAN;
    });
  for (std::thread& t : threads) t.join();
  for (float sum : sums) EXPECT_EQ(std::memcmp(&sum, &sums[0], 4), 0);
  EXPECT_FALSE(std::isnan(sums[0]));
}

TEST(Paths, CacheBehindSpacesAndQuotes) {
  namespace fs = std::filesystem;
  const fs::path fusec = fs::path(FUSEC_BINARY_DIR) / "fusec";
  if (!fs::exists(fusec) || host_devices(false).back() != "cpu") GTEST_SKIP() << "wants the command line and the CPU back end";
  const fs::path folder = fs::temp_directory_path() / ("fu sec é\"x$HOME `" + std::to_string(getpid()));
  fs::remove_all(folder);
  std::ofstream(fs::path(folder.string() + ".fus")) << "graph @g(%x: f32[4]) -> f32[4] { %y = neg %x return %y }\n";
  setenv("FUSEC_TEST_PROGRAM", fusec.c_str(), 1);
  setenv("FUSEC_TEST_GRAPH", (folder.string() + ".fus").c_str(), 1);
  const std::string before = std::getenv("FUSEC_CACHE_DIR") ? std::getenv("FUSEC_CACHE_DIR") : "";
  setenv("FUSEC_CACHE_DIR", folder.c_str(), 1);
  const std::string run = "\"$FUSEC_TEST_PROGRAM\" run \"$FUSEC_TEST_GRAPH\" --device cpu -q --time > \"$FUSEC_TEST_GRAPH.out\" 2>&1";
  const auto output = [&] {
    std::ostringstream out;
    out << std::ifstream(folder.string() + ".fus.out").rdbuf();
    return out.str();
  };
  EXPECT_EQ(std::system(run.c_str()), 0) << output();
  EXPECT_FALSE(fs::is_empty(folder));
  EXPECT_EQ(std::system(run.c_str()), 0) << output();
  EXPECT_NE(output().find("LLVM not needed"), std::string::npos) << output();
  if (before.empty()) unsetenv("FUSEC_CACHE_DIR");
  else setenv("FUSEC_CACHE_DIR", before.c_str(), 1);
  fs::remove_all(folder);
  fs::remove(folder.string() + ".fus");
  fs::remove(folder.string() + ".fus.out");
}

// What `; variants: N` is for: results that are right at their own size only, and a text that says so.
TEST(Variants, SeeWhatHoldsAtOneSizeOnly) {
  namespace fs = std::filesystem;
  const fs::path fusec = fs::path(FUSEC_BINARY_DIR) / "fusec";
  if (!fs::exists(fusec)) GTEST_SKIP() << "wants the command line";
  const std::string file = (fs::temp_directory_path() / ("fusec-variants-" + std::to_string(getpid()) + ".fus")).string();
  const auto output_of = [&](const std::string& directive) {
    std::ofstream(file) << directive << "\ngraph @g(%x: f32[N]) -> f32[N] {\n  %i = iota {shape=[N], to=f32, axis=0}\n  %y = add %x, %i\n  return %y\n}\n"
                        << "; eval: @g([5, 5]) ==\n;   [5, 6]\n";
    const int status = std::system((fusec.string() + " test " + file + " --device reference > " + file + ".out 2>&1").c_str());
    std::ostringstream out;
    out << status << " " << std::ifstream(file + ".out").rdbuf();
    return out.str();
  };
  EXPECT_EQ(output_of("; variants: none").substr(0, 10), "0 2 passed");
  EXPECT_EQ(output_of("; variants:").substr(0, 10), "0 2 passed");
  const std::string tiled = output_of("; variants: N");
  EXPECT_NE(tiled.find("at [2] got 7"), std::string::npos) << tiled;
  EXPECT_NE(tiled.find("variant: 67"), std::string::npos) << tiled;
  fs::remove(file);
  fs::remove(file + ".out");
}

// Approximations may be less accurate; they still tell NaN and infinities apart.
TEST(Fast, KeepsTheClassesOfFloats) {
  const Result<Graph> graph = parse(R"(graph @g(%x: f32[4], %z: f32[4]) -> (bool[4], bool[4], bool[4], f32[4]) {
    %y = div %x, %z
    %0 = is_nan %y
    %1 = is_inf %y
    %2 = is_finite %x
    %one = constant {value=f32[] 1.0}
    %3 = select %0, %one, 2.0
    return %0, %1, %2, %3 })");
  ASSERT_GOOD(graph);
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compile(*graph, {.device = device, .numerics = Numerics::fast, .cache = false});
    ASSERT_GOOD(program);
    float x[] = {0, INFINITY, NAN, 6}, z[] = {0, 2, 1, 3}, chosen[4];
    bool nan[4], inf[4], finite[4];
    const int64_t four[] = {4};
    const Status done = program->run({{x, four}, {z, four}}, {{nan, four}, {inf, four}, {finite, four}, {chosen, four}});
    ASSERT_GOOD(done);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(nan[i], i == 0 || i == 2) << device << " " << i;
      EXPECT_EQ(inf[i], i == 1) << device << " " << i;
      EXPECT_EQ(finite[i], i == 0 || i == 3) << device << " " << i;
      EXPECT_EQ(chosen[i], i == 0 || i == 2 ? 1 : 2) << device << " " << i;
    }
  }
}

struct CommaAndGroups : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Locale, NeitherTextsNorKernelsFollowIt) {
  const char* const kText = "graph @g(%x: f32[1]) -> f32[1] {\n  %m: f32[1] = mul %x, 1.5\n  %y: f32[1] = add %m, 1234567.2\n  return %y\n}\n";
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaAndGroups));
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  // One of C's too, made here where none is installed.
  const Folder folder("locale");
  const auto with_comma = [] {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
      if (std::setlocale(LC_ALL, name)) return true;
    return false;
  };
  if (!with_comma() && std::system(("localedef -i de_DE -f UTF-8 '" + (folder.path / "de_DE.UTF-8").string() + "' >/dev/null 2>&1").c_str()) == 0) {
    setenv("LOCPATH", folder.path.c_str(), 1);
    EXPECT_TRUE(with_comma());
    unsetenv("LOCPATH");
    EXPECT_EQ(std::strtod("1,5", nullptr), 1.5);
  }
  const std::string during = std::setlocale(LC_ALL, nullptr);
  const Result<Graph> graph = parse(kText);
  const std::string printed = graph ? print(*graph) : "";
  std::vector<float> results;
  std::string fault;
  for (const std::string& device : host_devices()) {
    const Result<Program> program = compiled(kText, device);
    float x = 1, y = 0;
    const int64_t one[] = {1};
    if (!program || !program->run({{&x, one}}, {{&y, one}})) fault = device;
    results.push_back(y);
  }
  const std::string device = host_devices(false).back();
  const Result<Program> cached = compile(*parse(kText), {.device = device});  // with the cache
  const uint64_t compilations = cached ? cached->stats().compilations : ~uint64_t{0};
  const std::string after = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, c_before.c_str());
  std::locale::global(before);
  EXPECT_EQ(fault, "");
  EXPECT_EQ(during, after) << "the locale is the caller's";
  const Result<Graph> again = parse(kText);
  ASSERT_GOOD(again);
  EXPECT_EQ(printed, print(*again));
  const Result<Program> found = compile(*again, {.device = device});
  ASSERT_GOOD(found);
  EXPECT_EQ(found->stats().compilations, compilations) << "a key that follows the locale finds nothing";
  for (float y : results) EXPECT_EQ(y, 1.5f + 1234567.2f);
}

}  // namespace
}  // namespace fusec
