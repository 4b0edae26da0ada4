#include "runtime/arguments.h"

#include <cstring>

#include "codegen/magic.h"

namespace fusec {
namespace {

struct Filler {
  const Kernel& kernel;
  const Facts& facts;
  const Sizes& sizes;
  const Launch& launch;
  std::span<const OperandPlace> operands;
  const LaunchPlace& place;
  std::vector<Val> accesses;  // loads and stores, in order

  int64_t value(const Dim& dim) const { return dim.value(sizes).value_or(0); }
  const Operand& operand(uint32_t access) const { return kernel.operands[kernel.values[accesses[access]].operand]; }
  const OperandPlace& home(uint32_t access) const { return operands[kernel.values[accesses[access]].operand]; }
  int64_t block_stride(uint32_t access, uint32_t block) const { return home(access).strides[operand(access).block_end[block] - 1]; }

  Patch pointer(uint32_t access, uint32_t at) const {
    const Inst& inst = kernel.values[accesses[access]];
    int64_t elements = 0;
    for (size_t b = 0; b < inst.map.at.size(); ++b) elements += value(inst.map.at[b].offset) * block_stride(access, b);
    return {at, home(access).pointer, home(access).offset + elements * int64_t(bytes(operand(access).type))};
  }

  uint64_t number(const Slot& slot) const {
    auto magic = [&] {
      const int64_t d = facts.extents[slot.a];
      return slot.bytes == 8 || d >= (int64_t{1} << 31) ? magic64(d) : magic32(uint32_t(d));
    };
    switch (slot.kind) {
      case Slot::step: return facts.access[slot.a].step[slot.b];
      case Slot::stride: return block_stride(slot.a, slot.b);
      case Slot::extent: return facts.extents[slot.a];
      case Slot::dim: return value(slot.size);
      case Slot::rows: return facts.rows;
      case Slot::columns: return facts.columns;
      case Slot::splits: return launch.splits;
      case Slot::zero: return 0;
      case Slot::policy: return launch.policy;
      case Slot::magic: return magic().multiplier;
      case Slot::shift: return magic().shift;
      case Slot::pointer:
      case Slot::states:
      case Slot::counters: return 0;
    }
    return 0;
  }
};

bool fits(const Slot& slot, uint64_t n) {
  if (slot.bytes == 8 || slot.kind == Slot::magic) return true;
  const int64_t s = int64_t(n);
  return s >= INT32_MIN && s <= INT32_MAX;
}

}  // namespace

Status fill(const Kernel& kernel, const Artifact& artifact, const Facts& facts, const Sizes& sizes, const Launch& launch,
            std::span<const OperandPlace> operands, const LaunchPlace& place, PackedCall& call, PackedStep& step) {
  Filler filler{kernel, facts, sizes, launch, operands, place, {}};
  for (Val v = 0; v < kernel.values.size(); ++v)
    if (kernel.values[v].kind == Kind::load || kernel.values[v].kind == Kind::store) filler.accesses.push_back(v);

  call.args.resize((call.args.size() + 15) / 16 * 16);
  step.args = uint32_t(call.args.size());
  step.bytes = uint32_t(args_bytes(artifact.slots));
  step.first_patch = uint32_t(call.patches.size());
  call.args.resize(step.args + step.bytes);
  size_t at = step.args;
  for (const Slot& slot : artifact.slots) {
    at = step.args + (at - step.args + slot.bytes - 1) / slot.bytes * slot.bytes;
    if (slot.kind == Slot::pointer) call.patches.push_back(filler.pointer(slot.a, uint32_t(at)));
    else if (slot.kind == Slot::states) call.patches.push_back({uint32_t(at), place.arena, place.states_offset});
    else if (slot.kind == Slot::counters) call.patches.push_back({uint32_t(at), place.counters, place.counters_offset});
    else {
      const uint64_t n = filler.number(slot);
      if (!fits(slot, n)) return internal_error("a launch argument does not fit 32 bits: the schedule should be wide");
      std::memcpy(call.args.data() + at, &n, slot.bytes);  // little-endian, as all hosts that CUDA and our LLVM targets run on
    }
    at += slot.bytes;
  }
  step.patches = uint32_t(call.patches.size()) - step.first_patch;
  return Done{};
}

}  // namespace fusec
