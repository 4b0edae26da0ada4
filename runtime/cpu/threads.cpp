// Each worker waits on its own ticket with an atomic wait, after a few microseconds of spinning: loops of a fused
// program follow one another closely, and a futex wake costs about as much as 64K elements. Nobody spins for long after
// the last loop.
#include "runtime/cpu/threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/log.h"

namespace fusec::cpu {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

thread_local bool inside = false;  // this thread runs a loop's body

struct Loop {
  const Range* body;
  int64_t items, chunk;
  std::atomic<int64_t> next{0};  // first item nobody has taken

  void run() {
    for (;;) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= items) return;
      (*body)(begin, std::min(items, begin + chunk));
    }
  }
};

class Pool {
 public:
  explicit Pool(int workers) : pid_(getpid()) {
    for (int i = 0; i < workers; ++i) add();
  }
  ~Pool() {
    if (pid_ != getpid()) {
      // A forked child has copies of handles, not the threads: there is nothing to join.
      for (auto& worker : workers_) worker.release();
      return;
    }
    stop_ = true;
    for (auto& worker : workers_) {
      worker->ticket.fetch_add(1, std::memory_order_release);
      worker->ticket.notify_one();
      worker->thread.join();
    }
  }
  pid_t pid() const { return pid_; }
  int workers() const { return static_cast<int>(workers_.size()); }

  void run(Loop& loop, int helpers) {
    busy_.store(helpers, std::memory_order_relaxed);
    for (int i = 0; i < helpers; ++i) {
      workers_[i]->loop = &loop;
      workers_[i]->ticket.fetch_add(1, std::memory_order_release);
      workers_[i]->ticket.notify_one();
    }
    inside = true;
    loop.run();
    inside = false;
    for (int spin = 0;; ++spin) {
      const int left = busy_.load(std::memory_order_acquire);
      if (left == 0) return;
      if (spin < kSpin) pause();
      else busy_.wait(left, std::memory_order_acquire);
    }
  }

 private:
  static constexpr int kSpin = 2000;  // some 20–60 µs

  struct Worker {
    std::atomic<uint32_t> ticket{0};
    Loop* loop = nullptr;
    std::thread thread;
  };

  void add() {
    workers_.push_back(std::make_unique<Worker>());
    Worker* w = workers_.back().get();
    w->thread = std::thread([this, w] {
      inside = true;
      for (uint32_t seen = 0;;) {
        for (int spin = 0; w->ticket.load(std::memory_order_acquire) == seen;) {
          if (++spin < kSpin) pause();
          else w->ticket.wait(seen, std::memory_order_acquire);
        }
        ++seen;
        if (stop_) return;
        w->loop->run();
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
      }
    });
  }

  pid_t pid_;
  std::atomic<bool> stop_{false};
  std::atomic<int> busy_{
      0};  // workers that have not finished; outlives every loop, so a late notify touches nothing freed
  std::vector<std::unique_ptr<Worker>> workers_;
};

int default_threads() {
  if (const char* text = std::getenv("FUSEC_THREADS"); text && *text) {
    int n = 0;
    const char* const end = text + std::strlen(text);
    if (const auto [at, error] = std::from_chars(text, end, n); error == std::errc() && at == end && n > 0) return std::min(n, 1024);
    log_warning("FUSEC_THREADS is ignored: '" + std::string(text) + "' is no number of threads");
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::atomic<int> wanted{0};
std::mutex hook_lock;
std::shared_ptr<const Hook> hook;

/// Held for the length of a loop: a second thread's loop runs on that thread alone rather than wait. Leaked on purpose
/// in a forked child, where another thread of the parent may have held it.
struct Shared {
  std::mutex busy;
  std::unique_ptr<Pool> pool;
  pid_t pid = getpid();
};
std::atomic<Shared*> shared{nullptr};

Shared& state() {
  Shared* s = shared.load(std::memory_order_acquire);
  const pid_t pid = getpid();
  while (!s || s->pid != pid) {
    auto* fresh = new Shared;
    if (shared.compare_exchange_strong(s, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
  }
  return *s;
}

}  // namespace

void set_threads(int n) { wanted.store(std::max(0, n)); }

int threads() {
  const int n = wanted.load();
  static const int by_default = default_threads();
  return n ? n : by_default;
}

void set_parallel_for(Hook replacement) {
  std::lock_guard guard(hook_lock);
  hook = replacement ? std::make_shared<const Hook>(std::move(replacement)) : nullptr;
}

void parallel_for(int64_t items, int64_t min_items, const Range& body) {
  if (items <= 0) return;
  min_items = std::max<int64_t>(1, min_items);
  if (items <= min_items || inside) return body(0, items);
  std::shared_ptr<const Hook> own;
  {
    std::lock_guard guard(hook_lock);
    own = hook;
  }
  if (own) return (*own)(items, min_items, body);
  const int64_t most = std::min<int64_t>(threads(), (items + min_items - 1) / min_items);
  if (most <= 1) return body(0, items);
  Shared& s = state();
  std::unique_lock guard(s.busy, std::try_to_lock);
  if (!guard) return body(0, items);
  if (!s.pool || s.pool->workers() + 1 < most) {
    s.pool.reset();
    try {
      s.pool = std::make_unique<Pool>(threads() - 1);
    } catch (const std::system_error&) {  // no more threads in this process
      return body(0, items);
    }
  }
  Loop loop;
  loop.body = &body;
  loop.items = items;
  // One contiguous share a thread: neighbouring rows and pages stay with one core. Four shares each when there is room,
  // so that a thread that starts late or is preempted does not hold up the rest.
  const int64_t shares = std::min<int64_t>(most * 4, items / min_items);
  loop.chunk = std::max<int64_t>(min_items, (items + std::max<int64_t>(1, shares) - 1) / std::max<int64_t>(1, shares));
  s.pool->run(loop, static_cast<int>(most) - 1);
}

}  // namespace fusec::cpu
