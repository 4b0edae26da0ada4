#pragma once
// Graph to steps over buffers: what a program is before any size, device or layout is known.

#include "fusec/fusec.h"
#include "lib/fusion/fuse.h"
#include "lib/kernel/kernel.h"
#include "lib/passes/switches.h"

namespace fusec {

/// Where a value lives during a call.
struct PlanBuffer {
  enum Of : uint8_t { input, output, temporary, constant } of;
  uint32_t index = 0;          // port; constant: of ProgramPlan::constants
  Type type;
  uint32_t first = 0;          // step that writes it; of inputs and constants 0
  uint32_t last = 0;           // last step that reads it (outputs: or writes it)
};

/// One kernel, in launch order.
struct PlanStep {
  std::shared_ptr<const Graph> graph;  // that `group` speaks of
  Group group;
  std::vector<uint32_t> inputs, outputs;  // buffers, one a group input and output
  bool copy = false;                   // moves an output into place
};

struct ProgramPlan {
  std::shared_ptr<const Graph> source;  // as handed over
  std::shared_ptr<const Graph> graph;   // rewritten and decomposed
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> steps;
  std::vector<NodeId> constants;        // dense constants that kernels read, of `graph`
  std::vector<Refusal> refusals;
  std::vector<uint32_t> input_buffer, output_buffer;  // one a port
};

/// Errors   those of the passes and of the planner; input errors name the node.
Result<ProgramPlan> make_plan(const Graph& graph, const CompileOptions& options);
/// The same, with its passes as the switches say; graphs and counters go to the trace.
Result<ProgramPlan> make_plan(const Graph& graph, const CompileOptions& options, const Switches& switches, Trace& trace);

/// A step that copies a value of this type between two buffers.
PlanStep copy_step(const Type& type, uint32_t from, uint32_t to);

}  // namespace fusec
