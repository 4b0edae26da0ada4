#include "runtime/arena.h"

#include <algorithm>
#include <numeric>

namespace fusec {

size_t plan_arena(std::vector<Lifetime>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a].bytes > values[b].bytes; });
  std::vector<size_t> placed;  // by offset
  size_t total = 0;
  for (size_t i : order) {
    Lifetime& value = values[i];
    const size_t need = (value.bytes + 255) / 256 * 256;
    size_t at = 0;
    for (size_t p : placed) {
      const Lifetime& other = values[p];
      if (other.last < value.first || value.last < other.first) continue;
      if (at + need <= other.offset) break;
      at = std::max(at, other.offset + (other.bytes + 255) / 256 * 256);
    }
    value.offset = at;
    total = std::max(total, at + need);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, [&](size_t a, size_t b) { return values[a].offset < values[b].offset; }), i);
  }
  return total;
}

}  // namespace fusec
