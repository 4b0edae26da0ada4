// Declarations are found by lines and brackets, their names by where they stand. The prelude is ours and keeps to that form; a name taken
// for one that is not only keeps too much, and cuda_compile_test compiles what was left of it for every kind of kernel.

#include "codegen/cuda/prune.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace fusec::cuda {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::string_view without_comment(std::string_view line) { return line.substr(0, std::min(line.find("//"), line.size())); }

/// Calls f(word, position behind it) for every identifier and number of a text without comments.
template <class F> void each_word(std::string_view text, F f) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > at) f(text.substr(at, end - at), end);
    at = std::max(end, at + 1);
  }
}

std::string code_of(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += without_comment(text.substr(at, end - at));
    out += '\n';
    at = end + 1;
  }
  return out;
}

/// What a macro's text declares by pasting: "unpack_" of `D void unpack_##T(`.
std::vector<std::string> pasted_of(std::string_view macro) {
  std::vector<std::string> out;
  for (size_t at = 0; (at = macro.find("D ", at)) != macro.npos; at += 2) {
    if (at > 0 && is_word(macro[at - 1])) continue;
    size_t begin = macro.find(' ', at + 2);  // behind the type
    if (begin == macro.npos) break;
    const size_t end = std::find_if_not(macro.begin() + static_cast<long>(++begin), macro.end(), is_word) - macro.begin();
    if (macro.substr(end, 2) == "##") out.emplace_back(macro.substr(begin, end - begin));
  }
  return out;
}

/// Names that the head of a declaration declares: of functions, with or without template arguments, of types, and of an enumeration's values.
std::vector<std::string> names_of(std::string_view code) {
  std::vector<std::string> out;
  const size_t open = code.find('{');
  const bool enumeration = code.find("enum ") < open;
  std::string_view head = code.substr(0, enumeration ? code.size() : std::min(open, code.size()));
  std::string_view before;
  each_word(head, [&](std::string_view word, size_t end) {
    const bool type = before == "struct" || before == "enum";
    size_t behind = end;
    if (behind < head.size() && head[behind] == '<') behind = std::min(head.find('>', behind), head.size() - 1) + 1;
    const bool function = behind < head.size() && head[behind] == '(';
    if (type || function || enumeration) out.emplace_back(word);
    before = word;
  });
  return out;
}

}  // namespace

Library::Library(std::string_view text) {
  size_t begin = 0;
  int depth = 0;
  bool in_macro = false;
  std::map<std::string, std::vector<std::string>> pasted;  // by macro
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at), code = without_comment(line);
    at = end + 1;
    for (char c : code) depth += c == '{' || c == '(' ? 1 : c == '}' || c == ')' ? -1 : 0;
    const size_t last = code.find_last_not_of(' ');
    const bool directive = code.starts_with("#"), continued = last != code.npos && code[last] == '\\';
    const bool closes = last != code.npos && (code[last] == ';' || code[last] == '}' || code[last] == ')' || directive || in_macro);
    in_macro = continued && (in_macro || directive);
    if (depth != 0 || continued || !closes) continue;
    Piece piece;
    piece.text = std::string(text.substr(begin, std::min(at, text.size()) - begin));
    begin = std::min(at, text.size());
    std::string own = code_of(piece.text);
    own.erase(0, own.find_first_not_of('\n'));
    std::string_view before, further;  // "D F name(" of a macro declares a name, and uses none
    each_word(own, [&](std::string_view word, size_t behind) {
      if (further != "D") piece.words.emplace_back(word);
      if (own.compare(behind, 2, "##") == 0) piece.beginnings.emplace_back(word);
      further = before, before = word;
    });
    if (own.starts_with("#define")) {
      piece.names = {piece.words.at(1)};
      pasted[piece.names[0]] = pasted_of(own);
      std::erase_if(piece.beginnings, [&](const std::string& b) { return std::ranges::count(pasted[piece.names[0]], b) > 0; });
    } else if (own.starts_with("FUSEC_")) {
      for (const std::string& name : pasted[piece.words.at(0)]) piece.names.push_back(name + piece.words.at(1));
    } else if (!own.starts_with("#") && !own.starts_with("typedef")) {
      piece.names = names_of(own);
      const std::string_view head = std::string_view(own).substr(0, own.find('{'));
      each_word(head, [&](std::string_view word, size_t) { piece.wide |= word == "f64"; });
    }
    pieces_.push_back(std::move(piece));
  }
  if (begin < text.size()) pieces_.push_back({std::string(text.substr(begin)), {}, false, {}, {}});
}

std::string Library::reached_from(std::string_view user) const {
  std::unordered_set<std::string> words;
  std::vector<std::string> beginnings;
  const std::string code = code_of(user);
  each_word(code, [&](std::string_view word, size_t) { words.emplace(word); });
  std::vector<char> kept(pieces_.size(), 0);
  auto wanted = [&](const Piece& p) {
    if (p.wide && !words.count("f64")) return false;
    if (p.names.empty()) return true;
    return std::any_of(p.names.begin(), p.names.end(), [&](const std::string& name) {
      return words.count(name) > 0 || std::any_of(beginnings.begin(), beginnings.end(), [&](const std::string& b) { return name.starts_with(b); });
    });
  };
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (kept[i] || !wanted(pieces_[i])) continue;
      kept[i] = more = true;
      if (!pieces_[i].names.empty()) words.insert(pieces_[i].words.begin(), pieces_[i].words.end());
      beginnings.insert(beginnings.end(), pieces_[i].beginnings.begin(), pieces_[i].beginnings.end());
    }
  }
  std::string out;
  for (size_t i = 0; i < pieces_.size(); ++i)
    if (kept[i]) out += pieces_[i].text;
  return out;
}

}  // namespace fusec::cuda
