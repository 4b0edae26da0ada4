#include "runtime/inspect.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace fusec {
namespace {

/// How many programs of this process have dumped into a folder so far, this one included.
int count_program(const std::string& folder) {
  static std::mutex mutex;
  static auto* const kPrograms = new std::map<std::string, int>;
  const std::lock_guard lock(mutex);
  return ++(*kPrograms)[folder];
}

}  // namespace

Result<Switches> program_switches(const std::string& words) {
  Switches out;
  if (const char* environment = std::getenv("FUSEC_OPTIONS"))
    if (Status s = read_switches(environment, out); !s) return environment_error("FUSEC_OPTIONS: " + s.error().message);
  if (Status s = read_switches(words, out); !s) return s.error();
  if (!out.dump_dir.empty())
    if (const int n = count_program(out.dump_dir); n > 1) out.dump_dir += "/" + std::to_string(n);
  return out;
}

void dump_kernel(Trace& trace, const std::string& name, const Kernel& kernel, const Schedule& schedule, const Backend& backend) {
  if (!trace.dumps()) return;
  trace.dump(name + ".plan", print(kernel) + "schedule " + print(schedule) + "\n");
  for (const auto& [ending, text] : backend.texts(kernel, schedule)) trace.dump(name + ending, text);
}

}  // namespace fusec
