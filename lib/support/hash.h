#pragma once
// One hash for nodes, sources and cache look-ups: 64 bits, the same in every process and on every machine. Not a digest:
// what must withstand an adversary (the disk cache) uses SHA-256.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fusec {

/// Hash of a run of bytes (XXH3, 64 bits).
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);

/// Collects fields in order: Hasher h; h.add(3).add("name"); h.value().
class Hasher {
 public:
  explicit Hasher(uint64_t seed = 0x9e3779b97f4a7c15) : state_(seed) {}
  Hasher& add(uint64_t x) {
    // The finaliser of splitmix64 over state and input: every bit of both reaches every bit of the result.
    uint64_t z = (std::rotl(state_, 23) ^ x) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    state_ = z ^ (z >> 31);
    return *this;
  }
  Hasher& add(std::string_view bytes) { return add(bytes.size()).add(hash_bytes(bytes.data(), bytes.size())); }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace fusec
