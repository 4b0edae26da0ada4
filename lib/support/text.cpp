#include "lib/support/text.h"

#include <charconv>
#include <cmath>

#include "lib/support/limits.h"

namespace fusec {
namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

/// Length of a well-formed UTF-8 sequence of two to four bytes at `i`, or 0. Control characters U+0080 … U+009F count as none.
size_t utf8_length(std::string_view s, size_t i) {
  const auto at = [&](size_t k) { return k < s.size() ? static_cast<uint8_t>(s[k]) : 0; };
  const auto tail = [&](size_t k) { return (at(k) & 0xc0) == 0x80; };
  const uint8_t c = at(i);
  if (c >= 0xc2 && c <= 0xdf) return tail(i + 1) && !(c == 0xc2 && at(i + 1) < 0xa0) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    if (!tail(i + 1) || !tail(i + 2)) return 0;
    const bool overlong = c == 0xe0 && at(i + 1) < 0xa0, surrogate = c == 0xed && at(i + 1) > 0x9f;
    const bool separator = c == 0xe2 && at(i + 1) == 0x80 && (at(i + 2) == 0xa8 || at(i + 2) == 0xa9);
    return overlong || surrogate || separator ? 0 : 3;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    if (!tail(i + 1) || !tail(i + 2) || !tail(i + 3)) return 0;
    return (c == 0xf0 && at(i + 1) < 0x90) || (c == 0xf4 && at(i + 1) > 0x8f) ? 0 : 4;
  }
  return 0;
}

int hex_digit(char c) {
  if (digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <class F>
std::string float_text(F value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  if (name.empty() || !letter(name[0])) return false;
  for (char c : name)
    if (!letter(c) && !digit(c) && c != '.') return false;
  return true;
}

bool is_plain_symbol(std::string_view name) { return is_plain_name(name) && name.find('.') == std::string_view::npos; }

std::string quoted(std::string_view bytes) {
  static const char* kHex = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else if (const size_t n = utf8_length(bytes, i)) {
      out += bytes.substr(i, n);
      i += n - 1;
    } else {
      const auto b = static_cast<uint8_t>(c);
      out += "\\x";
      out += kHex[b >> 4];
      out += kHex[b & 15];
    }
  }
  return out + '"';
}

std::optional<std::string> take_quoted(std::string_view& text) {
  if (text.empty() || text[0] != '"') return std::nullopt;
  std::string out;
  for (size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (c == '\n') return std::nullopt;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    const char e = text[i];
    if (e == '"' || e == '\\') {
      out += e;
    } else if (e == 'n') {
      out += '\n';
    } else if (e == 'x' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string number_text(double value) { return float_text(value); }
std::string number_text(float value) { return float_text(value); }

std::string brief(std::string_view name) {
  const std::string_view part = name.substr(0, 80);
  return (is_plain_name(part) || part.find_first_not_of("0123456789") == part.npos ? std::string(part) : quoted(part)) +
         (part.size() < name.size() ? "…" : "");
}

std::string too_long(std::string_view name) {
  return "the name " + brief(name) + " has " + std::to_string(name.size()) + " bytes: at most " + std::to_string(kMaxName);
}

std::string join(const std::string& separator, const std::string* begin, const std::string* end) {
  std::string out;
  for (const std::string* s = begin; s != end; ++s) {
    if (s != begin) out += separator;
    out += *s;
  }
  return out;
}

}  // namespace fusec
