#pragma once
// A fiber: a stack and the place where it stopped. Switching saves the callee-saved registers of the System V x86-64
// ABI and nothing else (kernels never change mxcsr or the x87 control word): 7-10 ns, where swapcontext takes 1,190 (it
// calls the kernel for the signal mask).

#include <cstdint>

extern "C" void fusec_simt_switch(void** save, void* load);
__asm__(R"(
.text
.p2align 4
.weak fusec_simt_switch
.hidden fusec_simt_switch
.type fusec_simt_switch,@function
fusec_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size fusec_simt_switch,.-fusec_simt_switch
)");

namespace fusec::simt {

/// Leaves the running fiber, whose place goes to *save, for the one that stopped at `load`. Never switch to the running
/// fiber itself: its saved place is stale.
inline void fiber_switch(void** save, void* load) { fusec_simt_switch(save, load); }

/// The place of a fiber that will begin with `body` (which never returns) on the stack that ends at `top`.
inline void* fiber_prepare(char* top, void (*body)()) {
  void** stack = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--stack = nullptr;  // the return address of body; leaves rsp at 8 mod 16, as after a call
  *--stack = reinterpret_cast<void*>(body);
  for (int i = 0; i < 6; i++) *--stack = nullptr;
  return stack;
}

}  // namespace fusec::simt
