#pragma once
// Artifacts by key: in memory, then on disk, then compiled; one compilation for a key in a process however many threads ask.
//
//   Cache cache;
//   auto artifact = cache.get(cache_key({"cuda", source, options, compiler, target}), [&] { return cuda::compile(…); });
//
// Nothing about a cache is fatal: without a usable directory it lives in memory, and says so once.

#include <atomic>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/cache_dir.h"

namespace fusec {

/// SHA-256 over the schema version, the code generator's id and the parts, each with its length: {"a", "bc"} and {"ab", "c"} differ.
Digest cache_key(std::initializer_list<std::string_view> parts);

struct CacheOptions {
  std::string path = CacheDir::default_path();  // "" = memory only
  uint64_t capacity = CacheDir::default_capacity();
  uint64_t memory = uint64_t{64} << 20;         // bytes of code kept in memory; artifacts in use live on
  bool warn = true;                             // say once why there is no directory
};

class Cache {
 public:
  struct Stats {
    uint64_t memory_hits = 0, disk_hits = 0, compilations = 0, failures = 0;
    uint64_t joined = 0;          // callers that waited for another one's compilation
    uint64_t removed = 0;         // unusable entries that went away
    uint64_t unwritten = 0;       // artifacts that could not be stored
  };
  using Compile = std::function<Result<Artifact>()>;
  using Shared = std::shared_ptr<const Artifact>;

  explicit Cache(CacheOptions options = {});
  Cache(const Cache&) = delete;

  /// Thread-safe. `compile` runs outside any lock, at most once at a time for a key; its error goes to all who wait, and is kept by
  /// nobody. `compile` must not ask for its own key.
  Result<Shared> get(const Digest& key, const Compile& compile);

  Stats stats() const;
  /// The directory, or null with the reason it is not used.
  const CacheDir* directory() const { return dir_.get(); }
  const std::string& why_no_directory() const { return why_; }

  /// The cache of this process, with default options.
  static Cache& shared();

 private:
  struct Flight;
  struct Held {
    Shared artifact;
    std::list<Digest>::iterator age;
  };
  struct ByPrefix {
    size_t operator()(const Digest& key) const noexcept;
  };

  Shared find(const Digest& key);
  void keep(const Digest& key, const Shared& artifact);
  Result<Shared> make(const Digest& key, const Compile& compile);
  void warn_once(const std::string& text);

  CacheOptions options_;
  std::unique_ptr<CacheDir> dir_;
  std::string why_;
  std::atomic<bool> warned_ = false;
  mutable std::mutex mutex_, disk_;
  std::unordered_map<Digest, Held, ByPrefix> held_;
  std::list<Digest> ages_;  // most recently used first
  uint64_t held_bytes_ = 0;
  std::unordered_map<Digest, std::shared_ptr<Flight>, ByPrefix> flights_;
  Stats stats_;
};

}  // namespace fusec
