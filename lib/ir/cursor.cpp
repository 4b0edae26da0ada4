#include "lib/ir/cursor.h"

#include <algorithm>

#include "fusec/graph.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

void Cursor::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == ';') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool Cursor::take(std::string_view symbol) {
  if (!text_.substr(at_).starts_with(symbol)) return false;
  at_ += symbol.size();
  skip();
  return true;
}

bool Cursor::take_word(std::string_view word) {
  const std::string_view rest = text_.substr(at_);
  if (!rest.starts_with(word) || (rest.size() > word.size() && word_char(rest[word.size()]))) return false;
  return take(word);
}

Status Cursor::expect(std::string_view symbol, std::string_view where) {
  if (take(symbol)) return Done{};
  return error("expected '" + std::string(symbol) + "' " + std::string(where) + ", not " + found());
}

std::string_view Cursor::word() {
  const size_t begin = at_;
  while (at_ < text_.size() && word_char(text_[at_])) ++at_;
  const std::string_view word = text_.substr(begin, at_ - begin);
  skip();
  return word;
}

bool Cursor::at_literal() const {
  const char c = peek();
  if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') return true;
  const std::string_view rest = text_.substr(at_);
  for (std::string_view w : {"inf", "nan", "true", "false"})
    if (rest.starts_with(w) && (rest.size() == w.size() || !word_char(rest[w.size()]))) return true;
  return false;
}

std::string_view Cursor::literal() {
  if (!at_literal()) return {};
  const size_t begin = at_;
  if (text_[at_] == '-' || text_[at_] == '+') ++at_;
  const size_t digits = at_;
  const bool hex = text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X");
  while (at_ < text_.size()) {
    const char c = text_[at_], before = at_ > digits ? text_[at_ - 1] : '\0';
    const bool exponent = hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
    if (!word_char(c) && !((c == '-' || c == '+') && exponent)) break;
    ++at_;
  }
  if (text_.substr(digits, at_ - digits) == "nan" && at_ < text_.size() && text_[at_] == '(') {
    const size_t end = text_.find_first_of(")\n", at_);
    if (end != std::string_view::npos && text_[end] == ')') at_ = end + 1;
  }
  const std::string_view token = text_.substr(begin, at_ - begin);
  skip();
  return token;
}

Result<std::string> Cursor::name(std::string_view what) {
  const size_t begin = at_;
  std::string name;
  if (peek() == '"') {
    std::string_view rest = text_.substr(at_);
    auto bytes = take_quoted(rest);
    if (!bytes) return error("a quoted name must end on its line and may escape \\\" \\\\ \\n \\xNN");
    at_ = text_.size() - rest.size();
    skip();
    name = std::move(*bytes);
  } else {
    const size_t n = at_;
    name = word();
    if (name.empty()) {
      at_ = n;
      return error("expected " + std::string(what) + ", not " + found());
    }
    if (!is_plain_name(name) && name.find_first_not_of("0123456789") != std::string::npos)
      return error_at(begin, "the name " + quoted(name.substr(0, 80)) + " needs quotes: it begins with a digit");
  }
  if (name.size() > size_t{kMaxName}) return error_at(begin, too_long(name));
  return name;
}

Result<Shape> Cursor::shape() {
  if (auto open = expect("[", "before the dims"); !open) return open.error();
  Shape shape;
  if (take("]")) return shape;
  for (;;) {
    const size_t begin = at_;
    // A dim ends at a comma or bracket outside quotes.
    size_t end = at_;
    for (bool inside = false; end < text_.size() && (inside || (text_[end] != ',' && text_[end] != ']')); ++end) {
      if (text_[end] == '\n') break;
      if (text_[end] == '"') inside = !inside;
      if (text_[end] == '\\') ++end;
    }
    end = std::min(end, text_.size());
    auto dim = Dim::parse(text_.substr(begin, end - begin));
    if (!dim) return error("expected a dim such as 4, N or 2*N+1, not " + found());
    shape.push_back(std::move(*dim));
    at_ = end;
    skip();
    if (take("]")) return shape;
    if (auto comma = expect(",", "between dims"); !comma) return comma.error();
    if (shape.size() > kMaxRank) return error_at(begin, "more than 8 axes");
  }
}

Result<DType> Cursor::dtype() {
  const size_t begin = at_;
  const std::string_view name = word();
  if (auto type = fusec::dtype(name)) return *type;
  at_ = begin;
  return error("expected an element type such as f32, not " + found());
}

Result<Type> Cursor::type() {
  const size_t begin = at_;
  auto element = dtype();
  if (!element) return element.error();
  auto dims = shape();
  if (!dims) return dims.error();
  Type type{*element, std::move(*dims)};
  if (auto fits = check_type(type); !fits) return error_at(begin, fits.error().message);
  return type;
}

Location Cursor::locate(size_t position) const {
  Location at;
  at.file = file_;
  position = std::min(position, text_.size());
  size_t begin = 0;
  at.line = 1;
  for (size_t i = 0; i < position; ++i)
    if (text_[i] == '\n') ++at.line, begin = i + 1;
  at.column = static_cast<int>(std::min<size_t>(position - begin, INT32_MAX - 1)) + 1;
  const size_t end = std::min(text_.find('\n', begin), text_.size());
  at.text = text_.substr(begin, end - begin);
  if (at.text.ends_with('\r')) at.text.pop_back();
  return at;
}

Error Cursor::error_at(size_t position, std::string message) const {
  Error error = input_error(std::move(message));
  error.at = locate(position);
  return error;
}

std::string Cursor::found() const {
  if (done()) return "the end of the text";
  size_t end = at_;
  while (end < text_.size() && end - at_ < 20 && text_[end] != '\n' && (end == at_ || text_[end] != ' ')) ++end;
  return quoted(text_.substr(at_, end - at_));
}

}  // namespace fusec
