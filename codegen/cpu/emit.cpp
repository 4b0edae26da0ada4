// One loop nest serves every kernel:
//
//   for item in [begin, end):                     kept axes, and a chunk of the vector axis when that is kept
//     kept vector axis:    for each group of vectors of the chunk: row(frames)          (cpu_flat, cpu_column)
//     reduced vector axis: row(frame)                                                    (cpu_rows)
//   row: for each sweep: states = zero; for reduced axes …: fold, store; finish; then the stores of row values.
//
// With a kept vector axis a row has one reduction state a lane, and `side` groups of lanes side by side; with a reduced
// one it has `side` vector states that are merged in a fixed tree at the end. A tail is one masked iteration. Without
// reductions a sweep is straight code. A split reduction stores its states instead of finishing; the second entry
// merges the parts of a row in order.
#include "codegen/cpu/emit.h"

#if defined(__x86_64__)
#include <llvm/IR/IntrinsicsX86.h>
#endif

#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

Items items(const Kernel& kernel, const Schedule& schedule) {
  Items out;
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    if (kernel.axes[k].reduced) continue;
    if (k == schedule.vector_axis) {
      out.chunked = true;
    } else if (schedule.skeleton == Template::cpu_tile && schedule.block[k]) {
      out.tiled = true;
      out.tile_axis = k;
    } else if (!schedule.lane[k]) {  // otherwise joint with the vector axis, or a comb
      out.outer.push_back(k);
    }
  }
  out.split = schedule.finish == Finish::next_kernel;
  if (out.split)
    for (size_t k = kernel.axes.size(); k-- > 0;)
      if (kernel.axes[k].reduced && schedule.block[k]) out.split_axis = k;
  return out;
}

Skeleton::Skeleton(Emitter& e) : e_(e), b_(e.b), at_(items(e.kernel, e.schedule)) {
  const Kernel& k = e.kernel;
  for (size_t i = 0; i < k.axes.size(); ++i)
    if (k.axes[i].reduced && i != e.vector_axis) inner_.push_back(i);
  rows_ = !k.axes.empty() && k.axes[e.vector_axis].reduced;
  for (const Sweep& sweep : k.sweeps) {
    std::vector<Val> roots = sweep.stores;
    for (uint16_t r : sweep.reductions)
      roots.insert(roots.end(), k.reductions[r].inputs.begin(), k.reductions[r].inputs.end());
    sweep_lists_.push_back(e.needed(roots));
  }
  scans_ = k.scans();
  if (scans_) {
    backward_ = k.reductions[0].reverse;
    std::vector<Val> inputs;
    for (const Reduction& r : k.reductions) inputs.insert(inputs.end(), r.inputs.begin(), r.inputs.end());
    scan_list_ = e.needed(inputs);
  }
  row_list_ = e.needed(k.row_stores);
  if (e.schedule.keep == Keep::cache_buffer) lazy_ = lazy_pair(k);
  if (lazy_) {
    lazy_list_ = e.needed({lazy_->x});
    sweep_lists_[2] = e.needed(k.sweeps[2].stores, lazy_->e);
  }
  for (uint16_t r = 0; r < k.reductions.size(); ++r) folders_.emplace_back(e, r);
  for (Val v = 0; v < k.values.size(); ++v)
    if (k.values[v].kind == Kind::store && e.access(v).bypass) bypassed_.push_back(v);
}

V Skeleton::chunks(size_t axis) {
  const int64_t block = e_.schedule.block[axis];
  return b_.CreateUDiv(b_.CreateAdd(e_.extent(axis), e_.i64(block - 1)), e_.i64(block));
}

V Skeleton::parts() { return e_.slot({Slot::splits, 8, 0, 0, {}}); }

void Skeleton::place(Frame& frame, V item, V* chunk, V* part) {
  auto take = [&](V count) {
    if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(count); c && c->isOne()) return static_cast<V>(e_.i64(0));
    V quotient = b_.CreateUDiv(item, count);
    V rest = b_.CreateSub(item, b_.CreateMul(quotient, count));
    item = quotient;
    return rest;
  };
  if (part) *part = take(parts());
  if (chunk) {
    if (at_.outer.empty() && !at_.tiled) *chunk = item;
    else *chunk = take(chunks(e_.vector_axis));
  }
  if (at_.tiled) {
    V number = at_.outer.empty() ? item : take(chunks(at_.tile_axis));
    tile_from_ = b_.CreateMul(number, e_.i64(e_.schedule.block[at_.tile_axis]));
  }
  for (size_t n = at_.outer.size(); n-- > 0;) {
    const size_t axis = at_.outer[n];
    frame.index[axis] = n ? take(e_.extent(axis)) : item;
    frame.known |= AxisSet(1u << axis);
  }
}

void Skeleton::hoist_all(Frame& frame) {
  for (const auto& list : sweep_lists_) e_.hoist(frame, list);
  e_.hoist(frame, row_list_);
}

/// One work item, whose outer indices `frame` knows.
void Skeleton::item(Frame& frame, V chunk_number) {
  hoist_all(frame);
  if (!at_.chunked) return row({&frame, 1});
  chunk_from_ = b_.CreateMul(chunk_number, e_.i64(e_.schedule.block[e_.vector_axis]));
  at_.tiled ? tiles(frame) : chunk(frame);
}

/// Items that differ in the last outer axis only follow one another: the others are placed, and their values computed,
/// once a run.
void Skeleton::runs(Frame& root, V begin, V end) {
  const size_t axis = at_.outer.back();
  V count = e_.extent(axis);
  e_.walk(begin, end, [&](V i) {
    V before = b_.CreateUDiv(i, count), first = b_.CreateSub(i, b_.CreateMul(before, count));
    V length = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(count, first), b_.CreateSub(end, i));
    Frame outer = root;
    V rest = before;
    for (size_t n = at_.outer.size() - 1; n-- > 0;) {
      const size_t k = at_.outer[n];
      V quotient = n ? b_.CreateUDiv(rest, e_.extent(k)) : nullptr;
      outer.index[k] = n ? b_.CreateSub(rest, b_.CreateMul(quotient, e_.extent(k))) : rest;
      outer.known |= AxisSet(1u << k);
      rest = quotient;
    }
    hoist_all(outer);
    e_.loop(first, b_.CreateAdd(first, length), e_.i64(1), [&](V j) {
      Frame frame = outer;
      frame.index[axis] = j;
      frame.known |= AxisSet(1u << axis);
      item(frame, e_.i64(0));
    });
    return b_.CreateAdd(i, length);
  });
}

void Skeleton::main(const std::string& name) {
  auto [begin, end] = e_.begin(name);
  Frame root = e_.root();
  hoist_all(root);
  auto one = [&](V count) {
    auto* c = llvm::dyn_cast<llvm::ConstantInt>(count);
    return c && c->isOne();
  };
  if (e_.schedule.ahead) {
    pipeline(root, begin, end);
  } else if (at_.outer.size() > 1 && !at_.split && !at_.tiled && (!at_.chunked || one(chunks(e_.vector_axis)))) {
    runs(root, begin, end);
  } else {
    e_.loop(begin, end, e_.i64(1), [&](V i) {
      Frame frame = root;
      V chunk_number = nullptr, part = nullptr;
      item_number_ = i;
      place(frame, i, at_.chunked ? &chunk_number : nullptr, at_.split ? &part : nullptr);
      if (at_.split) {
        const int64_t block = e_.schedule.block[at_.split_axis];
        part_from_ = b_.CreateMul(part, e_.i64(block));
        part_to_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(part_from_, e_.i64(block)),
                                            e_.extent(at_.split_axis));
      }
      item(frame, chunk_number);
    });
  }
  if (!bypassed_.empty()) {
#if defined(__x86_64__)
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
#else
    b_.CreateFence(llvm::AtomicOrdering::Release);
#endif
  }
  e_.end();
}

Emitted emit(llvm::LLVMContext& context, const Kernel& kernel, const Schedule& schedule, const Device& device,
             const std::string& entry) {
  Emitted out;
  out.module = std::make_unique<llvm::Module>("fusec", context);
  Emitter emitter(kernel, schedule, device, *out.module);
  Skeleton skeleton(emitter);
  out.entry = entry;
  skeleton.main(entry);
  if (schedule.finish == Finish::next_kernel) {
    out.finish_entry = entry + "_finish";
    skeleton.finish(out.finish_entry);
  }
  out.slots = std::move(emitter.slots);
  out.fault = std::move(emitter.fault);
  return out;
}

}  // namespace fusec::cpu
