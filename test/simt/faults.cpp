// Faults as text: who, where, what; the first one ends the launch.

#include <cstdarg>
#include <cstdio>

#include "test/simt/fiber.h"
#include "test/simt/machine.h"

namespace fusec::simt {

namespace {

std::string print(const char* text, va_list args) {
  char buffer[1024];
  std::vsnprintf(buffer, sizeof buffer, text, args);
  return buffer;
}

}  // namespace

std::string format(const char* text, ...) {
  va_list args;
  va_start(args, text);
  std::string out = print(text, args);
  va_end(args);
  return out;
}

void fail_here(simt_fault fault, u32 site, const char* why, ...) {
  va_list args;
  va_start(args, why);
  std::string what = print(why, args);
  va_end(args);
  fail(fault, site, what + " by " + name(*machine->current) + " at " + place(site));
}

std::string name(const Thread& thread) {
  const Index &b = thread.block->at, &t = thread.at;
  return format("block (%u,%u,%u) thread (%u,%u,%u)", b.x, b.y, b.z, t.x, t.y, t.z);
}

std::string place(u32 site) {
  const Site& s = machine->kernel->sites[site];
  if (s.lines.empty()) return "an unknown line";
  std::string text = format("line %u", s.lines[0]);
  for (size_t i = 1; i < s.lines.size(); i++) text += format("%s%u", i == 1 ? " (called from " : ", ", s.lines[i]);
  return s.lines.size() > 1 ? text + ")" : text;
}

void report(simt_fault fault, u32 site, const std::string& why, const Thread* thread) {
  Machine& m = *machine;
  if (m.dead) return;
  m.dead = true;
  m.fault = fault;
  m.why = why;
  m.fault_site = site;
  if (!thread) return;
  m.fault_block = thread->block->at;
  m.fault_thread = thread->at;
}

void fail(simt_fault fault, u32 site, const std::string& why) {
  Machine& m = *machine;
  report(fault, site, why, m.current);
  fiber_switch(&m.current->stack, m.home);
  __builtin_trap();  // nobody comes back to a fiber of a dead launch
}

void report_deadlock() {
  static const char* const kWaits[] = {"can run",
                                       "wait at __syncthreads",
                                       "wait at a named barrier",
                                       "wait in a warp collective",
                                       "wait at the cluster barrier",
                                       "wait at an mbarrier"};
  std::string text = "deadlock: no thread can run";
  u32 site = 0;
  for (const Block* block : machine->live) {
    std::map<std::string, std::vector<u32>> groups;
    for (const Thread* thread : block->threads) {
      std::string what = thread->done ? "have ended" : kWaits[static_cast<int>(thread->wait)];
      if (!thread->done) what += ", " + place(thread->site);
      if (thread->wait == Wait::warp) what += format(", mask %08x", thread->mask);
      groups[what].push_back(thread->linear);
      if (!thread->done && !site) site = thread->site;
    }
    for (const auto& [what, threads] : groups) {
      text += format("\n  block (%u,%u,%u): threads", block->at.x, block->at.y, block->at.z);
      for (size_t i = 0, j; i < threads.size(); i = j) {
        for (j = i + 1; j < threads.size() && threads[j] == threads[j - 1] + 1;) j++;
        text += format(j - i > 1 ? "%s %u-%u" : "%s %u", i ? "," : "", threads[i], threads[j - 1]);
      }
      text += " " + what;
    }
  }
  report(SIMT_DEADLOCK, site, text, nullptr);
}

}  // namespace fusec::simt
