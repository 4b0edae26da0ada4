#include "lib/passes/switches.h"

#include <algorithm>
#include <charconv>

namespace fusec {
namespace {

/// Adds the names of "a,b".
void add_names(const std::string& list, std::set<std::string>& to) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) to.insert(list.substr(at, end - at));
    at = end + 1;
  }
}

Status set_stop(Switches& s, const std::string& value) {
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, s.pass.stop_after_rule);
  if (error == std::errc() && at == end && s.pass.stop_after_rule >= 0) return Done{};
  return input_error("'" + value + "' is no whole number from 0 to 9223372036854775807");
}

#define FUSEC_SET(statement) [](Switches& s, [[maybe_unused]] const std::string& value) -> Status { statement; return Done{}; }
const Switch kSwitches[] = {
    {"--print-after", "PASS", "print the graph after it, or after every one with all; to stderr", FUSEC_SET(add_names(value, s.pass.print_after))},
    {"--print-changed", "", "print the graph after each pass that changed it, to stderr", FUSEC_SET(s.pass.print_changed = true)},
    {"--dump-dir", "DIR", "write 00-input.fus, 01-….fus there, and of a program its kernels, g0.plan, g0.cu, g0.ll …", FUSEC_SET(s.dump_dir = value)},
    {"--verify-each", "", "verify the graph after each pass", FUSEC_SET(s.pass.verify_each = true)},
    {"--disable", "NAME", "pass or rule that must not run; may repeat", FUSEC_SET(add_names(value, s.pass.disable))},
    {"--stop-after-rule", "N", "no rule fires after the n-th firing: bisects a miscompile", set_stop},
    {"--time-passes", "", "seconds of each pass, to stderr", FUSEC_SET(s.time = true)},
    {"--stats", "", "firings of each rule, to stderr", FUSEC_SET(s.stats = true)},
};
#undef FUSEC_SET

/// The next word of `text`, which moves behind it. Double quotes hold blanks together and go away; a backslash keeps what follows.
Result<std::string> take_word(std::string_view& text) {
  std::string word;
  bool inside = false;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '\\' && text.size() > 1) text.remove_prefix(1), word += text.front();
    else if (c == '"') inside = !inside;
    else if (!inside && (c == ' ' || c == '\t' || c == '\n')) break;
    else word += c;
  }
  if (inside) return input_error("a quote is not closed: \"" + word + "\"");
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\n')) text.remove_prefix(1);
  return word;
}

std::string known() {
  std::string out;
  for (const Switch& s : kSwitches) out += (out.empty() ? "" : ", ") + std::string(s.name);
  return out;
}

std::string microseconds(double seconds) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), seconds * 1e6, std::chars_format::fixed, 1);
  return error == std::errc() ? std::string(text, end) + " µs" : "?";
}

}  // namespace

std::span<const Switch> switches() { return kSwitches; }

Status read_switches(std::string_view words, Switches& to) {
  while (!words.empty()) {
    const Result<std::string> taken = take_word(words);
    if (!taken) return taken.error();
    const std::string& word = *taken;
    if (word.empty()) continue;
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const auto* const found = std::find_if(std::begin(kSwitches), std::end(kSwitches), [&](const Switch& s) { return name == s.name; });
    if (found == std::end(kSwitches)) return input_error("'" + word + "' is no switch: " + known() + " are");
    const bool has_value = equals + 1 < word.size(), takes_value = *found->value;
    if (takes_value && !has_value) return input_error(name + " needs a value: " + name + "=" + found->value);
    if (!takes_value && equals < word.size()) return input_error(name + " takes no value");
    if (Status s = found->set(to, has_value ? word.substr(equals + 1) : ""); !s) return input_error(name + ": " + s.error().message);
  }
  return Done{};
}

std::string report(const Switches& switches, const Trace& trace) {
  std::string out;
  if (switches.stats)
    for (const auto& [name, count] : trace.counters()) out += name + ": " + std::to_string(count) + "\n";
  if (switches.time)
    for (const auto& [name, seconds] : trace.times()) out += name + ": " + microseconds(seconds) + "\n";
  return out;
}

}  // namespace fusec
