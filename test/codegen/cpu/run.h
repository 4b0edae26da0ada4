#pragma once
// Runs one graph as one kernel on the CPU back end, step by step and without the runtime: build, schedule, compile,
// load, pack, call.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "codegen/cpu/cpu.h"
#include "lib/ir/convert.h"
#include "lib/ir/decompose.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/threads.h"

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
inline std::vector<std::byte> pack(const Kernel& kernel, const Artifact& artifact, const Binding& binding,
                                   const Facts& facts, const Launch& launch, void* states) {
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
        for (size_t b = 0; b < inst.map.at.size(); ++b)
          offset += inst.map.at[b].offset.value(binding.sizes).value() * block_stride(inst, b);
        auto* base = static_cast<std::byte*>(binding.operands[inst.operand].data);
        value =
            reinterpret_cast<int64_t>(base + offset * static_cast<int64_t>(bytes(kernel.operands[inst.operand].type)));
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

/// Elements with every special value of the type in front, then random bits; some of them small integers.
inline Tensor sample(DType type, std::vector<int64_t> extents, uint64_t seed) {
  Tensor out{type, std::move(extents), {}};
  const size_t n = static_cast<size_t>(out.elements()), size = bytes(type);
  out.data.resize(n * size);
  std::vector<uint64_t> special = {
      0, 1, 2, 3, ~uint64_t{0}, uint64_t{1} << (size * 8 - 1), (uint64_t{1} << (size * 8 - 1)) - 1};
  if (is_float(type)) {
    const double numbers[] = {0.0, -0.0, 1.0,  -1.0, 0.5, -0.5, 1.5,   2.5,      -2.5,      3.0,
                              7.0, 0.1,  1e-3, 1e3,  6e4, 1e38, -1e38, INFINITY, -INFINITY, NAN};
    for (double d : numbers) {
      Tensor from{DType::f64, {}, std::vector<std::byte>(8)}, to{type, {}, std::vector<std::byte>(size)};
      std::memcpy(from.data.data(), &d, 8);
      convert(DType::f64, from.data.data(), type, to.data.data(), 1);
      uint64_t bits = 0;
      std::memcpy(&bits, to.data.data(), size);
      special.push_back(bits);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = seed >> 24 ^ seed << 40;
    uint64_t bits = random % 3 == 0 ? special[(seed >> 33) % special.size()] : random;
    if (!is_float(type) && random % 3 == 1) bits = static_cast<uint64_t>(static_cast<int64_t>(random >> 20 & 31) - 12);
    if (type == DType::boolean) bits = random >> 7 & 1;
    std::memcpy(out.data.data() + i * size, &bits, size);
  }
  return out;
}

/// Equal bits, any NaN equal to any other. "" or where they differ.
inline std::string difference(const Tensor& got, const Tensor& want) {
  const size_t size = bytes(want.dtype), n = static_cast<size_t>(want.elements());
  for (size_t i = 0; i < n; ++i) {
    if (!std::memcmp(got.data.data() + i * size, want.data.data() + i * size, size)) continue;
    const double a = element(got, static_cast<int64_t>(i)), b = element(want, static_cast<int64_t>(i));
    if (is_float(want.dtype) && a != a && b != b) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element %zu: %a, expected %a (%.9g, %.9g)", i, a, b, a, b);
    return text;
  }
  return "";
}

/// A graph that can be called many times; calls that choose equal schedules share code, as in the runtime.
struct Runner {
  struct Variant {
    Schedule plan;
    Artifact artifact;
    Code code;
  };
  Graph graph;
  Kernel kernel;
  std::function<void(Schedule&)> tune;
  Device device = host();
  mutable std::mutex lock;
  mutable std::map<std::string, Variant> variants;  // by the schedule's bytes

  explicit Runner(const std::string& text, BuildOptions options = {}, std::function<void(Schedule&)> change = {})
      : tune(change) {
    Result<Graph> parsed = parse(text, "test.fus");
    if (!parsed) {
      ADD_FAILURE() << parsed.error().text();
      return;
    }
    Result<Graph> lowered = decompose(*parsed);
    if (!lowered) {
      ADD_FAILURE() << lowered.error().text();
      return;
    }
    graph = *lowered;
    Result<Kernel> built = build(graph, everything(graph), options);
    if (!built) {
      ADD_FAILURE() << built.error().text();
      return;
    }
    kernel = *built;
  }

  const Variant* variant(const Facts& facts) const {
    Schedule plan = schedule(kernel, facts, device);
    if (tune) tune(plan);
    std::lock_guard guard(lock);
    auto [at, fresh] = variants.try_emplace(bytes(plan));
    if (!fresh) return &at->second;
    Result<Artifact> compiled = compile(kernel, plan, device);
    if (!compiled) {
      ADD_FAILURE() << compiled.error().text() << "\n" << print(kernel);
      return nullptr;
    }
    Result<Code> loaded = load(compiled->bytes, compiled->entry, compiled->finish_entry);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().text();
      return nullptr;
    }
    at->second = {plan, *compiled, *loaded};
    return &at->second;
  }
  /// What a dense call with these sizes runs.
  const Variant& dense(const Sizes& sizes) const { return *variant(facts(kernel, dense_binding(kernel, sizes))); }

  /// Inputs, then outputs, in the graph's order.
  void operator()(const std::vector<Buffer>& buffers, const Sizes& sizes = {}) const {
    Binding binding = dense_binding(kernel, sizes);
    const size_t inputs = buffers.size() - std::count_if(kernel.operands.begin(), kernel.operands.end(),
                                                         [](auto& o) { return o.output; });
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const Operand& operand = kernel.operands[i];
      const Buffer& buffer = buffers[operand.output ? inputs + operand.index : operand.index];
      binding.operands[i].data = buffer.data;
      if (!buffer.strides.empty()) binding.operands[i].strides = buffer.strides;
    }
    const Facts f = facts(kernel, binding);
    const Variant* v = variant(f);
    ASSERT_TRUE(v);
    const Launch call = launch(kernel, v->plan, f);
    if (call.empty) return;
    std::vector<std::byte> states(call.state_bytes + 64, std::byte{0xcd});
    void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(states.data()) + 63) / 64 * 64);
    const std::vector<std::byte> args = pack(kernel, v->artifact, binding, f, call, aligned);
    parallel_for(call.grid[0], call.block, [&](int64_t a, int64_t z) { v->code.entry(args.data(), a, z); });
    if (v->code.finish)
      parallel_for(call.grid[1], call.block, [&](int64_t a, int64_t z) { v->code.finish(args.data(), a, z); });
  }
};

/// Runs on tensors, dense.
inline std::vector<Tensor> run(const Runner& runner, const std::vector<Tensor>& inputs, const Sizes& sizes = {}) {
  std::vector<Buffer> buffers;
  for (const Tensor& t : inputs) buffers.push_back({const_cast<std::byte*>(t.data.data())});
  std::vector<Tensor> out;
  for (const Port& port : runner.graph.outputs()) {
    const Type& type = runner.graph.node(port.node).type;
    Tensor t{type.dtype, {}, {}};
    for (const Dim& d : type.shape) t.extents.push_back(*d.value(sizes));
    t.data.own().assign(static_cast<size_t>(t.elements()) * bytes(t.dtype), std::byte{0xa5});
    out.push_back(std::move(t));
  }
  for (Tensor& t : out) buffers.push_back({t.data.data()});
  runner(buffers, sizes);
  return out;
}

}  // namespace fusec::cpu
