// What we feared: a fault that goes unseen. Each test plants one in a right kernel, and wants it reported, in every
// order, with its kind and line. Detection can be lost without any sign in the results, so these always run.

#include "test/simt/cases.h"

namespace fusec::simt {
namespace {

// Where the order of threads decides what is met first, several kinds or lines are right.
struct Want {
  std::vector<simt_fault> faults;
  const char* marks;  // of lines: "a|b"
};

void expect(const Result& result, const std::string& text, const Want& want) {
  EXPECT_TRUE(std::find(want.faults.begin(), want.faults.end(), result.fault) != want.faults.end())
      << "fault " << result.fault << ": " << result.text;
  std::istringstream in(want.marks);
  bool found = false;
  for (std::string mark; std::getline(in, mark, '|');) {
    uint32_t line = line_of(text, mark);
    EXPECT_NE(line, 0u) << mark;
    found |= std::find(result.lines.begin(), result.lines.end(), line) != result.lines.end();
  }
  EXPECT_TRUE(found) << want.marks << " wanted: " << result.text;
}

void caught(const Case& one, const std::string& text, const Want& want) {
  Kernel kernel = load(text);
  ASSERT_TRUE(kernel.ok());
  in_all_orders([&](Launch how) { expect(one.run(kernel, how).result, text, want); });
}

// A kernel of one pointer to 256 floats.
Result run_probe(const Kernel& kernel, Launch how) {
  Memory memory;
  float* x = memory.allocate<float>(256, "x");
  for (uint32_t i = 0; i < 256; i++) x[i] = sample(i);
  return kernel.launch("g0", memory, how, x);
}

void probe(const std::string& text, const Want& want, Launch how = {.block = {128}}) {
  Kernel kernel = load(text);
  ASSERT_TRUE(kernel.ok());
  in_all_orders([&](Launch ordered) { expect(run_probe(kernel, ordered), text, want); }, how);
}

void right(const std::string& text, Launch how = {.block = {128}}) {
  Kernel kernel = load(text);
  ASSERT_TRUE(kernel.ok());
  in_all_orders([&](Launch ordered) { EXPECT_EQ(run_probe(kernel, ordered).text, ""); }, how);
}

// --- stacks ---------------------------------------------------------------------------------------

TEST(SimtFaults, StackRunsOut) {
  // Frames of a page and more, of threads whose stacks lie side by side: none may step over the guard into a neighbour's.
  auto text = [](int depth) {
    return R"(
__attribute__((noinline)) __device__ float deep(float* x, int n) {
  float a[1500];
  a[n % 1500] = x[n % 256];
  if (n) a[n % 1500] += deep(x, n - 1);
  return a[n % 1500];
}
extern "C" __global__ void g0(float* x) { float y = deep(x, )" +
           std::to_string(depth) + R"(); if (y == 1e30f) x[0] = y; })";
  };
  right(text(100), {.block = {33}});  // 600 KB
  Kernel kernel = load(text(1 << 20));
  in_all_orders(
      [&](Launch how) {
        const Result result = run_probe(kernel, how);
        EXPECT_EQ(result.fault, SIMT_LAUNCH);
        EXPECT_NE(result.text.find("bytes of stack"), std::string::npos) << result.text;
        EXPECT_NE(result.text.find("thread ("), std::string::npos) << result.text;
      },
      {.block = {33}});
  right(text(100), {.block = {33}});  // the machine is as it was
}

// --- barriers that are missing, in shared memory -------------------------------------------------

TEST(SimtFaults, DroppedBarrier) {
  // The reader finds what nobody wrote yet, or what a writer did not publish.
  caught(kLayerNorm, without(text_of("layer_norm"), "publish"), {{SIMT_RACE_SHARED, SIMT_UNINITIALISED}, "read|write"});
}

TEST(SimtFaults, DroppedBarrierInATree) {
  caught(kColumnSum, without(text_of("column_sum"), "tree-barrier"), {{SIMT_RACE_SHARED}, "tree|part"});
  caught(kClusterSum, without(text_of("cluster_sum"), "tree-barrier"), {{SIMT_RACE_SHARED}, "tree|last-warp"});
}

TEST(SimtFaults, DroppedBarrierAroundATile) {
  caught(kTranspose, without(text_of("transpose"), "barrier"), {{SIMT_RACE_SHARED, SIMT_UNINITIALISED}, "store|load"});
}

TEST(SimtFaults, ScratchUsedAgainWithoutBarrier) {
  caught(kLayerNorm, replaced(text_of("layer_norm"), "block_sum(q, s1)", "block_sum(q, s0)"),
         {{SIMT_RACE_SHARED}, "write"});
}

TEST(SimtFaults, WarpReadsItsOwnWritesWithoutSyncwarp) {
  const std::string text = R"(
extern "C" __global__ void g0(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = (float)threadIdx.x;  //write//
  __syncwarp();                         //sync//
  y[threadIdx.x] = s[threadIdx.x ^ 1];  //read//
})";
  right(text, {.block = {32}});
  probe(without(text, "sync"), {{SIMT_RACE_SHARED, SIMT_UNINITIALISED}, "read|write"}, {.block = {32}});
}

TEST(SimtFaults, PartialSyncwarpOrdersItsLanes) {
  const std::string text = R"(
extern "C" __global__ void g0(float* y) {
  __shared__ float s[32];
  unsigned half = threadIdx.x & 16 ? 0xffff0000u : 0xffffu;
  s[threadIdx.x] = (float)threadIdx.x;      //write//
  __syncwarp(half);
  y[threadIdx.x] = s[threadIdx.x ^ SHIFT];  //read//
})";
  right(replaced(text, "SHIFT", "8"), {.block = {32}});
  probe(replaced(text, "SHIFT", "24"), {{SIMT_RACE_SHARED, SIMT_UNINITIALISED}, "read|write"}, {.block = {32}});
}

// --- order between blocks ------------------------------------------------------------------------

TEST(SimtFaults, LastBlockWithoutFence) {
  caught(kColumnSum, without(text_of("column_sum"), "release"), {{SIMT_RACE_GLOBAL}, "combine|reset"});
}

TEST(SimtFaults, LastBlockWithFenceOfTheBlockOnly) {
  caught(kColumnSum, replaced(text_of("column_sum"), "__threadfence();", "__threadfence_block();"),
         {{SIMT_RACE_GLOBAL}, "combine|reset"});
}

TEST(SimtFaults, LastBlockReadsWithoutFence) {
  caught(kColumnSum, without(text_of("column_sum"), "acquire"), {{SIMT_RACE_GLOBAL}, "combine|reset"});
}

TEST(SimtFaults, LastBlockWithoutBarrierBefore) {
  caught(kColumnSum, without(text_of("column_sum"), "before"), {{SIMT_RACE_GLOBAL}, "combine"});
}

TEST(SimtFaults, LastBlockWithoutBarrierAfter) {
  caught(kColumnSum, without(text_of("column_sum"), "after"), {{SIMT_RACE_SHARED, SIMT_UNINITIALISED}, "last|ticket"});
}

TEST(SimtFaults, BlocksWriteTheSameElement) {
  caught(kTranspose,
         replaced(text_of("transpose"), "a.y[(size_t)(r + k) * a.rows + c]", "a.y[(size_t)ty * a.rows + c]"),
         {{SIMT_RACE_GLOBAL}, "store"});
}

TEST(SimtFaults, InPlaceNeighbours) {
  // Halves of a word by different threads are right; reading what a neighbour writes is not.
  const std::string text = R"(
extern "C" __global__ void g0(unsigned short* x) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i AT] + 1;  //both//
})";
  Memory memory;
  auto* x = memory.allocate<uint16_t>(200, "x");
  Launch two{.grid = {2}, .block = {96}};
  Kernel alone = load(replaced(text, "AT", "")), wrong = load(replaced(text, "AT", "+ 1"));
  in_all_orders(
      [&](Launch how) {
        EXPECT_EQ(alone.launch("g0", memory, how, x).text, "");
        Result result = wrong.launch("g0", memory, how, x);
        EXPECT_EQ(result.fault, SIMT_RACE_GLOBAL) << result.text;
        EXPECT_EQ(result.line, line_of(text, "both"));
      },
      two);
}

TEST(SimtFaults, SharedRacesOnlyLeavesGlobalAlone) {
  std::string text = without(text_of("column_sum"), "release");
  EXPECT_TRUE(kColumnSum.run(load(text), {.races = SIMT_RACES_SHARED}).result.ok());
}

// --- barriers and collectives that not everybody reaches -----------------------------------------

TEST(SimtFaults, DivergentBarrier) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  if (threadIdx.x < 40) {
    __syncthreads();  //one//
    x[threadIdx.x] += 1.f;
  } else {
    __syncthreads();  //other//
    x[threadIdx.x] *= 2.f;
  }
})",
        {{SIMT_DIVERGENT_BARRIER}, "one|other"});
}

TEST(SimtFaults, BarrierInsideABranch) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  if (threadIdx.x < 40) __syncthreads();  //one//
  x[threadIdx.x] += 1.f;
  __syncthreads();                        //other//
})",
        {{SIMT_DIVERGENT_BARRIER}, "one|other"});
}

TEST(SimtFaults, ThreadsThatHaveEndedDoNotCountAtABarrier) {
  right(R"(
extern "C" __global__ void g0(float* x) {
  if (threadIdx.x >= 64) return;
  __syncthreads();
  x[threadIdx.x] = 1.f;
})");
}

TEST(SimtFaults, DeadlockOfBarrierAndShuffle) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  float v = x[threadIdx.x];
  if (threadIdx.x & 32) __syncthreads();                                  //barrier//
  else if ((threadIdx.x & 31) < 16) v += __shfl_xor_sync(~0u, v, 1);      //shuffle//
  else { __syncthreads(); }                                               //third//
  x[threadIdx.x] = v;
})",
        {{SIMT_DIVERGENT_BARRIER}, "barrier|third"});
  probe(R"(
extern "C" __global__ void g0(float* x) {
  float v = x[threadIdx.x];
  if ((threadIdx.x & 31) < 16) v += __shfl_xor_sync(~0u, v, 1);  //shuffle//
  __syncthreads();                                               //barrier//
  x[threadIdx.x] = v;
})",
        {{SIMT_DEADLOCK}, "shuffle|barrier"});
}

TEST(SimtFaults, ShortShuffleMask) {
  caught(kSoftmax, replaced(text_of("softmax"), "0xffffffffu", "0x0000ffffu"), {{SIMT_DIVERGENT_WARP}, "shuffle"});
}

TEST(SimtFaults, ShuffleReadsALaneOutsideItsMask) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  float v = x[threadIdx.x];
  if (threadIdx.x < 16) v += __shfl_down_sync(0xffffu, v, 8);  //shuffle//
  x[threadIdx.x] = v;
})",
        {{SIMT_DIVERGENT_WARP}, "shuffle"});
}

TEST(SimtFaults, ShuffleWithLanesThatHaveEnded) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  if ((threadIdx.x & 31) > 20) return;
  x[threadIdx.x] += __shfl_xor_sync(~0u, x[threadIdx.x], 1);  //shuffle//
})",
        {{SIMT_DIVERGENT_WARP}, "shuffle"});
}

TEST(SimtFaults, DifferentCollectives) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  float v = x[threadIdx.x];
  if (threadIdx.x & 1) v = __shfl_xor_sync(~0u, v, 1);  //one//
  else v = (float)__ballot_sync(~0u, v > 0);            //other//
  x[threadIdx.x] = v;
})",
        {{SIMT_DIVERGENT_WARP}, "one|other"});
}

TEST(SimtFaults, ClusterBarrierMissing) {
  caught(kClusterSum, without(text_of("cluster_sum"), "meet"),
         {{SIMT_RACE_SHARED, SIMT_UNINITIALISED, SIMT_EXIT}, "sum|remote"});
}

TEST(SimtFaults, NamedBarriers) {
  const std::string text = R"(
extern "C" __global__ void g0(float* x) {
  __shared__ float s[32];
  unsigned t = threadIdx.x;
  if (t < 32) {
    s[t] = x[t];
    simt_bar_arrive(1, 64);          //arrive//
    x[t] = 0.f;
  } else {
    simt_bar_sync(1, 64);            //sync//
    x[t] = s[t ^ 33];                //read//
  }
})";
  right(text, {.block = {64}});
  probe(without(text, "sync"), {{SIMT_RACE_SHARED, SIMT_UNINITIALISED}, "read"}, {.block = {64}});
  probe(replaced(text, "simt_bar_arrive(1, 64);", ""), {{SIMT_DEADLOCK}, "sync"}, {.block = {64}});
  probe(replaced(text, "simt_bar_arrive(1, 64);", "simt_bar_arrive(1, 32);"),
        {{SIMT_RACE_SHARED, SIMT_UNINITIALISED, SIMT_DIVERGENT_BARRIER, SIMT_DEADLOCK}, "arrive|sync|read"}, {.block = {64}});
}

// --- spins ---------------------------------------------------------------------------------------

TEST(SimtFaults, SpinThatNothingEnds) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  if (threadIdx.x == 0)
    while (*(volatile unsigned*)x != 1u) {}  //spin//
})",
        {{SIMT_ENDLESS}, "spin"});
  probe(R"(
extern "C" __global__ void g0(unsigned* x) {
  while (atomicAdd(x, 0u) != 1u) {}  //spin//
})",
        {{SIMT_ENDLESS}, "spin"});
}

TEST(SimtFaults, SpinThatSomebodyEnds) {
  const std::string text = R"(
extern "C" __global__ void g0(unsigned* x) {
  __shared__ unsigned flag, value;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 77) {
    value = 5;
    __threadfence_block();
    *(volatile unsigned*)&flag = 1;
  }
  if (threadIdx.x == 3) {
    while (*(volatile unsigned*)&flag != 1) {}
    __threadfence_block();
    x[0] = value;
  }
})";
  right(text);
}

TEST(SimtFaults, LoopWithoutAnyAccess) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  unsigned n = threadIdx.x;
  while (n != 0x7fffffffu) n = n * 1664525u + 2u & 0x7ffffffeu;  //loop//
  x[0] = (float)n;
})",
        {{SIMT_ENDLESS}, "loop"}, {.block = {32}, .limit = 100'000});
}

TEST(SimtFaults, BlocksThatWaitForEachOther) {
  // Needs them side by side, as a device would have them; with the flag but not its order, the values race.
  const std::string text = R"(
extern "C" __global__ void g0(float* x) {
  unsigned* arrived = (unsigned*)(x + 255);
  if (threadIdx.x == 0) x[blockIdx.x] = (float)blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    simt_add_release(arrived, 1u);                                  //arrive//
    while (simt_ld_acquire(arrived) < 3) {}                         //poll//
  }
  __syncthreads();
  if (threadIdx.x == 1) x[16 + blockIdx.x] = x[(blockIdx.x + 1) % 3];   //read//
})";
  auto launch = [&](const std::string& source, Launch how) {
    Memory memory;
    float* x = memory.allocate<float>(256, "x");
    std::fill(x, x + 256, 0.f);
    how.grid = {3};
    how.block = {64};
    return load(source).launch("g0", memory, how, x);
  };
  in_all_orders([&](Launch how) {
    how.resident = 3;
    EXPECT_EQ(launch(text, how).text, "");
    EXPECT_EQ(launch(replaced(text, "simt_add_release", "simt_add_relaxed"), how).fault, SIMT_RACE_GLOBAL);
    how.resident = 1;
    EXPECT_EQ(launch(text, how).fault, SIMT_ENDLESS);
  });
}

TEST(SimtFaults, PollingForACopyEnds) {
  right(R"(
extern "C" __global__ void g0(float* x) {
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) simt_mbarrier_init(&bar, 1), simt_mbarrier_fence();
  __syncthreads();
  if (threadIdx.x == 0) simt_mbarrier_arrive_expect(&bar, 256), simt_bulk_load(s, x, 256, &bar);
  while (!simt_mbarrier_test(&bar, 0)) {}
  if (s[threadIdx.x & 63] != x[threadIdx.x & 63]) __trap();
})");
}

// --- addresses -----------------------------------------------------------------------------------

TEST(SimtFaults, MissingTailGuard) {
  caught(kColumnSum, without(text_of("column_sum"), "tail"), {{SIMT_BOUNDS}, "load"});
  caught(kSoftmax, without(text_of("softmax"), "guard"), {{SIMT_BOUNDS}, "load"});
}

TEST(SimtFaults, OutOfBoundsOfASharedArray) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  __shared__ float s[64], t[64];
  if (threadIdx.x < 64) s[threadIdx.x + 1] = x[threadIdx.x], t[threadIdx.x] = 0.f;  //store//
  __syncthreads();
  x[threadIdx.x] = s[1] + t[threadIdx.x & 63];
})",
        {{SIMT_BOUNDS}, "store"});
  probe(R"(
extern __shared__ float s[];
extern "C" __global__ void g0(float* x) {
  s[threadIdx.x] = x[threadIdx.x];  //store//
  x[threadIdx.x] = s[threadIdx.x];
})",
        {{SIMT_BOUNDS}, "store"}, {.block = {128}, .dynamic_bytes = 127 * 4});
}

TEST(SimtFaults, OutOfBoundsNamesBufferThreadAndLine) {
  Result result = run_probe(load(R"(
extern "C" __global__ void g0(float* x) {
  x[threadIdx.x + 129] = 1.f;
})"),
                            {.block = {128}, .order = SIMT_FORWARD});
  EXPECT_EQ(result.fault, SIMT_BOUNDS);
  EXPECT_EQ(result.line, 3u);
  EXPECT_EQ(result.thread, (std::array<uint32_t, 3>{127, 0, 0}));
  EXPECT_EQ(result.text,
            "out of bounds: write of 4 bytes at x+1024 (1024 bytes) by block (0,0,0) thread (127,0,0) at line 3");
}

TEST(SimtFaults, MisalignedVector) {
  caught(kLayerNorm, replaced(text_of("layer_norm"), "(a.x) + (size_t)row", "(a.x + 2) + (size_t)row"),
         {{SIMT_MISALIGNED}, "load"});
  probe(R"(
extern "C" __global__ void g0(float* x) {
  __shared__ float s[300];
  *reinterpret_cast<float2*>(s + 1 + 2 * threadIdx.x) = make_float2(1.f, 2.f);  //store//
  x[threadIdx.x] = s[2];
})",
        {{SIMT_MISALIGNED}, "store"});
}

TEST(SimtFaults, UninitialisedShared) {
  probe(R"(
extern "C" __global__ void g0(float* x) {
  __shared__ float s[32];
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x & 31];  //read//
})",
        {{SIMT_UNINITIALISED}, "read"});
}

TEST(SimtFaults, UninitialisedGlobal) {
  const std::string text = "extern \"C\" __global__ void g0(float* x) {\n  if (x[threadIdx.x] > 0.f) x[0] = 1.f;\n}";
  Memory memory;
  float* x = memory.allocate<float>(32, "states", true);
  Result result = load(text).launch("g0", memory, {.block = {32}}, x);
  EXPECT_EQ(result.fault, SIMT_UNINITIALISED) << result.text;
  EXPECT_EQ(result.line, 2u);
}

// --- clusters and copies under way ---------------------------------------------------------------

TEST(SimtFaults, BlockEndsWhilePeersUseItsMemory) {
  const std::string text = R"(
extern "C" __global__ void g0(float* x) {
  __shared__ float s;
  if (threadIdx.x == 0) s = x[simt_cluster_rank()];
  simt_cluster_arrive(), simt_cluster_wait();
  float v = threadIdx.x == 0 ? *simt_cluster_map(&s, simt_cluster_rank() ^ 1) : 0.f;  //remote//
  simt_cluster_arrive(), simt_cluster_wait();                                          //end//
  if (threadIdx.x == 0) x[simt_cluster_rank()] = v;
})";
  Launch two{.grid = {2}, .block = {64}, .cluster = 2};
  right(text, two);
  probe(without(text, "end"), {{SIMT_EXIT}, "remote"}, two);
}

TEST(SimtFaults, RelaxedArriveOrdersNothing) {
  caught(kClusterSum, replaced(text_of("cluster_sum"), "simt_cluster_arrive(),", "simt_cluster_arrive_relaxed(),"),
         {{SIMT_RACE_SHARED}, "sum"});
}

TEST(SimtFaults, CopyReadTooEarly) {
  // Before the copy was issued nobody wrote there; afterwards it is under way.
  caught(kRing, without(text_of("ring"), "arrived"), {{SIMT_ASYNC, SIMT_UNINITIALISED}, "consume"});
  caught(kRing,
         replaced(text_of("ring"), "simt_mbarrier_wait(full + slot, turn & 1);",
                  "simt_mbarrier_wait(full + slot, turn & 1 ^ 1);"),
         {{SIMT_ASYNC, SIMT_UNINITIALISED}, "consume"});
}

TEST(SimtFaults, SlotRefilledWhileItIsRead) {
  caught(kRing, without(text_of("ring"), "refill"), {{SIMT_ASYNC, SIMT_RACE_SHARED}, "copy|expect"});
}

TEST(SimtFaults, SlotGivenBackBeforeAllLanesHaveRead) {
  caught(kRing, without(text_of("ring"), "all-read"), {{SIMT_RACE_SHARED}, "copy"});
}

TEST(SimtFaults, MbarrierUsedBeforeItsInit) {
  caught(kRing, without(without(text_of("ring"), "init"), "init-peers"),
         {{SIMT_ASYNC, SIMT_RACE_SHARED}, "mbarriers|arrived|expect|send"});
}

TEST(SimtFaults, InitialisationOfAnMbarrierWithoutFence) {
  for (const char* name : {"ring", "ring_cluster"}) {
    Kernel kernel = load(replaced(text_of(name), "simt_mbarrier_fence();", ""));
    in_all_orders([&](Launch how) {
      Result result = (std::string(name) == "ring" ? kRing : kRingCluster).run(kernel, how).result;
      EXPECT_EQ(result.fault, SIMT_ASYNC);
      EXPECT_NE(result.text.find("nobody fenced"), std::string::npos) << result.text;
    });
  }
}

TEST(SimtFaults, InboxReadTooEarly) { caught(kRing, without(text_of("ring"), "received"), {{SIMT_ASYNC}, "total"}); }

TEST(SimtFaults, WhoWaitsForAllItsMessagesMayEnd) {
  Kernel kernel = load(without(text_of("ring"), "end"));
  in_all_orders([&](Launch how) { EXPECT_EQ(kRing.run(kernel, how).result.text, ""); });
}

TEST(SimtFaults, EveryWaitOfARingCounts) {
  // Whatever is read or refilled too early: the fault is at the access behind the missing wait, or where a later wait meets the confusion.
  const std::string text = text_of("ring_cluster");
  for (const char* mark : {"row", "refill", "summed", "received", "full", "final", "all-read"}) {
    SCOPED_TRACE(mark);
    Kernel kernel = load(without(text, mark));
    in_all_orders([&](Launch how) {
      Result result = kRingCluster.run(kernel, how).result;
      EXPECT_TRUE(result.fault == SIMT_ASYNC || result.fault == SIMT_RACE_SHARED || result.fault == SIMT_UNINITIALISED)
          << result.fault << ": " << result.text;
    });
  }
}

TEST(SimtFaults, RingThatCountsWrongStops) {
  const std::string text = text_of("ring_cluster");
  caught(kRingCluster, replaced(text, "simt_mbarrier_init(summed + i, kWarps)", "simt_mbarrier_init(summed + i, kWarps + 1)"),
         {{SIMT_DEADLOCK}, "row|final|summed|received|refill"});
  caught(kRingCluster, replaced(text, "simt_mbarrier_arrive_expect(arrived + r, peers * 4)", "simt_mbarrier_arrive_expect(arrived + r, peers * 8)"),
         {{SIMT_DEADLOCK}, "row|final|summed|received|refill"});
}

TEST(SimtFaults, BulkCopyWantsMultiplesOf16) {
  caught(kRing, replaced(text_of("ring"), "+ p * kPiece, kPiece * 4", "+ p * kPiece + 1, kPiece * 4"),
         {{SIMT_MISALIGNED}, "copy"});
}

TEST(SimtFaults, BulkStore) {
  const std::string text = R"(
extern "C" __global__ void g0(float* x) {
  __shared__ __align__(16) float s[128];
  s[threadIdx.x] = (float)threadIdx.x;
  simt_proxy_fence();                                     //fence//
  __syncthreads();
  if (threadIdx.x == 0) {
    simt_bulk_store(x, s, 512);                           //copy//
    simt_bulk_commit();
    simt_bulk_wait_read(0);                               //wait//
  }
  __syncthreads();
  s[threadIdx.x] = 0.f;                                   //again//
})";
  right(text);
  probe(without(text, "fence"), {{SIMT_ASYNC}, "copy"});
  probe(without(text, "wait"), {{SIMT_ASYNC}, "again"}, {.block = {128}});
}

TEST(SimtFaults, CopiesOfGroups) {
  const std::string text = R"(
extern "C" __global__ void g0(float* x) {
  __shared__ __align__(16) float s[256];
  unsigned t = threadIdx.x;
  if (t < 64) simt_cp_async(s + 4 * t, x + 4 * t, 16, 16);  //copy//
  simt_cp_async_commit();
  simt_cp_async_wait(0);                                    //wait//
  __syncthreads();                                          //barrier//
  x[t] = s[255 - t] * 2.f;                                  //read//
})";
  right(text);
  probe(without(text, "wait"), {{SIMT_ASYNC}, "read"});
  probe(without(text, "barrier"), {{SIMT_ASYNC, SIMT_UNINITIALISED}, "read|copy"});
}

TEST(SimtFaults, OneGroupMayStayUnderWay) {
  const std::string text = R"(
extern "C" __global__ void g0(float* x) {
  __shared__ float s[64];
  unsigned t = threadIdx.x;
  simt_cp_async(s + t, x + t, 4, 4);
  simt_cp_async_commit();
  simt_cp_async(s + 32 + t, x + 32 + t, 4, t < 16 ? 4 : 0);  // the rest is filled with zeros
  simt_cp_async_commit();
  simt_cp_async_wait(1);
  x[64 + t] = s[AT + t];                                     //read//
  simt_cp_async_wait(0);
  if (s[32 + t] != (t < 16 ? x[32 + t] : 0.f) || s[t] != x[t]) __trap();
})";
  right(replaced(text, "AT", "0"), {.block = {32}});
  probe(replaced(text, "AT", "32"), {{SIMT_ASYNC}, "read"}, {.block = {32}});
}

}  // namespace
}  // namespace fusec::simt
