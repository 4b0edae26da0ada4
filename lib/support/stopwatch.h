#pragma once
// How long something has been going on, whoever does it: two threads that compile side by side for a second are one second.

#include <chrono>
#include <cstdint>
#include <mutex>

namespace fusec {

/// Thread-safe.
class Stopwatch {
 public:
  /// Runs from its birth to its death.
  class Running {
   public:
    explicit Running(Stopwatch& watch) : watch_(watch) {
      const std::lock_guard lock(watch_.mutex_);
      if (watch_.inside_++ == 0) watch_.since_ = Clock::now();
    }
    ~Running() {
      const std::lock_guard lock(watch_.mutex_);
      if (--watch_.inside_ == 0) watch_.total_ += Clock::now() - watch_.since_;
    }
    Running(const Running&) = delete;

   private:
    Stopwatch& watch_;
  };

  /// Of all runs that have ended.
  double seconds() const {
    const std::lock_guard lock(mutex_);
    return std::chrono::duration<double>(total_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  mutable std::mutex mutex_;
  int inside_ = 0;
  Clock::time_point since_{};
  Clock::duration total_{};
};

}  // namespace fusec
