// What the fuzzers found worth keeping, and every input that once did harm, through the same functions.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lib/support/files.h"
#include "test/fuzz/targets.h"

namespace fusec::fuzz {
namespace {

namespace fs = std::filesystem;

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, HoldsTogether) {
  const Target& target = GetParam();
  const fs::path corpus = fs::path(FUSEC_SOURCE_DIR) / "test/fuzz/corpus";
  std::vector<fs::path> folders{corpus / target.name};
  if (folders[0].filename() == "onnx_file") folders.push_back(corpus / "onnx");  // models too; its own are those that add to them
  std::vector<std::string> files;
  for (const fs::path& folder : folders) {
    const size_t before = files.size();
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path().string());
    ASSERT_GT(files.size(), before) << folder;
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const Result<std::string> bytes = read_file(file);
    ASSERT_TRUE(bytes) << bytes.error().text();
    EXPECT_LE(bytes->size(), 20000u) << file;
    EXPECT_EQ(target.run(*bytes), "") << file;
    // Cut anywhere it may be refused, and nothing else; a few places of each are enough here.
    for (size_t part = 1; part < 4; ++part) EXPECT_EQ(target.run(std::string_view(*bytes).substr(0, bytes->size() * part / 4)), "") << file;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const testing::TestParamInfo<Target>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusec::fuzz
