#include "lib/support/trace.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>

#include "lib/support/files.h"
#include "lib/support/hash.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string hex(uint64_t n) {
  std::string digits(16, '0');
  for (size_t k = 16; k-- > 0; n >>= 4) digits[k] = "0123456789abcdef"[n & 15];
  return digits;
}

}  // namespace

void Trace::say(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (sink) sink(text);
}

void Trace::count(std::string_view what, int64_t n) {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(what);
  if (found != counters_.end())
    found->second += n;
  else
    counters_.emplace(what, n);
}

void Trace::time(std::string_view what, double seconds) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(times_.begin(), times_.end(), [&](const auto& t) { return t.first == what; });
  if (found != times_.end())
    found->second += seconds;
  else
    times_.emplace_back(what, seconds);
}

void Trace::dump(const std::string& name, std::string_view text) {
  if (dump_dir_.empty()) return;
  std::error_code failed;
  fs::create_directories(dump_dir_, failed);
  if (const Status written = write_file_atomically((fs::path(dump_dir_) / name).string(), text); !written) {
    const std::lock_guard lock(mutex_);
    if (dumped_) dumped_ = written;
  }
}

Status Trace::dumped() const {
  const std::lock_guard lock(mutex_);
  return dumped_;
}

void Trace::dump_next(std::string_view name, std::string_view text) {
  if (dump_dir_.empty()) return;
  std::string number;
  {
    const std::lock_guard lock(mutex_);
    number = std::to_string(next_++);
  }
  if (number.size() < 2) number.insert(0, "0");
  dump(number + "-" + std::string(name) + ".fus", text);
}

std::map<std::string, int64_t> Trace::counters() const {
  const std::lock_guard lock(mutex_);
  return {counters_.begin(), counters_.end()};
}

std::vector<std::pair<std::string, double>> Trace::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

Trace::Timer::Timer(Trace& trace, std::string_view what) : trace_(trace), what_(what), start_ns_(now_ns()) {}
Trace::Timer::~Timer() {
  try {
    trace_.time(what_, double(now_ns() - start_ns_) * 1e-9);
  } catch (const std::exception&) {  // no memory for a new row: the time is not told
  }
}

Result<std::string> write_reproducer(const std::string& dir, std::string_view command, std::string_view graph_text) {
  std::error_code failed;
  const fs::path folder = dir.empty() ? fs::temp_directory_path(failed) : fs::path(dir);
  if (failed) return environment_error("there is no folder for temporary files");
  fs::create_directories(folder, failed);
  const std::string text = "; " + std::string(command) + "\n" + std::string(graph_text);
  const std::string path = (folder / ("fusec-" + hex(hash_bytes(text.data(), text.size())) + ".fus")).string();
  if (const Status written = write_file_atomically(path, text); !written) return written.error();
  return path;
}

}  // namespace fusec
