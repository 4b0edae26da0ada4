// Schedules as bytes and text; facts, layout classes and the argument block of a call.

#include "codegen/schedule.h"

#include <gtest/gtest.h>

#include "codegen/artifact.h"

namespace fusec {
namespace {

using Extents = std::vector<int64_t>;

// f32[4,6] read with a broadcast row f32[6], written to [4,6]: axes {row, column}, no reduction.
Kernel add_row() {
  Kernel k;
  k.axes = {{4, false}, {6, false}};
  k.operands = {{0, 0, false, DType::f32, {4, 6}, {1, 2}, true},
                {1, 1, false, DType::f32, {6}, {1}, true},
                {2, 0, true, DType::f16, {4, 6}, {2}, true}};
  const Map rows{{{{1, 0}, 0}, {{0, 1}, 0}}, {kNoVal, kNoVal}};
  const Map row{{{{0, 1}, 0}}, {kNoVal}};
  const Map dense{{{{6, 1}, 0}}, {kNoVal}};
  k.values = {{.kind = Kind::load, .varies = 3, .operand = 0, .map = rows},
              {.kind = Kind::load, .varies = 2, .operand = 1, .map = row},
              {.kind = Kind::compute, .op = Op::add, .args = {0, 1}, .varies = 3},
              {.kind = Kind::store, .args = {2}, .varies = 3, .operand = 2, .map = dense}};
  k.sweeps = {{{}, {3}}};
  return k;
}

TEST(Schedule, BytesDifferExactlyWhenSchedulesDo) {
  Schedule a;
  a.access.resize(2);
  Schedule b = a;
  EXPECT_EQ(bytes(a), bytes(b));
  b.access[1].early = 1;
  EXPECT_NE(bytes(a), bytes(b));
  b = a;
  b.lane[kMaxAxes - 1] = 3;
  EXPECT_NE(bytes(a), bytes(b));
  b = a;
  b.cut = {7};
  EXPECT_NE(bytes(a), bytes(b));
  b = a;
  b.dependent_launch = true;
  EXPECT_NE(bytes(a), bytes(b));
}

TEST(Schedule, ComesBackFromItsBytes) {
  Schedule s{.skeleton = Template::cpu_rows, .keep = Keep::cache_buffer, .edges = Edges::each, .threads = 512, .wide_index = true};
  s.lane[3] = 16;
  s.access = {{.bytes = 64, .staged = 1, .bypass = 1}};
  s.cut = {3, 9};
  const std::string text = bytes(s);
  ASSERT_TRUE(parse_schedule(text));
  EXPECT_EQ(*parse_schedule(text), s);
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(parse_schedule(text.substr(0, n))) << n;
  EXPECT_FALSE(parse_schedule(text + '\0'));
}

TEST(Schedule, PrintsOneLine) {
  Schedule s{.skeleton = Template::rows, .keep = Keep::registers, .threads = 256, .steps = 2};
  s.lane[1] = 8;
  s.vector_axis = 1;
  s.access = {{.bytes = 16, .streamed = 1}, {.bytes = 4}};
  s.cut = {0, 5};
  EXPECT_EQ(print(s), "rows keep=registers edges=tail threads=256 steps=2 lane=1x8 axis=1 access=16x,4 cut=v0,v5");
}

TEST(Schedule, EveryFieldCanBeSetByHand) {
  Schedule s{.skeleton = Template::rows, .keep = Keep::registers, .threads = 256, .steps = 2};
  s.lane[1] = 8;
  s.vector_axis = 1;
  s.access = {{.bytes = 16, .streamed = 1}, {.bytes = 4}};
  for (const char* edit : {"skeleton=split", "keep=reload", "edges=full", "finish=last_block", "threads=512", "min_blocks=3", "lanes_per_row=512",
                           "rows_in_flight=4", "cluster=2", "team=3", "steps=0", "slots=2", "slices=3", "ahead=1", "column_slots=4", "lane=4", "block=2x16", "baked=3", "wide=1",
                           "dynamic_rows=1", "dependent_launch=1", "merged=1", "access.1=8se", "cut=v1,v7"})
    EXPECT_TRUE(set(s, edit)) << edit;
  EXPECT_EQ(print(s), "split keep=reload edges=full finish=last_block threads=512 min_blocks=3 lanes_per_row=512 rows_in_flight=4 cluster=2 team=3 slots=2 "
                      "slices=3 ahead=1 column_slots=4 lane=1x4 axis=1 block=2x16 baked=3 wide dynamic_rows dependent_launch merged access=16x,8se cut=v1,v7");
  const Schedule before = s;
  for (const char* edit : {"", "threads", "threads=", "threads=65536", "threads=-1", "slots=256", "keep=on", "lane=1x2x", "lane=0", "lane=0x4", "block=0x0", "access=16", "access.2=4", "access.0=3",
                           "access.0=16q", "cut=1", "axis=16", "wide=2", "colour=red", "=", "block=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"}) {
    Status refused = set(s, edit);
    ASSERT_FALSE(refused) << edit;
    EXPECT_EQ(refused.error().kind, Error::input);
    EXPECT_EQ(s, before) << edit;
  }
}

TEST(Artifact, FieldsAreAlignedToTheirSize) {
  EXPECT_EQ(args_bytes({}), 0u);
  EXPECT_EQ(args_bytes({{.kind = Slot::zero, .bytes = 4}}), 4u);
  EXPECT_EQ(args_bytes({{.kind = Slot::zero, .bytes = 4}, {.kind = Slot::pointer, .bytes = 8}}), 16u);
  EXPECT_EQ(args_bytes({{.kind = Slot::pointer, .bytes = 8}, {.kind = Slot::zero, .bytes = 4}}), 16u);
}

TEST(Layout, JoinsWhatWalksAsOne) {
  EXPECT_EQ(layout({4, 6}, {6, 1}), Layout{});
  EXPECT_EQ(layout({4, 6}, {8, 1}).joined & 1, 0);
  EXPECT_TRUE(layout({4, 6}, {8, 1}).unit);
  EXPECT_FALSE(layout({4, 6}, {12, 2}).unit);
  EXPECT_EQ(layout({4, 6}, {12, 2}).joined & 1, 1);
  EXPECT_EQ(layout({}, {}), Layout{});
}

TEST(Layout, StrideOfExtentOneSaysNothing) {
  EXPECT_EQ(layout({4, 1, 6}, {6, 999, 1}), Layout{});
  EXPECT_EQ(layout({4, 1}, {1, -7}), Layout{});
  EXPECT_EQ(layout({1, 1}, {5, 9}), Layout{});
  EXPECT_EQ(canonical_strides({4, 1, 1}, {5, 0, 0}), (Extents{5, 5, 5}));
  EXPECT_EQ(canonical_strides({1, 3}, {0, 2}), (Extents{6, 2}));
  EXPECT_EQ(layout({0, 6}, {1, 100}), Layout{}) << "nothing is walked";
}

TEST(Facts, StepsComeFromTheCallsStrides) {
  const Kernel k = add_row();
  alignas(128) static float data[64];
  const Facts f = facts(k, {{}, {{data, {8, 1}}, {data + 1, {1}}, {data, {6, 1}}}});
  EXPECT_EQ(f.extents, (Extents{4, 6}));
  EXPECT_EQ(f.rows, 24);
  EXPECT_EQ(f.columns, 1);
  ASSERT_EQ(f.access.size(), 3u);
  EXPECT_EQ(f.access[0].step, (Extents{8, 1}));
  EXPECT_EQ(f.access[1].step, (Extents{0, 1}));
  EXPECT_EQ(f.access[2].step, (Extents{6, 1}));
  EXPECT_EQ(f.access[0].align, 128u);
  EXPECT_EQ(f.access[1].align, 4u);
  EXPECT_EQ(f.footprint, 24 * 4 + 6 * 4 + 24 * 2);
  EXPECT_FALSE(f.wide);
}

TEST(Facts, WideCountsStridesAndOffsets) {
  Kernel k = add_row();
  EXPECT_TRUE(facts(k, {{}, {{nullptr, {int64_t{1} << 30, 1}}, {nullptr, {1}}, {nullptr, {6, 1}}}}).wide);
  EXPECT_TRUE(facts(k, {{}, {{nullptr, {-(int64_t{1} << 30), 1}}, {nullptr, {1}}, {nullptr, {6, 1}}}}).wide);
  k.axes = {{1 << 20, false}, {1 << 12, false}};
  EXPECT_TRUE(facts(k, {{}, {{nullptr, {0, 0}}, {nullptr, {0}}, {nullptr, {0, 0}}}}).wide) << "2^32 elements of broadcasts";
}

TEST(Facts, SymbolsTakeTheCallsSizes) {
  Kernel k = add_row();
  k.axes[0].extent = Dim::symbol("N");
  k.operands[0].extents[0] = k.operands[2].extents[0] = Dim::symbol("N");
  const Sizes sizes{{"N", 100}};
  const Facts f = facts(k, dense_binding(k, sizes));
  EXPECT_EQ(f.rows, 600);
  EXPECT_EQ(f.access[1].align, 128u);
  EXPECT_NE(f.access[0].step[0], 6) << "an operand of two blocks is not assumed dense";
}

}  // namespace
}  // namespace fusec
