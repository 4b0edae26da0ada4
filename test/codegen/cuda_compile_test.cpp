// Every skeleton compiles for every architecture, without spills, the same text twice, and nothing of a user in it.

#include "codegen/cuda/plain.h"
#include "test/codegen/cuda_kernels.h"

#include <cstdio>

namespace fusec {
namespace {

class Compiles : public ::testing::TestWithParam<Named> {};

TEST_P(Compiles, ForEveryArchitecture) {
  const Kernel kernel = kernel_of(GetParam().text);
  ASSERT_FALSE(kernel.values.empty());
  if (!formulas_known(kernel)) GTEST_SKIP() << "waits for a formula";
  const Facts f = facts(kernel, dense_binding(kernel, GetParam().sizes));
  for (int sm : {80, 90, 100}) {
    const cuda::Device device = cuda::device(sm);
    const Schedule s = cuda::schedule(kernel, f, device);
    const Code code = cuda::emit(kernel, s);
    EXPECT_EQ(code.text, cuda::emit(kernel, s).text);
    Result<Artifact> artifact = cuda::compile(code, sm);
    ASSERT_TRUE(artifact) << artifact.error().text() << code.text;
    EXPECT_EQ(artifact->facts["spill_bytes"], 0) << print(s);
    // Large calls keep streamed lines in the L2 whatever the skeleton: every operand that varies with everything is loaded by the policy.
    if (f.footprint >= 4 * device.l2_bytes) {
      EXPECT_TRUE(cuda::launch(kernel, s, f, device).policy);
      EXPECT_NE(code.text.find("make_policy(a.policy)"), std::string::npos) << print(s);
      EXPECT_TRUE(code.text.find(", policy);", code.text.find("struct Args {")) != std::string::npos || s.skeleton == Template::ring) << print(s);
    }
    printf("%-20s sm_%d %s: %d regs, %d spill, %d stack, %d us\n", GetParam().name, sm, print(s).c_str(), int(artifact->facts["registers"]),
           int(artifact->facts["spill_bytes"]), int(artifact->facts["stack_bytes"]), int(artifact->facts["compile_us"]));
  }
}

TEST(CudaText, PtxForGpusThatNvrtcDoesNotKnow) {
  const Kernel kernel = kernel_of("graph @g(%x: f32[64,256]) -> f32[64,256] { %y = softmax %x {axes=[1]}\n return %y }");
  const Facts f = facts(kernel, dense_binding(kernel, {}));
  const Code code = cuda::emit(kernel, cuda::schedule(kernel, f, cuda::device(900)));
  const auto cubin = cuda::compile_for_gpu(code, 90), text = cuda::compile_for_gpu(code, 900);
  ASSERT_TRUE(cubin) << cubin.error().text();
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(std::string(cubin->bytes.begin(), cubin->bytes.begin() + 4), "\x7f" "ELF");
  const std::string ptx(text->bytes.begin(), text->bytes.end() - 1);
  EXPECT_EQ(text->bytes.back(), 0);
  EXPECT_NE(ptx.find("\n.target sm_1"), std::string::npos) << "the newest that it knows\n" << ptx.substr(0, 300);
  EXPECT_NE(ptx.find(".entry " + text->entry), std::string::npos);
  EXPECT_EQ(text->target, "sm_900");
}

size_t count(const std::string& text, const std::string& what, size_t end = std::string::npos) {
  size_t n = 0;
  for (size_t at = text.find(what); at < end; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Loads of global memory before a store, in the PTX of the entry.
struct Order {
  const char* name;
  const char* text;
  Sizes sizes;
  size_t loads;            // at least so many come first: what keeps the bytes in flight
};
const Order kOrders[] = {
    {"three_inputs", "graph @g(%a: f32[N], %b: f32[N], %c: f32[N]) -> f32[N] { %p = mul %a, %b\n %y = add %p, %c\n return %y }", {{"N", 1 << 26}}, 3},
    {"gelu_two_vectors", "graph @g(%x: bf16[N]) -> bf16[N] { %y = gelu %x\n return %y }", {{"N", 1 << 26}}, 2},
    {"bytes_two_vectors", "graph @g(%x: u8[N]) -> f32[N] { %y = cast %x {to=f32}\n return %y }", {{"N", 1 << 26}}, 2},
    {"softmax_row_in_registers", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 32768}, {"C", 1024}}, 4},
    {"row_sum", "graph @g(%x: f32[N,C]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }", {{"N", 65536}, {"C", 2048}}, 4},
    {"column_sum", "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 65536}, {"C", 2048}}, 8},
    {"full_sum", "graph @g(%x: f32[N]) -> f32[] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 1 << 28}}, 4},
    {"transpose", "graph @g(%x: f32[N,C]) -> f32[C,N] { %y = transpose %x {perm=[1,0]}\n return %y }", {{"N", 8192}, {"C", 8192}}, 4},
};

class Orders : public ::testing::TestWithParam<Order> {};

TEST_P(Orders, LoadsComeFirst) {
  const Order& o = GetParam();
  const Kernel kernel = kernel_of(o.text);
  const Schedule s = cuda::schedule(kernel, facts(kernel, dense_binding(kernel, o.sizes)), cuda::device(90));
  Result<std::string> ptx = cuda::ptx(cuda::emit(kernel, s), 90);
  ASSERT_TRUE(ptx) << ptx.error().text();
  const size_t entry = ptx->find(".entry");
  ASSERT_NE(entry, std::string::npos);
  // The masked path may stand before the fast one: what counts is the longest run of loads that no store breaks.
  size_t run = 0, longest = 0;
  for (size_t at = entry; at < ptx->size(); ++at) {
    if (ptx->compare(at, 9, "ld.global") == 0) longest = std::max(longest, ++run);
    if (ptx->compare(at, 9, "st.global") == 0) run = 0;
  }
  EXPECT_GE(longest, o.loads) << print(s);
  if (kernel.sweeps.size() > 1) {
    const size_t shuffle = ptx->find("shfl", entry);
    EXPECT_GE(count(ptx->substr(entry, shuffle - entry), "ld.global"), o.loads) << "before the first reduction: " << print(s);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, Orders, ::testing::ValuesIn(kOrders), [](const auto& info) { return info.param.name; });

TEST(Relieve, GivesWhatWasSpilledAndNoMore) {
  Schedule s;
  s.threads = 256, s.min_blocks = 5;  // 48 registers
  EXPECT_EQ(cuda::relieve(s, 8)->min_blocks, 4);    // 64
  EXPECT_EQ(cuda::relieve(s, 64)->min_blocks, 3);   // 80
  EXPECT_EQ(cuda::relieve(s, 400)->min_blocks, 1);
  s.threads = 128, s.min_blocks = 10;
  EXPECT_EQ(cuda::relieve(s, 8)->min_blocks, 8);
  s.min_blocks = 1;
  EXPECT_FALSE(cuda::relieve(s, 8));
}

// ptxas 13.0 takes two minima of i32 as one of three operands and loses a negation there (cells.cuh): none follows another directly.
TEST(IntegerExtrema, AreKeptApart) {
  const Kernel kernel = kernel_of("graph @g(%x: i32[N,1024], %y: i32[N,1024]) -> (i32[N,1024], i32[N]) { %a = neg %x\n %m = max %a, %y\n %c = clamp %m, %a, 9\n"
                                  " %l = reduce_min %a {axes=[1]}\n return %c, %l }");
  const Schedule s = cuda::schedule(kernel, facts(kernel, dense_binding(kernel, {{"N", 4096}})), cuda::device(90));
  Result<std::string> ptx = cuda::ptx(cuda::emit(kernel, s), 90);
  ASSERT_TRUE(ptx) << ptx.error().text();
  const size_t extrema = count(*ptx, "min.s32") + count(*ptx, "max.s32"), values = 1024 / s.lanes_per_row;
  EXPECT_GE(extrema, 4 * values - 1) << print(s);
  EXPECT_GE(count(*ptx, ", 0, 0x3210"), extrema) << *ptx;
}

// NVVM 13.0 takes inf - inf of constants for a number (cells.cuh): it never knows all operands of an operation on f32.
TEST(NanOfConstants, IsLookedForAtRunTime) {
  for (const char* from : {"f32[1]) -> bool[1] { %m = cummax %x {axis=0, exclusive=true}", "f32[0]) -> bool[] { %m = reduce_max %x {axes=[0]}",
                           "bf16[1]) -> bool[1] { %m = cummin %x {axis=0, exclusive=true}"}) {
    const Kernel kernel = kernel_of("graph @g(%x: " + std::string(from) + "\n %d = sub %m, %m\n %y = is_nan %d\n return %y }");
    const Schedule s = cuda::schedule(kernel, facts(kernel, dense_binding(kernel, {})), cuda::device(90));
    Result<std::string> ptx = cuda::ptx(cuda::emit(kernel, s), 90);
    ASSERT_TRUE(ptx) << ptx.error().text();
    EXPECT_GE(count(*ptx, ", 0, 0x3210"), 1u) << *ptx;
    EXPECT_GE(count(*ptx, "setp.nan.f32") + count(*ptx, "setp.num.f32"), 1u) << *ptx;
  }
}

// Names are data: nothing that a user wrote reaches the source.
TEST(PlainKernels, CompileAndKeepTheirLoads) {
  Result<std::string> read = cuda::ptx(cuda::plain_read(), 90);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(count(*read, "ld.global.v4"), 5u) << "four in flight, and one of the rest\n" << *read;
  for (size_t bytes : {size_t{0}, size_t{8}, size_t{60}, size_t{4000}}) {
    Result<Artifact> empty = cuda::compile(cuda::plain_empty(bytes), 90);
    ASSERT_TRUE(empty) << bytes << ": " << empty.error().text();
    EXPECT_EQ(empty->entry, "fusec_empty");
  }
}

TEST(DependentLaunch, WaitsBeforeAnythingTouchesMemory) {
  // Every skeleton: the wait comes before the first load, store, atomic or bulk copy of global memory.
  for (const char* text : {"graph @g(%x: f32[N,64]) -> f32[N,64] { %y = neg %x\n return %y }", "graph @g(%x: f32[N,1024]) -> f32[N,1024] { %y = softmax %x {axes=[1]}\n return %y }",
                           "graph @g(%x: bf16[N,65536]) -> bf16[N,65536] { %y = softmax %x {axes=[1]}\n return %y }", "graph @g(%x: f32[N,2048]) -> f32[2048] { %y = sum %x {axes=[0]}\n return %y }",
                           "graph @g(%x: f32[N,1048576]) -> f32[N] { %y = sum %x {axes=[1]}\n return %y }", "graph @g(%x: f32[N,1024]) -> f32[1024,N] { %y = transpose %x {perm=[1,0]}\n return %y }"}) {
    const Kernel kernel = kernel_of(text);
    const cuda::Device device = cuda::device(90);
    Schedule s = cuda::schedule(kernel, facts(kernel, dense_binding(kernel, {{"N", 4096}})), device);
    EXPECT_EQ(cuda::emit(kernel, s).text.find("  wait_for_kernel_in_front();"), std::string::npos) << "the first of a call";
    cuda::follow(s, device);
    Result<std::string> ptx = cuda::ptx(cuda::emit(kernel, s), 90);
    ASSERT_TRUE(ptx) << ptx.error().text();
    const size_t wait = ptx->find("griddepcontrol.wait");
    ASSERT_NE(wait, std::string::npos) << text;
    for (const char* touch : {"ld.global", "st.global", "atom.", "red.", "cp.async.bulk"}) EXPECT_GT(ptx->find(touch), wait) << touch << " " << print(s);
  }
  Schedule old;
  cuda::follow(old, cuda::device(80));
  EXPECT_FALSE(old.dependent_launch) << "only from sm_90 on";
}

TEST(CudaText, HoldsNoNameOfAUser) {
  const Kernel kernel = kernel_of(R"(graph @evil_graph(%"evil \"; } /*": f32[EVIL_N,EVIL_C], %evil_b: f32[EVIL_C]) -> f32[EVIL_N,EVIL_C] {
    %evil_sum: f32[EVIL_N,EVIL_C] = add %"evil \"; } /*", %evil_b
    %evil_y = softmax %evil_sum {axes=[1]}
    return %evil_y
  })");
  ASSERT_FALSE(kernel.values.empty());
  const Facts f = facts(kernel, dense_binding(kernel, {{"EVIL_N", 64}, {"EVIL_C", 64}}));
  const std::string text = cuda::emit(kernel, cuda::schedule(kernel, f, cuda::device(90))).text;
  for (const char* word : {"evil", "EVIL"}) EXPECT_EQ(text.find(word), std::string::npos) << word;
  for (unsigned char c : text) ASSERT_TRUE(c == '\n' || (c >= 32 && c < 127)) << int(c);
}

// Calls of one class share code: sizes that choose the same schedule give the same text.
TEST(CudaText, IsTheSameForSizesOfOneClass) {
  const Kernel kernel = kernel_of("graph @g(%x: f32[N,C]) -> f32[N,C] { %y = relu %x\n return %y }");
  std::string first;
  for (int64_t n : {1 << 10, 1 << 12, 1 << 20}) {
    const Facts f = facts(kernel, dense_binding(kernel, {{"N", n}, {"C", 64}}));
    const std::string text = cuda::emit(kernel, cuda::schedule(kernel, f, cuda::device(90))).text;
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << n;
  }
}

TEST(CudaCompiler, NamesItselfAndItsErrors) {
  EXPECT_FALSE(cuda::compiler_identity().empty());
  Code broken;
  broken.entry = "k";
  broken.text = "extern \"C\" __global__ void k() { this is no code; }";
  const auto artifact = cuda::compile(broken, 90);
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.error().kind, Error::environment);
  EXPECT_NE(artifact.error().text().find("error"), std::string::npos);
  EXPECT_FALSE(cuda::compile(broken, 12));  // no such architecture
}

INSTANTIATE_TEST_SUITE_P(Cuda, Compiles, ::testing::ValuesIn(kGraphs), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusec
