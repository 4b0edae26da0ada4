#pragma once
// Runs one graph as one kernel on the CPU back end, step by step and without the runtime: build, schedule, compile, load, pack, call.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "codegen/cpu/cpu.h"
#include "lib/ir/decompose.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/threads.h"

namespace fusec { struct Formula; __attribute__((weak)) const Formula* formula(Op, DType) { return nullptr; } }  // TODO: goes when lib/ir/formula.cpp is in
namespace fusec::cpu {

/// A buffer of a call: strides in elements, empty = dense.
struct Buffer {
  void* data;
  std::vector<int64_t> strides{};
};

/// The whole graph as one group.
inline Group everything(const Graph& graph) {
  Group group;
  for (NodeId id = 0; id < graph.size(); id++) {
    const Node& node = graph.node(id);
    if (node.op == Op::input || (node.op == Op::constant && !node.type.shape.empty())) group.inputs.push_back(id);
    else if (!is_leaf(node.op)) group.nodes.push_back(id);
  }
  for (const Port& port : graph.outputs()) group.outputs.push_back(port.node);
  return group;
}

/// The argument block of a call, from the artifact's slots.
inline std::vector<std::byte> pack(const Kernel& kernel, const Artifact& artifact, const Binding& binding, const Facts& facts,
                                   const Launch& launch, void* states) {
  std::vector<const Inst*> accesses;
  for (const Inst& inst : kernel.values)
    if (inst.kind == Kind::load || inst.kind == Kind::store) accesses.push_back(&inst);
  auto block_stride = [&](const Inst& inst, size_t b) {
    const Operand& operand = kernel.operands[inst.operand];
    return binding.operands[inst.operand].strides[operand.block_end[b] - 1];
  };
  std::vector<std::byte> out(args_bytes(artifact.slots));
  for (size_t i = 0; i < artifact.slots.size(); ++i) {
    const Slot& slot = artifact.slots[i];
    int64_t value = 0;
    switch (slot.kind) {
      case Slot::pointer: {
        const Inst& inst = *accesses[slot.a];
        int64_t offset = 0;
        for (size_t b = 0; b < inst.map.at.size(); ++b) offset += inst.map.at[b].offset.value(binding.sizes).value() * block_stride(inst, b);
        auto* base = static_cast<std::byte*>(binding.operands[inst.operand].data);
        value = reinterpret_cast<int64_t>(base + offset * static_cast<int64_t>(bytes(kernel.operands[inst.operand].type)));
        break;
      }
      case Slot::step: value = facts.access[slot.a].step[slot.b]; break;
      case Slot::stride: value = block_stride(*accesses[slot.a], slot.b); break;
      case Slot::extent: value = facts.extents[slot.a]; break;
      case Slot::dim: value = slot.size.value(binding.sizes).value(); break;
      case Slot::rows: value = facts.rows; break;
      case Slot::columns: value = facts.columns; break;
      case Slot::states: value = reinterpret_cast<int64_t>(states); break;
      case Slot::splits: value = launch.splits; break;
      default: ADD_FAILURE() << "a slot that no CPU kernel has"; break;
    }
    std::memcpy(out.data() + i * 8, &value, 8);
  }
  return out;
}

/// A compiled graph that can be called many times.
struct Runner {
  Graph graph;
  Kernel kernel;
  Artifact artifact;
  Code code;
  Schedule plan;

  Runner(const std::string& text, const Sizes& sizes = {}, BuildOptions options = {}, std::function<void(Schedule&)> tune = {}) {
    Result<Graph> parsed = parse(text, "test.fus");
    if (!parsed) { ADD_FAILURE() << parsed.error().text(); return; }
    Result<Graph> lowered = decompose(*parsed);
    if (!lowered) { ADD_FAILURE() << lowered.error().text(); return; }
    graph = *lowered;
    Result<Kernel> built = build(graph, everything(graph), options);
    if (!built) { ADD_FAILURE() << built.error().text(); return; }
    kernel = *built;
    make(sizes, tune);
  }
  explicit Runner(Kernel k, const Sizes& sizes = {}) : kernel(std::move(k)) { make(sizes, {}); }

  void make(const Sizes& sizes, const std::function<void(Schedule&)>& tune) {
    plan = schedule(kernel, facts(kernel, dense_binding(kernel, sizes)), host());
    if (tune) tune(plan);
    Result<Artifact> compiled = compile(kernel, plan, host());
    if (!compiled) { ADD_FAILURE() << compiled.error().text() << "\n" << print(kernel); return; }
    artifact = *compiled;
    Result<Code> loaded = load(artifact.bytes, artifact.entry, artifact.finish_entry);
    if (!loaded) { ADD_FAILURE() << loaded.error().text(); return; }
    code = *loaded;
  }

  /// Inputs, then outputs, in the graph's order.
  void operator()(const std::vector<Buffer>& buffers, const Sizes& sizes = {}) const {
    ASSERT_TRUE(code.entry);
    Binding binding = dense_binding(kernel, sizes);
    const size_t inputs = buffers.size() - std::count_if(kernel.operands.begin(), kernel.operands.end(), [](auto& o) { return o.output; });
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const Operand& operand = kernel.operands[i];
      const Buffer& buffer = buffers[operand.output ? inputs + operand.index : operand.index];
      binding.operands[i].data = buffer.data;
      if (!buffer.strides.empty()) binding.operands[i].strides = buffer.strides;
    }
    const Facts f = facts(kernel, binding);
    const Launch call = launch(kernel, plan, f);
    if (call.empty) return;
    std::vector<std::byte> states(call.state_bytes + 64, std::byte{0xcd});
    void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(states.data()) + 63) / 64 * 64);
    const std::vector<std::byte> args = pack(kernel, artifact, binding, f, call, aligned);
    parallel_for(call.grid[0], call.block, [&](int64_t a, int64_t z) { code.entry(args.data(), a, z); });
    if (code.finish) parallel_for(call.grid[1], call.block, [&](int64_t a, int64_t z) { code.finish(args.data(), a, z); });
  }
};

}  // namespace fusec::cpu
