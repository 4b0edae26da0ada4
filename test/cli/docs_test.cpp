// The pages say only what holds: every `fusec …` line in a sh block of README.md and docs/*.md runs and exits as the page says (0, or
// N where a trailing comment says `# exit N`), links lead somewhere, and README.md names every page.
//
// Commands run in a copy of docs/ and tools/bench, so that they may write. Not run: GPUs (`--device cuda`), the scripts of tools/.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace {

namespace fs = std::filesystem;

const fs::path kSource = FUSEC_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<fs::path> pages() {
  std::vector<fs::path> out = {kSource / "README.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") out.push_back(entry.path());
  std::sort(out.begin() + 1, out.end());
  return out;
}

struct Command {
  std::string where, line;
  int status = 0;
};

/// The fusec lines of a page's sh blocks; a line that ends in a backslash goes on.
std::vector<Command> commands(const fs::path& page) {
  std::vector<Command> out;
  std::istringstream text(read(page));
  std::string line;
  bool inside = false, open = false;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```sh";
      open = false;
      continue;
    }
    if (!inside) continue;
    if (open) {
      out.back().line += line;
    } else if (line.starts_with("fusec ")) {
      out.push_back({page.filename().string() + ":" + std::to_string(number), line});
    } else {
      continue;
    }
    open = line.ends_with("\\");
    if (open) out.back().line.pop_back();
    std::smatch found;
    if (static const std::regex kExit("# exit ([0-9]+)$"); std::regex_search(out.back().line, found, kExit)) out.back().status = std::stoi(found[1]);
  }
  return out;
}

bool runs_here(const std::string& line) {
  const auto has = [&](const char* what) { return line.find(what) != std::string::npos; };
  if (has("--device cuda") || has("tools/check") || has("tools/quickstart") || has("tools/bench/compare")) return false;
#if !FUSEC_HAS_CUDA
  if (has("sm_") || has("simt")) return false;
#endif
  if (has("simt")) return fs::exists(FUSEC_BINARY_DIR "/test/simt/libfusec_simt.so");
  return true;
}

TEST(Docs, CommandsDoWhatThePagesSay) {
#if !FUSEC_HAS_CPU
  GTEST_SKIP() << "the pages are written for a build with the CPU back end";
#endif
  char name[] = "/tmp/fusec-docs-XXXXXX";
  const fs::path dir = ::mkdtemp(name);
  fs::create_directories(dir / "bin");
  fs::create_directories(dir / "tools");
  fs::create_symlink(FUSEC_BINARY_DIR "/fusec", dir / "bin" / "fusec");
  fs::copy(kSource / "docs", dir / "docs", fs::copy_options::recursive);
  fs::copy(kSource / "tools" / "bench", dir / "tools" / "bench", fs::copy_options::recursive);
  ::setenv("FUSEC_CACHE_DIR", (dir / "cache").c_str(), 1);
  ::setenv("TMPDIR", dir.c_str(), 1);
  ::setenv("PATH", ((dir / "bin").string() + ":" + ::getenv("PATH")).c_str(), 1);
  int ran = 0;
  for (const fs::path& page : pages())
    for (const Command& command : commands(page)) {
      if (!runs_here(command.line)) continue;
      std::ofstream(dir / "line.sh") << command.line << "\n";
      const int status = std::system(("cd '" + dir.string() + "' && sh line.sh >out 2>&1 </dev/null").c_str());
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == command.status) << command.where << ": " << command.line << "\n" << read(dir / "out");
      ++ran;
    }
  EXPECT_GT(ran, 20);
  fs::remove_all(dir);
}

TEST(Docs, LinksLeadSomewhere) {
  static const std::regex kLink(R"(\]\(([^)#:]+)\))");
  for (const fs::path& page : pages()) {
    const std::string text = read(page);
    for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it)
      EXPECT_TRUE(fs::exists(page.parent_path() / (*it)[1].str())) << page << ": " << (*it)[1];
  }
}

TEST(Docs, ReadmeNamesEveryPage) {
  const std::string readme = read(kSource / "README.md");
  for (const fs::path& page : pages())
    if (page.filename() != "README.md") {
      EXPECT_NE(readme.find("(docs/" + page.filename().string() + ")"), std::string::npos) << page;
    }
}

}  // namespace
