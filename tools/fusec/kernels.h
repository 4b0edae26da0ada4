#pragma once
// The kernels of a graph for a target, without a device: what explain, emit and schedules look at.

#include <memory>

#include "codegen/artifact.h"
#include "runtime/chooser.h"
#include "runtime/plan.h"
#include "tools/fusec/command.h"

namespace CLI {
class App;
}

namespace fusec::cli {

struct KernelOptions {
  std::string target = "cpu";      // cpu, sm_80, sm_90 …
  Numerics numerics = Numerics::strict;
  std::vector<std::string> dims;   // "N=1024"
  bool fuse = true;
  std::vector<std::string> schedule;  // "threads=512", "g1:keep=reload": fields set by hand
  std::string tuning;                 // a tuning file
};
void add_kernel_options(CLI::App& app, KernelOptions& options);

struct PlannedKernel {
  const PlanStep* step;
  Kernel kernel;
  Facts facts;
  Choice choice;
  Launch launch;
  const Schedule& schedule() const { return choice.schedule; }
};

struct Planned {
  std::unique_ptr<ProgramPlan> plan;
  Sizes sizes;
  std::vector<std::string> assumed;    // named dims without a size: 1024 each
  std::vector<PlannedKernel> kernels;  // one a step
};

/// The schedules of a target without a device.
/// Errors   input: an unknown target; environment: its back end is not in this build.
Result<std::shared_ptr<const Scheduler>> scheduler_of(const std::string& target);
void add_schedule_option(CLI::App& app, std::vector<std::string>& edits);
void add_tuning_option(CLI::App& app, std::string& file);

/// Errors   input: an unknown target or dim; environment: the target's back end is not in this build.
Result<Planned> plan_kernels(const Graph& graph, const KernelOptions& options);
/// … of a device or target at hand.
Result<Planned> plan_kernels(const Graph& graph, const KernelOptions& options, const Scheduler& scheduler);

/// "1 kernel, 33.6 MB moved; one kernel an operation: 16, 294 MB". `graph` has no composites any more.
std::string saving_text(size_t kernels, double bytes, const Graph& graph, const Sizes& sizes);
/// The same of a graph as it was handed over.
Result<std::string> saving_text(const Graph& graph, const Sizes& sizes, Numerics numerics);

/// Multiprocessor version of "sm_90", or -1.
int sm_of(const std::string& target);

}  // namespace fusec::cli
