#include "runtime/workspace.h"

#include <algorithm>

namespace fusec {

Result<std::unique_ptr<Workspace>> Workspaces::take(const Backend& backend, size_t counter_bytes, size_t arena_bytes, void* stream) {
  std::unique_ptr<Workspace> other;
  {
    std::lock_guard lock(mutex_);
    // Counters must stay apart from the arena's bytes, which are never zero again: so the same split, not just the same sum.
    auto fits = [&](const std::unique_ptr<Workspace>& w) {
      return w->counter_bytes >= counter_bytes && w->memory->bytes - w->counter_bytes >= arena_bytes;
    };
    auto found = std::find_if(free_.begin(), free_.end(), [&](const auto& w) { return w->stream == stream && fits(w); });
    if (found != free_.end()) {
      std::unique_ptr<Workspace> mine = std::move(*found);
      *found = std::move(free_.back());
      free_.pop_back();
      return mine;
    }
    // A smaller one of this stream has served its time: sizes grew. Past kStreams, the one that waited longest goes.
    found = std::find_if(free_.begin(), free_.end(), [&](const auto& w) { return w->stream == stream; });
    if (found == free_.end() && free_.size() >= kStreams) found = free_.begin();
    if (found != free_.end() && backend.may_prepare(stream)) {
      other = std::move(*found);
      free_.erase(found);
    }
  }
  if (Status may = backend.may_prepare(stream); !may)
    return may.error().note("a captured call takes over a workspace: call once more before the capture, or pass RunOptions::workspace");
  if (other) {
    if (Status done = backend.wait(other->stream); !done) return done.error();
    other.reset();
  }
  Result<std::unique_ptr<Memory>> memory = backend.allocate(counter_bytes + arena_bytes);
  if (!memory) return memory.error();
  auto made = std::make_unique<Workspace>();
  made->memory = std::move(*memory);
  made->counter_bytes = counter_bytes;
  made->stream = stream;
  return made;
}

void Workspaces::give(std::unique_ptr<Workspace> workspace, bool keep) {
  std::lock_guard lock(mutex_);
  (keep ? kept_ : free_).push_back(std::move(workspace));
}

}  // namespace fusec
