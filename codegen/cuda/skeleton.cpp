#include "codegen/cuda/skeleton.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace fusec::cuda {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::string_view word_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

/// The text with words replaced, members of that name left alone.
std::string replaced(std::string_view text, const std::vector<std::pair<std::string, std::string>>& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view word = word_at(text, at);
    if (word.empty()) {
      out += text[at++];
      continue;
    }
    const bool member = at > 0 && (text[at - 1] == '.' || (at > 1 && text[at - 1] == '>' && text[at - 2] == '-'));
    const auto found = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == word; });
    out += member || found == words.end() ? word : std::string_view(found->second);
    at += word.size();
  }
  return out;
}

struct Operator {
  const char* name;
  int binds;
  long (*apply)(long, long);
};
const Operator kOperators[] = {
    {"||", 1, [](long x, long y) -> long { return x || y; }}, {"&&", 2, [](long x, long y) -> long { return x && y; }},
    {"==", 3, [](long x, long y) -> long { return x == y; }}, {"!=", 3, [](long x, long y) -> long { return x != y; }},
    {"<=", 4, [](long x, long y) -> long { return x <= y; }}, {">=", 4, [](long x, long y) -> long { return x >= y; }},
    {"<", 4, [](long x, long y) -> long { return x < y; }},   {">", 4, [](long x, long y) -> long { return x > y; }},
    {"+", 5, [](long x, long y) { return x + y; }},           {"-", 5, [](long x, long y) { return x - y; }},
    {"*", 6, [](long x, long y) { return x * y; }},           {"/", 6, [](long x, long y) { return y ? x / y : 0; }},
    {"%", 6, [](long x, long y) { return y ? x % y : 0; }},
};

class Filler {
 public:
  explicit Filler(Parts parts) : parts_(std::move(parts)) {}

  std::string lines(std::string_view text) {
    std::vector<std::string> all;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      all.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
    std::string out;
    range(all, 0, all.size(), 0, out);
    return out;
  }

 private:
  using Lines = std::vector<std::string>;

  static std::string_view directive(const std::string& line) {
    const size_t at = line.find_first_not_of(' ');
    return at != line.npos && line[at] == '@' ? std::string_view(line).substr(at) : std::string_view();
  }
  static bool opens(std::string_view d) {
    return d.starts_with("@if ") || d.starts_with("@each ") || d.starts_with("@unroll ") || d.starts_with("@block ");
  }
  /// The line at which what begins at `at` goes on or ends: @elif, @else or @end of the same depth.
  static size_t next_part(const Lines& all, size_t at, size_t end) {
    int depth = 0;
    while (++at < end) {
      const std::string_view d = directive(all[at]);
      if (depth == 0 && (d.starts_with("@elif ") || d == "@else" || d == "@end")) return at;
      if (opens(d)) ++depth;
      if (d == "@end") --depth;
    }
    return end;
  }
  static size_t end_of(const Lines& all, size_t at, size_t end) {
    do at = next_part(all, at, end);
    while (at < end && directive(all[at]) != "@end");
    return at;
  }

  void put(int indent, const std::string& text, std::string& out) {
    out.append(static_cast<size_t>(std::max(indent, 0)), ' ').append(text).push_back('\n');
  }

  void range(const Lines& all, size_t begin, size_t end, int shift, std::string& out) {
    for (size_t at = begin; at < end; ++at) {
      const std::string& line = all[at];
      const std::string_view d = directive(line);
      const int indent = static_cast<int>(std::min(line.find_first_not_of(' '), line.size())) + shift;
      if (d.empty()) {
        put(line.empty() ? 0 : indent, filled(std::string_view(line).substr(std::min(line.find_first_not_of(' '), line.size()))), out);
        continue;
      }
      if (opens(d)) {
        at = open(all, at, end, indent, shift, out);
      } else if (d.starts_with("@let ")) {
        const size_t equals = d.find(" = ");
        if (equals == d.npos) fault(line, out);
        else parts_.texts[std::string(d.substr(5, equals - 5))] = d.substr(equals + 3);
      } else if (d.starts_with("@body ")) {
        body(filled(d.substr(6)), indent, out);
      } else if (d.starts_with("@include ")) {
        put_all(lines(parts_.file(std::string(d.substr(9)))), indent - 2, out);
      } else if (!d.starts_with("@//")) {
        fault(line, out);
      }
    }
  }

  /// Of what begins at a line; its last line.
  size_t open(const Lines& all, size_t at, size_t end, int indent, int shift, std::string& out) {
    const size_t last = end_of(all, at, end);
    std::string_view d = directive(all[at]);
    if (d.starts_with("@if ")) {
      d.remove_prefix(4);
      for (size_t part = at; part < last; part = next_part(all, part, end)) {
        d = directive(all[part]);
        if (d == "@else" || value(d.substr(d.find(' ') + 1))) {
          range(all, part + 1, next_part(all, part, end), shift, out);
          break;
        }
      }
    } else if (d.starts_with("@block ")) {
      const size_t colon = d.find(" : ");
      const bool there = value(d.substr(7, colon - 7));
      if (there) put(indent, filled(d.substr(colon + 3)) + " {", out);
      range(all, at + 1, last, there ? shift : shift - 2, out);
      if (there) put(indent, "}", out);
    } else {
      const size_t name = d.find(' ') + 1, count_at = d.find(' ', name) + 1;
      const std::string i(d.substr(name, count_at - 1 - name));
      const long count = value(d.substr(count_at));
      if (d.starts_with("@each ")) {
        for (long k = 0; k < count; ++k) parts_.numbers[i] = k, range(all, at + 1, last, shift, out);
      } else {
        const std::string number = std::to_string(count);
        std::string inside;
        range(all, at + 1, last, shift, inside);
        const auto size = std::count(inside.begin(), inside.end(), '\n');
        if (count == 1 && size == 1) {
          out += inside.substr(2);
        } else if (size > 0) {
          if (count > 1) put(0, "#pragma unroll", out);
          put(indent, count > 1 ? "for (int " + i + " = 0; " + i + " < " + number + "; ++" + i + ") {" : "{", out);
          out += inside;
          put(indent, "}", out);
        }
      }
    }
    return last;
  }

  void body(const std::string& call, int indent, std::string& out) {
    const size_t space = std::min(call.find(' '), call.size());
    const auto found = parts_.bodies.find(call.substr(0, space));
    if (found == parts_.bodies.end()) return fault("@body " + call, out);
    std::vector<std::pair<std::string, std::string>> words;
    for (size_t at = space; at < call.size();) {
      const size_t end = std::min(call.find(' ', at + 1), call.size()), equals = call.find('=', at);
      if (equals < end) words.emplace_back(call.substr(at + 1, equals - at - 1), call.substr(equals + 1, end - equals - 1));
      at = end;
    }
    put_all(replaced(found->second, words), indent - 4, out);
  }
  /// Lines, so many columns further right; those for the preprocessor stay at the left.
  void put_all(const std::string& text, int shift, std::string& out) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size()), first = std::min(text.find_first_not_of(' ', at), end);
      put(text[first] == '#' ? 0 : shift + static_cast<int>(first - at), text.substr(first, end - first), out);
      at = end + 1;
    }
  }

  std::string filled(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      if (text[at] != '$') {
        out += text[at++];
        continue;
      }
      const char open = ++at < text.size() ? text[at] : ' ';
      if (open == '(' || open == '[') {
        size_t end = at + 1;
        for (int depth = 1; depth && end < text.size(); ++end) depth += text[end] == open ? 1 : text[end] == (open == '(' ? ')' : ']') ? -1 : 0;
        const std::string_view inside = text.substr(at + 1, end - at - 2);
        at = end;
        if (open == '(') {
          out += std::to_string(value(inside));
          continue;
        }
        const size_t mark = inside.find_first_of(":=");
        const long size = value(inside.substr(mark + 1));
        if (size != 1) out += "[" + (mark ? std::string(inside.substr(0, mark)) : std::to_string(size)) + "]";
        continue;
      }
      const std::string name(word_at(text, at));
      at += name.size();
      if (const auto number = parts_.numbers.find(name); number != parts_.numbers.end()) out += std::to_string(number->second);
      else if (const auto told = parts_.texts.find(name); told != parts_.texts.end()) out += filled(std::string(told->second));
      else out += "\n#error no " + name + "\n";
    }
    return out;
  }

  long value(std::string_view expression) {
    const std::string text = filled(expression);
    size_t at = 0;
    return operation(text, at, 1);
  }
  static void skip(const std::string& text, size_t& at) {
    while (at < text.size() && text[at] == ' ') ++at;
  }
  long operation(const std::string& text, size_t& at, int least) {
    long out = operand(text, at);
    for (;;) {
      skip(text, at);
      const auto op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                   [&](const Operator& o) { return text.compare(at, std::string_view(o.name).size(), o.name) == 0; });
      if (op == std::end(kOperators) || op->binds < least) return out;
      at += std::string_view(op->name).size();
      out = op->apply(out, operation(text, at, op->binds + 1));
    }
  }
  long operand(const std::string& text, size_t& at) {
    skip(text, at);
    if (at < text.size() && text[at] == '!') return !operand(text, ++at);
    if (at < text.size() && text[at] == '(') {
      const long out = operation(text, ++at, 1);
      at = std::min(text.find(')', at), text.size() - 1) + 1;
      return out;
    }
    const std::string_view word = word_at(text, at);
    at += word.size();
    long out = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), out).ec == std::errc()) return out;
    const auto found = parts_.numbers.find(std::string(word));
    if (found == parts_.numbers.end()) missing_ += "#error no number " + std::string(word.empty() ? std::string_view(text) : word) + "\n";
    return found == parts_.numbers.end() ? 0 : found->second;
  }

  void fault(const std::string& line, std::string& out) { out += "#error " + line + "\n"; }

  Parts parts_;
  std::string missing_;

 public:
  const std::string& missing() const { return missing_; }
};

}  // namespace

bool is_filled(std::string_view skeleton) { return skeleton.starts_with("@kernel\n") || skeleton.find("\n@kernel\n") != skeleton.npos; }

Filled fill(std::string_view skeleton, Parts parts) {
  const size_t mark = skeleton.find("@kernel\n");
  Filler filler(std::move(parts));
  Filled out;
  out.before = filler.lines(skeleton.substr(0, mark));
  out.kernel = filler.lines(skeleton.substr(mark + 8));
  out.before += filler.missing();
  return out;
}

}  // namespace fusec::cuda
