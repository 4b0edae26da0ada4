#pragma once
// Work on numbered items by forked processes: a crash or a hang of one item costs that item only.

#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace fusec::cli {

struct WorkerOptions {
  int jobs = 1;
  int64_t count = 0;          // items 0 … count - 1
  double seconds = 0;         // no item starts later than that; 0: no limit
  int64_t most_failures = 0;  // no item starts after so many; 0: no limit
  unsigned hang = 120;        // seconds that one item may take
};

struct Work {
  int64_t done = 0, failed = 0;
};

/// Calls `item` on each number, in `jobs` processes that take the next one in order; it returns whether it went well. `died` is called
/// in this process for an item whose process ended under it, with its end as of in_child; that item has failed. `tell` is called about once a second.
/// What items leave behind must be on disk or in shared memory. This process should not have threads.
Work run_items(const WorkerOptions& options, const std::function<bool(int64_t)>& item, const std::function<void(int64_t, int)>& died,
               const std::function<void(const Work&)>& tell);

/// From here on SIGINT, SIGTERM and SIGHUP (unless they are ignored) end run_items and in_child instead of this process: the processes that they
/// started are killed, and they return what there is.
void stop_at_signals();
/// The signal that did; 0: none.
int stopped_by();

/// Runs `what` in a process of its own: its result, or 256 + the signal that killed it.
int in_child(const std::function<int()>& what, unsigned hang = 120);

/// In a fresh child of `parent`: it is killed when the parent ends.
void die_with(pid_t parent);

/// Zeroed memory that forked processes share, for as long as this one lives. Null: there is none.
void* shared_memory(size_t bytes);

}  // namespace fusec::cli
