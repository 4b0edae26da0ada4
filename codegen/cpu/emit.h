#pragma once
// Kernel and schedule to an LLVM module: the skeletons. Internal to codegen/cpu.

#include <memory>

#include "codegen/cpu/emitter.h"

namespace fusec::cpu {

struct Emitted {
  std::unique_ptr<llvm::Module> module;
  std::vector<Slot> slots;
  std::string entry, finish_entry;
  std::string fault;  // what could not be emitted; "" = nothing
};

Emitted emit(llvm::LLVMContext& context, const Kernel& kernel, const Schedule& schedule, const Device& device,
             const std::string& entry);

/// Where a work item lies: kept axes (without a kept vector axis), then its chunk of a kept vector axis, then its part
/// of the reduced space. Shared by the schedule's arithmetic and the code.
struct Items {
  std::vector<size_t> outer;  // kept axes numbered by the item, outermost first; neither the vector nor the joint axis
  bool chunked = false;       // the vector axis is kept: items are chunks of block[vector_axis] elements
  bool tiled =
      false;  // items also are chunks of block[tile_axis] along a second kept axis, counted before those of the first
  size_t tile_axis = 0;
  bool split = false;  // the reduced space is cut along `split_axis` into parts of block[split_axis] indices
  size_t split_axis = 0;
};
Items items(const Kernel& kernel, const Schedule& schedule);

}  // namespace fusec::cpu
