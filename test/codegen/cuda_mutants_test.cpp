// Is everything that keeps a skeleton right needed, and would the runner see it missing? Faults are planted by changing the emitted text:
//
//   order   a barrier, fence, wait or arrival is dropped
//   mask    a shuffle asks for one lane less
//   guard   an `if` that was false at least once is taken (or, where it leaves a loop, is not)
//   clamp   a length, row or end that was cut at least once is not
//
// Each is planted in every kernel of kSkeletons that runs it (a probe that traps says so), and must then be reported, or, for guards and
// clamps, change a bit of the result. What may go unseen stands in kSpare with its reason. Nothing here knows a template by name: a new
// template needs a row of kSkeletons, and is then mutated.

#include <iostream>
#include <map>
#include <regex>
#include <set>

#include "test/codegen/cuda_skeletons.h"

namespace fusec {
namespace {

struct Fault {
  size_t at, length;
  std::string probe, put;  // traps when the fault would make a difference; plants it
};

/// The end of what the bracket at `open` opens.
size_t closing(const std::string& text, size_t open) {
  size_t end = open + 1;
  for (int depth = 1; depth && end < text.size(); ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
  return end;
}

bool starts_word(const std::string& text, size_t at) {
  const char before = at ? text[at - 1] : ' ';
  return before != '_' && !isalnum(static_cast<unsigned char>(before));
}

/// Calls that order something and stand as statements: "name(…);". What wraps one instruction counts where it is called.
std::vector<Fault> orders(const std::string& text) {
  std::vector<Fault> out;
  static const std::regex call("\\b([a-z_]*(?:sync|wait|arrive|fence)[a-z_]*)(<[^;{}]*>)?\\(");
  for (std::sregex_iterator m(text.begin(), text.end(), call), none; m != none; ++m) {
    const size_t at = size_t(m->position()), end = closing(text, at + size_t(m->length()) - 1);
    if (text[end] == ';' && !m->str(1).starts_with("simt_")) out.push_back({at, end + 1 - at, "__trap();", ";"});
  }
  return out;
}

/// Masks of all lanes, in warp-wide calls.
std::vector<Fault> masks(const std::string& text) {
  std::vector<Fault> out;
  static const std::regex whole("__[a-z_]+_sync\\((0xffffffffu?)");
  for (std::sregex_iterator m(text.begin(), text.end(), whole), end; m != end; ++m)
    out.push_back({size_t(m->position(1)), size_t(m->length(1)), "(__trap(), 0xffffffffu)", "0x7fffffffu"});
  return out;
}

/// Where skeletons and the body stand in a text: the prelude's own branches look at values, not at places.
std::vector<std::pair<size_t, size_t>> regions(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> out;
  for (const auto& [name, file] : template_files())
    if (const size_t at = text.find(file); at != text.npos) out.push_back({at, at + file.size()});
  const size_t k = text.find("\nstruct K {"), filled = text.find("\nstruct Args {");
  out.push_back({k != text.npos ? k : filled, text.size()});
  return out;
}

/// `if (condition)`; a condition that leaves a loop is dropped by never being true.
std::vector<Fault> guards(const std::string& text) {
  std::vector<Fault> out;
  for (const auto& [begin, end] : regions(text))
    for (size_t at = text.find("if (", begin); at < end; at = text.find("if (", at + 1)) {
      const size_t open = at + 3, close = closing(text, open);
      if (!starts_word(text, at) || text.find_first_of("<>", open) >= close) continue;
      const std::string condition = text.substr(open, close - open);
      const size_t then = text.find_first_not_of(' ', close);
      const bool leaves = text.compare(then, 5, "break") == 0 || text.compare(then, 8, "continue") == 0 || text.compare(then, 6, "return") == 0;
      if (leaves) out.push_back({open, close - open, "(" + condition + " && (__trap(), true))", "(false)"});
      else out.push_back({open, close - open, "(" + condition + " || (__trap(), false))", "(true)"});
    }
  return out;
}

/// `a < b ? a : rest`, either of which is then taken always, and lengths of a vector, `… ? (int)K::V : (int)left` or `… ? 8 : (int)left`.
std::vector<Fault> clamps(const std::string& text) {
  std::vector<Fault> out;
  static const std::regex least("(\\w[\\w +*()]*) < (\\w+) \\? \\1 : ([\\w +\\-]+)"), length("(\\(int\\)K::V|\\? \\d+) : (\\(int\\)(?:\\w+|\\([\\w -]+\\)))"),
      other("< (K::V|\\d+) \\? (\\(int\\)left) : ");
  auto whole = [](const std::string& v) { return v.find('K') != v.npos ? std::string("(int)K::V") : v.substr(v.find_first_of("0123456789")); };
  for (const auto& [begin, end] : regions(text)) {
    const auto from = text.begin() + ptrdiff_t(begin), to = text.begin() + ptrdiff_t(end);
    for (std::sregex_iterator m(from, to, least), none; m != none; ++m) {
      const std::string a = m->str(1), rest = m->str(3), differ = "(" + a + ") != (" + rest + ") ? (__trap(), ";
      const size_t last = begin + size_t(m->position(3)), taken = last - 3 - a.size();
      out.push_back({last, rest.size(), "(" + differ + rest + ") : " + rest + ")", a});
      out.push_back({taken, a.size(), "(" + differ + a + ") : " + a + ")", rest});
    }
    for (const std::regex& pattern : {length, other})
      for (std::sregex_iterator m(from, to, pattern), none; m != none; ++m)
        out.push_back({begin + size_t(m->position(2)), size_t(m->length(2)), "(__trap(), " + m->str(2) + ")", whole(m->str(1))});
  }
  return out;
}

/// The line of a place and the one below it, without indentation.
std::string lines_at(const std::string& text, size_t at) {
  std::string out;
  size_t begin = text.rfind('\n', at) + 1;
  for (int line = 0; line < 2 && begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size()), word = std::min(text.find_first_not_of(' ', begin), end);
    out += (line ? " / " : "") + text.substr(word, end - word);
    begin = end + 1;
  }
  return out;
}

/// What no run needs to see. `lines` is part of "the place's line / the one below it -> what was put".
struct Spare {
  const char *skeleton, *lines, *why;  // skeleton: the beginning of its name
};
const Spare kSpare[] = {
    {"column", "__syncthreads(); / if (y == 0) acc.put(at + x);", "between the last merge and its broadcast: who read an element writes the same one"},
    {"ring_of_lanes", "wait_merged((i - 1) * K::Folds - 1);", "keeps rows from being handed out too early for the queue, which not every order overruns"},
    {"ring_columns_stay", "__syncwarp(); / if (lane == 0) barrier_arrive(full, bytes);", "the other lanes write single bytes, and here there are none; ring_columns_odd needs it"},
    {"ring_columns_of_teams", "__syncwarp(); / if (lane == 0) barrier_arrive(full, bytes);", "as above"},
    {"ring_", "__threadfence(); / last = atomicAdd(counters, 1u) == gridDim.x - 1;", "keeps zeros from overtaking what others still read; the runner's loads are done at once"},
    {"ring_columns", "K::issue_columns(a, from, from < 0 ? 0 : from, end < columns ? end : columns, slice, columns_at(slot), sh.columns_full + slot, policy); / } -> end",
     "bulk_window ends where the operand does; zeros behind it are only work"},
    {"scan", "__threadfence(); / last = atomicAdd(counters + 1, 1u) == blocks - 1;", "keeps a flag that is raised late from landing behind the zero; the runner's memory delays no store"},
    {"scan_columns", "if (n <= 0 || first + s >= columns) continue;", "forward, what is folded behind the end reaches nobody; backward and parts need it"},
    // Of two guards one is enough: for n <= 0 elements the body loads, folds and stores none. The outer one saves the work.
    {"pointwise", "if (left <= 0) break;", "n <= 0"},
    {"rows_together", "if (base + i < rows) {", "a lane without a row of its own writes its last one again, the same thread the same bits"},
    {"column", "if (n > 0) { / // U positions", "n = 0"},
    {"column_slides", "skew > 0 || n)) { / At slid{};", "saves the work of lanes whose columns nobody wants"},
    {"column_slides", "__syncthreads(); / acc.get(at + x);", "the first thread of a column, which alone stores its sum, has it"},
    // Arguments that this kernel does not look at.
    {"ring_odd", "to = from + slice < end ? from + slice : end; / K::issue(", "bulk_window ends where the operand does; nobody reads what it brought too much"},
    {"ring_by_words", "K::issue_columns(a, from, from < 0 ? 0 : from, end < columns ? end : columns, slice, columns_at(slot), sh.columns_full + slot, policy); / } -> end",
     "as in ring_columns"},
    {"ring_by_words_of_clusters", "to = from + slice < end ? from + slice : end; / if (!is_apart()) whole_vectors(", "asks ahead for parameters that no vector of the slice has"},
    {"ring_by_words_of_clusters", "if (s + 1 < Slices) load_ahead<S>(t, from + slice, end, next);", "by words whole_vectors finds that nothing is there; rows that fill their slices need it"},
};

class Mutants : public ::testing::TestWithParam<Skeleton> {
 protected:
  /// A test that plants nothing says nothing, and an excuse that excuses nothing would hide what comes.
  static void TearDownTestSuite() {
    if (!simt::Library::open().ok() || GTEST_FLAG_GET(filter) != "*") return;
    for (const auto& [kind, least] : {std::pair{"orders", 30}, {"masks", 10}, {"guards", 20}, {"clamps", 10}}) {
      std::cout << planted_[kind] << " " << kind << "\n";
      EXPECT_GE(planted_[kind], size_t(least)) << kind;
    }
    for (const Spare& known : kSpare) EXPECT_TRUE(used_.count(&known)) << "excuses nothing: " << known.skeleton << ", " << known.lines;
  }
  void SetUp() override {
    if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
    s_ = subject(GetParam().text);
    inputs_ = inputs_of(GetParam(), s_);
    right_ = ran(SIMT_FORWARD, nullptr);
    ASSERT_EQ(right_.trouble, "");
  }
  Ran ran(simt_order order, const Fault* fault, bool probe = false) {
    How how = how_of(GetParam());
    how.order = order;
    if (fault) how.edit = [&](std::string& text) { text.replace(fault->at, fault->length, probe ? fault->probe : fault->put); };
    return run(s_, GetParam().sizes, inputs_, how);
  }
  bool matters(const Fault& fault) { return ran(SIMT_FORWARD, &fault, true).trouble.find("trap by") != std::string::npos; }
  /// Each fault that matters is reported in every order, or spare. Those that do not hang on the order may show in the results.
  void plant(const char* kind, const std::vector<Fault>& faults, bool ordering) {
    static std::set<std::string> seen;  // what an earlier row has planted in the same text and seen
    for (const Fault& fault : faults) {
      const std::string place = lines_at(right_.text, fault.at);
      const std::string around = right_.text.substr(fault.at - std::min<size_t>(fault.at, 80), 160 + fault.length) + fault.put;
      if (seen.contains(around) && std::string(kind) != "masks") continue;  // all shuffles are one line of the prelude
      if (!matters(fault)) continue;
      ++planted_[kind];
      size_t unseen = 0;
      for (simt_order order : {SIMT_FORWARD, SIMT_REVERSE, SIMT_RANDOM}) {
        const Ran now = ran(order, &fault);
        unseen += now.trouble == "" && (ordering || now.outputs == right_.outputs);
        if (!ordering) break;
      }
      bool spare = false;
      if (unseen != 0)
        for (const Spare& known : kSpare)
          if (std::string(GetParam().name).starts_with(known.skeleton) && (place + " -> " + fault.put).find(known.lines) != place.npos)
            spare = true, used_.insert(&known);
      EXPECT_TRUE(unseen == 0 || spare) << "unseen: " << right_.text.substr(fault.at, fault.length) << " -> "
                                        << fault.put << "\nin " << place;
      if (unseen == 0) seen.insert(around);
    }
  }

  static inline std::map<std::string, size_t> planted_;
  static inline std::set<const Spare*> used_;
  Subject s_{};
  std::vector<Tensor> inputs_;
  Ran right_;
};

TEST_P(Mutants, DroppedBarriersAreSeen) { plant("orders", orders(right_.text), true); }

TEST_P(Mutants, ShortMasksAreSeen) { plant("masks", masks(right_.text), true); }

TEST_P(Mutants, MissingGuardsAreSeen) { plant("guards", guards(right_.text), false); }

TEST_P(Mutants, MissingClampsAreSeen) { plant("clamps", clamps(right_.text), false); }

INSTANTIATE_TEST_SUITE_P(Cuda, Mutants, ::testing::ValuesIn(kSkeletons), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusec
