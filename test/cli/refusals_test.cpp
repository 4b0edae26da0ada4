// What the command line refuses: with which exit status, and whether it names the word and the fault.

#include "test/cli/cli.h"

namespace {

TEST_F(Cli, StatusesTellWhoseFaultItIs) {
  write("f.fus", kGraph);
  EXPECT_EQ(run("run f.fus").status, 2) << "N has no size";
  EXPECT_NE(run("run f.fus").err.find("--dim N="), std::string::npos);
  EXPECT_EQ(run("run missing.fus").status, 2);
  write("empty.fus", "; nothing\n");
  for (const char* command : {"opt", "explain", "bench", "run"})
    EXPECT_NE(run(std::string(command) + " empty.fus").err.find("there is no graph in it"), std::string::npos) << command;
  EXPECT_EQ(run("run f.fus --dim K=3").status, 2);
  EXPECT_NE(run("run f.fus --dim N=-1").err.find("--dim N=-1: NAME=SIZE is expected, a size from 0"), std::string::npos);
  EXPECT_EQ(run("run f.fus --dim N=3 --device tpu").status, 2);
  EXPECT_EQ(run("run f.fus --dim N=3 --device cuda:99").status, 3);
  EXPECT_EQ(run("run f.fus --graph g --dim N=3").status, 2);
  for (const char* command : {"opt", "explain", "emit --target cpu --as plan"}) {
    const Ran unknown = run(std::string(command) + " f.fus --graph g");
    EXPECT_EQ(unknown.status, 2) << command;
    EXPECT_NE(unknown.err.find("there is no graph @g"), std::string::npos) << command << ": " << unknown.err;
  }
  write("bad.fus", "graph @f(%x: f32[2]) -> f32[2] {\n  return %y\n}\n");
  const Ran bad = run("run bad.fus");
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("bad.fus:2:"), std::string::npos) << bad.err;
  EXPECT_EQ(bad.out, "");
}

TEST_F(Cli, DamagedInputsAreInputErrors) {
  write("f.fus", kGraph);
  const std::string good = npy("(2, 3)", {1, 2, 3, 4, 5, 6});
  for (size_t n = 0; n < good.size(); n += 13) {
    write("x.npy", good.substr(0, n));
    EXPECT_EQ(run("run f.fus -i x=x.npy").status, 2) << n;
  }
  write("x.npy", npy("(999999999999, 999999999999)", {1}));
  EXPECT_EQ(run("run f.fus -i x=x.npy").status, 2);
  // A header that leaves something out, or says it in no way that numpy does.
  write("id.fus", "graph @id(%x: f32[]) -> f32[] {\n  return %x\n}\n");
  const std::string scalar = npy("()", {1});
  auto with = [](std::string text, const std::string& from, const std::string& to) { return text.replace(text.find(from), from.size(), to); };
  write("x.npy", scalar);
  EXPECT_EQ(run("run id.fus -i x=x.npy --device reference").status, 0);
  for (const std::string& bad : {with(scalar, "'shape'", "'shapf'"), with(scalar, "()", "  "), with(scalar, "()", "( "), with(scalar, "False", "Fals "),
                                 with(scalar, "'fortran_order'", "'fortran_ordes'"), with(scalar, "'descr'", "'descs'"), with(scalar, "\1", "\4")}) {
    write("x.npy", bad);
    const Ran r = run("run id.fus -i x=x.npy --device reference");
    EXPECT_EQ(r.status, 2) << bad;
    EXPECT_NE(r.err.find("while reading x.npy"), std::string::npos) << r.err;
  }
  write("none.npz", std::string("PK\5\6") + std::string(18, '\0'));
  EXPECT_NE(run("run id.fus -i x=none.npz").err.find("none.npz holds no tensor"), std::string::npos);
  write("x.npy", npy("(2, 4)", {1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(run("run f.fus -i x=x.npy").status, 2) << "another shape";
  EXPECT_EQ(run("run f.fus -i q=x.npy").status, 2) << "no such input";
}

#if FUSEC_HAS_CPU

TEST_F(Cli, EnvironmentThatMeansNothingIsNamed) {
  write("f.fus", kGraph);
  for (const char* set : {"FUSEC_THREADS=0", "FUSEC_THREADS=-1", "FUSEC_THREADS=2x", "FUSEC_THREADS=abc", "FUSEC_CACHE_BYTES=-5", "FUSEC_CACHE_BYTES=1e6",
                          "FUSEC_CACHE_BYTES=abc", "FUSEC_CACHE_DIR=relative"}) {
    const Ran r = run("run f.fus --device cpu --dim N=70000 -q", std::string(set) + " HOME=$PWD");
    const std::string name = std::string(set).substr(0, std::string(set).find('='));
    EXPECT_EQ(r.status, 0) << set << r.err;
    EXPECT_NE(r.err.find("fusec: warning: " + name + " is ignored: '"), std::string::npos) << set << r.err;
    EXPECT_EQ(r.err.find("is ignored"), r.err.rfind("is ignored")) << set << ": once: " << r.err;
  }
  // A level that is none silences nothing.
  const Ran level = run("run f.fus --device cpu --dim N=70000 -q", "FUSEC_LOG=silly FUSEC_THREADS=0");
  EXPECT_NE(level.err.find("FUSEC_LOG is ignored: 'silly'"), std::string::npos) << level.err;
  EXPECT_NE(level.err.find("FUSEC_THREADS is ignored: '0'"), std::string::npos) << level.err;
  EXPECT_EQ(run("run f.fus --device cpu --dim N=70000 -q", "FUSEC_LOG=off FUSEC_THREADS=0").err.find("is ignored"), std::string::npos);
  for (const char* set : {"FUSEC_LOG=", "FUSEC_LOG=off", "FUSEC_LOG=error", "FUSEC_LOG=warn", "FUSEC_THREADS=", "FUSEC_THREADS=1", "FUSEC_CACHE_BYTES=", "FUSEC_CACHE_BYTES=0"})
    EXPECT_EQ(run("run f.fus --device cpu --dim N=70000 -q", set).err.find("is ignored"), std::string::npos) << set;
}
#endif

TEST_F(Cli, OptionsThatContradictAreRefused) {
  write("f.fus", kGraph);
  const Ran both = run("explain f.fus --device cpu --target sm_90");
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("--target"), std::string::npos) << both.err;
}

TEST_F(Cli, BytesAreANumberOfBytes) {
  for (const char* mode : {"--suite", "--sweep"})
    for (const char* bytes : {"nan", "inf", "-inf", "1e300", "0", "0.5", "-1", "12x", "x"}) {
      const Ran r = run(std::string("bench ") + mode + " --runs 1 --bytes=" + bytes);
      EXPECT_EQ(r.status, 2) << mode << " " << bytes;
      EXPECT_NE(r.err.find(std::string("'") + bytes + "' is no number of bytes"), std::string::npos) << r.err;
    }
}

TEST_F(Cli, NumbersHaveRanges) {
  write("f.fus", kGraph);
  for (const char* bad : {"fuzz --nodes 0", "fuzz --nodes -3", "fuzz --count -1", "fuzz --time nan", "fuzz --time inf", "fuzz --time -1", "fuzz --seed -1",
                          "run f.fus --dim N=2 --seed -1", "opt f.fus --stop-after-rule -1", "reduce f.fus --timeout 0 -- false",
                          // CLI11 alone would take the nearest number that fits.
                          "run f.fus --dim N=2 --seed 18446744073709551616", "run f.fus --dim N=2 --seed zz", "run f.fus --dim N=2 --seed 1.5",
                          "fuzz --count 9223372036854775808 --time 1", "fuzz --seed 99999999999999999999 --time 1", "opt f.fus --stop-after-rule 9223372036854775808",
                          "opt f.fus --stop-after-rule zz", "run f.fus --dim N=9223372036854775808"}) {
    const Ran r = run(bad);
    EXPECT_EQ(r.status, 2) << bad << "\n" << r.err;
    EXPECT_TRUE(r.err.starts_with("error: ")) << r.err;
  }
  EXPECT_EQ(run("fuzz --nodes 1 --count 3 --time 1.5 --device reference").status, 0) << read(dir / "err");
}

TEST_F(Cli, ASeedThatIsNoNumberIsNamedWithItsRange) {
  write("f.fus", kGraph);
  EXPECT_EQ(run("run f.fus --dim N=2 --seed zz").err.substr(0, 70), "error: --seed: 'zz' is no whole number from 0 to 18446744073709551615\n");
  EXPECT_EQ(run("run f.fus --dim N=2 --device reference --seed 18446744073709551615").status, 0) << read(dir / "err");
}

TEST_F(Cli, ListsTakeOneValueEachTime) {
  write("f.fus", kGraph);
  write("x.npy", npy("(2, 3)", {1, -2, 3, -4, 5, -6}));
  EXPECT_EQ(run("run --device reference --dim N=3 f.fus").status, 0) << read(dir / "err");
  EXPECT_EQ(run("run --device reference -i x=x.npy -o r=r.npy f.fus").status, 0) << read(dir / "err");
  EXPECT_EQ(run("opt --disable fold_constants f.fus --disable canonicalise").status, 0) << read(dir / "err");
  EXPECT_EQ(run("explain --dim N=3 f.fus --target z80").status, 2);
  EXPECT_NE(read(dir / "err").find("z80"), std::string::npos) << read(dir / "err");
  EXPECT_EQ(run("run --device reference f.fus --dim N=3 --dim N=3").status, 0) << read(dir / "err");
  EXPECT_EQ(run("run --device reference f.fus --dim N=3 --dim N=4").status, 2) << "two sizes";
  EXPECT_EQ(run("run --device reference f.fus --dim N=3 -i x=x.npy").status, 2) << "the file says 2";
  EXPECT_EQ(run("run --device reference f.fus --dim N=2 -i x=x.npy").status, 0) << read(dir / "err");
}

TEST_F(Cli, TheDeviceIsLookedAtFirst) {
  write("f.fus", kGraph);
  const size_t before = files();
  for (const char* command : {"fuzz --count 2", "test f.fus"}) {
    EXPECT_EQ(run(std::string(command) + " --device zz").status, 2) << read(dir / "err");
    EXPECT_EQ(read(dir / "out"), "");
    EXPECT_EQ(run(std::string(command) + " --device cuda:99").status, 3) << read(dir / "err");
    EXPECT_EQ(read(dir / "out"), "");
  }
  EXPECT_EQ(files(), before + 2) << "only the two captured outputs";
}

TEST_F(Cli, ANegativeExtentIsAnInputError) {
  write("f.fus", kGraph);
  write("x.npy", npy("(-2, 3)", {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run("run f.fus -i x=x.npy --device reference").status, 2);
  EXPECT_NE(read(dir / "err").find("a bad shape"), std::string::npos) << read(dir / "err");
}

TEST_F(Cli, UsageErrorsNameTheWord) {
  write("f.fus", kGraph);
  const Ran frob = run("frob");
  EXPECT_EQ(frob.status, 2);
  EXPECT_EQ(frob.err.find("error: unknown subcommand 'frob'"), 0u) << frob.err;
  const Ran foo = run("run f.fus --dim N=2 --numerics foo");
  EXPECT_EQ(foo.status, 2);
  EXPECT_NE(foo.err.find("foo not in {strict,fused,fast}"), std::string::npos) << foo.err;
  EXPECT_NE(run("run --help").out.find("{strict,fused,fast}"), std::string::npos);
  EXPECT_EQ(run("run f.fus --dim N=2 --numerics fast --device reference").status, 0) << read(dir / "err");
}

TEST_F(Cli, WhatWouldBeIgnoredIsAnError) {
  write("f.fus", kGraph);
  const auto says = [&](const std::string& arguments, const std::string& part) {
    const Ran r = run(arguments);
    EXPECT_EQ(r.status, 2) << arguments;
    EXPECT_NE(r.err.find(part), std::string::npos) << arguments << ": " << r.err;
  };
  for (const char* option : {"--runs 3", "--no-check", "--bytes 65536"})
    says(std::string("bench f.fus --dim N=4 --device cpu ") + option, "belong to --flush");
  for (const char* target : {"sm_50", "sm_79", "sm_91", "sm_999", "sm_", "sm_90x", "sm_-90"})
    for (const char* command : {"explain", "emit", "schedules"}) says(std::string(command) + " f.fus --target " + target, "sm_90");
  write("two.fus", std::string(kGraph) + kGraph);
  says("opt two.fus", "two.fus:6:1: graph @f is there already");
  EXPECT_EQ(run("run f.fus --dim N=2 --device reference -q -o out.npz").status, 0);
  write("g.fus", "graph @g(%z: f32[N,3], %r: f32[N,3]) -> f32[N,3] {\n  %s = add %z, %r\n  return %s\n}\n");
  EXPECT_EQ(run("run g.fus --device reference -q -i z=out.npz:r -i r=out.npz:r").status, 0);
  says("run g.fus --device reference -q -i r=out.npz:r -i r=out.npz:r", "input %r is given already");
  says("run g.fus --device reference -q -i r=out.npz:r -i out.npz", "input %r is given already");
}

TEST_F(Cli, WhatIsWrongIsSaidBeforeInputsAreDrawn) {
  write("f.fus", kGraph);
  write("two.fus", "graph @t(%x: f32[4]) -> (f32[4], f32[4]) {\n  %y = neg %x\n  %z = abs %x\n  return %y, %z\n}\n");
  auto says = [&](const std::string& arguments, const char* what) {
    const Ran r = run(arguments);
    EXPECT_EQ(r.status, 2) << arguments << r.err;
    EXPECT_NE(r.err.find(what), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("drawn"), std::string::npos) << r.err;
  };
  says("run f.fus --dim N=2 --device foo", "unknown device");
  says("run f.fus --dim N=2 --device reference --disable nope", "there is no pass or rule");
  says("run f.fus --dim N=2 --device reference -o nope=a.npy", "there is no output nope");
  says("run two.fus --device reference -o y=a.npy -o z=a.npy", "would be written twice");
  EXPECT_FALSE(fs::exists(dir / "a.npy"));
}

// Taken for a file, a folder or a graph that was not given, it would do something else and say nothing.
TEST_F(Cli, AnEmptyWordIsNoName) {
  write("f.fus", "graph @f(%x: f32[4]) -> f32[4] {\n  %y = neg %x\n  return %y\n}\n");
  const char* commands[] = {"fuzz", "run", "bench", "tune", "explain", "emit", "opt", "test", "import", "split -o s", "schedules", "ops"};
  for (const std::string command : commands) {
    const Ran r = run(command + " ''");
    EXPECT_EQ(r.status, 2) << command;
    EXPECT_NE(r.err.find("this one is empty"), std::string::npos) << command << ": " << r.err;
    EXPECT_EQ(r.out, "") << command;
  }
  const char* options[] = {"fuzz f.fus -o", "fuzz --count 1 -o", "run f.fus -o", "run f.fus -i", "run f.fus --graph", "run f.fus --tuning", "run f.fus --device",
                           "bench f.fus --json", "bench f.fus", "tune f.fus -o", "emit f.fus -o", "opt f.fus --graph", "test f.fus", "import m.onnx -o",
                           "split m.onnx -o", "explain f.fus --target", "emit f.fus --as"};
  for (const std::string option : options) {
    const Ran r = run(option + " ''");
    EXPECT_EQ(r.status, 2) << option;
    EXPECT_NE(r.err.find("this one is empty"), std::string::npos) << option << ": " << r.err;
    EXPECT_EQ(r.out, "") << option;
  }
  EXPECT_NE(run("reduce '' -- false").err.find("this one is empty"), std::string::npos);
  EXPECT_NE(run("reduce f.fus -o '' -- false").err.find("this one is empty"), std::string::npos);
  EXPECT_EQ(run("reduce f.fus -- grep -v '' {}").status, 0) << "a word of another program may be empty";
  for (const char* spec : {"-i x=", "-o y=", "-o y.txt", "-i =", "-o ="}) {
    const Ran r = run(std::string("run f.fus ") + spec);
    EXPECT_EQ(r.status, 2) << spec;
    EXPECT_EQ(r.err.find("drawn"), std::string::npos) << spec << ": " << r.err;
    EXPECT_NE(r.err.find(std::string(spec) == "-o y.txt" ? "cannot tell" : "NAME=FILE is expected"), std::string::npos) << spec << ": " << r.err;
  }
  EXPECT_EQ(run("opt f.fus --passes ''").status, 0) << "no passes at all";
  EXPECT_EQ(files(), 3u) << "f.fus and what this test reads";
}

TEST_F(Cli, NumbersAndIndicesOutOfRange) {
  auto says = [&](const char* node, const char* what) {
    write("n.fus", std::string("graph @n(%x: f32[4]) -> f32[4] {\n  %y = ") + node + "\n  return %y\n}\n");
    const Ran r = run("opt n.fus");
    EXPECT_EQ(r.status, 2);
    EXPECT_NE(r.err.find(what), std::string::npos) << r.err;
  };
  says("leaky_relu %x {alpha=1e400}", "1e400 is beyond the values of f64");
  says("leaky_relu %x {alpha=foo}", "expected a number");
  for (const char* type : {"f32", "f64", "bf16"})
    says((std::string("argmax %x {axes=[0], to=") + type + "}").c_str(), "an index of type");
}

TEST_F(Cli, SchedulesByHandStayAsAskedOrAreRefused) {
  write("f.fus", kGraph);
  const Ran unknown = run("explain f.fus --target cpu --schedule keep=nope");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("none, registers, shared, cluster, reload, cache_buffer are known"), std::string::npos) << unknown.err;
  EXPECT_EQ(run("explain f.fus --target cpu --schedule lane=0x0").status, 2);
  EXPECT_EQ(run("run f.fus --dim N=4 --device reference --schedule lane=8").status, 2) << "it has no schedule";
#if FUSEC_HAS_CUDA
  for (const char* edit : {"min_blocks=100", "block=7x7", "lane=2x4", "lane=0"})
    EXPECT_EQ(run(std::string("explain f.fus --target sm_90 --schedule ") + edit).status, 2) << edit;
  const Ran rounded = run("explain f.fus --target sm_90 --schedule min_blocks=100");
  EXPECT_NE(rounded.err.find("min_blocks=100 does not go with the other fields; with them it is: pointwise"), std::string::npos) << rounded.err;
  EXPECT_EQ(run("explain f.fus --target sm_90 --schedule min_blocks=3 --schedule lane=1x4").status, 0);
  EXPECT_EQ(run("explain f.fus --target sm_90 --schedule min_blocks=100 --schedule min_blocks=3").status, 0) << "the last one holds";
#endif
#if FUSEC_HAS_CPU
  EXPECT_EQ(run("explain f.fus --dim N=3000 --target cpu --schedule lane=1x4").err.find("only steps, lane"), std::string::npos);
#endif
}

TEST_F(Cli, TestsSeeWhatIsMistyped) {
  const std::string graph = "graph @f(%x: f32[2]) -> f32[2] {\n  %r = relu %x\n  return %r\n}\n";
  for (const char* line : {"; eval @f([1, 2]) == [1, 2]", ";eval: @f([1, 2]) == [1, 2]", "; Eval: @f([1, 2]) == [1, 2]", "; evla: @f([1, 2]) == [1, 2]",
                           "; expects: unchanged", "; expect-eror: here", "; variant: N"}) {
    write("t.fus", graph + line + "\n");
    const Ran r = run("test t.fus --device reference");
    EXPECT_EQ(r.status, 2) << line << r.out;
    EXPECT_NE(r.err.find("t.fus:5:1: is this '; "), std::string::npos) << line << r.err;
  }
  write("t.fus", graph + "; Expected here: nothing. run it with care\n; note: see @f\n");
  EXPECT_EQ(run("test t.fus --device reference").out, "0 passed, 0 failed, 1 of which nothing is expected\n");
  write("t.fus", graph + "; eval: @f([1, 2]) == [1, 2]\n");
  EXPECT_EQ(run("test t.fus --device reference").out, "2 passed, 0 failed\n");
}

/// Every command that reads a graph, tensors, a tuning or a test, from what has no end: an error, and not out of memory.
TEST_F(Cli, EndlessStreamsAreRefused) {
  if (!fs::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero here";
  write("f.fus", kGraph);
  fs::create_symlink("/dev/zero", dir / "z.onnx");
  fs::create_symlink("/dev/zero", dir / "z.npz");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const std::string most = "ulimit -v " + std::to_string(4 << 20) + " &&";  // KiB
  const auto refused = [&](const std::string& words, const std::string& before, const char* says) {
    const Ran r = run(words, before);
    EXPECT_EQ(r.status, 2) << words << "\n" << r.err;
    EXPECT_NE((r.err + r.out).find(says), std::string::npos) << words << "\n" << r.err;
  };
  const char* stream = "more than 256 MiB of what is no regular file";
  for (const char* words : {"run -", "explain -", "opt -", "emit -", "bench -", "tune -", "schedules -"}) refused(words + std::string(" </dev/zero"), most, stream);
  refused("explain - <pipe", "(cat /dev/zero >pipe 2>cat &) &&" + most, stream);
  for (const char* words : {"run /dev/zero", "run f.fus --dim N=2 -i x=/dev/zero", "run f.fus --dim N=2 -i z.npz", "run f.fus --dim N=2 --tuning /dev/zero",
                            "tune f.fus --dim N=2 -o /dev/zero", "test /dev/zero"})
    refused(words, most, stream);
  for (const char* words : {"run z.onnx", "explain z.onnx", "import z.onnx", "split z.onnx -o d"}) refused(words, most, "not a regular file");
}

TEST_F(Cli, NamesAndSizesAreTakenAsTheyAreWritten) {
  write("f.fus", kGraph);
  EXPECT_EQ(run("run f.fus --dim N=2 --graph @f").status, 0) << "as messages write it";
  EXPECT_EQ(run("run f.fus --dim N=2 -i y=/dev/zero").status, 2) << "it has no end";
  EXPECT_NE(run("opt f.fus", "FUSEC_LOG=zz").err.find("FUSEC_LOG is ignored"), std::string::npos);
  for (const char* command : {"explain f.fus", "emit f.fus", "run f.fus"})
    EXPECT_EQ(run(std::string(command) + " --dim N=4000000000000000000").status, 2) << command;
#if FUSEC_HAS_CUDA
  EXPECT_EQ(run("run f.fus --dim N=2 --device simt", "FUSEC_SIMT=/nope").status, 3);
#endif
  const std::string twelve = npy("(12,)", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  write("x.npy", twelve);
  write("g.fus", "graph @g(%x: f32[M*N], %y: f32[M]) -> (f32[M*N], f32[M]) {\n  %z = relu %x\n  %w = relu %y\n  return %z, %w\n}\n");
  const Ran solved = run("run g.fus -i x=x.npy --dim N=3");
  EXPECT_EQ(solved.status, 0) << solved.err;
  EXPECT_NE(solved.out.find("w: f32[4] "), std::string::npos) << solved.out;
  EXPECT_EQ(run("run g.fus -i x=x.npy --dim N=5").status, 2) << "12 is no multiple of 5";
  write("h.fus", "graph @h(%\"a=b\": f32[12]) -> f32[12] {\n  %z = relu %\"a=b\"\n  return %z\n}\n");
  EXPECT_EQ(run("run h.fus -i a=b=x.npy").status, 0);
}

}  // namespace
