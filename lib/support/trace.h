#pragma once
// What a compilation tells about itself: times, counters, printed text, dumps. It is passed in, never global.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fusec/result.h"

namespace fusec {

/// Thread-safe: kernels of one program are compiled side by side. Recording never fails; of the dumps that
/// cannot be written, dumped() has the first.
class Trace {
 public:
  Trace() = default;
  explicit Trace(std::string dump_dir) : dump_dir_(std::move(dump_dir)) {}

  /// Where `say` goes, for example to standard error. Without it text is dropped.
  std::function<void(std::string_view)> sink;

  void say(std::string_view text);
  void count(std::string_view what, int64_t n = 1);
  void time(std::string_view what, double seconds);
  /// Writes DIR/NAME when there is a dump directory (made on first use).
  void dump(const std::string& name, std::string_view text);
  /// Writes DIR/NN-NAME.fus with NN = 00, 01, 02 … in order.
  void dump_next(std::string_view name, std::string_view text);
  /// The first dump that could not be written, if any.
  Status dumped() const;
  bool dumps() const { return !dump_dir_.empty(); }
  const std::string& dump_dir() const { return dump_dir_; }

  std::map<std::string, int64_t> counters() const;
  /// Seconds by name, in the order of first use.
  std::vector<std::pair<std::string, double>> times() const;

  /// Adds the time from its birth to its death.
  class Timer {
   public:
    Timer(Trace& trace, std::string_view what);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    Trace& trace_;
    std::string what_;
    int64_t start_ns_;
  };

 private:
  mutable std::mutex mutex_;
  std::string dump_dir_;
  int next_ = 0;
  Status dumped_ = Done{};
  std::map<std::string, int64_t, std::less<>> counters_;
  std::vector<std::pair<std::string, double>> times_;
};

/// Writes a reproducer, a .fus text whose first comment is the command that repeats the fault: into `dir`, or the system's
/// folder for temporary files when that is empty. Its path; an error when it could not be written.
Result<std::string> write_reproducer(const std::string& dir, std::string_view command, std::string_view graph_text);

}  // namespace fusec
