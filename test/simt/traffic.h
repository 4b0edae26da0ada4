#pragma once
// Memory traffic: for each load and store of the text, requests of a warp, 32-byte sectors, and passes over the shared
// banks.
//
// The n-th execution of a site by each lane of a warp is one request; lanes that skip an iteration shift theirs (a
// device would not join them).

#include <map>
#include <unordered_map>
#include <vector>

#include "test/simt/clock.h"

namespace fusec::simt {

struct Count {
  u64 requests = 0, lanes = 0, bytes = 0;  // bytes that lanes asked for
  u64 sectors = 0, ideal_sectors = 0;      // global
  u64 passes = 0, ideal_passes = 0;        // shared
};

class Traffic {
 public:
  explicit Traffic(u32 threads) : logs_(threads) {}

  void log(u32 thread, u32 site, u64 address, u32 bytes, bool shared) {
    logs_[thread].push_back({address, site, bytes, shared});
  }
  /// A bulk copy, which one thread issues: one request.
  void bulk(u32 site, u64 bytes);
  /// Counts what the threads of a block that is over have logged.
  void finish(u32 first_thread, u32 threads);

  struct Key {
    u32 site;
    bool shared;
    auto operator<=>(const Key&) const = default;
  };
  const std::map<Key, Count>& counts() const { return counts_; }

 private:
  struct Item {
    u64 address;
    u32 site, bytes;
    bool shared;
  };
  std::vector<std::vector<Item>> logs_;
  std::map<Key, Count> counts_;
};

}  // namespace fusec::simt
