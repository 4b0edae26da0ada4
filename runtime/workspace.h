#pragma once
// Workspaces of a program: each belongs to one call at a time, and to one stream as long as that call may be running.

#include <list>
#include <mutex>

#include "runtime/backend.h"

namespace fusec {

/// Counters (zero between calls) and arena of one call.
struct Workspace {
  std::unique_ptr<Memory> memory;
  size_t counter_bytes = 0;
  void* stream = nullptr;
  void* counters() const { return memory->data; }
  void* arena() const { return static_cast<std::byte*>(memory->data) + counter_bytes; }
};

class Workspaces {
 public:
  /// A workspace of these sizes that no call of another stream may still be using; made when there is none. Streams may be used
  /// without end: past kStreams of them, one that was used elsewhere is taken over after its stream was waited for.
  /// Errors   environment: no memory, or a stream that is being captured and no workspace left from earlier calls.
  Result<std::unique_ptr<Workspace>> take(const Backend& backend, size_t counter_bytes, size_t arena_bytes, void* stream);
  /// Gives it back after everything that uses it was enqueued. `keep`: it belongs to a captured graph and is never handed out again.
  void give(std::unique_ptr<Workspace> workspace, bool keep);

 private:
  static constexpr size_t kStreams = 32;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_, kept_;
};

}  // namespace fusec
