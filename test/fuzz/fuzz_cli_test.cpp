// fusec fuzz from outside: what it draws does not depend on the number of processes; a planted fault ends as a small file that repeats it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "test/folder.h"

namespace {

namespace fs = std::filesystem;

struct FuzzCli : testing::Test {

  int run(const std::string& arguments) {
    const std::string command = "cd '" + dir.string() + "' && '" FUSEC_BINARY_DIR "/fusec' fuzz " + arguments + " >out 2>err </dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string read(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(dir / path, std::ios::binary).rdbuf();
    return text.str();
  }
  /// Without the rate.
  std::string result() { return std::regex_replace(read("out"), std::regex(", [0-9.]+ a second"), ""); }

  const fusec::Folder folder{"fuzz"};
  const fs::path dir = folder.path;
};

TEST_F(FuzzCli, WhatIsFoundDoesNotDependOnTheNumberOfProcesses) {
  ASSERT_EQ(run("--count 300 --device reference --coverage --jobs 1"), 0) << read("err");
  const std::string one = result();
  EXPECT_NE(one.find(" of 15 dtypes, "), std::string::npos) << one;
  EXPECT_NE(one.find("300 graphs on reference, 0 failed"), std::string::npos) << one;
  ASSERT_EQ(run("--count 300 --device reference --coverage --jobs 5"), 0) << read("err");
  EXPECT_EQ(result(), one);
}

TEST_F(FuzzCli, APlantedFaultIsShrunkToAFileThatRepeatsIt) {
  ASSERT_EQ(run("--count 150 --device reference --plant sub=add --jobs 2 -o found"), 1) << read("err");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(dir / "found")) {
    const std::string text = read(entry.path());
    const size_t end = text.find('\n');
    ASSERT_TRUE(text.starts_with("; fusec fuzz ")) << text;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 3 + 6) << "three comments, the graph's two lines, at most three nodes, return\n" << text;
    EXPECT_EQ(run(text.substr(13, end - 13) + " -o again"), 1) << text;
    const std::string unplanted = text.substr(13, text.find(" --plant") - 13);
    EXPECT_EQ(run(unplanted), 0) << text;
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST_F(FuzzCli, OptionsThatMakeNoSenseAreInputErrors) {
  for (const char* bad : {"--plant sub", "--plant sub=neg", "--plant nothing=add", "--device zz", "missing.fus", "--jobs 0"})
    EXPECT_EQ(run(bad), 2) << bad;
  std::ofstream(dir / "n.fus") << "graph @g(%x: f32[N]) -> f32[N] {\n  %y = neg %x\n  return %y\n}\n";
  EXPECT_EQ(run("n.fus"), 2);
  EXPECT_NE(read("err").find("--dim N="), std::string::npos) << read("err");
  EXPECT_EQ(run("n.fus --dim N=5 --count 20 --device reference"), 0) << read("err");
  EXPECT_NE(read("out").find("held to every bit: 100,"), std::string::npos) << read("out");
  std::ofstream(dir / "a.fus") << "graph @g(%x: f32[N]) -> i64[] {\n  %y = argmax %x\n  return %y\n}\n";
  EXPECT_EQ(run("a.fus --dim N=0"), 2) << "nothing is tried";
  EXPECT_NE(read("err").find("the reference evaluates it for no seed"), std::string::npos) << read("err");
}

TEST_F(FuzzCli, WhatComesAfterASumOfSymbolicRowsIsComparedToo) {
  std::ofstream(dir / "s.fus") << "graph @g(%x: f32[N,C]) -> f32[N,C] {\n  %y = softmax %x {axes=[1]}\n  return %y\n}\n";
  EXPECT_EQ(run("s.fus --dim N=2 --dim C=50 --count 4 --device reference"), 0) << read("err");
  EXPECT_EQ(read("out").find("to a bound: 0,"), std::string::npos) << read("out");
  EXPECT_EQ(read("out").find("refused"), std::string::npos) << read("out");
}

TEST_F(FuzzCli, ACheckKnowsOfAddendsThatCancel) {
#if !FUSEC_HAS_CPU
  GTEST_SKIP() << "wants the CPU back end";
#endif
  std::ofstream(dir / "c.fus") << "graph @cancel(%x: f64[4]) -> f64[] {\n  %y: f64[] = sum %x\n  return %y\n}\n";
  const double x[] = {3e18, 464, -3e18, 1};
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  std::ofstream(dir / "x.npy", std::ios::binary) << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << std::string_view(reinterpret_cast<const char*>(x), sizeof x);
  const std::string command = "cd '" + dir.string() + "' && '" FUSEC_BINARY_DIR "/fusec' run c.fus -i x=x.npy --device cpu --check >out 2>err";
  EXPECT_EQ(std::system(command.c_str()), 0) << read("out") << read("err");
  EXPECT_NE(read("out").find("within its own bound"), std::string::npos) << read("out") << read("err");
}

}  // namespace
