#include "tools/fusec/slices.h"

#include <algorithm>

namespace fusec::cli {

std::string with_extent(std::string_view text, int64_t from, int64_t to) {
  const std::string wanted = std::to_string(from), put = std::to_string(to);
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    auto word = [](char x) { return (x >= '0' && x <= '9') || (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || x == '_' || x == '.' || x == '-'; };
    if (c == ';') {  // a comment
      const size_t end = std::min(text.find('\n', i), text.size());
      out += text.substr(i, end - i), i = end;
    } else if (word(c)) {
      size_t end = i;
      while (end < text.size() && word(text[end])) ++end;
      const std::string_view token = text.substr(i, end - i);
      out += depth > 0 && token == wanted ? put : std::string(token);
      i = end;
    } else {
      depth += (c == '[') - (c == ']');
      out += c, ++i;
    }
  }
  return out;
}

std::vector<Run> spread_out(int64_t extent, int64_t count) {
  count = std::clamp<int64_t>(count, 0, extent);
  if (count < 3 || count == extent) return {{0, count}};
  const int64_t first = count / 3, middle = count / 3, last = count - first - middle;
  const int64_t at = std::clamp<int64_t>(extent / 2, first, extent - last - middle);
  return {{0, first}, {at, middle}, {extent - last, last}};
}

void each_run(const std::vector<int64_t>& extents, int64_t extent, const std::vector<Run>& chosen, const std::function<void(int64_t, int64_t)>& f) {
  size_t last = extents.size();  // innermost axis that is cut; behind it everything is contiguous
  while (last > 0 && extents[last - 1] != extent) --last;
  int64_t inside = 1;
  for (size_t k = last; k < extents.size(); ++k) inside *= extents[k];
  if (last == 0) return f(0, inside);
  // An odometer over the axes in front of it, those of the extent only at chosen indices.
  std::vector<int64_t> indices;
  for (const Run& run : chosen)
    for (int64_t i = 0; i < run.count; ++i) indices.push_back(run.first + i);
  std::vector<int64_t> at(last - 1, 0);
  while (true) {
    int64_t base = 0;
    bool any = true;
    for (size_t k = 0; k + 1 < last; ++k) {
      const bool cut = extents[k] == extent;
      any &= at[k] < (cut ? int64_t(indices.size()) : extents[k]);
      base = base * extents[k] + (cut && any ? indices[at[k]] : at[k]);
    }
    if (!any) return;  // an extent of 0
    for (const Run& run : chosen)
      if (run.count) f((base * extent + run.first) * inside, run.count * inside);
    size_t k = last - 1;
    while (k > 0 && ++at[k - 1] == (extents[k - 1] == extent ? int64_t(indices.size()) : extents[k - 1])) at[--k] = 0;
    if (k == 0) return;
  }
}

}  // namespace fusec::cli
