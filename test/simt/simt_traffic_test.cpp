// What we feared: a kernel that is right and slow. Coalescing and bank conflicts are counted for each line, without a
// GPU; and kernels that a schedule must get right are told apart from their badly scheduled twins.

#include "test/simt/cases.h"

namespace fusec::simt {
namespace {

Count count_at(const Result& result, uint32_t line) {
  for (const Count& count : result.counts)
    if (count.at(line)) return count;
  ADD_FAILURE() << "no count for line " << line;
  return {};
}

struct Loads {
  const char* expression;
  uint64_t sectors, ideal;  // of one warp's request
};

TEST(SimtTraffic, SectorsOfOneRequest) {
  const Loads kLoads[] = {
      {"all(((const float4*)x)[t])", 16, 16},  // 512 bytes side by side
      {"((const float4*)x)[t].x", 16, 16},
      {"all(((const float4*)x)[t * 2])", 32, 16},
      {"x[t]", 4, 4},                           //
      {"x[t * 8]", 32, 4},                      // one sector a lane
      {"x[t * 2]", 8, 4},                       // half of each sector is wasted
      {"x[t + 1]", 5, 4},                       // one sector more at the odd start
      {"x[0]", 1, 1},                           // everybody reads the same
      {"((const unsigned short*)x)[t]", 2, 2},  //
  };
  for (const Loads& one : kLoads) {
    SCOPED_TRACE(one.expression);
    Kernel kernel = load(
        "struct Args { const float* x; float* y; };\n__device__ __forceinline__ float all(float4 v) { return v.x + v.y "
        "+ v.z + v.w; }\n"
        "extern \"C\" __global__ void g0(const __grid_constant__ Args a) {\n" +
        std::string("  const float* x = a.x; unsigned t = threadIdx.x;\n  a.y[t] = (float)(") + one.expression +
        ");\n}\n");
    Memory memory;
    float *x = memory.allocate<float>(2048, "x"), *y = memory.allocate<float>(32, "y");
    struct {
      const float* x;
      float* y;
    } args = {x, y};
    Result result = kernel.launch("g0", memory, {.block = {32}, .traffic = true}, args);
    ASSERT_TRUE(result.ok()) << result.text;
    for (const Count& count : result.counts) {
      EXPECT_EQ(count.requests, 1u);
      EXPECT_EQ(count.lanes, 32u);
      EXPECT_EQ(count.sectors, count.write ? 4 : one.sectors);
      EXPECT_EQ(count.ideal_sectors, count.write ? 4 : one.ideal);
    }
    EXPECT_EQ(result.counts.size(), 2u);
  }
}

TEST(SimtTraffic, LayerNormReadsEachRowOnce) {
  std::string text = text_of("layer_norm");
  Result result = kLayerNorm.run(load(text), {.traffic = true}).result;
  ASSERT_TRUE(result.ok()) << result.text;
  Count x = count_at(result, line_of(text, "load")), y = count_at(result, line_of(text, "store"));
  EXPECT_EQ(x.requests, 6 * 8u);  // 6 rows, 8 warps
  EXPECT_EQ(x.sectors, 6 * 1024 * 4 / 32u);
  EXPECT_EQ(x.bytes, 16u);
  EXPECT_FALSE(x.write);
  EXPECT_EQ(y.sectors, x.sectors);
  EXPECT_TRUE(y.write);
}

TEST(SimtTraffic, PaddingTakesBankConflictsAway) {
  std::string text = text_of("transpose");
  for (auto [source, passes] : {std::pair{text, 1u}, {replaced(text, "tile[32][33]", "tile[32][32]"), 32u}}) {
    constexpr int kSide = 64;
    Memory memory;
    float *x = memory.allocate<float>(kSide * kSide, "x"), *y = memory.allocate<float>(kSide * kSide, "y");
    struct {
      const float* x;
      float* y;
      int rows, columns;
    } args = {x, y, kSide, kSide};
    Result result = load(source).launch("g0", memory, {.grid = {2, 2}, .block = {32, 8}, .traffic = true}, args);
    ASSERT_TRUE(result.ok()) << result.text;
    for (const Count& count : result.counts) {
      EXPECT_EQ(count.requests, 4 * 32u) << "line " << count.line;
      uint64_t want = !count.shared ? 0 : count.write ? count.requests : count.requests * passes;
      EXPECT_EQ(count.passes, want);
      EXPECT_EQ(count.sectors, count.ideal_sectors);
    }
    EXPECT_EQ(result.counts.size(), 4u);
  }
}

TEST(SimtTraffic, BulkCopiesCount) {
  std::string text = text_of("ring");
  Result result = kRing.run(load(text), {.traffic = true}).result;
  ASSERT_TRUE(result.ok()) << result.text;
  Count copies = count_at(result, line_of(text, "copy"));
  EXPECT_EQ(copies.requests, 5 * 2 * 4u);
  EXPECT_EQ(copies.sectors, 5 * 2 * 4 * 512 * 4 / 32u);
}

}  // namespace
}  // namespace fusec::simt
