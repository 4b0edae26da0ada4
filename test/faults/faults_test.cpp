// docs/faults.md is written from cases.txt and from what the tests say of themselves: every case is held by a test that is there, or says
// why it cannot apply.
//
//   FUSEC_BLESS=1 build/test/faults_test     writes the page

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

namespace fusec {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

const fs::path kTests = fs::path(FUSEC_SOURCE_DIR) / "test";

const std::regex kGraph("graph @(\"[^\"]*\"|[\\w.]+).*");

/// How a file's graphs are tested: evals with a symbol tiled ("N"), at their own size only (""), or as they stand ("none"); by what a
/// command prints ("expect").
std::map<std::string, std::set<std::string>> forms(const fs::path& file) {
  std::map<std::string, std::set<std::string>> out;
  std::string form = "none", graph;
  static const std::regex variants("; variants: *(\\w*)"), eval("; eval: @(\"[^\"]*\"|[\\w.]+).*");
  for (const std::string& line : lines(read(file))) {
    std::smatch m;
    if (std::regex_match(line, m, kGraph)) graph = m.str(1);
    else if (line.starts_with("; expect")) out[graph].insert("expect");
    else if (std::regex_match(line, m, variants)) form = m.str(1);
    else if (std::regex_match(line, m, eval)) out[m.str(1)].insert(form);
  }
  return out;
}

/// Case → "file.fus @graph" of this folder, with the mark of how it is run. A line "; A-001 A-002" speaks of the graphs below it, up to the next such line.
std::map<std::string, std::vector<std::string>> graphs_of_cases() {
  std::map<std::string, std::vector<std::string>> out;
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kTests / "faults"))
    if (entry.path().extension() == ".fus") files.insert(entry.path());
  static const std::regex tag("; A-[0-9]{3}( A-[0-9]{3})*");
  for (const fs::path& file : files) {
    std::vector<std::string> cases;
    const auto runs = forms(file);
    for (const std::string& line : lines(read(file))) {
      std::smatch m;
      if (std::regex_match(line, tag)) {
        cases.clear();
        std::istringstream words(line.substr(2));
        for (std::string word; words >> word;) cases.push_back(word);
      } else if (std::regex_match(line, m, kGraph)) {
        const std::string name = m.str(1);
        const auto run = runs.find(name);
        EXPECT_TRUE(run != runs.end()) << file << ": @" << name << " has neither eval nor expectation";
        if (run == runs.end()) continue;
        const char* mark = run->second.contains("none") ? " †" : run->second.contains("") ? " *" : "";
        for (const std::string& c : cases) out[c].push_back("`" + file.filename().string() + " @" + name + "`" + mark);
      }
    }
  }
  return out;
}

/// "program Suite.Test" of every test program's text.
std::set<std::string> tests() {
  std::set<std::string> out;
  static const std::regex test("TEST(_F|_P)?\\((\\w+), *(\\w+)\\)");
  for (const auto& entry : fs::recursive_directory_iterator(kTests)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".cpp" || !stem.ends_with("_test")) continue;
    const std::string text = read(entry.path());
    for (std::sregex_iterator m(text.begin(), text.end(), test), end; m != end; ++m) out.insert(stem + " " + m->str(2) + "." + m->str(3));
  }
  return out;
}

struct Row {
  std::string name, what, held;  // "A-001", a sentence, what stands behind the bar
};

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const std::string& line : lines(read(kTests / "faults/cases.txt"))) {
    if (line.size() < 6 || line[0] == '#') continue;
    const size_t space = line.find(' '), bar = std::min(line.find(" | "), line.size());
    out.push_back({line.substr(0, space), line.substr(space + 1, bar - space - 1), bar < line.size() ? line.substr(bar + 3) : ""});
  }
  return out;
}

/// The tests of a row as the page has them; a test that is not there is a failure.
std::string held(const Row& row, const std::vector<std::string>& graphs, const std::set<std::string>& known) {
  if (row.held.starts_with("no: ")) {
    EXPECT_TRUE(graphs.empty()) << row.name << " is tested and yet cannot apply";
    return "– " + row.held.substr(4);
  }
  std::string out;
  for (const std::string& graph : graphs) out += (out.empty() ? "" : ", ") + graph;
  const size_t note = row.held.find("; ");
  std::istringstream names(row.held.substr(0, note));
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    EXPECT_TRUE(known.contains(name)) << row.name << ": there is no test " << name;
    out += (out.empty() ? "`" : ", `") + name + "`";
  }
  EXPECT_FALSE(out.empty()) << row.name << " is held by no test";
  return note == std::string::npos ? out : out + row.held.substr(note);
}

std::string page() {
  const auto graphs = graphs_of_cases();
  const std::set<std::string> known = tests();
  std::string out = R"(# Faults that others have had

Compilers of this kind fail in the same ways again and again: a NaN is lost, a denormal flushed, a stale kernel found, a misaligned pointer
trusted. Below are 135 such faults in 34 kinds, gathered from public bug reports, and for each the tests that would see it here. The page is
written by `faults_test` from test/faults/cases.txt and from the tests, and fails when one of them is gone.

A name such as `nan.fus @sign` is a graph in test/faults, which `fusec test test/faults` runs in each of these ways on every device that
there is (reference, CPU, GPUs; simt with `--device simt`): as it stands, and with 67 and 4099 elements; each dense, at stride 2, and one element behind an aligned
address; and with its inputs known, folded by the passes. `variants_test` counts the calls. Where the extents are the case a graph is not tiled: *.
One of which an eval gives other sizes of its own is run with those, as they stand: †. Another name is a GoogleTest program and its test.
)";
  std::set<std::string> listed;
  for (const Row& row : rows()) {
    EXPECT_TRUE(listed.insert(row.name).second) << row.name << " is listed twice";
    if (row.name[0] == 'R') {
      const size_t colon = row.what.find(": ");
      std::string title = row.what.substr(0, std::min(colon, row.what.size()));
      if (title.ends_with('.')) title.pop_back();
      out += "\n## " + row.name + " " + title + "\n";
      if (colon != std::string::npos) {
        std::string rest = row.what.substr(colon + 2);
        rest[0] = char(std::toupper(rest[0]));
        out += rest + "\n";
      }
      out += "\n| | what went wrong elsewhere | held by |\n|---|---|---|\n";
      continue;
    }
    const auto found = graphs.find(row.name);
    out += "| " + row.name + " | " + row.what + " | " + held(row, found == graphs.end() ? std::vector<std::string>{} : found->second, known) + " |\n";
  }
  for (const auto& [name, where] : graphs) EXPECT_TRUE(listed.contains(name)) << where[0] << " speaks of " << name;
  for (const auto& [letter, digits, most] : {std::tuple("A-", 3, 135), std::tuple("R-", 2, 34)})
    for (int k = 1; k <= most; ++k) {
      const std::string number = std::to_string(k), name = letter + std::string(size_t(digits) - number.size(), '0') + number;
      EXPECT_TRUE(listed.contains(name)) << name << " is not listed";
    }
  return out;
}

TEST(Faults, ThePageIsWhatTheTestsSay) {
  const fs::path path = fs::path(FUSEC_SOURCE_DIR) / "docs/faults.md";
  const std::string wanted = page();
  if (std::getenv("FUSEC_BLESS")) std::ofstream(path, std::ios::binary) << wanted;
  EXPECT_EQ(read(path), wanted) << "FUSEC_BLESS=1 faults_test writes it";
}

}  // namespace
}  // namespace fusec
