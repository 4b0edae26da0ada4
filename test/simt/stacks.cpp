#include "test/simt/stacks.h"

#include <sys/mman.h>
#include <ucontext.h>

#include "test/simt/machine.h"

namespace fusec::simt {
namespace {

// Code is made without optimisation, so each value of a kernel has a place of its own: three layer norms of f8 take 70 KB.
constexpr size_t kStack = 1 << 20, kGuard = 16 << 10;
constexpr int kSignals[2] = {SIGSEGV, SIGBUS};
constexpr size_t kSpare = 64 << 10;

char* stacks;
size_t stack_count;
struct sigaction outer[2];  // the handlers before ours
alignas(16) char handler_stack[kSpare], fault_stack[kSpare];  // one launch runs at a time

// The thread has no stack left to say so on: this runs on fault_stack, and goes back to the launching stack.
[[noreturn]] void ran_out() {
  fail(SIMT_LAUNCH, 0, format("%s used more than %zu bytes of stack", name(*machine->current).c_str(), kStack - kGuard));
}

void drop_stacks() {
  if (stacks) munmap(stacks, stack_count * kStack);
  stacks = nullptr;
  stack_count = 0;
}

bool in_guard(const char* at) {
  return stacks && at >= stacks && at < stacks + stack_count * kStack && static_cast<size_t>(at - stacks) % kStack < kGuard;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (!in_guard(static_cast<const char*>(info->si_addr))) {  // not ours: it happens again, under the handler before us
    sigaction(signal, &outer[signal == SIGBUS], nullptr);
    return;
  }
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&ran_out);
  registers[REG_RSP] = reinterpret_cast<greg_t>(fault_stack + kSpare - 8);  // as after a call
}

}  // namespace

bool prepare_stacks(size_t count) {
  if (count <= stack_count) return true;
  drop_stacks();
  void* made = mmap(nullptr, count * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return false;
  stacks = static_cast<char*>(made);
  stack_count = count;
  for (size_t i = 0; i < count; i++)
    if (mprotect(stacks + i * kStack, kGuard, PROT_NONE) != 0) return drop_stacks(), false;
  return true;
}

char* stack_top(size_t index) { return stacks + (index + 1) * kStack; }

bool on_own_stack(const void* at) {
  size_t mine = static_cast<size_t>(static_cast<char*>(__builtin_frame_address(0)) - stacks) / kStack;
  return static_cast<size_t>(static_cast<const char*>(at) - stacks) / kStack == mine;
}

StackGuard::StackGuard() {
  const stack_t mine{.ss_sp = handler_stack, .ss_flags = 0, .ss_size = kSpare};
  sigaltstack(&mine, &stack_before_);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 2; i++) {
    sigaction(kSignals[i], &action, &before_[i]);
    outer[i] = before_[i];
  }
}

StackGuard::~StackGuard() {
  for (int i = 0; i < 2; i++) sigaction(kSignals[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
}

}  // namespace fusec::simt
