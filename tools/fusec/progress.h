#pragma once
// What a long command says while it works, and what stays when one dies.

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "fusec/result.h"

namespace fusec::cli {

/// A line on stderr when the work in its life takes more than a second; on a terminal it counts the seconds and goes away at the end.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;

 private:
  void tell();
  std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

/// The command line of this process, as a shell would take it.
void set_command(int argc, char** argv);
const std::string& command_line();

/// From now on, a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) writes a reproducer: the command as the first comment, then this
/// graph. The process then exits with status 70.
void guard(std::string_view graph_text);

/// An internal error, with a note that names the reproducer that was written for it; other errors as they are.
Error with_reproducer(const Error& error, std::string_view graph_text);

}  // namespace fusec::cli
