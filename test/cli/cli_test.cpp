// The command line from outside: what goes where, files in and out, the cache between processes. What it refuses: refusals_test.cpp.

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "test/cli/cli.h"

namespace {

TEST_F(Cli, HelpTeaches) {
  const Ran help = run("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("fusec run docs/examples/softmax.fus"), std::string::npos);
  EXPECT_EQ(run("run --help").status, 0);
  EXPECT_EQ(run("help run").out, run("run --help").out);
  EXPECT_EQ(run("frobnicate").status, 2);
  EXPECT_EQ(run("").status, 2);
}

TEST_F(Cli, RunChecksAgainstTheReference) {
  write("f.fus", kGraph);
  for (const char* device : {"reference",
#if FUSEC_HAS_CPU
                             "cpu",
#endif
                             "auto"}) {
    const Ran r = run(std::string("run f.fus --dim N=7 --check --device ") + device);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find("every bit as the reference"), std::string::npos) << r.out;
    EXPECT_NE(r.err.find("drawn from seed 0: x, y"), std::string::npos) << r.err;
  }
}

TEST_F(Cli, FilesInAndOut) {
  write("f.fus", kGraph);
  write("x.npy", npy("(2, 3)", {1, -2, 3, -4, 5, -6}));
  write("y.npy", npy("(3,)", {1, 1, 1}));
  write("twice.fus", "graph @g(%y: f32[2*N+1]) -> f32[2*N+1] {\n  return %y\n}\n");
  EXPECT_EQ(run("run twice.fus -i y=y.npy --dim N=1 --device reference").status, 0);
  EXPECT_NE(run("run twice.fus -i y=y.npy --dim N=2 --device reference").err.find("axis 0 of %y is 3 in its file, and 2*N+1 is 5"), std::string::npos);
  const std::string want = npy("(2, 3, )", {2, 0, 4, 0, 6, 0});
  EXPECT_EQ(run("run f.fus -i x=x.npy -i y=y.npy -o r=r.npy --device reference").status, 0);
  EXPECT_EQ(read(dir / "r.npy"), want);
  for (const char* file : {"r.npz", "r.safetensors"}) {
    EXPECT_EQ(run(std::string("run f.fus -i x=x.npy -i y=y.npy --device reference -o ") + file).status, 0);
    // What was written is read back as an input of another graph.
    write("id.fus", "graph @id(%r: f32[2,3]) -> f32[2,3] {\n  return %r\n}\n");
    EXPECT_EQ(run(std::string("run id.fus --device reference -o back.npy -i ") + file).status, 0);
    EXPECT_EQ(read(dir / "back.npy"), want) << file;
    EXPECT_EQ(run(std::string("run id.fus --device reference -o back.npy -i r=") + file + ":r").status, 0);
  }
}

TEST_F(Cli, NamesDoNotReachTheTerminalRaw) {
  const std::string raw = "\x1b]0;t\x07\x7f\xc2\x9bm";
  write("g.fus", "graph @\"g\\x1b[2J\"(%\"x" + raw + "\": f32[\"N\\x1b[1m\"]) -> f32[\"N\\x1b[1m\"] {\n  %\"y\\x1b\" = exp %\"x" + raw + "\"\n  return %\"y\\x1b\"\n}\n");
  const std::string dim = " --dim 'N\x1b[1m=3'";
  write("bad.fus", "graph @g(%x: f32[2]) -> f32[2] {\n  \x1b[2J\n}\n");
  for (const std::string& command : {"run g.fus --device reference --check" + dim, std::string("run g.fus"), std::string("run bad.fus"),
#if FUSEC_HAS_CPU
                                     "run g.fus --device cpu --time" + dim, "bench g.fus --device cpu" + dim, std::string("explain g.fus"),
#endif
                                     std::string("opt g.fus")}) {
    const Ran r = run(command);
    for (char c : r.out + r.err) EXPECT_TRUE(uint8_t(c) >= 0x20 ? c != '\x7f' : c == '\n') << command << ": " << int(c) << "\n" << r.out << r.err;
    EXPECT_EQ((r.out + r.err).find("\xc2\x9b"), std::string::npos) << command;
    EXPECT_NE((r.out + r.err).find("x1b"), std::string::npos) << command << r.out << r.err;
  }
}

TEST_F(Cli, AFailedWriteLeavesNothing) {
  write("f.fus", kGraph);
  const size_t before = files();
  EXPECT_EQ(run("run f.fus --dim N=2 --device reference -o r=/nonexistent/r.npy").status, 3);
  EXPECT_EQ(files(), before + 2) << "only the two captured outputs";
}

TEST_F(Cli, TestPassesFailsAndBlesses) {
  const std::string graph = "graph @f(%x: f32[3]) -> f32[3] {\n  %y: f32[3] = mul %x, 2.0\n  return %y\n}\n";
  write("good.fus", graph + "; expect: unchanged\n; eval: @f([1, nan, -0.0]) == [2, nan, -0.0]\n; eval: @f([1, 2, 3]) ~= 1e-3 [2.0001, 4, 6]\n");
  EXPECT_EQ(run("test good.fus").status, 0) << read(dir / "out");
  write("wrong.fus", graph + "; eval: @f([1, 2, 0.0]) == [2, 4, -0.0]\n");
  EXPECT_EQ(run("test wrong.fus --device reference").status, 1);
  EXPECT_NE(read(dir / "out").find("wrong.fus:5"), std::string::npos) << read(dir / "out");
  write("stale.fus", graph + "; expect:\n;   something else\n; the next test's comment\n");
  EXPECT_EQ(run("test stale.fus --device reference").status, 1);
  EXPECT_EQ(run("test stale.fus --device reference --bless").status, 0);
  EXPECT_EQ(read(dir / "stale.fus"), graph + "; expect: unchanged\n; the next test's comment\n");
  write("error.fus", "graph @f(%x: f32[3]) -> f32[3] {\n  return %y\n}\n; expect-error: nothing\n");
  EXPECT_EQ(run("test error.fus --device reference --bless").status, 0);
  EXPECT_NE(read(dir / "error.fus").find("; expect-error: error.fus:2:"), std::string::npos) << read(dir / "error.fus");
  EXPECT_EQ(run("test error.fus --device reference").status, 0);
  EXPECT_EQ(run("test empty").status, 2);
}

TEST_F(Cli, ReduceFindsTheCulprit) {
  write("big.fus", R"(graph @f(%x: f32[64,8], %y: f32[64,8]) -> (f32[64,8], f32[64]) {
  %a = add %x, %y
  %b = exp %a
  %c = tanh %b
  %d = mul %c, 3.0
  %s = sum %d {axes=[1]}
  return %d, %s
}
)");
  // "Fails" as long as there is a tanh.
  EXPECT_EQ(run("reduce big.fus -o small.fus -- sh -c '! grep -q tanh {}' ").status, 2) << "{} is a word of its own";
  write("check.sh", "grep -q tanh \"$1\" && exit 1\nexit 0\n");
  const Ran r = run("reduce big.fus -o small.fus -- sh check.sh {}");
  EXPECT_EQ(r.status, 0) << r.err;
  const std::string small = read(dir / "small.fus");
  EXPECT_NE(small.find("tanh"), std::string::npos) << small;
  for (const char* gone : {"exp", "add", "mul", "sum", "64"}) EXPECT_EQ(small.find(gone), std::string::npos) << gone << "\n" << small;
}

TEST_F(Cli, TimeTellsWhereTheFirstResultWasMade) {
#if !FUSEC_HAS_CPU
  GTEST_SKIP() << "wants the CPU back end";
#endif
  write("f.fus", kGraph);
  const std::string line = "run f.fus -q --dim N=2 --device cpu --time";
  const Ran cold = run(line);
  EXPECT_NE(cold.out.find("fused: 1 kernel, 60 B moved; one kernel an operation: 2, "), std::string::npos) << cold.out;
  EXPECT_NE(cold.out.find("first result: LLVM "), std::string::npos) << cold.out;
  EXPECT_EQ(cold.out.find("not needed"), std::string::npos) << cold.out;
  const Ran warm = run(line);
  EXPECT_NE(warm.out.find("first result: LLVM not needed, all else "), std::string::npos) << warm.out;
}

TEST_F(Cli, SwitchesLookInside) {
#if !FUSEC_HAS_CPU
  GTEST_SKIP() << "wants the CPU back end";
#endif
  write("f.fus", kGraph);
  const std::string once = "run f.fus -q --dim N=2 --device cpu";
  EXPECT_EQ(run(once + " --dump-dir 'a \"b'").status, 0) << read(dir / "err");
  EXPECT_EQ(run(once, "FUSEC_OPTIONS='--dump-dir=c --time-passes --stats --print-after=simplify --disable=views'").status, 0) << read(dir / "err");
  const std::string said = read(dir / "err");
  for (const char* part : {"simplify: ", " µs\n", "nodes decompose: ", "graph @"}) EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  EXPECT_EQ(said.find("\nviews: "), std::string::npos) << "it ran: " << said;
  for (const char* file : {"a \"b/00-input.fus", "a \"b/g0.plan", "a \"b/g0.ll", "a \"b/g0.s", "c/00-input.fus", "c/g0.plan", "c/g0.ll"})
    EXPECT_TRUE(fs::exists(dir / file)) << file;
  EXPECT_NE(read(dir / "c/g0.plan").find("schedule cpu_"), std::string::npos);
  EXPECT_NE(read(dir / "c/g0.ll").find("define"), std::string::npos);
  EXPECT_EQ(run("opt c/00-input.fus").status, 0) << "a dump is an input";
  EXPECT_EQ(run(once, "FUSEC_OPTIONS=--dump-dir=/proc/nothing").status, 3) << read(dir / "err");
  EXPECT_EQ(run(once, "FUSEC_OPTIONS='--dump-dir=\"d e'").status, 3);
  EXPECT_NE(read(dir / "err").find("FUSEC_OPTIONS: a quote is not closed: \"--dump-dir=d e\""), std::string::npos) << read(dir / "err");
  EXPECT_EQ(run(once, "FUSEC_OPTIONS=--zz").status, 3);
  EXPECT_NE(read(dir / "err").find("FUSEC_OPTIONS: '--zz' is no switch: --print-after, "), std::string::npos) << read(dir / "err");
  EXPECT_EQ(run(once, "FUSEC_OPTIONS=--dump-dir").status, 3);
  EXPECT_NE(read(dir / "err").find("--dump-dir needs a value: --dump-dir=DIR"), std::string::npos) << read(dir / "err");
  EXPECT_EQ(run("opt f.fus --dump-dir --print-changed").status, 2);
}

TEST_F(Cli, MemoryThatIsNotThereIsTheEnvironment) {
  write("in.fus", "graph @f(%x: f32[100000000000]) -> f32[100000000000] {\n  %y = neg %x\n  return %y\n}\n");
  write("out.fus", "graph @f(%x: f32[1]) -> f32[100000000000] {\n  %y = broadcast %x {shape=[100000000000]}\n  return %y\n}\n");
  for (const char* file : {"in.fus", "out.fus"}) {
    const Ran r = run(std::string("run --device reference ") + file, "ulimit -v 4000000; ");
    EXPECT_EQ(r.status, 3) << r.err;
    EXPECT_NE(r.err.find("memory"), std::string::npos) << r.err;
  }
}

TEST_F(Cli, ANameThatIsNotUtf8IsReplacedInJson) {
  write("\xff.fus", "graph @f(%x: f32[3]) -> f32[3] {\n  %y = neg %x\n  return %y\n}\n");
  EXPECT_EQ(run("bench \xff.fus --device reference --json b.json").status, 0) << read(dir / "err");
  EXPECT_NE(read(dir / "b.json").find("\xef\xbf\xbd.fus"), std::string::npos) << read(dir / "b.json");
}

TEST_F(Cli, OutputThatGoesNowhereIsToldOf) {
  write("f.fus", kGraph);
  for (const char* command : {"ops", "rules", "passes", "devices", "opt f.fus", "import --help", "--version", "run f.fus --dim N=2 --device reference",
                              "fuzz --count 0", "test f.fus --device reference"}) {
    const std::string line = std::string(command) + " > /dev/full 2> full.err; exit $?; true";
    EXPECT_EQ(run(line).status, 3) << command;
    EXPECT_NE(read(dir / "full.err").find("cannot write to standard output"), std::string::npos) << command;
  }
  EXPECT_EQ(run("opt f.fus --dump-dir /proc/nothing").status, 3) << read(dir / "err");
  EXPECT_EQ(read(dir / "out"), "");
}

TEST_F(Cli, ReduceWritesTheCommandOnOneLine) {
  write("f.fus", kGraph);
  EXPECT_EQ(run("reduce f.fus -o small.fus -- sh -c 'exit 1\n# two lines' {}").status, 0) << read(dir / "err");
  EXPECT_NE(read(dir / "small.fus").find("exit 1\\n# two lines"), std::string::npos) << read(dir / "small.fus");
  EXPECT_EQ(run("opt small.fus").status, 0) << read(dir / "err");
}

TEST_F(Cli, ExplainAndEmitNeedNoDevice) {
  write("f.fus", kGraph);
#if FUSEC_HAS_CPU
  EXPECT_EQ(run("explain f.fus --target cpu").status, 0) << read(dir / "err");
  EXPECT_NE(read(dir / "out").find("1 kernel"), std::string::npos) << read(dir / "out");
  EXPECT_EQ(run("explain f.fus --target cpu --json").status, 0);
  EXPECT_EQ(read(dir / "out").front(), '{');
  EXPECT_EQ(run("emit f.fus --target cpu --as llvm").status, 0);
  EXPECT_NE(read(dir / "out").find("define"), std::string::npos);
#endif
#if FUSEC_HAS_CUDA
  EXPECT_EQ(run("emit f.fus --target sm_90 --as cuda -o code").status, 0) << read(dir / "err");
  EXPECT_NE(read(dir / "code" / "g0.cu").find("__global__"), std::string::npos);
#endif
  EXPECT_EQ(run("emit f.fus --target sm_90 --as nonsense").status, 2);
  EXPECT_EQ(run("explain f.fus --target z80").status, 2);
}

#if FUSEC_HAS_CPU
TEST_F(Cli, ExplainNamesValuesAsTheTextDoes) {
  write("f.fus", "graph @\"a b\"(%\"x y\": f32[4]) -> f32[4] {\n  %z = neg %\"x y\"\n  return %z\n}\n");
  EXPECT_EQ(run("explain f.fus --target cpu").status, 0) << read(dir / "err");
  for (const char* name : {"graph @\"a b\" for", "%\"x y\" f32[4]", "%z f32[4]"}) EXPECT_NE(read(dir / "out").find(name), std::string::npos) << read(dir / "out");
}

TEST_F(Cli, TheSecondProcessCompilesNothing) {
  write("f.fus", kGraph);
  EXPECT_EQ(run("run f.fus --dim N=7 --device cpu").status, 0);
  const Ran stats = run("cache stats");
  EXPECT_EQ(stats.status, 0);
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir / "cache")) ++entries;
  EXPECT_GE(entries, 1u);
  const auto before = fs::last_write_time(dir / "cache");
  EXPECT_EQ(run("run f.fus --dim N=7 --device cpu --check").status, 0);
  EXPECT_EQ(fs::last_write_time(dir / "cache"), before) << "no entry was made or replaced";
  for (const auto& entry : fs::directory_iterator(dir / "cache")) fs::resize_file(entry, 10);
  EXPECT_EQ(run("run f.fus --dim N=7 --device cpu --check").status, 0) << "damage is a miss";
  EXPECT_EQ(run("cache verify").status, 0) << "and was repaired";
  EXPECT_EQ(run("cache clear").status, 0);
  EXPECT_TRUE(fs::is_empty(dir / "cache"));
}

TEST_F(Cli, NoCacheAtAllStillWorks) {
  write("f.fus", kGraph);
  for (const char* environment : {"env -u FUSEC_CACHE_DIR -u XDG_CACHE_HOME HOME=/nonexistent", "env -u FUSEC_CACHE_DIR -u XDG_CACHE_HOME -u HOME",
                                  "env FUSEC_CACHE_DIR=/proc/fusec"}) {
    const Ran r = run("run f.fus --dim N=3 --device cpu --check", environment);
    EXPECT_EQ(r.status, 0) << environment << "\n" << r.err;
    size_t warnings = 0;
    for (size_t at = 0; (at = r.err.find("warning", at)) != std::string::npos; ++at) ++warnings;
    EXPECT_EQ(warnings, 1u) << r.err;
    if (std::string(environment).find("/proc") != std::string::npos) continue;
    const Ran path = run("cache path", environment);
    const bool is_set = std::string(environment).find("HOME=/nonexistent") != std::string::npos;
    EXPECT_EQ(path.status, 3);
    EXPECT_EQ(path.out, "");
    EXPECT_NE(path.err.find(is_set ? "HOME is /nonexistent, which is no directory" : "none of FUSEC_CACHE_DIR"), std::string::npos) << path.err;
  }
}
#endif

TEST_F(Cli, NarrowFloatsThatNumpyCallsF1) {
  std::string file = npy("(1, )", {0});
  file.replace(file.find("<f4"), 3, "<f1");
  file.resize(file.size() - 4);
  write("x.npy", file + "\x3c");
  for (auto [type, want] : {std::pair{"f8e5m2", "[-1.0]"}, {"f8e4m3", "[-1.5]"}, {"i8", nullptr}}) {
    write("n.fus", "graph @n(%x: " + std::string(type) + "[1]) -> " + type + "[1] {\n  %y = neg %x\n  return %y\n}\n");
    const Ran r = run("run n.fus --device reference -i x=x.npy");
    EXPECT_EQ(r.status, want ? 0 : 2) << r.err;
    EXPECT_NE(r.out.find(want ? want : ""), std::string::npos) << r.out;
  }
}

TEST_F(Cli, JsonOnStandardOutputIsAlone) {
  write("s.fus", "graph @s(%x: f32[64]) -> f32[64] {\n  %y = neg %x\n  return %y\n}\n");
  const Ran r = run("bench s.fus --device reference --json -");
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with("[") && r.out.ends_with("]\n")) << r.out;
  EXPECT_NE(r.err.find("median"), std::string::npos) << "the table";
}

/// Starts `how`, waits, sends the signal (0: none), and waits until all processes of it are gone: they hold a pipe open. Its status as of waitpid.
int end_of_all(const fs::path& dir, const std::string& how, int signal) {
  const std::string script = "cd '" + dir.string() + "' && exec '" FUSEC_BINARY_DIR "/fusec' " + how + " >printed 2>said";
  int held[2], status = -1;
  if (::pipe(held) != 0) return status;
  const pid_t child = ::fork();
  if (child == 0) {
    for (int s : {SIGINT, SIGTERM}) ::signal(s, SIG_DFL);
    ::close(held[0]);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(held[1]);
  if (signal) {
    ::usleep(1500'000);
    EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << how << " is still at work";
  }
  const auto start = std::chrono::steady_clock::now();
  if (signal) ::kill(child, signal);
  ::waitpid(child, &status, 0);
  char byte;
  EXPECT_EQ(::read(held[0], &byte, 1), 0);
  ::close(held[0]);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << how << " " << signal;
  for (const auto& entry : fs::directory_iterator(dir)) EXPECT_FALSE(entry.path().filename().string().starts_with("fusec-reduce")) << entry.path();
  return status;
}

TEST_F(Cli, AFileThatMayNotGrowIsAnError) {
  write("f.fus", kGraph);
  const Ran printed = run("ops", "ulimit -f 1;");
  EXPECT_EQ(printed.status, 3);
  EXPECT_NE(printed.err.find("cannot write to standard output"), std::string::npos) << printed.err;
  const Ran written = run("emit f.fus --target sm_90 --as cuda -o text", "ulimit -f 1;");
#if FUSEC_HAS_CUDA
  EXPECT_EQ(written.status, 3) << written.err;
  EXPECT_NE(written.err.find("File too large"), std::string::npos) << written.err;
#endif
  EXPECT_TRUE(!fs::exists(dir / "text") || fs::is_empty(dir / "text"));
#if FUSEC_HAS_CPU
  EXPECT_EQ(run("run f.fus --dim N=4 --device cpu -q --check", "ulimit -f 1;").status, 0) << "kernels stay in memory";
#endif
}

TEST_F(Cli, NothingOutlivesAReducer) {
  write("s.fus", "graph @s(%x: f32[64]) -> f32[64] {\n  %y = neg %x\n  return %y\n}\n");
  for (const char* how : {"reduce s.fus -- sh -c 'exec sleep 61'", "reduce s.fus -- sh -c 'sleep 61; exit 1'"})
    for (const int signal : {SIGINT, SIGTERM}) {
      const int status = end_of_all(dir, how, signal);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << how;
    }
  const int status = end_of_all(dir, "reduce s.fus -- sh -c 'sleep 61 & exit 1'", 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << read(dir / "said");
}

TEST_F(Cli, AFuzzerThatIsStoppedSaysWhatItDidAndLeavesNobodyBehind) {
  for (const char* how : {"fuzz --device reference --jobs 1", "fuzz --device reference --jobs 3"})
    for (const int signal : {SIGINT, SIGTERM}) {
      const int status = end_of_all(dir, std::string(how) + " --seed 1 --time 60 --count 100000000 -o found", signal);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal) << how << ": " << status;
      EXPECT_NE(read(dir / "printed").find(" graphs on reference, 0 failed, "), std::string::npos) << read(dir / "printed");
      EXPECT_EQ(read(dir / "printed").find("\n0 graphs"), std::string::npos) << read(dir / "printed");
      EXPECT_EQ(read(dir / "said"), "stopped by signal " + std::to_string(signal) + "\n") << "and progress is for terminals";
      EXPECT_EQ(std::distance(fs::directory_iterator(dir / "found"), fs::directory_iterator()), 0) << "being killed is no failure of a graph";
    }
}

TEST_F(Cli, LookingAtACacheMakesNone) {
  for (const char* what : {"ls", "stats", "verify", "clear", "path"}) {
    EXPECT_EQ(run(std::string("cache ") + what).status, 0) << what;
    EXPECT_FALSE(fs::exists(dir / "cache")) << what;
  }
  EXPECT_NE(run("cache stats").out.find("0 kernels, 0 B of at most"), std::string::npos);
}

TEST_F(Cli, SchedulesAreSetByHand) {
  write("s.fus", "graph @s(%x: f32[64,1024]) -> f32[64,1024] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n");
#if FUSEC_HAS_CUDA
  const Ran own = run("explain s.fus --target sm_90"), set = run("explain s.fus --target sm_90 --schedule g0:lanes_per_row=128");
  const Ran beyond = run("explain s.fus --target sm_90 --schedule g1:threads=32");
  EXPECT_EQ(beyond.status, 2);
  EXPECT_NE(beyond.err.find("names a kernel that is not there: there is only g0"), std::string::npos) << beyond.err;
  EXPECT_EQ(own.out.find("by hand"), std::string::npos) << own.out;
  EXPECT_NE(set.out.find("threads=128 "), std::string::npos) << set.out << set.err;
  EXPECT_NE(set.out.find("lanes_per_row=128 steps=2 "), std::string::npos) << set.out << "steps follow";
  EXPECT_NE(set.out.find("(by hand)"), std::string::npos) << set.out;
  const Ran misfit = run("explain s.fus --target sm_90 --schedule lanes_per_row=3");
  EXPECT_EQ(misfit.status, 2);
  EXPECT_NE(misfit.err.find("a power of two"), std::string::npos) << misfit.err;
#endif
#if FUSEC_HAS_CPU
  const Ran wide = run("run s.fus --device cpu --check -q --schedule lane=8 --schedule steps=2");
  EXPECT_EQ(wide.status, 0) << wide.out << wide.err;
  EXPECT_EQ(run("run s.fus --device cpu -q --schedule threads=8").status, 2);
  EXPECT_EQ(run("run s.fus --device cpu -q --schedule g0:lane=8").status, 0);
  EXPECT_EQ(run("run s.fus --device cpu -q --schedule g9:lane=8").status, 2) << "no such kernel";
  EXPECT_EQ(run("run s.fus --device cpu -q --schedule steps").status, 2);
#endif
}

TEST_F(Cli, TestsGoOnBehindLinksThatLeadNowhere) {
  fs::create_directory(dir / "d");
  fs::create_symlink("nowhere.fus", dir / "d" / "a.fus");
  fs::create_symlink("b.fus", dir / "d" / "b.fus");
  write("d/c.fus", "graph @f(%x: f32[2]) -> f32[2] {\n  %r = relu %x\n  return %r\n}\n; expect: unchanged\n");
  const Ran r = run("test d --device reference");
  EXPECT_EQ(r.out, "1 passed, 2 failed\n");
  EXPECT_NE(r.err.find("a.fus"), std::string::npos);
  EXPECT_NE(r.err.find("b.fus"), std::string::npos);
  EXPECT_EQ(r.status, 2);
}

}  // namespace
