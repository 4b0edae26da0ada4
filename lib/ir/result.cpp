#include "fusec/result.h"

#include <algorithm>

namespace fusec {

namespace {
/// What a message may take of names, types and lists that others wrote.
constexpr size_t kMaxMessage = 2000, kMaxNote = 4000;

std::string cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + "…";
}
}  // namespace

std::string Error::text() const {
  std::string out;
  if (!at.file.empty()) out += at.file + ":";
  if (at.line > 0) {
    if (at.file.empty()) out += "line ";
    out += std::to_string(at.line) + ":" + std::to_string(at.column) + ": ";
  } else if (!at.file.empty()) {
    out += " ";
  }
  for (const char c : cut(message, kMaxMessage)) {  // names may hold line ends
    if (c == '\n') out += "\\n";
    else out += c;
  }
  if (at.line > 0 && !at.text.empty()) {
    // Long lines are cut to a window around the column; tabs stay tabs, so that the caret stands below its character.
    constexpr size_t kWindow = 100;
    const size_t column = at.column > 0 ? static_cast<size_t>(at.column - 1) : 0;
    size_t first = column > kWindow ? column - kWindow : 0;
    while (first > 0 && first < at.text.size() && (static_cast<unsigned char>(at.text[first]) & 0xc0) == 0x80) --first;
    size_t last = std::min(at.text.size(), first + 2 * kWindow);
    while (last < at.text.size() && (static_cast<unsigned char>(at.text[last]) & 0xc0) == 0x80) ++last;
    out += "\n  " + at.text.substr(std::min(first, at.text.size()), last - std::min(first, last)) + "\n  ";
    for (size_t i = first; i < column && i < at.text.size(); ++i) {
      const auto c = static_cast<unsigned char>(at.text[i]);
      if ((c & 0xc0) != 0x80) out += c == '\t' ? '\t' : ' ';  // one place a character, not a byte
    }
    out += "^";
  }
  for (const std::string& note : notes) out += "\n  " + cut(note, kMaxNote);
  return out;
}

}  // namespace fusec
