// fusec reduce: shrinks a failing .fus while a command keeps failing.
//
// The moves are lib/fuzz/shrink.h's. One stays when the command, run on the smaller graph, ends with the same status as on the whole one.

#include <CLI/CLI.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "lib/fuzz/shrink.h"
#include "tools/fusec/command.h"
#include "tools/fusec/workers.h"

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph, output = "-";
  std::vector<std::string> command;
  int timeout = 60;
};

constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP};
char scratch_name[PATH_MAX];
volatile pid_t command_group = 0;  // the command and what it starts; 0: it does not run

extern "C" void on_end(int signal) {
  if (command_group) ::kill(-command_group, SIGKILL);
  ::unlink(scratch_name);
  ::raise(signal);  // SA_RESETHAND: the default now, which ends us
}

/// The file goes also when a signal ends us.
void remove_at_end(const std::string& file) {
  if (file.size() >= sizeof(scratch_name)) return;
  std::memcpy(scratch_name, file.c_str(), file.size() + 1);
  struct sigaction action {};
  action.sa_handler = on_end;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (int signal : kEnds) ::sigaction(signal, &action, nullptr);
}

/// Runs the command with {} (or, without one, a last argument) naming the file. Its output goes nowhere, and nothing that it
/// started outlives it. 256 + signal when it was killed.
int status_of(const std::vector<std::string>& command, const std::string& file, int timeout) {
  std::vector<std::string> words;
  bool named = false;
  for (const std::string& word : command) named |= word == "{}", words.push_back(word == "{}" ? file : word);
  if (!named) words.push_back(file);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  sigset_t ends, before;
  ::sigemptyset(&ends);
  for (int signal : kEnds) ::sigaddset(&ends, signal);
  ::sigprocmask(SIG_BLOCK, &ends, &before);  // until on_end knows of the child
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    for (int signal : kEnds) ::signal(signal, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    ::setpgid(0, 0);
    die_with(parent);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::alarm(timeout);
    if (!::freopen("/dev/null", "r", stdin) || !::freopen("/dev/null", "w", stdout) || !::freopen("/dev/null", "w", stderr)) ::_exit(126);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  if (child > 0) {
    ::setpgid(child, child);
    command_group = child;
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return -1;
  siginfo_t seen;
  while (::waitid(P_PID, id_t(child), &seen, WEXITED | WNOWAIT) < 0 && errno == EINTR) {}
  ::kill(-child, SIGKILL);  // while its number is still its own
  command_group = 0;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int run(const Options& o) {
  Result<Graph> loaded = load_graph(o.file, o.graph);
  if (!loaded) return fail(loaded.error());
  Graph best = std::move(*loaded);
  const std::filesystem::path scratch = std::filesystem::temp_directory_path() / ("fusec-reduce-" + std::to_string(::getpid()) + ".fus");
  remove_at_end(scratch.string());
  auto status = [&](const Graph& graph) -> int {
    if (Status s = write_output(scratch.string(), print(graph)); !s) return -1;
    return status_of(o.command, scratch.string(), o.timeout);
  };
  const int wanted = status(best);
  int tried = 1, result = 0;
  if (wanted <= 0 || wanted == 127) {
    result = fail(input_error(wanted == 0 ? "the command succeeds on the whole graph: there is nothing to reduce"
                                          : "the command cannot be run: " + o.command.front()));
  } else {
    auto fails = [&](const fuzz::Failing& next) { return ++tried, status(next.graph) == wanted; };
    auto progress = [&](const fuzz::Failing& next) {
      std::cerr << next.graph.size() << (next.graph.size() == 1 ? " node, " : " nodes, ") << tried << " runs\n";
    };
    best = fuzz::shrink({best, {}}, fails, INT_MAX, progress).graph;
    std::string words;
    for (const std::string& word : o.command) words += " " + one_line(word);
    const Status written = write_output(o.output, "; ends with status " + std::to_string(wanted) + ":" + words + "\n" + print(best));
    result = written ? 0 : fail(written.error());
  }
  std::error_code ignored;
  std::filesystem::remove(scratch, ignored);
  return result;
}

}  // namespace

Action add_reduce(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, ".fus file")->required();
  app.add_option("--graph", options->graph, "which graph of the file");
  app.add_option("-o,--output", options->output, "where the small graph goes (default: standard output)");
  app.add_option("--timeout", options->timeout, "seconds that one run may take")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("COMMAND", options->command, "behind --: fails on the file; {} stands for it, else it comes last")->required()->expected(1, -1);
  app.footer("Example:\n  fusec reduce bad.fus -o small.fus -- fusec run {} --device cpu --check");
  return [options] { return run(*options); };
}

}  // namespace fusec::cli
