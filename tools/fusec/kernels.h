#pragma once
// The kernels of a graph for a target, without a device: what explain, emit and schedules look at.

#include <memory>

#include "codegen/artifact.h"
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
};
void add_kernel_options(CLI::App& app, KernelOptions& options);

struct PlannedKernel {
  const PlanStep* step;
  Kernel kernel;
  Facts facts;
  Schedule schedule;
  Launch launch;
};

struct Planned {
  std::unique_ptr<ProgramPlan> plan;
  Sizes sizes;
  std::vector<std::string> assumed;    // named dims without a size: 1024 each
  std::vector<PlannedKernel> kernels;  // one a step
};

/// Errors   input: an unknown target or dim; environment: the target's back end is not in this build.
Result<Planned> plan_kernels(const Graph& graph, const KernelOptions& options);

/// Multiprocessor version of "sm_90", or -1.
int sm_of(const std::string& target);

}  // namespace fusec::cli
