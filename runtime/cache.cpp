#include "runtime/cache.h"

#include <condition_variable>
#include <cstring>

#include "codegen/generator_id.h"
#include "runtime/log.h"

namespace fusec {

/// One compilation under way. The first caller flies, the others wait for `done`.
struct Cache::Flight {
  std::condition_variable landed;
  std::optional<Result<Shared>> result;
};

size_t Cache::ByPrefix::operator()(const Digest& key) const noexcept {
  size_t out;
  std::memcpy(&out, key.data(), sizeof(out));
  return out;
}

Digest cache_key(std::initializer_list<std::string_view> parts) {
  std::string text = "fusec artifact " + std::to_string(kCacheSchema) + " " + std::string(generator_id());
  for (std::string_view part : parts) {
    text += "\n" + std::to_string(part.size()) + ":";
    text += part;
  }
  return sha256(text);
}

Cache::Cache(CacheOptions options) : options_(std::move(options)) {
  if (options_.path.empty()) {
    why_ = "no cache directory was given";
    return;
  }
  Result<CacheDir> dir = CacheDir::open(options_.path, options_.capacity);
  if (dir) dir_ = std::make_unique<CacheDir>(std::move(*dir));
  else why_ = dir.error().message, warn_once(why_ + "; compiled kernels are kept in memory only");
}

Cache& Cache::shared() {
  static Cache* const kCache = [] {
    Cache* const made = new Cache;  // never destroyed: threads of a pool may outlive static objects
    if (made->options_.path.empty()) made->warn_once(CacheDir::why_no_default() + "; compiled kernels are kept in memory only");
    return made;
  }();
  return *kCache;
}

void Cache::warn_once(const std::string& text) {
  if (options_.warn && !warned_.exchange(true)) log_warning(text);
}

Cache::Shared Cache::find(const Digest& key) {
  auto held = held_.find(key);
  if (held == held_.end()) return nullptr;
  ages_.splice(ages_.begin(), ages_, held->second.age);
  return held->second.artifact;
}

void Cache::keep(const Digest& key, const Shared& artifact) {
  if (held_.contains(key)) return;
  ages_.push_front(key);
  held_[key] = {artifact, ages_.begin()};
  held_bytes_ += artifact->bytes.size();
  while (held_bytes_ > options_.memory && ages_.size() > 1) {
    auto oldest = held_.find(ages_.back());
    held_bytes_ -= oldest->second.artifact->bytes.size();
    held_.erase(oldest);
    ages_.pop_back();
  }
}

Result<Cache::Shared> Cache::get(const Digest& key, const Compile& compile) {
  std::shared_ptr<Flight> flight;
  {
    std::unique_lock lock(mutex_);
    if (Shared artifact = find(key)) return ++stats_.memory_hits, artifact;
    if (auto under_way = flights_.find(key); under_way != flights_.end()) {
      flight = under_way->second;
      ++stats_.joined;
      flight->landed.wait(lock, [&] { return flight->result.has_value(); });
      return *flight->result;
    }
    flight = flights_[key] = std::make_shared<Flight>();
  }
  Result<Shared> made = [&]() -> Result<Shared> {
    try {
      return make(key, compile);
    } catch (const std::exception& e) {  // out of memory above all: those who wait must hear of it
      return internal_error(std::string("compilation stopped: ") + e.what());
    }
  }();
  std::lock_guard lock(mutex_);
  if (made) keep(key, *made);
  flight->result = made;
  flights_.erase(key);
  flight->landed.notify_all();
  return made;
}

Result<Cache::Shared> Cache::make(const Digest& key, const Compile& compile) {
  if (dir_) {
    bool removed = false;
    std::optional<Artifact> stored = dir_->read(key, &removed);
    std::lock_guard lock(mutex_);
    stats_.removed += removed;
    if (stored) return ++stats_.disk_hits, std::make_shared<const Artifact>(std::move(*stored));
  }
  Result<Artifact> compiled = compile();
  {
    std::lock_guard lock(mutex_);
    ++(compiled ? stats_.compilations : stats_.failures);
  }
  if (!compiled) return compiled.error();
  if (dir_) {
    std::lock_guard one_writer(disk_);
    if (Status stored = dir_->write(key, *compiled); !stored) {
      warn_once(stored.error().message);
      std::lock_guard lock(mutex_);
      ++stats_.unwritten;
    }
  }
  return std::make_shared<const Artifact>(std::move(*compiled));
}

Cache::Stats Cache::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace fusec
