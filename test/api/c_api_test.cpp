// The C door: results, whose fault a failure is, and what it says.

#include <fusec/fusec_c.h>
#include <gtest/gtest.h>

#include <string>

TEST(CApi, CompilesAndRuns) {
  fusec_program* program = nullptr;
  ASSERT_EQ(fusec_compile("graph @g(%x: f32[N]) -> f32[N] { %y = mul %x, 2.0 return %y }", "reference", FUSEC_STRICT, &program), FUSEC_OK) << fusec_error();
  float x[6] = {1, 9, 2, 9, 3, 9}, y[3] = {};
  const int64_t extents[] = {3}, two[] = {2};
  const fusec_buffer in = {x, extents, two, 1}, out = {y, nullptr, nullptr, 1};
  ASSERT_EQ(fusec_run(program, &in, 1, &out, 1, nullptr, nullptr, 0), FUSEC_OK) << fusec_error();
  EXPECT_EQ(y[0], 2);
  EXPECT_EQ(y[1], 4);
  EXPECT_EQ(y[2], 6);
  EXPECT_EQ(fusec_run(program, &in, 1, &out, 0, nullptr, nullptr, 0), FUSEC_INPUT);
  EXPECT_NE(std::string(fusec_error()).find("1 outputs"), std::string::npos) << fusec_error();
  size_t bytes = 7;
  EXPECT_EQ(fusec_workspace_bytes(program, &in, 1, &out, 1, &bytes), FUSEC_OK);
  EXPECT_EQ(bytes, 0u);
  fusec_call* call = nullptr;
  EXPECT_EQ(fusec_prepare(program, &in, 1, &out, 0, &call), FUSEC_INPUT);
  EXPECT_EQ(call, nullptr);
  ASSERT_EQ(fusec_prepare(program, &in, 1, &out, 1, &call), FUSEC_OK) << fusec_error();
  fusec_release(program);
  fusec_release(nullptr);
  x[4] = 10;
  EXPECT_EQ(fusec_replay(call, nullptr), FUSEC_OK) << fusec_error();
  EXPECT_EQ(y[2], 20);
  fusec_release_call(call);
  fusec_release_call(nullptr);
}

TEST(CApi, FailuresSayWhy) {
  fusec_program* program = nullptr;
  EXPECT_EQ(fusec_compile("graph @g(", "cpu", FUSEC_STRICT, &program), FUSEC_INPUT);
  EXPECT_EQ(program, nullptr);
  EXPECT_NE(std::string(fusec_error()), "");
  EXPECT_EQ(fusec_compile(nullptr, "cpu", FUSEC_STRICT, &program), FUSEC_INPUT);
  EXPECT_EQ(fusec_compile("graph @g(%x: f32[2]) -> f32[2] { return %x }", "cuda:77", FUSEC_STRICT, &program), FUSEC_ENVIRONMENT);
}

TEST(CApi, WhatCannotBeReadIsRefused) {
  const char* const text = "graph @g(%x: f32[N]) -> f32[N] { %y = neg %x return %y }";
  EXPECT_EQ(fusec_compile(text, "reference", FUSEC_STRICT, nullptr), FUSEC_INPUT);
  EXPECT_STREQ(fusec_error(), "fusec_compile: program must not be NULL");
  fusec_program* program = nullptr;
  ASSERT_EQ(fusec_compile(text, "reference", FUSEC_STRICT, &program), FUSEC_OK) << fusec_error();
  float x[1] = {1}, y[1] = {};
  const int64_t extents[] = {1};
  const fusec_buffer in = {x, extents, nullptr, 1}, out = {y, nullptr, nullptr, 1};
  size_t bytes;
  fusec_call* call;
  const auto refused = [](fusec_status status, const char* why) {
    EXPECT_EQ(status, FUSEC_INPUT);
    EXPECT_STREQ(fusec_error(), why);
  };
  refused(fusec_run(nullptr, &in, 1, &out, 1, nullptr, nullptr, 0), "fusec_run: program must not be NULL");
  refused(fusec_run(program, nullptr, 1, &out, 1, nullptr, nullptr, 0), "fusec_run: inputs must not be NULL");
  refused(fusec_run(program, &in, 1, nullptr, 1, nullptr, nullptr, 0), "fusec_run: outputs must not be NULL");
  refused(fusec_run(program, &in, size_t(-1), &out, 1, nullptr, nullptr, 0), "graph @g has 1 inputs, the call 18446744073709551615");
  refused(fusec_workspace_bytes(nullptr, &in, 1, &out, 1, &bytes), "fusec_workspace_bytes: program must not be NULL");
  refused(fusec_workspace_bytes(program, &in, 1, &out, 1, nullptr), "fusec_workspace_bytes: bytes must not be NULL");
  refused(fusec_prepare(nullptr, &in, 1, &out, 1, &call), "fusec_prepare: program must not be NULL");
  refused(fusec_prepare(program, &in, 1, &out, 1, nullptr), "fusec_prepare: call must not be NULL");
  refused(fusec_replay(nullptr, nullptr), "fusec_replay: call must not be NULL");
  const fusec_buffer other_rank = {y, nullptr, extents, 2}, no_rank = {y, nullptr, nullptr, 0};
  EXPECT_EQ(fusec_run(program, &in, 1, &other_rank, 1, nullptr, nullptr, 0), FUSEC_INPUT) << "strides that are not there";
  EXPECT_EQ(fusec_run(program, &in, 1, &no_rank, 1, nullptr, nullptr, 0), FUSEC_OK);
  for (const int32_t rank : {-1, 9, 2147483647}) {
    const fusec_buffer bad = {x, extents, nullptr, rank};
    refused(fusec_run(program, &bad, 1, &out, 1, nullptr, nullptr, 0),
            ("fusec_run: inputs[0] has rank " + std::to_string(rank) + ": 0 to 8 is expected").c_str());
    EXPECT_EQ(fusec_run(program, &in, 1, &bad, 1, nullptr, nullptr, 0), FUSEC_INPUT);
  }
  fusec_release(program);
}
