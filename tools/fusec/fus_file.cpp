#include "tools/fusec/fus_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "lib/ir/convert.h"
#include "lib/ir/literal.h"
#include "lib/support/limits.h"
#include "lib/support/text.h"

namespace fusec::cli {
namespace {

constexpr std::string_view kRun = "; run:", kExpect = "; expect:", kError = "; expect-error:", kEval = "; eval:", kVariants = "; variants:";

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t' || s.front() == '\r')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

bool is_directive(std::string_view line) {
  for (std::string_view start : {kRun, kExpect, kError, kEval, kVariants})
    if (line.starts_with(start)) return true;
  return false;
}

/// Is `a` one letter away from `b`: another one, one more, one less, or two in turn?
bool is_near(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t front = 0, back = 0;
  while (front < a.size() && a[front] == b[front]) ++front;
  while (back < a.size() - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  const size_t left = a.size() - front - back;
  return b.size() - front - back <= 1 || (left == 2 && a.size() == b.size() && a[front] == b[front + 1] && a[front + 1] == b[front]);
}

/// A comment that looks like a directive and is none: "; eval @f(…)", ";eval: …", "; Eval: …", "; evla: …". What it was to be; "" for prose.
std::string_view mistyped(std::string_view line) {
  std::string_view text = trim(line.substr(std::min(line.find_first_not_of(';'), line.size())));
  std::string word;
  size_t end = 0;
  for (; end < text.size() && text[end] != ':' && text[end] != ' ' && text[end] != '@'; ++end) word += char(text[end] >= 'A' && text[end] <= 'Z' ? text[end] + 32 : text[end]);
  const std::string_view rest = trim(text.substr(end));
  for (std::string_view directive : {kRun, kExpect, kError, kEval, kVariants}) {
    const std::string_view name = directive.substr(2, directive.size() - 3);
    const bool called = rest.starts_with(':') || (rest.starts_with('@') && directive == kEval);
    if (called && is_near(word, name)) return directive;
  }
  return "";
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = text.find_first_not_of(' ', at);
    if (start == text.npos) break;
    at = std::min(text.find(' ', start), text.size());
    out.emplace_back(text.substr(start, at - start));
  }
  return out;
}

Error error_at(const FusFile& file, int line, std::string message) {
  Error error = input_error(std::move(message));
  error.at = {file.name, line, 1, file.lines[line - 1]};
  return error;
}

/// Position of the ')' that closes the '(' at text[0]; npos when none does.
size_t closing(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if ((text[i] == ')' || text[i] == ']') && --depth == 0) return i;
  }
  return text.npos;
}

Result<Eval> parse_eval(const FusFile& file, int line, std::string_view text) {
  Eval eval;
  eval.line = line;
  auto bad = [&](const char* what) { return error_at(file, line, std::string("eval: ") + what); };
  if (!text.starts_with('@')) return bad("@name(values) == values is expected");
  text.remove_prefix(1);
  if (text.starts_with('"')) {
    std::optional<std::string> name = take_quoted(text);
    if (!name) return bad("the quoted name does not end");
    eval.graph = *name;
  } else {
    const size_t end = text.find('(');
    eval.graph = trim(text.substr(0, end));
    text.remove_prefix(std::min(end, text.size()));
  }
  const size_t close = text.starts_with('(') ? closing(text) : text.npos;
  if (close == text.npos) return bad("(values) are expected behind the name");
  eval.arguments = text.substr(1, close - 1);
  text = trim(text.substr(close + 1));
  eval.exact = text.starts_with("==");
  if (!eval.exact && !text.starts_with("~=")) return bad("== or ~= is expected behind the arguments");
  text = trim(text.substr(2));
  // "~= 1e-3 [..]": a number in front of the first value is the tolerance.
  if (const size_t space = text.find(' '); !eval.exact && space != text.npos) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + space, eval.tolerance);
    if (error == std::errc() && end == text.data() + space) text = trim(text.substr(space));
  }
  eval.results = text;
  return eval;
}

}  // namespace

Result<FusFile> parse_fus(std::string_view text, std::string name) {
  FusFile file;
  file.name = std::move(name);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    file.lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  const std::vector<std::string>& lines = file.lines;
  std::vector<std::string> run;
  std::optional<std::string> variants;
  for (size_t i = 0; i < lines.size();) {
    const std::string_view line = lines[i];
    const int number = int(i) + 1;
    if (line.starts_with(kRun)) {
      run = words(line.substr(kRun.size()));
      if (!run.empty() && run.front() == "fusec") run.erase(run.begin());
      ++i;
    } else if (line.starts_with(kVariants)) {
      variants = trim(line.substr(kVariants.size()));
      if (*variants == "none") variants.reset();
      ++i;
    } else if (line.starts_with(kExpect) || line.starts_with(kError)) {
      if (file.cases.empty() || file.cases.back().expect != Case::nothing)
        return error_at(file, number, "this expectation belongs to no graph: each stands behind its own");
      Case& c = file.cases.back();
      c.expect_line = number;
      if (line.starts_with(kError)) {
        c.expect = Case::error;
        c.expected = trim(line.substr(kError.size()));
        ++i;
      } else if (trim(line.substr(kExpect.size())) == "unchanged") {
        c.expect = Case::unchanged;
        ++i;
      } else if (!trim(line.substr(kExpect.size())).empty()) {
        return error_at(file, number, "expect: takes 'unchanged', or the text in the lines below");
      } else {
        c.expect = Case::text;
        for (++i; i < lines.size() && (lines[i].starts_with(";   ") || lines[i] == ";"); ++i)
          c.expected += (lines[i].size() > 4 ? lines[i].substr(4) : "") + "\n";
      }
      c.expect_lines = int(i) + 1 - number;
    } else if (line.starts_with(kEval)) {
      std::string joined(trim(line.substr(kEval.size())));
      // It goes on in the next lines while a bracket is open, the results are missing, or a comma says that more follow.
      auto open = [&] {
        return std::count(joined.begin(), joined.end(), '[') != std::count(joined.begin(), joined.end(), ']') ||
               joined.find('=') == joined.npos || joined.ends_with(',') || joined.ends_with('=');
      };
      for (++i; i < lines.size() && open() && lines[i].starts_with(";") && !is_directive(lines[i]); ++i)
        joined += " " + std::string(trim(std::string_view(lines[i]).substr(1)));
      Result<Eval> eval = parse_eval(file, number, joined);
      if (!eval) return eval.error();
      eval->variants = variants;
      file.evals.push_back(std::move(*eval));
    } else if (const std::string_view meant = line.starts_with(";") ? mistyped(line) : ""; !meant.empty()) {
      return error_at(file, number, "is this '" + std::string(meant) + "'? As it is written it says nothing");
    } else if (trim(line).empty() || line.starts_with(";")) {
      ++i;
    } else {
      Case& c = file.cases.emplace_back();
      c.line = number;
      c.run = run;
      // To a closing brace at the line's start, or, when a graph is broken on purpose, to the next directive.
      for (bool done = false; !done && i < lines.size() && !is_directive(lines[i]); ++i) {
        c.graph += lines[i] + "\n";
        done = lines[i].starts_with("}");
      }
    }
  }
  return file;
}

std::vector<std::string> expectation_lines(Case::Expect expect, std::string_view text) {
  if (expect == Case::nothing) return {};
  if (expect == Case::unchanged) return {std::string(kExpect) + " unchanged"};
  if (expect == Case::error) return {std::string(kError) + " " + std::string(text)};
  std::vector<std::string> out{std::string(kExpect)};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    out.push_back(line.empty() ? ";" : ";   " + std::string(line));
    at = end + 1;
  }
  return out;
}

namespace {

/// Reads values: nested lists, whose extents follow from the brackets.
struct Values {
  std::string_view left;
  std::string fault;

  void space() { left = left.substr(std::min(left.find_first_not_of(" \t"), left.size())); }
  bool take(char c) {
    space();
    if (!left.starts_with(c)) return false;
    left.remove_prefix(1);
    return true;
  }
  bool fail(std::string what) {
    if (fault.empty()) fault = std::move(what) + (left.empty() ? ", at the end" : ", before '" + std::string(left.substr(0, 20)) + "'");
    return false;
  }

  bool literal(DType type, std::vector<std::byte>& data) {
    space();
    size_t end = 0;
    for (int depth = 0; end < left.size() && (depth || !std::strchr(",[]* \t", left[end])); ++end)
      depth += left[end] == '(' ? 1 : left[end] == ')' ? -1 : 0;
    if (end == 0) return fail("a value is expected");
    std::byte element[8] = {};
    if (Status parsed = parse_element(type, left.substr(0, end), element); !parsed) return fail(parsed.error().message);
    data.insert(data.end(), element, element + bytes(type));
    left.remove_prefix(end);
    return true;
  }

  /// One value; its extents are appended to `extents`, which must agree between siblings.
  bool value(DType type, std::vector<std::byte>& data, std::vector<int64_t>& extents, int depth = 0) {
    if (depth > 8) return fail("lists are nested more than 8 deep");
    if (!take('[')) return extents.clear(), literal(type, data);
    const size_t start = data.size();
    int64_t count = 0;
    std::vector<int64_t> inner, first;
    if (!take(']')) {
      do {
        if (!value(type, data, inner, depth + 1)) return false;
        if (count++ == 0) first = inner;
        else if (inner != first) return fail("sublists differ in length");
      } while (take(','));
      if (!take(']')) return fail("',' or ']' is expected");
    }
    if (take('*')) {
      space();
      int64_t times = 0;
      const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), times);
      if (error != std::errc() || times < 0 || times > (1 << 24)) return fail("a count is expected behind '*'");
      left.remove_prefix(end - left.data());
      if ((data.size() - start) * size_t(times) > size_t{kMaxSplatBytes}) return fail("a list of more than 2^28 bytes");
      const std::vector<std::byte> once(data.begin() + start, data.end());
      data.resize(start);
      for (int64_t i = 0; i < times; ++i) data.insert(data.end(), once.begin(), once.end());
      count *= times;
    }
    extents.assign(1, count);
    extents.insert(extents.end(), first.begin(), first.end());
    return true;
  }
};

}  // namespace

Result<std::vector<Tensor>> parse_values(std::string_view text, const std::vector<Type>& types) {
  Values values{text, {}};
  std::vector<Tensor> out;
  for (const Type& type : types) {
    Tensor& tensor = out.emplace_back();
    tensor.dtype = type.dtype;
    if (out.size() > 1 && !values.take(',')) values.fail("',' is expected: there are " + std::to_string(types.size()) + " values");
    if (!values.fault.empty() || !values.value(type.dtype, tensor.data.own(), tensor.extents)) return input_error(values.fault);
    // Brackets cannot write f32[0,3]: the type says it.
    bool known = true, empty = false;
    std::vector<int64_t> extents;
    for (const Dim& dim : type.shape) known &= dim.is_constant(), empty |= dim.is(0), extents.push_back(dim.is_constant() ? dim.constant() : 0);
    if (known && empty && tensor.data.empty()) tensor.extents = extents;
  }
  values.space();
  if (!values.left.empty()) values.fail("there are only " + std::to_string(types.size()) + " values");
  if (!values.fault.empty()) return input_error(values.fault);
  return out;
}

namespace {
std::string index_text(const std::vector<int64_t>& extents, int64_t flat) {
  std::string out;
  for (size_t k = extents.size(); k-- > 0; flat /= extents[k]) out = std::to_string(flat % extents[k]) + (out.empty() ? "" : ",") + out;
  return "[" + out + "]";
}
std::string extents_text(const Tensor& t) {
  Type type{t.dtype, {t.extents.begin(), t.extents.end()}};
  return text(type);
}
}  // namespace

std::string difference(const Tensor& got, const Tensor& want, bool exact, double tolerance) {
  if (got.dtype != want.dtype || got.extents != want.extents) return "got a " + extents_text(got) + ", expected a " + extents_text(want);
  const size_t size = bytes(got.dtype);
  const int64_t count = got.elements();
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (std::memcmp(got.data.data() + i * size, want.data.data() + i * size, size) == 0) continue;
    const double g = element(got, i), w = element(want, i);
    if (is_float(got.dtype) && std::isnan(g) && std::isnan(w)) continue;
    if (!exact && (g == w || std::abs(g - w) <= tolerance * std::max(1.0, std::abs(w)))) continue;
    if (wrong++ == 0) first = i;
  }
  if (!wrong) return "";
  return "at " + index_text(got.extents, first) + " got " + element_text(got.dtype, got.data.data() + first * size) + ", expected " +
         element_text(want.dtype, want.data.data() + first * size) +
         (wrong > 1 ? " (" + std::to_string(wrong) + " of " + std::to_string(count) + " differ)" : "");
}

}  // namespace fusec::cli
