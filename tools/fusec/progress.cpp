#include "tools/fusec/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "lib/support/trace.h"

namespace fusec::cli {

Progress::Progress(std::string what) : what_(std::move(what)), thread_([this] { tell(); }) {}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::tell() {
  const bool terminal = ::isatty(2);
  std::unique_lock lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
      if (terminal && seconds > 1) std::cerr << "\r\x1b[K" << std::flush;
      return;
    }
    if (terminal) std::cerr << "\r" << what_ << " ... " << seconds << " s" << std::flush;
    else if (seconds == 1) std::cerr << what_ << " ...\n" << std::flush;
  }
}

namespace {

std::string command;

// What the signal handler writes; it may call nothing that allocates.
struct Crash {
  char path[256] = "";
  std::string text;
};
Crash& crash() {
  static Crash* const kCrash = new Crash;
  return *kCrash;
}

void say(const char* text) { (void)!::write(2, text, std::strlen(text)); }

extern "C" void on_crash(int) {
  const Crash& c = crash();
  const int fd = ::open(c.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) (void)!::write(fd, c.text.data(), c.text.size());
  say("error: fusec crashed; what repeats it is in ");
  say(fd >= 0 ? c.path : "(no file could be written)");
  say("\n");
  ::_exit(70);
}

}  // namespace

void set_command(int argc, char** argv) {
  command.clear();
  for (int i = 0; i < argc; ++i) {
    std::string word = i == 0 ? "fusec" : argv[i];
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,") != word.npos || word.empty()) {
      std::string quoted = "'";
      for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c == '\n' ? ' ' : c);
      word = quoted + "'";
    }
    command += (i ? " " : "") + word;
  }
}

const std::string& command_line() { return command; }

void guard(std::string_view graph_text) {
  Crash& c = crash();
  const char* folder = std::getenv("TMPDIR");
  const std::string path = std::string(folder && *folder ? folder : "/tmp") + "/fusec-crash-" + std::to_string(::getpid()) + ".fus";
  std::strncpy(c.path, path.c_str(), sizeof(c.path) - 1);
  c.text = "; " + command + "\n" + std::string(graph_text);
  static char stack[1 << 16];  // of its own: the crash may be a stack that ran out
  const stack_t other{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

Error with_reproducer(const Error& error, std::string_view graph_text) {
  if (error.kind != Error::internal) return error;
  Result<std::string> path = write_reproducer("", command, graph_text);
  return error.note(path ? "what repeats it is in " + *path : "no reproducer: " + path.error().message);
}

}  // namespace fusec::cli
