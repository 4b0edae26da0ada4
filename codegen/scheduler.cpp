// Candidates from lists of edits.

#include "codegen/scheduler.h"

#include <algorithm>

namespace fusec {

std::optional<Schedule> edited(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts, const Schedule& from, std::string_view edits) {
  Schedule out = from;
  for (size_t at = 0; at < edits.size();) {
    const size_t end = std::min(edits.find(' ', at), edits.size());
    if (end > at && !set(out, edits.substr(at, end - at))) return {};
    at = end + 1;
  }
  if (!scheduler.settle(kernel, facts, out).empty()) return {};
  return out;
}

namespace {

/// The same edits with the values that came of them; a field once.
std::string settled(std::string_view edits, const Schedule& made) {
  std::string out;
  std::vector<std::string_view> seen;
  for (size_t at = 0; at < edits.size();) {
    const size_t end = std::min(edits.find(' ', at), edits.size());
    const std::string_view field = edits.substr(at, std::min(edits.find('=', at), end) - at);
    const std::string value = value_of(made, field);
    if (!value.empty() && std::find(seen.begin(), seen.end(), field) == seen.end()) {
      out += (out.empty() ? "" : " ") + std::string(field) + "=" + value;
      seen.push_back(field);
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

CandidateList::CandidateList(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts)
    : scheduler_(scheduler), kernel_(kernel), facts_(facts), own_(scheduler.schedule(kernel, facts)) {
  out_.push_back({"", own_});
  seen_.push_back(bytes(own_));
}

void CandidateList::combine(const std::vector<std::vector<std::string>>& lists) {
  std::vector<size_t> at(lists.size(), 0);
  for (const std::vector<std::string>& list : lists)
    if (list.empty()) return;
  while (true) {
    std::string edits;
    for (size_t i = 0; i < lists.size(); ++i)
      if (const std::string& edit = lists[i][at[i]]; !edit.empty()) edits += (edits.empty() ? "" : " ") + edit;
    if (std::optional<Schedule> made = edited(scheduler_, kernel_, facts_, own_, edits)) {
      std::string key = bytes(*made);
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        seen_.push_back(std::move(key));
        out_.push_back({settled(edits, *made), std::move(*made)});
      }
    }
    size_t i = lists.size();
    while (i > 0 && ++at[i - 1] == lists[i - 1].size()) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace fusec
