#include "tools/fusec/workers.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <thread>

namespace fusec::cli {
namespace {

struct Shared {
  std::atomic<int64_t> next, done, failed;
};

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t stop = 0;

extern "C" void on_stop(int signal) { stop = signal; }

pid_t forked(const std::function<int()>& what) {
  std::cout.flush();
  std::cerr.flush();
  const pid_t parent = ::getpid(), child = ::fork();
  if (child != 0) return child;
  die_with(parent);
  for (int signal : kStops) {  // a terminal sends them to all: who started us says what becomes of us
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == on_stop) ::signal(signal, SIG_IGN);
  }
  const int status = what();
  std::cout.flush();
  ::_exit(status);
}

int end_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void die_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it went before that
}

void* shared_memory(size_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void stop_at_signals() {
  struct sigaction action {}, now {};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  for (int signal : kStops)
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
}

int stopped_by() { return stop; }

int in_child(const std::function<int()>& what, unsigned hang) {
  const pid_t child = forked([&] { return ::alarm(hang), what(); });
  int status = 0;
  for (auto pause = std::chrono::microseconds(100); ::waitpid(child, &status, WNOHANG) == 0; pause = std::min(2 * pause, std::chrono::microseconds(5000))) {
    if (stop) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(pause);
  }
  return end_of(status);
}

Work run_items(const WorkerOptions& options, const std::function<bool(int64_t)>& item, const std::function<void(int64_t, int)>& died,
               const std::function<void(const Work&)>& tell) {
  auto* shared = static_cast<Shared*>(shared_memory(sizeof(Shared)));
  auto* current = static_cast<std::atomic<int64_t>*>(shared_memory(sizeof(std::atomic<int64_t>) * size_t(options.jobs)));
  if (!shared || !current) return {};
  const double end = options.seconds > 0 ? now() + options.seconds : INFINITY;
  auto may_go_on = [&] { return !stop && now() < end && (options.most_failures == 0 || shared->failed < options.most_failures); };
  auto work = [&](int slot) {
    return [&, slot] {
      while (may_go_on()) {
        const int64_t k = shared->next++;
        if (k >= options.count) break;
        current[slot] = k;
        ::alarm(options.hang);
        if (!item(k)) ++shared->failed;
        ++shared->done;
      }
      return 0;
    };
  };
  std::map<pid_t, int> slots;
  for (int slot = 0; slot < options.jobs; ++slot) slots[forked(work(slot))] = slot;
  for (double told = now(); !slots.empty();) {
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, WNOHANG);
    if (child > 0) {
      const int slot = slots[child];
      slots.erase(child);
      if (end_of(status) == 0 || stop) continue;
      ++shared->failed;
      ++shared->done;
      died(current[slot], end_of(status));
      if (may_go_on()) slots[forked(work(slot))] = slot;
      continue;
    }
    if (stop)
      for (const auto& [worker, slot] : slots) ::kill(worker, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (now() - told > 1) tell({shared->done, shared->failed}), told = now();
  }
  const Work out{shared->done, shared->failed};
  ::munmap(shared, sizeof(Shared));
  ::munmap(current, sizeof(std::atomic<int64_t>) * size_t(options.jobs));
  return out;
}

}  // namespace fusec::cli
