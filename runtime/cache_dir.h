#pragma once
// The cache on disk: one file an entry, named after its key, in one flat directory that only its user can write.
//
// Any fault while reading is a miss, and the entry goes away. Any fault while writing leaves the directory as it was.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusec/result.h"
#include "runtime/artifact_file.h"

namespace fusec {

class CacheDir {
 public:
  /// FUSEC_CACHE_DIR, else XDG_CACHE_HOME/fusec, else HOME/.cache/fusec; "" when none is set to an absolute path, and when HOME is not there.
  static std::string default_path();
  /// Where default_path() is "": why.
  static std::string why_no_default();
  /// FUSEC_CACHE_BYTES, else 256 MB.
  static uint64_t default_capacity();

  /// Opens the directory, makes it (mode 0700, with its parents) when it is missing. Environment error when that fails, or when
  /// the directory belongs to somebody else or others may write to it.
  static Result<CacheDir> open(std::string path, uint64_t capacity = default_capacity());
  CacheDir(CacheDir&& other) noexcept;
  CacheDir& operator=(CacheDir&&) = delete;
  ~CacheDir();

  const std::string& path() const { return path_; }

  /// The artifact stored for a key. `removed` is set when there was an entry that could not be used, and went away.
  std::optional<Artifact> read(const Digest& key, bool* removed = nullptr) const;
  /// Stores an artifact: temporary file, fsync, rename. Then, when the directory outgrew its capacity, the least recently used
  /// entries leave.
  Status write(const Digest& key, const Artifact& artifact);

  struct Entry {
    std::string name;   // file name
    uint64_t bytes;
    int64_t used;       // seconds since 1970 of the last use
  };
  /// All entries, most recently used first.
  std::vector<Entry> list() const;
  /// Reads one listed entry without counting it as a use.
  std::optional<Artifact> inspect(const Entry& entry) const;
  /// Environment error, with the file's name, when it stays. One that is gone already is no error.
  Status remove(const Entry& entry) const;

 private:
  CacheDir(std::string path, int fd, uint64_t capacity);
  void trim();

  std::string path_;
  int fd_;
  uint64_t capacity_;
  uint64_t written_ = 0;  // since the last look at the whole directory
  bool looked_ = false;
};

}  // namespace fusec
