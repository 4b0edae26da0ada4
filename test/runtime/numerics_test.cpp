// What the modes may change, and what they may not: strict rounds every op, fused contracts and keeps narrow intermediates wide, fast
// takes fewer terms. On the CPU, and as CUDA text where simt is built.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lib/ir/convert.h"
#include "runtime/backend.h"

namespace fusec {
namespace {

std::vector<std::string> machines() {
  std::vector<std::string> out;
  for (const char* device : {"cpu", "simt"})
    if (backend(device)) out.push_back(device);
  return out;
}

/// Floats in [-4, 4) with all their bits in use.
std::vector<float> noise(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& x : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = float(int64_t(state >> 33) - (int64_t{1} << 30)) / float(1 << 28);
  }
  return out;
}

/// One output of a graph over f32 inputs of one extent.
std::vector<float> run(const std::string& text, const std::string& device, Numerics numerics, const std::vector<std::vector<float>>& inputs) {
  Result<Graph> graph = parse(text);
  EXPECT_TRUE(graph) << graph.error().text();
  Result<Program> program = compile(*graph, {.device = device, .numerics = numerics, .cache = false});
  EXPECT_TRUE(program) << program.error().text();
  const int64_t extents[] = {int64_t(inputs[0].size())};
  std::vector<Buffer> in;
  for (const std::vector<float>& x : inputs) in.push_back({const_cast<float*>(x.data()), extents});
  std::vector<float> y(inputs[0].size());
  const Buffer out[] = {{y.data(), extents}};
  const Status done = program->run(in, out);
  EXPECT_TRUE(done) << done.error().text();
  return y;
}

uint32_t bits(float x) {
  uint32_t out;
  std::memcpy(&out, &x, 4);
  return out;
}

const size_t kMany = 1031;

struct Contracted {
  const char* body;
  float (*fused)(float, float, float);
  float (*strict)(float, float, float);
};
// volatile: this file's own compiler must round, too.
float rounded(float x) {
  volatile float y = x;
  return y;
}
const Contracted kContracted[] = {
    {"%p = mul %x, %y\n%r = add %p, %z", [](float x, float y, float z) { return std::fmaf(x, y, z); },
     [](float x, float y, float z) { return rounded(rounded(x * y) + z); }},
    {"%p = mul %x, %y\n%r = add %z, %p", [](float x, float y, float z) { return std::fmaf(x, y, z); },
     [](float x, float y, float z) { return rounded(z + rounded(x * y)); }},
    {"%p = mul %x, %y\n%r = sub %p, %z", [](float x, float y, float z) { return std::fmaf(x, y, -z); },
     [](float x, float y, float z) { return rounded(rounded(x * y) - z); }},
    {"%p = mul %x, %y\n%r = sub %z, %p", [](float x, float y, float z) { return std::fmaf(-x, y, z); },
     [](float x, float y, float z) { return rounded(z - rounded(x * y)); }},
    // Two readers: the product is there anyway.
    {"%p = mul %x, %y\n%q = add %p, %z\n%r = max %q, %p", [](float x, float y, float z) { return std::fmax(rounded(rounded(x * y) + z), rounded(x * y)); },
     [](float x, float y, float z) { return std::fmax(rounded(rounded(x * y) + z), rounded(x * y)); }},
};

TEST(Numerics, FusedContractsAProductAndASum) {
  const auto x = noise(kMany, 1), y = noise(kMany, 2);
  std::vector<float> z(kMany);
  for (size_t i = 0; i < kMany; ++i) z[i] = i % 2 ? -rounded(x[i] * y[i]) : noise(kMany, 3)[i];  // what the product's rounding left
  for (const std::string& device : machines())
    for (const Contracted& c : kContracted) {
      const std::string text = "graph @g(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] {\n" + std::string(c.body) + "\nreturn %r\n}\n";
      const auto strict = run(text, device, Numerics::strict, {x, y, z}), fused = run(text, device, Numerics::fused, {x, y, z});
      for (size_t i = 0; i < kMany; ++i) {
        ASSERT_EQ(bits(strict[i]), bits(c.strict(x[i], y[i], z[i]))) << device << " strict " << i << "\n" << text;
        ASSERT_EQ(bits(fused[i]), bits(c.fused(x[i], y[i], z[i]))) << device << " fused " << i << "\n" << text;
      }
    }
}

float as(DType type, float x) {
  std::byte narrow[4];
  float out;
  convert(DType::f32, reinterpret_cast<const std::byte*>(&x), type, narrow, 1);
  convert(type, narrow, DType::f32, reinterpret_cast<std::byte*>(&out), 1);
  return out;
}

TEST(Numerics, FusedKeepsNarrowIntermediatesWide) {
  const auto x = noise(kMany, 4), y = noise(kMany, 5);
  for (DType type : {DType::bf16, DType::f16}) {
    const std::string t(name(type));
    const std::string text = "graph @g(%x: f32[N], %y: f32[N]) -> f32[N] {\n%a = cast %x {to=" + t + "}\n%b = cast %y {to=" + t +
                             "}\n%p = mul %a, %b\n%s = sub %p, %a\n%m = max %s, %b\n%r = cast %m {to=f32}\nreturn %r\n}\n";
    for (const std::string& device : machines()) {
      const auto strict = run(text, device, Numerics::strict, {x, y}), fused = run(text, device, Numerics::fused, {x, y});
      for (size_t i = 0; i < kMany; ++i) {
        const float a = as(type, x[i]), b = as(type, y[i]);
        ASSERT_EQ(strict[i], std::fmax(as(type, as(type, rounded(a * b)) - a), b)) << device << " " << t << " " << i;
        // One rounding: where the cast looks. a * b is exact in f32, so contraction changes nothing more.
        ASSERT_EQ(fused[i], as(type, std::fmax(rounded(a * b) - a, b))) << device << " " << t << " " << i;
      }
    }
  }
}

TEST(Numerics, FastStaysWithinItsBounds) {
  struct Case {
    const char* body;
    double (*truth)(double, double);
  };
  const Case kCases[] = {
      {"%r = exp %x", [](double x, double) { return std::exp(x); }},
      {"%r = sigmoid %x", [](double x, double) { return 1 / (1 + std::exp(-x)); }},
      {"%r = silu %x", [](double x, double) { return x / (1 + std::exp(-x)); }},
      {"%r = div %x, %y", [](double x, double y) { return x / y; }},
      {"%r = reciprocal %y", [](double, double y) { return 1 / y; }},
  };
  std::vector<float> x = noise(kMany, 6), y = noise(kMany, 7);
  for (size_t i = 0; i < kMany; ++i) x[i] *= 10, y[i] += y[i] < 0 ? -0.1f : 0.1f;
  for (const std::string& device : machines())
    for (const Case& c : kCases) {
      const std::string text = "graph @g(%x: f32[N], %y: f32[N]) -> f32[N] {\n" + std::string(c.body) + "\nreturn %r\n}\n";
      const auto fast = run(text, device, Numerics::fast, {x, y});
      for (size_t i = 0; i < kMany; ++i) {
        const double want = c.truth(x[i], y[i]);
        ASSERT_LE(std::abs(fast[i] - want), std::abs(want) * 0x1p-18) << device << " " << text << x[i] << " " << y[i];
      }
    }
}

TEST(Numerics, FastKeepsTheLimits) {
  const float inf = INFINITY;
  const std::vector<float> x = {0.0f, -0.0f, inf, -inf, 100, -100, NAN, 1e30f, -1e30f};
  for (const std::string& device : machines()) {
    auto of = [&](const std::string& op) { return run("graph @g(%x: f32[N]) -> f32[N] {\n%r = " + op + " %x\nreturn %r\n}\n", device, Numerics::fast, {x}); };
    const auto e = of("exp"), s = of("sigmoid"), l = of("silu");
    EXPECT_EQ(e[2], inf) << device;
    EXPECT_EQ(e[3], 0) << device;
    EXPECT_TRUE(std::isnan(e[6]) && std::isnan(s[6]) && std::isnan(l[6])) << device;
    EXPECT_EQ(s[0], 0.5f) << device;
    EXPECT_EQ(s[2], 1) << device;
    EXPECT_LT(std::abs(s[3]), 1e-37f) << device;
    EXPECT_EQ(s[7], 1) << device;
    EXPECT_EQ(l[2], inf) << device;
    EXPECT_LT(std::abs(l[3]), 1e-35f) << device;
    EXPECT_EQ(l[4], 100) << device;
    EXPECT_LT(std::abs(l[5]), 1e-35f) << device;
    EXPECT_LT(std::abs(l[8]), 1e-35f) << device;
  }
}

/// The CPU and the CUDA text contract alike, since the kernel says where: same bits.
TEST(Numerics, DevicesContractAlike) {
  if (machines().size() < 2) GTEST_SKIP() << "wants the CPU and simt";
  // Two sums of one product (%p), too: neither is contracted.
  const std::string text = R"(graph @g(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] {
%p = mul %y, %y
%s = add %p, %z
%t = add %p, %x
%u = max %s, %t
%a = mul %u, %y
%b = mul %z, %x
%c = add %a, %b
%d = mul %c, %c
%e = sub %d, %z
%f = mul %e, %y
%r = sub %x, %f
return %r
})";
  const auto x = noise(kMany, 8), y = noise(kMany, 9), z = noise(kMany, 10);
  const auto cpu = run(text, "cpu", Numerics::fused, {x, y, z}), simt = run(text, "simt", Numerics::fused, {x, y, z});
  const auto strict = run(text, "cpu", Numerics::strict, {x, y, z});
  size_t changed = 0;
  for (size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(bits(cpu[i]), bits(simt[i])) << i;
    changed += bits(cpu[i]) != bits(strict[i]);
  }
  EXPECT_GT(changed, kMany / 10);
}

}  // namespace
}  // namespace fusec
