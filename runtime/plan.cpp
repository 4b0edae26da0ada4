// The front half of compile(): passes, decomposition, fusion, then buffers with the steps in which they live.
//
// Outputs that are inputs, constants or repeats have no group that writes them: a copy step at the end does.

#include "runtime/plan.h"

#include <algorithm>
#include <set>

#include "lib/ir/decompose.h"
#include "runtime/passes.h"

namespace fusec {
namespace {

struct Planner {
  ProgramPlan plan;
  std::vector<uint32_t> home;  // node → buffer, ~0u = none yet

  uint32_t add(PlanBuffer buffer) {
    plan.buffers.push_back(std::move(buffer));
    return uint32_t(plan.buffers.size() - 1);
  }
  const Graph& graph() const { return *plan.graph; }

  /// The buffer a value is read from.
  uint32_t source(NodeId id) {
    if (home[id] != ~0u) return home[id];
    home[id] = add({PlanBuffer::constant, uint32_t(plan.constants.size()), graph().node(id).type});
    plan.constants.push_back(id);
    return home[id];
  }

  void ports() {
    home.assign(graph().size(), ~0u);
    for (size_t i = 0; i < graph().inputs().size(); ++i) {
      const NodeId id = graph().inputs()[i].node;
      home[id] = add({PlanBuffer::input, uint32_t(i), graph().node(id).type});
      plan.input_buffer.push_back(home[id]);
    }
    for (size_t i = 0; i < graph().outputs().size(); ++i)
      plan.output_buffer.push_back(add({PlanBuffer::output, uint32_t(i), graph().node(graph().outputs()[i].node).type}));
  }

  /// The first output port that shows a computed value is where it is computed.
  void claim_outputs() {
    for (size_t i = 0; i < graph().outputs().size(); ++i) {
      const NodeId id = graph().outputs()[i].node;
      if (home[id] == ~0u && graph().node(id).op != Op::constant) home[id] = plan.output_buffer[i];
    }
  }

  void add_groups(std::vector<Group> groups) {
    // A leaf that is an output and no constant (iota, size) is written by a kernel of its own.
    std::vector<bool> written(graph().size(), false);
    for (const Group& group : groups)
      for (NodeId id : group.outputs) written[id] = true;
    for (const Port& port : graph().outputs()) {
      const Op op = graph().node(port.node).op;
      if (is_leaf(op) && op != Op::input && op != Op::constant && !written[port.node])
        written[port.node] = true, groups.push_back({{}, {}, {port.node}});
    }
    for (Group& group : groups) {
      PlanStep step{plan.graph, std::move(group), {}, {}};
      for (NodeId id : step.group.inputs) step.inputs.push_back(source(id));
      for (NodeId id : step.group.outputs) {
        if (home[id] == ~0u) home[id] = add({PlanBuffer::temporary, 0, graph().node(id).type});
        step.outputs.push_back(home[id]);
      }
      plan.steps.push_back(std::move(step));
    }
  }

  void add_copies() {
    for (size_t i = 0; i < graph().outputs().size(); ++i) {
      const NodeId id = graph().outputs()[i].node;
      if (const uint32_t from = source(id); from != plan.output_buffer[i])
        plan.steps.push_back(copy_step(graph().node(id).type, from, plan.output_buffer[i]));
    }
  }

  void lifetimes() {
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      for (uint32_t b : plan.steps[s].outputs) plan.buffers[b].first = plan.buffers[b].last = s;
      for (uint32_t b : plan.steps[s].inputs) plan.buffers[b].last = s;
    }
  }
};

}  // namespace

PlanStep copy_step(const Type& type, uint32_t from, uint32_t to) {
  GraphBuilder b("copy");
  const Value x = b.input("x", type);
  const Value y = b.add(Op::reshape, {x}, {.shape = type.shape});
  Result<Graph> graph = std::move(b).finish({y});
  PlanStep step{std::make_shared<const Graph>(std::move(*graph)), {{y.id}, {x.id}, {y.id}}, {from}, {to}, true};
  return step;
}

Result<ProgramPlan> make_plan(const Graph& graph, const CompileOptions& options) {
  Trace trace;
  return make_plan(graph, options, {}, trace);
}

Result<ProgramPlan> make_plan(const Graph& graph, const CompileOptions& options, const Switches& switches, Trace& trace) {
  if (Status good = verify(graph); !good) return good.error().note("while verifying graph @" + graph.name());
  Result<Graph> simple = optimise(graph, options.numerics, options.disabled_rules, switches, trace);
  if (!simple) return simple.error().note("while compiling graph @" + graph.name());
  Result<GroupPlan> groups = fuse(*simple, {.numerics = options.numerics, .merge = options.fuse});
  if (!groups) return groups.error().note("while fusing graph @" + graph.name());

  Planner planner;
  planner.plan.source = std::make_shared<const Graph>(graph);
  planner.plan.graph = std::make_shared<const Graph>(std::move(*simple));
  planner.plan.refusals = std::move(groups->refusals);
  planner.ports();
  planner.claim_outputs();
  planner.add_groups(std::move(groups->groups));
  planner.add_copies();
  planner.lifetimes();
  return std::move(planner.plan);
}

}  // namespace fusec
