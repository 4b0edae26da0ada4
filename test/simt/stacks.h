#pragma once
// The stacks of fibers: 1 MB of addresses each, of which only what is touched takes memory, above a page that nobody may
// touch. A thread that runs out of its stack meets that page, and the launch ends with a fault that names the thread.

#include <csignal>
#include <cstddef>

namespace fusec::simt {

/// Makes room for so many stacks; those of an earlier call may move. False when there is no memory.
bool prepare_stacks(size_t count);
/// Where the stack of thread `index` of the pool begins; it grows down.
char* stack_top(size_t index);
/// Does `at` lie in the stack of the running fiber?
bool on_own_stack(const void* at);

/// While it lives, a touch of a guard page is a fault of the launch; any other bad access is what it was before.
class StackGuard {
 public:
  StackGuard();
  ~StackGuard();
  StackGuard(const StackGuard&) = delete;

 private:
  struct sigaction before_[2];
  stack_t stack_before_;
};

}  // namespace fusec::simt
