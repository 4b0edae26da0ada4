#include "tools/fusec/roofline.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/fusion/cost.h"
#if FUSEC_HAS_CUDA
#include "codegen/cuda/cuda.h"
#endif

namespace fusec::cli {
namespace {

/// Lanes of f32 of a multiprocessor and a clock that it keeps up; from the programming guide and data sheets.
struct Lanes {
  int sm, lanes;
  double clock;
};
[[maybe_unused]] const Lanes kLanes[] = {{80, 64, 1.41e9}, {86, 128, 1.7e9}, {90, 128, 1.7e9}, {100, 128, 1.8e9}};

double points(const Facts& facts, AxisSet varies) {
  double out = 1;
  for (size_t k = 0; k < facts.extents.size(); ++k)
    if (varies >> k & 1) out *= double(facts.extents[k]);
  return out;
}

/// Bytes that a block asks for before it waits for the first of them.
double block_in_flight(const PlannedKernel& k) {
  const Schedule& s = k.schedule();
  if (s.skeleton == Template::ring) return double(k.launch.shared);
  const AxisSet all = AxisSet((1u << k.kernel.axes.size()) - 1);
  double step = 0;
  for (const Inst& inst : k.kernel.values)
    if (inst.kind == Kind::load && inst.varies == all) {
      const bool wide = inst.varies >> s.vector_axis & 1;
      step += double(bytes(k.kernel.operands[inst.operand].type)) * (wide ? std::max<int>(1, s.lane[s.vector_axis]) : 1);
    }
  const bool held = s.skeleton == Template::rows && s.keep == Keep::registers;
  if (s.skeleton == Template::transpose && s.block[s.vector_axis]) return step * s.block[s.vector_axis] * s.block[s.vector_axis] / std::max<int>(1, s.lane[s.vector_axis]);
  return step * s.threads * std::max<int>(1, s.rows_in_flight) * (held ? std::max<int>(1, s.steps) : 1);
}

}  // namespace

Result<Limits> measured_limits(const Backend& device) {
  Limits out;
  out.source = "measured on " + device.name();
  Result<double> copy = copy_rate(device, Flush(), size_t{256} << 20, 11);
  if (!copy) return copy.error();
  Result<double> adds = add_rate(device, 11);
  if (!adds) return adds.error();
  out.copy = *copy, out.arithmetic = *adds;
  if (Result<std::function<Status()>> empty = device.empty_launch(64)) {
    Result<std::vector<double>> times = device.time(21, [] { return Done{}; }, *empty);
    if (!times) return times.error();
    out.launch = spread(std::move(*times)).median;
  }
  return out;
}

Limits table_limits([[maybe_unused]] int sm) {
  Limits out;
  out.source = "the table's for sm_" + std::to_string(sm) + ", not measured";
#if FUSEC_HAS_CUDA
  const cuda::Device device = cuda::device(sm);
  Lanes lanes = kLanes[0];
  for (const Lanes& row : kLanes)
    if (row.sm <= sm) lanes = row;
  out.copy = device.copy_rate, out.arithmetic = double(device.multiprocessors) * lanes.lanes * lanes.clock;
  out.launch = 3.5e-6;
#endif
  return out;
}

double kernel_adds(const Kernel& kernel, const Facts& facts) {
  double sum = 0;
  for (const Inst& inst : kernel.values) {
    if (inst.kind != Kind::compute) continue;
    // Liberties of composites: exp in hardware, a division by a row's value as a multiplication.
    const bool few = inst.op == Op::exp && (inst.relax & kFewerTerms), reciprocal = inst.op == Op::div && (inst.relax & kReciprocal);
    sum += points(facts, inst.varies) * (few ? 3 : reciprocal ? 1 : op_cost(inst.op, inst.type));
  }
  for (const Reduction& r : kernel.reductions) {
    AxisSet varies = 0;
    for (Val v : r.inputs) varies |= kernel.values[v].varies;
    sum += points(facts, AxisSet(varies | kernel.reduced_axes())) * info(r.op).cost;
  }
  return sum;
}

KernelReport report(const PlannedKernel& k, const Limits& limits, const Artifact* artifact, const Scheduler& scheduler) {
  KernelReport out;
  out.bytes = double(k.facts.footprint), out.adds = kernel_adds(k.kernel, k.facts);
  out.memory = out.bytes / std::max(limits.copy, 1.0), out.arithmetic = out.adds / std::max(limits.arithmetic, 1.0);
  out.predicted = std::max({out.memory, out.arithmetic, limits.launch});
  if (!artifact) return out;
  auto fact = [&](const char* key) {
    auto found = artifact->facts.find(key);
    return found == artifact->facts.end() ? int64_t{-1} : found->second;
  };
  out.registers = fact("registers"), out.spill_bytes = fact("spill_bytes"), out.compile_us = fact("compile_us");
  out.occupancy = scheduler.occupancy(*artifact, k.launch);
  out.in_flight = block_in_flight(k) * out.occupancy.blocks;
  return out;
}

std::string text(const KernelReport& r) {
  std::string out = "  arithmetic " + fixed(r.adds * 1e-9, r.adds < 1e9 ? 4 : 2) + " G adds, " + fixed(r.adds / std::max(r.bytes, 1.0), 2) + " a byte\n";
  const bool memory = r.memory >= r.arithmetic, launch = r.predicted > std::max(r.memory, r.arithmetic);
  out += std::string("  bound by  ") + (launch ? "the launch" : memory ? "memory" : "arithmetic") + ": " + time_text(r.memory) + " of memory, " +
         time_text(r.arithmetic) + " of arithmetic\n";
  out += "  takes     " + time_text(r.predicted) + " predicted";
  if (r.measured > 0)
    out += ", " + time_text(r.measured) + " measured (" + size_text(r.bytes / r.measured) + "/s, " + fixed(r.measured / r.predicted, 2) + " of what was predicted)";
  out += "\n";
  if (r.registers >= 0) {
    out += "  fills     " + std::to_string(r.registers) + " registers, " + std::to_string(r.spill_bytes) + " bytes spilled; " + std::to_string(r.occupancy.blocks) +
           " blocks a multiprocessor, occupancy " + fixed(r.occupancy.fraction, 2);
    if (r.in_flight > 0) out += ", " + fixed(r.in_flight / 1024, 1) + " KiB in flight";
    out += "; compiled in " + time_text(double(std::max<int64_t>(r.compile_us, 0)) * 1e-6) + "\n";
  }
  return out;
}

nlohmann::json json(const KernelReport& r) {
  nlohmann::json out = {{"bytes", r.bytes}, {"adds", r.adds}, {"adds_per_byte", r.adds / std::max(r.bytes, 1.0)},
                        {"bound", r.predicted > std::max(r.memory, r.arithmetic) ? "launch" : r.memory >= r.arithmetic ? "memory" : "arithmetic"},
                        {"memory_s", r.memory}, {"arithmetic_s", r.arithmetic}, {"predicted_s", r.predicted}};
  if (r.measured > 0) out["measured_s"] = r.measured;
  if (r.registers >= 0)
    out.update({{"registers", r.registers}, {"spill_bytes", r.spill_bytes}, {"blocks_per_multiprocessor", r.occupancy.blocks}, {"occupancy", r.occupancy.fraction},
                {"bytes_in_flight", r.in_flight}, {"compile_us", r.compile_us}});
  return out;
}

}  // namespace fusec::cli
