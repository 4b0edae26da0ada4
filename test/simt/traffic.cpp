#include "test/simt/traffic.h"

#include <algorithm>

namespace fusec::simt {
namespace {

constexpr u64 kSector = 32, kBanks = 32, kWord = 4;

template <class T>
size_t distinct(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values.size();
}

void count_global(Count& count, const std::vector<std::pair<u64, u32>>& lanes) {
  std::vector<u64> sectors, words;
  for (auto [address, bytes] : lanes) {
    for (u64 s = address / kSector; s <= (address + bytes - 1) / kSector; s++) sectors.push_back(s);
    for (u64 b = address; b < address + bytes; b++) words.push_back(b);
  }
  count.sectors += distinct(sectors);
  count.ideal_sectors += (distinct(words) + kSector - 1) / kSector;
}

// 8 bytes a lane go by half warps, 16 by quarters; a pass serves one word of each bank, any number of lanes may read
// the same word.
void count_shared(Count& count, const std::vector<std::pair<u64, u32>>& lanes) {
  size_t at_once = lanes.empty() ? 32 : std::max<size_t>(1, 128 / std::max(4u, lanes[0].second));
  for (size_t first = 0; first < lanes.size(); first += at_once) {
    std::vector<u64> words;
    for (size_t i = first; i < std::min(lanes.size(), first + at_once); i++)
      for (u64 w = lanes[i].first / kWord; w <= (lanes[i].first + lanes[i].second - 1) / kWord; w++) words.push_back(w);
    size_t all = distinct(words);
    u64 in_bank[kBanks] = {};
    for (u64 word : words) in_bank[word % kBanks]++;
    count.passes += *std::max_element(in_bank, in_bank + kBanks);
    count.ideal_passes += (all + kBanks - 1) / kBanks;
  }
}

}  // namespace

void Traffic::finish(u32 first_thread, u32 threads) {
  for (u32 warp = first_thread; warp < first_thread + threads; warp += 32) {
    std::map<std::pair<Key, u32>, std::vector<std::pair<u64, u32>>> requests;  // (site, n-th time) -> lanes
    for (u32 thread = warp; thread < std::min(warp + 32, first_thread + threads); thread++) {
      std::map<Key, u32> times;
      for (const Item& item : logs_[thread]) {
        Key key{item.site, item.shared};
        requests[{key, times[key]++}].emplace_back(item.address, item.bytes);
      }
      logs_[thread].clear();
    }
    for (auto& [request, lanes] : requests) {
      Count& count = counts_[request.first];
      count.requests++;
      count.lanes += lanes.size();
      for (auto [address, bytes] : lanes) count.bytes += bytes;
      request.first.shared ? count_shared(count, lanes) : count_global(count, lanes);
    }
  }
}

void Traffic::bulk(u32 site, u64 bytes) {
  Count& count = counts_[{site, false}];
  count.requests++;
  count.lanes++;
  count.bytes += bytes;
  count.sectors += bytes / kSector;
  count.ideal_sectors += bytes / kSector;
}

}  // namespace fusec::simt
