#pragma once
// Runs an emitted kernel on the host (test/simt) on tensors, as the runtime would on a device: binding, facts, schedule, launch,
// argument block. Expected values come from the reference evaluator.

#include <cmath>
#include <cstring>
#include <functional>

#include "codegen/magic.h"
#include "lib/fuzz/random_graph.h"
#include "lib/ir/convert.h"
#include "test/codegen/cuda_kernels.h"
#include "test/simt/simt.h"

namespace fusec {

/// How one run differs from the dense, aligned one.
struct How {
  int64_t offset = 0;                      // elements by which every buffer is off its alignment
  uint64_t seed = 1;
  simt_order order = SIMT_RANDOM;
  simt_races races = SIMT_RACES_ALL;
  bool strided = false;                    // every buffer's last dim has stride 2
  cuda::Device device = cuda::device(90);
  std::function<void(Schedule&)> change;   // a schedule that the sizes would not choose
  uint32_t most_blocks = 0;                // a smaller grid than launch() asks for: 0 = as asked
  std::function<void(std::string&)> edit;  // plants a fault in the text
};

struct Ran {
  std::vector<Tensor> outputs;
  Schedule schedule;
  std::string text, trouble;               // trouble: "" when all went well
};

inline int64_t value_of(const Dim& dim, const Sizes& sizes) { return *dim.value(sizes); }

/// The argument block, field after field.
inline std::vector<std::byte> pack(const Code& code, const Kernel& kernel, const Binding& binding, const Facts& f, const Launch& launch,
                                   void* states, void* counters) {
  std::vector<std::byte> out;
  std::vector<Val> accesses;
  for (Val v = 0; v < kernel.values.size(); ++v)
    if (kernel.values[v].kind == Kind::load || kernel.values[v].kind == Kind::store) accesses.push_back(v);
  auto stride_of = [&](const Inst& inst, size_t block) {
    return binding.operands[inst.operand].strides[kernel.operands[inst.operand].block_end[block] - 1u];
  };
  for (const Slot& slot : code.slots) {
    int64_t value = 0;
    switch (slot.kind) {
      case Slot::pointer: {
        const Inst& inst = kernel.values[accesses[slot.a]];
        int64_t offset = 0;
        for (size_t b = 0; b < inst.map.at.size(); ++b) offset += stride_of(inst, b) * value_of(inst.map.at[b].offset, binding.sizes);
        value = reinterpret_cast<int64_t>(binding.operands[inst.operand].data) + offset * int64_t(bytes(kernel.operands[inst.operand].type));
        break;
      }
      case Slot::step: value = f.access[slot.a].step[slot.b]; break;
      case Slot::stride: value = stride_of(kernel.values[accesses[slot.a]], slot.b); break;
      case Slot::extent: value = f.extents[slot.a]; break;
      case Slot::dim: value = value_of(slot.size, binding.sizes); break;
      case Slot::rows: value = f.rows; break;
      case Slot::columns: value = f.columns; break;
      case Slot::states: value = reinterpret_cast<int64_t>(states); break;
      case Slot::counters: value = reinterpret_cast<int64_t>(counters); break;
      case Slot::splits: value = launch.splits; break;
      case Slot::zero: value = 0; break;
      case Slot::policy: value = launch.policy; break;
      case Slot::magic:
        value = int64_t(slot.bytes == 8 ? magic64(uint64_t(f.extents[slot.a])).multiplier : magic32(uint32_t(f.extents[slot.a])).multiplier);
        break;
      case Slot::shift:
        value = code.schedule.wide_index ? magic64(uint64_t(f.extents[slot.a])).shift : magic32(uint32_t(f.extents[slot.a])).shift;
        break;
    }
    while (out.size() % slot.bytes) out.push_back(std::byte{0});
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), p, p + slot.bytes);
  }
  out.resize(args_bytes(code.slots));
  return out;
}

/// Random elements: with special values where results must have the reference's bits, moderate ones where a sum in another order is
/// compared within a tolerance.
inline Tensor drawn(DType type, const std::vector<int64_t>& extents, uint64_t seed, bool special) {
  if (special) return fuzz::random_tensor(type, extents, seed);
  fuzz::Random random(seed);
  Tensor t{type, extents, {}};
  t.data.resize(size_t(t.elements()) * bytes(type));
  for (int64_t i = 0; i < t.elements(); ++i) {
    const double x = 4 * random.unit() - 1;
    convert(DType::f64, reinterpret_cast<const std::byte*>(&x), type, t.data.data() + size_t(i) * bytes(type), 1);
  }
  return t;
}

/// A graph ready to run: decomposed, one kernel, inputs and outputs in order.
struct Subject {
  Graph graph;   // as written: what the reference evaluates
  Graph primitive;
  Group group;
  Kernel kernel;
};

inline Subject subject(const std::string& text, const BuildOptions& options = {}) {
  Result<Graph> graph = parse(text, "test.fus");
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().text());
  Result<Graph> primitive = decompose(*graph);
  EXPECT_TRUE(primitive) << (primitive ? "" : primitive.error().text());
  Group group = everything(*primitive);
  Result<Kernel> kernel = build(*primitive, group, options);
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().text());
  return {*graph, *primitive, group, kernel ? *kernel : Kernel{}};
}

inline Ran run(const Subject& s, const Sizes& sizes, const std::vector<Tensor>& inputs, const How& how = {}) {
  Ran out;
  static const simt::Library library = simt::Library::open();
  if (!library.ok()) {
    out.trouble = library.error();
    return out;
  }
  simt::Memory memory = library.memory();
  Binding binding{sizes, {}};
  std::vector<std::byte*> data;
  std::vector<std::vector<int64_t>> extents_of;
  for (const Operand& o : s.kernel.operands) {
    std::vector<int64_t> extents;
    for (const Dim& d : o.extents) extents.push_back(value_of(d, sizes));
    BoundOperand bound;
    bound.strides = dense_strides(extents);
    if (how.strided)
      for (int64_t& stride : bound.strides) stride *= 2;
    int64_t elements = 1;
    for (int64_t e : extents) elements *= e;
    const int64_t step = how.strided ? 2 : 1, size = int64_t(bytes(o.type));
    auto* p = memory.allocate<std::byte>(size_t((elements * step + how.offset) * size) + 1, o.output ? "out" : "in") + how.offset * size;
    bound.data = p;
    if (!o.output) {
      // Graph inputs come in the graph's order; dense constants bring their own data.
      const Tensor* from = nullptr;
      for (size_t i = 0; i < s.primitive.inputs().size(); ++i)
        if (s.primitive.inputs()[i].node == o.node) from = &inputs[i];
      if (!from) from = s.primitive.node(o.node).attrs->value.get();
      for (int64_t i = 0; i < elements; ++i) std::memcpy(p + i * step * size, from->data.data() + i * size, size_t(size));
    }
    data.push_back(p);
    extents_of.push_back(extents);
    binding.operands.push_back(bound);
  }
  const Facts f = facts(s.kernel, binding);
  out.schedule = cuda::schedule(s.kernel, f, how.device);
  if (how.change) how.change(out.schedule);
  const Code code = cuda::emit(s.kernel, out.schedule);
  out.text = code.text;
  const Launch launch = cuda::launch(s.kernel, out.schedule, f, how.device);
  if (!launch.empty) {
    if (how.edit) how.edit(out.text);
    simt::Kernel kernel = library.load(out.text);
    if (!kernel.ok()) {
      out.trouble = kernel.error();
      return out;
    }
    auto* states = memory.allocate<std::byte>(launch.state_bytes + 16, "states", true);
    auto* counters = memory.allocate<uint32_t>(launch.counters + 1, "counters");
    std::fill(counters, counters + launch.counters + 1, 0);
    const std::vector<std::byte> args = pack(code, s.kernel, binding, f, launch, states, counters);
    simt::Launch l;
    // Of 32-bit numbers of tiles, held rows and scans every grid has room for all, and the code counts on it; so do parts of scans.
    const Schedule& c = code.schedule;
    const bool once = c.skeleton == Template::scan && c.finish == Finish::last_block ? true
                      : !c.wide_index && (c.skeleton == Template::pointwise || c.skeleton == Template::scan ||
                                          (c.skeleton == Template::rows && c.keep == Keep::registers));
    l.grid = {how.most_blocks && !once && !launch.together ? std::min(how.most_blocks, launch.grid[0]) : launch.grid[0], launch.grid[1], launch.grid[2]};
    l.block = {launch.block, 1, 1};
    l.cluster = launch.cluster;
    l.dynamic_bytes = launch.shared;
    l.seed = how.seed;
    l.order = how.order;
    l.resident = launch.together ? l.grid[0] : 1;
    l.races = how.races;
    const simt::Result r = kernel.launch(code.entry, memory, l, args.data(), args.size());
    out.trouble = r.text;
    for (uint32_t i = 0; i < launch.counters; ++i)
      if (counters[i]) out.trouble += "; counter " + std::to_string(i) + " is left at " + std::to_string(counters[i]);
  }
  // Outputs in the order of the group.
  for (size_t k = 0; k < s.group.outputs.size(); ++k)
    for (size_t o = 0; o < s.kernel.operands.size(); ++o) {
      const Operand& operand = s.kernel.operands[o];
      if (!operand.output || operand.index != k) continue;
      Tensor t{operand.type, extents_of[o], {}};
      const int64_t n = t.elements(), size = int64_t(bytes(operand.type)), step = how.strided ? 2 : 1;
      t.data.resize(size_t(n * size));
      for (int64_t i = 0; i < n; ++i) std::memcpy(t.data.data() + i * size, data[o] + i * step * size, size_t(size));
      out.outputs.push_back(std::move(t));
    }
  return out;
}

}  // namespace fusec
