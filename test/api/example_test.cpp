// The example that include/fusec/fusec.h starts with, compiled and run; and the header still says the same.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

namespace {

int fail(const std::string& why) {
  std::cerr << why << "\n";
  return 1;
}

int example(std::vector<float>& result) {
  // clang-format off
  // example begins
  fusec::Result<fusec::Graph> graph = fusec::parse(R"(
    graph @scale_relu(%x: f32[N,4], %s: f32[4]) -> f32[N,4] {
      %m: f32[N,4] = mul %x, %s
      %y: f32[N,4] = relu %m
      return %y
    })");
  if (!graph) return fail(graph.error().text());
  fusec::Result<fusec::Program> program = fusec::compile(*graph, {.device = "cpu"});
  if (!program) return fail(program.error().text());

  std::vector<float> x(8, -1.0f), s = {1, 2, 3, 4}, y(8);
  x[5] = 3;
  const int64_t rows[] = {2, 4}, row[] = {4};
  fusec::Status done = program->run({{x.data(), rows}, {s.data(), row}}, {{y.data(), rows}});
  if (!done) return fail(done.error().text());
  // y[5] is 6, everything else 0.
  // example ends
  // clang-format on
  result = y;
  return 0;
}

TEST(Example, Runs) {
#if FUSEC_HAS_CPU
  std::vector<float> y;
  ASSERT_EQ(example(y), 0);
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0, 0, 0, 6, 0, 0}));
#else
  GTEST_SKIP() << "the example wants the CPU back end";
#endif
}

std::vector<std::string> lines_between(const std::string& path, const std::string& first, const std::string& last, const std::string& prefix) {
  std::ifstream file(path);
  std::vector<std::string> out;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (inside && line.find(last) != line.npos) return out;
    if (inside) out.push_back(line.starts_with(prefix) ? line.substr(prefix.size()) : line == "//" ? "" : line);
    if (!inside && line.find(first) != line.npos) inside = true;
  }
  return {};
}

TEST(Example, StandsInTheHeader) {
  const auto here = lines_between(FUSEC_SOURCE_DIR "/test/api/example_test.cpp", "// example begins", "// example ends", "  ");
  auto there = lines_between(FUSEC_SOURCE_DIR "/include/fusec/fusec.h", "#include <fusec/fusec.h>", "// Graphs can also be built", "//   ");
  ASSERT_GT(here.size(), 10u);
  ASSERT_GT(there.size(), here.size());
  there.erase(there.begin());  // the blank line behind the include
  there.resize(here.size());
  EXPECT_EQ(there, here);
}

}  // namespace
