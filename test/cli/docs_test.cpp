// The pages say only what holds: every command in a sh block of README.md and docs/*.md runs and exits as the page says (0, or N where
// a trailing comment says `# exit N`), links lead somewhere, and README.md names every page. A block behind a sh block that opens with
// ```text is what its commands print, to the letter but for times, progress and the numbers of schedules (settled() below); in it "…"
// stands for any text within a line, and alone in a line for any lines.
//
// Commands run in a copy of docs/ and tools/bench, so that they may write. Not run: GPUs (`--device cuda`), the scripts of tools/.
// FUSEC_BLESS=1 docs_test puts what was printed into the pages, but for blocks with "…".

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
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

/// A sh block, and the text block that follows it.
struct Block {
  std::vector<Command> commands;
  bool exact = false;
  std::string printed;
};

bool is_command(const std::string& line) {
  for (const char* start : {"fusec ", "FUSEC_", "export FUSEC_", "printf "})
    if (line.starts_with(start)) return line.find("fusec ") != line.npos;
  return false;
}

std::vector<Block> blocks(const fs::path& page) {
  std::vector<Block> out;
  std::istringstream text(read(page));
  std::string line;
  enum { prose, shell, behind, printed, other } at = prose;
  bool open = false;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.starts_with("```")) {
      if (at == prose || at == behind) {
        if (at == behind && line == "```text") out.back().exact = true;
        at = line == "```sh" ? shell : at == behind && line == "```text" ? printed : other;
        if (at == shell) out.emplace_back();
      } else {
        at = at == shell ? behind : prose;
      }
      open = false;
      continue;
    }
    if (at == behind) at = prose;
    if (at == printed) out.back().printed += line + "\n";
    if (at != shell) continue;
    std::vector<Command>& commands = out.back().commands;
    if (open) {
      commands.back().line += line;
    } else if (is_command(line)) {
      commands.push_back({page.filename().string() + ":" + std::to_string(number), line});
    } else {
      continue;
    }
    open = line.ends_with("\\");
    if (open) commands.back().line.pop_back();
    std::smatch found;
    if (static const std::regex kExit("# exit ([0-9]+)$"); std::regex_search(commands.back().line, found, kExit))
      commands.back().status = std::stoi(found[1]);
  }
  return out;
}

const std::string kAny = "…";

bool fits(std::string_view line, std::string_view pattern) {
  const size_t any = pattern.find(kAny);
  if (any == pattern.npos) return line == pattern;
  if (!line.starts_with(pattern.substr(0, any))) return false;
  for (size_t from = any; from <= line.size(); ++from)
    if (fits(line.substr(from), pattern.substr(any + kAny.size()))) return true;
  return false;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// The first line of the page that was not printed, or nothing.
std::optional<std::string> missing(const std::vector<std::string>& printed, const std::vector<std::string>& page) {
  // reach[i]: the printed lines that the page's lines so far may have taken.
  std::set<size_t> reach = {0};
  for (const std::string& pattern : page) {
    std::set<size_t> next;
    if (pattern == kAny) {
      for (size_t i = *reach.begin(); i <= printed.size(); ++i) next.insert(i);
    } else {
      for (size_t i : reach)
        if (i < printed.size() && fits(printed[i], pattern)) next.insert(i + 1);
    }
    if (next.empty()) return pattern;
    reach = std::move(next);
  }
  return reach.contains(printed.size()) ? std::nullopt : std::optional<std::string>("the end");
}

/// Without what differs from run to run and from processor to processor: times, rates, sizes of object files, numbers of schedules.
std::string settled(std::string text) {
  static const std::pair<std::regex, const char*> kUnsettled[] = {
      {std::regex("[0-9.]+ (ns|µs|ms|s)\\b"), "TIME"},
      {std::regex("[0-9.]+ [kMGT]?B/s"), "RATE"},
      {std::regex("[0-9.]+ [kM]?B of at most"), "SIZE of at most"},
      {std::regex("median of [0-9]+"), "median of RUNS"},
      {std::regex("[0-9.]+ a second"), "RATE"},
      {std::regex("LLVM (TIME|not needed)(, all else)"), "LLVM$2"},  // another process may have compiled it
      {std::regex("(compiling and running @[^ ]*|comparing with the reference evaluator) [.][.][.]\n"), ""},  // when it takes a second
      {std::regex("([\r\n]*[0-9]+ graphs, [0-9]+ failed)+\n"), ""},
      // Of a CPU's schedule counts which skeleton it is and what that keeps on chip; the numbers are the processor's. A GPU's counts whole.
      {std::regex("(schedule +|^g[0-9]+: )(cpu_[a-z_]+)( keep=[a-z_]+) [^\n]*"), "$1$2$3"},
      {std::regex(" +launch [^\n]*\n"), ""},
  };
  for (const auto& [what, name] : kUnsettled) text = std::regex_replace(text, what, name);
  return text;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
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
  const bool bless = ::getenv("FUSEC_BLESS") != nullptr;
  int ran = 0, compared = 0;
  for (const fs::path& page : pages()) {
    std::string text = read(page);
    for (const Block& block : blocks(page)) {
      std::string printed;
      bool whole = true;
      for (const Command& command : block.commands) {
        whole &= runs_here(command.line);
        if (!runs_here(command.line)) continue;
        std::string line = command.line, out;
        replace_all(line, "/tmp/fusec", dir.string() + "/t");
        std::ofstream(dir / "line.sh") << line << "\n";
        const int status = std::system(("cd '" + dir.string() + "' && sh line.sh >out 2>&1 </dev/null").c_str());
        out = read(dir / "out");
        replace_all(out, dir.string() + "/t", "/tmp/fusec");
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == command.status) << command.where << ": " << command.line << "\n" << out;
        printed += out;
        ++ran;
      }
      if (!whole || !block.exact) continue;
      ++compared;
      const std::optional<std::string> gone = missing(lines(settled(printed)), lines(settled(block.printed)));
      if (!gone) continue;
      if (bless && block.printed.find(kAny) == block.printed.npos) replace_all(text, "```text\n" + block.printed + "```", "```text\n" + printed + "```");
      else ADD_FAILURE() << block.commands.back().where << ": no longer printed: " << *gone << "\nprinted:\n" << printed.substr(0, 4000);
    }
    if (bless && text != read(page)) std::ofstream(page, std::ios::binary) << text;
  }
  EXPECT_GT(ran, 20);
  EXPECT_GT(compared, 10);
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
