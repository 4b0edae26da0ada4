// What measures, from outside: bench with its suite and its sweep, tune, the costs of explain.

#include <nlohmann/json.hpp>

#include "test/cli/cli.h"

namespace {

#if FUSEC_HAS_CPU
TEST_F(Cli, BenchSaysWhoseFaultAFailedRowIs) {
  write("f.fus", kGraph);
  for (const char* mode : {"", "--flush --runs 1", "--tuned-gap --runs 1"}) {
    const Ran r = run(std::string("bench f.fus --device cpu --dim N=4 --schedule nonsense=1 ") + mode);
    EXPECT_EQ(r.status, 2) << mode << r.out << r.err;
    EXPECT_NE((r.out + r.err).find("nonsense=1"), std::string::npos) << mode;
  }
}

TEST_F(Cli, SuiteMeasuresAndChecksEveryWorkload) {
  const Ran all = run("bench --suite --device cpu --bytes 65536 --runs 1 --json all.json");
  EXPECT_EQ(all.status, 0) << all.out << all.err;
  const nlohmann::json json = nlohmann::json::parse(read(dir / "all.json"));
  EXPECT_EQ(json["workloads"].size(), 27u);
  EXPECT_GT(json["ceilings"]["copy_bytes_per_s"], 0);
  for (const nlohmann::json& one : json["workloads"]) {
    EXPECT_EQ(one["right"], true) << one;
    EXPECT_GT(one["median_s"], 0) << one;
    EXPECT_GE(one["kernels"].size(), 1u) << one;
  }
  const Ran table = run("bench --suite --only scale_f32 --only rope_bf16 --device cpu --bytes 65536 --runs 1 --markdown");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_NE(table.out.find("| workload | MB | "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\n| rope_bf16 | "), std::string::npos) << table.out;
  EXPECT_EQ(run("bench --suite --only nothing --device cpu").status, 2);
  EXPECT_EQ(run("bench --suite missing --device cpu").status, 2);
  EXPECT_EQ(run("bench").status, 2);
}

// Every call runs the threads in another order; a race, a missing barrier or an access out of bounds fails its row.
TEST_F(Cli, SuiteOnSimtInTwentyOrders) {
  const std::string library = FUSEC_BINARY_DIR "/test/simt/libfusec_simt.so";
  if (!fs::exists(library)) GTEST_SKIP() << "wants libfusec_simt.so";
  const Ran all = run("bench --suite --device simt --bytes 65536 --runs 20 --json all.json", "FUSEC_SIMT=" + library);
  EXPECT_EQ(all.status, 0) << all.out << all.err;
  const nlohmann::json json = nlohmann::json::parse(read(dir / "all.json"));
  EXPECT_EQ(json["workloads"].size(), 27u);
  for (const nlohmann::json& one : json["workloads"]) EXPECT_EQ(one["right"], true) << one;
}

TEST_F(Cli, SuiteChecksRowsOfLargeGraphs) {
  fs::create_directory(dir / "mine");
  // Transposed, so that runs of the cut are short on one side; 5 million elements.
  write("mine/good.fus", "; rows: 1999\n; positive: %s\ngraph @good(%x: f32[1280,1999], %s: f32[1999]) -> f32[1999,1280] {\n  %t = transpose %x {perm=[1,0]}\n"
                         "  %r = reshape %s {shape=[1999,1]}\n  %q = sqrt %r\n  %y = div %t, %q\n  %z = softmax %y {axes=[1]}\n  return %z\n}\n");
  write("mine/bad.fus", "; rows: 1999\ngraph @bad(%x: f32[1999,2048]) -> f32[2048] {\n  %y = sum %x {axes=[0]}\n  return %y\n}\n");
  const Ran r = run("bench --suite mine --device cpu --bytes 1e9 --runs 1 --json all.json");
  EXPECT_EQ(r.status, 1) << "rows that are not independent: the part differs from the whole" << r.out;
  const nlohmann::json json = nlohmann::json::parse(read(dir / "all.json"));
  ASSERT_EQ(json["workloads"].size(), 2u);
  EXPECT_EQ(json["workloads"][0]["right"], false);
  EXPECT_EQ(json["workloads"][1]["right"], true) << json;
  write("mine/bad.fus", "; rows: many\ngraph @bad(%x: f32[3]) -> f32[3] {\n  return %x\n}\n");
  EXPECT_EQ(run("bench --suite mine --device cpu").status, 2);
}

TEST_F(Cli, TuneKeepsWhatItSawAndExplainSaysSo) {
  write("s.fus", "graph @s(%x: f32[64,1024]) -> f32[64,1024] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n");
  write("f.fus", kGraph);
  const Ran first = run("tune s.fus --device cpu --most 3 --runs 1 -o t.json");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("3 measured, 0 failed"), std::string::npos) << first.err;
  EXPECT_EQ(run("tune f.fus --dim N=1000 --device cpu --most 2 --runs 1 -o t.json").status, 0) << "adds to it";
  nlohmann::json json = nlohmann::json::parse(read(dir / "t.json"));
  ASSERT_EQ(json["entries"].size(), 2u) << json;
  for (nlohmann::json& e : json["entries"]) {
    EXPECT_GT(e["seconds"], 0);
    EXPECT_LE(e["seconds"], e["model_seconds"]);
    e["schedule"] = e["name"] == "s g0" ? "steps=8 lane=16" : "steps=99";
  }
  write("t.json", json.dump());
  const Ran taken = run("explain s.fus --tuning t.json"), environment = run("explain s.fus", "FUSEC_TUNING=t.json");
  EXPECT_NE(taken.out.find("(by tuning file)"), std::string::npos) << taken.out << json;
  EXPECT_EQ(environment.out, taken.out);
  EXPECT_EQ(run("explain f.fus --dim N=1000 --tuning t.json").out.find("(by"), std::string::npos) << "no candidate";
  EXPECT_EQ(run("run s.fus --device cpu --check -q --tuning t.json").status, 0);
  write("t.json", "{\"fusec_tuning\": 2}");
  EXPECT_EQ(run("explain s.fus --tuning t.json").status, 0) << "of another version: ignored";
  EXPECT_EQ(run("tune s.fus --device cpu --most 1 -o t.json").status, 2) << "and not replaced";
  write("t.json", "{");
  EXPECT_EQ(run("explain s.fus --tuning t.json").status, 2);
  EXPECT_EQ(run("explain s.fus", "FUSEC_TUNING=t.json").status, 0) << "ignored with a warning";
  EXPECT_EQ(run("tune s.fus --device cpu --most 1 -o t.json").status, 2);
  EXPECT_EQ(run("tune f.fus --device cpu").status, 2) << "N has no size";
}

TEST_F(Cli, WhatCannotBeWrittenIsSaidBeforeItIsMeasured) {
  write("f.fus", kGraph);
  for (const char* command : {"tune f.fus --dim N=1000 -o none/t.json", "bench f.fus --dim N=1000 --json none/b.json", "bench --suite --json none/b.json",
                              "bench --sweep --json none/b.json"}) {
    const Ran r = run(std::string(command) + " --device cpu");
    EXPECT_EQ(r.status, 3) << command;
    EXPECT_NE(r.err.find("cannot write none/"), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "") << "nothing was measured";
  }
}

TEST_F(Cli, ExplainReportsCosts) {
  // Two kernels: sums over different axes.
  write("s.fus", "graph @s(%x: f32[512,1024]) -> (f32[512], f32[1024]) {\n  %e = exp %x\n  %r = sum %e {axes=[1]}\n  %c = sum %x {axes=[0]}\n  return %r, %c\n}\n");
  const Ran device = run("explain s.fus --device cpu --time --json");
  ASSERT_EQ(device.status, 0) << device.err;
  const nlohmann::json json = nlohmann::json::parse(device.out);
  EXPECT_EQ(json["limits"]["source"], "measured on cpu");
  ASSERT_EQ(json["kernels"].size(), 2u);
  for (const nlohmann::json& k : json["kernels"]) {
    const nlohmann::json& c = k["costs"];
    EXPECT_EQ(c["bytes"], k["bytes"]);
    EXPECT_GT(c["measured_s"], 0);
    EXPECT_GE(c["predicted_s"], c["memory_s"]);
    EXPECT_GE(c["predicted_s"], c["arithmetic_s"]);
  }
  // Each element is added once; exp is its formula's steps, far more than a few.
  EXPECT_EQ(json["kernels"][1]["costs"]["adds"], 512 * 1024) << json["kernels"][1];
  EXPECT_GT(json["kernels"][0]["costs"]["adds"], 512 * 1024 * 12) << json["kernels"][0];
#if FUSEC_HAS_CUDA
  const Ran target = run("explain s.fus --target sm_90 --costs");
  ASSERT_EQ(target.status, 0) << target.err;
  EXPECT_NE(target.out.find("(the table's for sm_90, not measured)"), std::string::npos) << target.out;
  EXPECT_NE(target.out.find("registers, 0 bytes spilled; "), std::string::npos) << target.out;
  EXPECT_NE(target.out.find(" KiB in flight"), std::string::npos) << target.out;
#endif
  EXPECT_EQ(run("explain s.fus --time").status, 2);
  EXPECT_EQ(run("explain s.fus --device cuda:9").status, 3);
}

TEST_F(Cli, SweepMeasuresEachLengthAndFlags) {
  const Ran r = run("bench --sweep --device cpu --bytes 100000 --runs 1 --length 64 --length 65 --length 1000 --json sweep.json");
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  const nlohmann::json json = nlohmann::json::parse(read(dir / "sweep.json"));
  ASSERT_EQ(json["points"].size(), 3u * 18);
  for (const nlohmann::json& p : json["points"]) {
    EXPECT_FALSE(p.contains("wrong")) << p;
    EXPECT_GT(p["fraction"], 0) << p;
    EXPECT_EQ(p.contains("flag"), p["fraction"] < 0.97 || (p.contains("flag") && p["length"] == 65)) << p;
    const double each = p["bytes"].get<double>();
    EXPECT_GT(each, 90000) << p;
    EXPECT_LT(each, 110000) << p;
  }
  EXPECT_NE(r.out.find("\n65 "), std::string::npos) << r.out;
  const Ran some = run("bench --sweep --device cpu --bytes 100000 --runs 1 --length 33 --only softmax_u8 --only f32 --markdown");
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_NE(some.out.find("| length | softmax_f32 | layer_norm_f32 | rms_norm_f32 | row_sum_f32 | col_sum_f32 | bias_gelu_f32 | softmax_u8 |"), std::string::npos)
      << some.out;
  EXPECT_EQ(run("bench --sweep --only silu --device cpu").status, 2);
  EXPECT_EQ(run("bench --quick f.fus").status, 2);
}

TEST_F(Cli, BenchFlushesAndChecksFiles) {
  write("f.fus", kGraph);
  const Ran r = run("bench f.fus --dim N=1000 --device cpu --flush --runs 2 --bytes 65536 --json -");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("whole, right"), std::string::npos) << r.out;
  EXPECT_EQ(run("bench f.fus --flush --device cpu").status, 2) << "N has no size";
}

TEST_F(Cli, BenchChecksRowsOfALargeFile) {
  const std::string graph = "graph @g(%x: u8[2097152,4]) -> u8[2097152,4] {\n  %y = add %x, 3\n  return %y\n}\n";
  write("g.fus", "; rows: 2097152\n" + graph);
  const Ran r = run("bench g.fus --device cpu --flush --runs 1 --bytes 65536");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find(" of 2097152 rows, right"), std::string::npos) << r.out;
  write("g.fus", "; rows: many\n" + graph);
  EXPECT_EQ(run("bench g.fus --device cpu --flush").status, 2);
}
#endif

}  // namespace
