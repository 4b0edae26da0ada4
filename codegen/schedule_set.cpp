// One field of a schedule by hand, in the words that print() uses.

#include <algorithm>
#include <charconv>

#include "codegen/schedule.h"

namespace fusec {
namespace {

std::optional<uint64_t> number(std::string_view text, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return {};
  return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(at, from), text.size());
    out.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

struct NumberField {
  const char* name;
  uint16_t Schedule::* wide;
  uint8_t Schedule::* narrow;
};
const NumberField kNumbers[] = {
    {"threads", &Schedule::threads, nullptr},
    {"min_blocks", &Schedule::min_blocks, nullptr},
    {"lanes_per_row", &Schedule::lanes_per_row, nullptr},
    {"rows_in_flight", &Schedule::rows_in_flight, nullptr},
    {"cluster", &Schedule::cluster, nullptr},
    {"team", &Schedule::team, nullptr},
    {"steps", &Schedule::steps, nullptr},
    {"baked", &Schedule::baked, nullptr},
    {"slots", nullptr, &Schedule::slots},
    {"slices", nullptr, &Schedule::slices},
    {"column_slots", nullptr, &Schedule::column_slots},
    {"ahead", nullptr, &Schedule::ahead},
    {"axis", nullptr, &Schedule::vector_axis},
};

struct FlagField {
  const char* name;
  bool Schedule::* flag;
};
const FlagField kFlags[] = {{"wide", &Schedule::wide_index},
                            {"dynamic_rows", &Schedule::dynamic_rows},
                            {"dependent_launch", &Schedule::dependent_launch},
                            {"merged", &Schedule::merged}};

/// "8" along the vector axis, or "1x8": one number an axis.
bool set_box(uint16_t (&sizes)[kMaxAxes], unsigned axis, std::string_view text) {
  const std::vector<std::string_view> parts = split(text, 'x');
  if (parts.size() > kMaxAxes || axis >= kMaxAxes) return false;
  uint16_t made[kMaxAxes] = {};
  for (size_t k = 0; k < parts.size(); ++k) {
    const std::optional<uint64_t> n = number(parts[k], 65535);
    if (!n || *n == 0) return false;
    made[parts.size() == 1 ? axis : k] = uint16_t(parts.size() > 1 && k != axis && *n == 1 ? 0 : *n);  // 0 is 1, and what schedules have
  }
  if (parts.size() == 1) sizes[axis] = made[axis];
  else std::copy(std::begin(made), std::end(made), std::begin(sizes));
  return true;
}

/// "16", "16xe": bytes and marks.
bool set_access(Access& access, std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> bytes = number(text.substr(0, digits), 64);
  if (!bytes || *bytes == 0 || (*bytes & (*bytes - 1))) return false;
  Access made;
  made.bytes = uint8_t(*bytes);
  for (char mark : text.substr(digits)) {
    if (mark == 's') made.staged = 1;
    else if (mark == 'x') made.streamed = 1;
    else if (mark == 'e') made.early = 1;
    else if (mark == 'p') made.prefetch = 1;
    else if (mark == 'b') made.bypass = 1;
    else return false;
  }
  access = made;
  return true;
}

bool set_accesses(std::vector<Access>& accesses, std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() != accesses.size()) return false;
  std::vector<Access> made(parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    if (!set_access(made[i], parts[i])) return false;
  accesses = std::move(made);
  return true;
}

bool set_cut(std::vector<Val>& cut, std::string_view text) {
  std::vector<Val> made;
  if (!text.empty())
    for (std::string_view part : split(text, ',')) {
      const std::optional<uint64_t> v = part.starts_with('v') ? number(part.substr(1), kNoVal - 1) : std::nullopt;
      if (!v) return false;
      made.push_back(Val(*v));
    }
  cut = std::move(made);
  return true;
}

template <class E, size_t N> bool set_word(E& field, const char* const (&names)[N], std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (text == names[i]) return field = E(i), true;
  return false;
}

/// What a field of words can be, for a message: ": none, registers or …".
std::string values_of(std::string_view key) {
  auto list = [](const auto& names) {
    std::string out;
    for (const char* name : names) out += (out.empty() ? ": " : ", ") + std::string(name);
    return out + " are known";
  };
  if (key == "skeleton") return list(kTemplateNames);
  if (key == "keep") return list(kKeepNames);
  if (key == "edges") return list(kEdgesNames);
  return key == "finish" ? list(kFinishNames) : "";
}

enum class Found { yes, bad_value, no };

Found set_field(Schedule& s, std::string_view key, std::string_view value) {
  auto found = [](bool good) { return good ? Found::yes : Found::bad_value; };
  if (key == "skeleton") return found(set_word(s.skeleton, kTemplateNames, value));
  if (key == "keep") return found(set_word(s.keep, kKeepNames, value));
  if (key == "edges") return found(set_word(s.edges, kEdgesNames, value));
  if (key == "finish") return found(set_word(s.finish, kFinishNames, value));
  if (key == "lane") return found(set_box(s.lane, s.vector_axis, value));
  if (key == "block") return found(set_box(s.block, s.vector_axis, value));
  if (key == "access") return found(set_accesses(s.access, value));
  if (key == "cut") return found(set_cut(s.cut, value));
  if (key.starts_with("access.")) {
    const std::optional<uint64_t> i = number(key.substr(7), 65535);
    return found(i && *i < s.access.size() && set_access(s.access[*i], value));
  }
  for (const NumberField& f : kNumbers)
    if (key == f.name) {
      const std::optional<uint64_t> n = number(value, f.wide ? 65535 : 255);
      if (n && f.wide) s.*f.wide = uint16_t(*n);
      else if (n) s.*f.narrow = uint8_t(*n);
      return found(n.has_value());
    }
  for (const FlagField& f : kFlags)
    if (key == f.name) {
      const std::optional<uint64_t> n = number(value, 1);
      if (n) s.*f.flag = *n != 0;
      return found(n.has_value());
    }
  return Found::no;
}

std::string text_of(const Access& a) {
  std::string out = std::to_string(a.bytes);
  for (auto [on, mark] : {std::pair{a.staged, 's'}, {a.streamed, 'x'}, {a.early, 'e'}, {a.prefetch, 'p'}, {a.bypass, 'b'}})
    if (on) out += mark;
  return out;
}

/// What set_box takes for it, in short where it can be; "" for no box at all, which it does not know.
std::string box(const uint16_t (&sizes)[kMaxAxes], unsigned axis) {
  if (sizes[axis] && std::count(std::begin(sizes), std::end(sizes), 0) == kMaxAxes - 1) return std::to_string(sizes[axis]);
  size_t last = kMaxAxes;
  while (last && !sizes[last - 1]) --last;
  if (last) last = std::max<size_t>(last, axis + 1);
  std::string out;
  for (size_t k = 0; k < last; ++k) out += (k ? "x" : "") + std::to_string(std::max<int>(1, sizes[k]));
  return out;
}

template <class List, class F> std::string joined(const List& list, char by, F text) {
  std::string out;
  for (const auto& one : list) out += (out.empty() ? "" : std::string(1, by)) + text(one);
  return out;
}

}  // namespace

std::string value_of(const Schedule& s, std::string_view field) {
  if (field == "skeleton") return kTemplateNames[size_t(s.skeleton)];
  if (field == "keep") return kKeepNames[size_t(s.keep)];
  if (field == "edges") return kEdgesNames[size_t(s.edges)];
  if (field == "finish") return kFinishNames[size_t(s.finish)];
  if (field == "lane") return box(s.lane, s.vector_axis);
  if (field == "block") return box(s.block, s.vector_axis);
  if (field == "access") return joined(s.access, ',', text_of);
  if (field == "cut") return joined(s.cut, ',', [](Val v) { return "v" + std::to_string(v); });
  if (field.starts_with("access.")) {
    const std::optional<uint64_t> i = number(field.substr(7), 65535);
    return i && *i < s.access.size() ? text_of(s.access[*i]) : "";
  }
  for (const NumberField& f : kNumbers)
    if (field == f.name) return std::to_string(f.wide ? s.*f.wide : s.*f.narrow);
  for (const FlagField& f : kFlags)
    if (field == f.name) return s.*f.flag ? "1" : "0";
  return "";
}

Status set(Schedule& schedule, std::string_view edit) {
  const size_t at = std::min(edit.find('='), edit.size());
  Schedule changed = schedule;
  const Found found = at < edit.size() ? set_field(changed, edit.substr(0, at), edit.substr(at + 1)) : Found::no;
  if (found == Found::yes && changed.vector_axis < kMaxAxes) {
    schedule = std::move(changed);
    return Done{};
  }
  if (found != Found::no)
    return input_error("schedule: '" + std::string(edit) + "' has a value that the field cannot take" + values_of(edit.substr(0, at)) +
                       "; now it is: " + print(schedule));
  std::string names = "skeleton, keep, edges, finish, lane, block, access, access.N, cut";
  for (const NumberField& f : kNumbers) names += std::string(", ") + f.name;
  for (const FlagField& f : kFlags) names += std::string(", ") + f.name;
  return input_error("schedule: '" + std::string(edit) + "' is not FIELD=VALUE with one of the fields " + names);
}

}  // namespace fusec
