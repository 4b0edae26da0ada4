// Processes that fork: before anything of fusec ran, and after its threads, its cache and its compiler are up. The child compiles and
// runs, the parent goes on, and neither waits for what only the other has.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "fusec/fusec.h"

namespace fusec {
namespace {

/// x * factor + 1 over enough elements for every thread; the code differs with the factor.
bool works(const Program& program, float factor) {
  std::vector<float> x(1 << 20), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 1000);
  const int64_t extents[] = {int64_t(x.size())};
  if (!program.run({{x.data(), extents}}, {{y.data()}})) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (y[i] != x[i] * factor + 1) return false;
  return true;
}

Result<Program> scaled(float factor) {
  GraphBuilder b("scaled");
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N")}});
  const Value y = b.add(Op::add, {b.add(Op::mul, {x, b.scalar(DType::f32, factor)}), b.scalar(DType::f32, 1)});
  auto graph = std::move(b).finish({y});
  if (!graph) return graph.error();
  return compile(*graph, {.device = "cpu"});
}

bool compiles_and_works(float factor) {
  const auto program = scaled(factor);
  return program && works(*program, factor);
}

/// 0 when the child's body was true. A child that hangs is ended after a minute.
int in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Fork : testing::Test {
  static void SetUpTestSuite() {
    static char name[] = "/tmp/fusec-fork-XXXXXX";
    folder = ::mkdtemp(name);
    ::setenv("FUSEC_CACHE_DIR", folder.c_str(), 1);
    ::setenv("FUSEC_THREADS", "4", 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder); }
  static inline std::string folder;
};

#if FUSEC_HAS_CPU
TEST_F(Fork, BeforeTheFirstUse) {
  EXPECT_EQ(in_child([] { return compiles_and_works(2); }), 0);
  EXPECT_TRUE(compiles_and_works(2)) << "the parent, with what the child left in the cache";
}

TEST_F(Fork, AfterThreadsAndCompilerAreUp) {
  const auto program = scaled(3);
  ASSERT_TRUE(program) << program.error().text();
  ASSERT_TRUE(works(*program, 3));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(in_child([&] { return works(*program, 3); }), 0) << "a program of the parent";
    EXPECT_EQ(in_child([&] { return compiles_and_works(float(10 + round)); }), 0) << "one of its own";
    EXPECT_EQ(in_child([&] { return in_child([&] { return works(*program, 3) && compiles_and_works(float(20 + round)); }) == 0 && works(*program, 3); }), 0)
        << "a grandchild, then the child";
    EXPECT_TRUE(works(*program, 3) && compiles_and_works(float(30 + round))) << "the parent goes on";
  }
}

TEST_F(Fork, ManyChildrenAtATime) {
  const auto program = scaled(3);
  ASSERT_TRUE(program);
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(works(*program, 3) && compiles_and_works(float(40 + c % 2)) ? 0 : 1);
    }
    children.push_back(child);
  }
  EXPECT_TRUE(works(*program, 3));
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}
#else
TEST_F(Fork, NeedsACpuBackEnd) { GTEST_SKIP(); }
#endif

}  // namespace
}  // namespace fusec
