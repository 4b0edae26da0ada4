// Includes point one way: tools → runtime → codegen → lib → include, and test sees all. include uses only the standard library;
// lib knows neither CUDA nor LLVM; the two back ends do not know each other.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, int> kFloors = {{"include", 0}, {"lib", 1}, {"codegen", 2}, {"runtime", 3}, {"tools", 4}, {"test", 5}};

struct Include {
  std::string file, target;
  bool quoted;
};

std::vector<Include> includes() {
  std::vector<Include> out;
  const std::regex line_pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  for (const auto& [folder, floor] : kFloors) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FUSEC_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".def") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (std::regex_search(line, match, line_pattern))
          out.push_back({fs::relative(entry.path(), FUSEC_SOURCE_DIR).string(), match[2], match[1] == "\""});
      }
    }
  }
  return out;
}

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

TEST(Layering, IncludesPointDownwards) {
  const std::vector<Include> all = includes();
  EXPECT_GT(all.size(), 200u);
  for (const Include& include : all) {
    std::string to = first_folder(include.target);
    if (to == "fusec") to = "include";
    const auto target = kFloors.find(to);
    if (!include.quoted || target == kFloors.end()) continue;
    EXPECT_LE(target->second, kFloors.at(first_folder(include.file))) << include.file << " includes " << include.target;
  }
}

// Numbers are written by to_chars and read by from_chars: of these, each follows the locale of the process.
TEST(Layering, NoNumberFollowsTheLocale) {
  const std::regex follows(R"(\b(strto(d|f|ld)|sto(d|f|ld)|atof|sscanf|setprecision)\s*\(|printf\s*\([^)]*%[-+ 0-9.*]*[aefgAEFG]\b)");
  EXPECT_TRUE(std::regex_search(std::string("std::printf(\"%.3f\", x)"), follows) && std::regex_search(std::string("std::stod(text)"), follows));
  for (const auto& [folder, floor] : kFloors) {
    if (folder == "test") continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FUSEC_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".def") continue;
      std::ifstream file(entry.path());
      int number = 1;
      for (std::string line; std::getline(file, line); ++number)
        EXPECT_FALSE(std::regex_search(line, follows)) << entry.path() << ":" << number << ": " << line;
    }
  }
}

TEST(Layering, PublicHeadersUseTheStandardLibraryOnly) {
  for (const Include& include : includes()) {
    if (first_folder(include.file) != "include") continue;
    const bool own = include.target.starts_with("fusec/");
    const bool c_header = include.file.ends_with("_c.h") && include.target.starts_with("std");
    const bool standard = c_header || include.target.find_first_of("./") == std::string::npos;
    EXPECT_TRUE(own || standard) << include.file << " includes " << include.target;
  }
}

TEST(Layering, BackEndsKeepToThemselves) {
  for (const Include& include : includes()) {
    const bool llvm = include.target.starts_with("llvm/");
    const bool cuda = include.target == "cuda.h" || include.target == "nvrtc.h" || include.target.starts_with("cuda_");
    const std::string& file = include.file;
    if (llvm) {
      EXPECT_TRUE(file.starts_with("codegen/cpu/") || file.starts_with("runtime/cpu/") || file.starts_with("test/"))
          << file << " includes " << include.target;
    }
    if (cuda) {
      EXPECT_TRUE(file.starts_with("codegen/cuda/nvrtc") || file.starts_with("runtime/cuda/") || file.starts_with("test/"))
          << file << " includes " << include.target;
    }
    if (file.starts_with("codegen/cuda/")) {
      EXPECT_FALSE(include.target.starts_with("codegen/cpu/")) << file;
    }
    if (file.starts_with("codegen/cpu/")) {
      EXPECT_FALSE(include.target.starts_with("codegen/cuda/")) << file;
    }
  }
}

}  // namespace
