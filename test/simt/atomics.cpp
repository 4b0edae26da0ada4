// Atomics and flags. They publish what the thread's last fence covered, and what others published there becomes known
// to the thread by its next fence: fence, atomic … atomic, fence is the only way in which blocks that share no barrier
// order their accesses.

#include <algorithm>
#include <cstring>

#include "test/simt/machine.h"

namespace fusec::simt {
namespace {

// The orders of simt_at_*, simt_ty_* and simt_relaxed… in shim.h.
enum AtomicOp { kLoad, kStore, kAdd, kMin, kMax, kExchange, kCompare, kIncrement, kDecrement, kAnd, kOr, kXor };
enum AtomicType { kU32, kI32, kU64, kI64, kF32, kF64, kU8, kU16 };
enum AtomicOrder { kRelaxed, kAcquire, kRelease, kBoth };
constexpr u32 kBytes[] = {4, 4, 8, 8, 4, 8, 1, 2};

template <class T>
T of_bits(u64 bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
u64 to_bits(T value) {
  u64 bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
u64 arithmetic(int op, u64 old_bits, u64 bits) {
  T old = of_bits<T>(old_bits), value = of_bits<T>(bits);
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case kAdd: return to_bits<T>(static_cast<T>(static_cast<U>(old) + static_cast<U>(value)));
      case kAnd: return to_bits<T>(static_cast<T>(old & value));
      case kOr: return to_bits<T>(static_cast<T>(old | value));
      case kXor: return to_bits<T>(static_cast<T>(old ^ value));
      case kIncrement: return to_bits<T>(old >= value ? T{0} : static_cast<T>(old + 1));
      case kDecrement: return to_bits<T>(old == 0 || old > value ? value : static_cast<T>(old - 1));
      default: break;
    }
  }
  if (op == kMin) return to_bits<T>(std::min(old, value));
  if (op == kMax) return to_bits<T>(std::max(old, value));
  return to_bits<T>(old + value);
}

u64 apply(int op, int type, u64 old, u64 value, u64 compare) {
  if (op == kLoad) return old;
  if (op == kStore || op == kExchange) return value;
  if (op == kCompare) return old == compare ? value : old;
  switch (type) {
    case kU32: return arithmetic<u32>(op, old, value);
    case kI32: return arithmetic<int32_t>(op, old, value);
    case kU64: return arithmetic<u64>(op, old, value);
    case kI64: return arithmetic<int64_t>(op, old, value);
    case kF32: return arithmetic<float>(op, old, value);
    case kF64: return arithmetic<double>(op, old, value);
    case kU8: return arithmetic<u8>(op, old, value);
    default: return arithmetic<uint16_t>(op, old, value);
  }
}

void publish(Thread& thread, const void* at, bool shared) {
  Mark& mark = shared ? thread.fence_block : thread.fence_gpu;
  if (!mark.time) return;
  if (!mark.published) mark.published = snapshot(thread, mark.time, mark.block, mark.warp, mark.extra);
  Known& there = machine->released[at];
  there = join(there, mark.published);
}

void take_over(Thread& thread, const void* at, bool shared, bool now_already) {
  auto there = machine->released.find(at);
  if (there == machine->released.end()) return;
  if (now_already) return learn(thread, there->second);
  Known& seen = shared ? thread.seen_block : thread.seen_gpu;
  seen = join(seen, there->second);
}

void fence(Thread& thread) {
  u32 time = release(thread);
  thread.fence_block = thread.fence_gpu = {time, thread.block->known, thread.warp->known, thread.extra, nullptr};
}

}  // namespace

extern "C" u64 simt_rt_atomic(int op, int type, int order, void* at, u64 value, u64 compare, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  u32 bytes = kBytes[type];
  bool writes = op != kLoad, reads = op != kStore, shared = is_shared(at);
  if (order & kRelease) fence(thread);
  if (reads && writes) access(at, bytes, bytes, kRead | kAtomic | kUnlogged, site);
  access(at, bytes, bytes, (writes ? kWrite : kRead) | kAtomic | kUnlogged, site);
  u64 old = 0;
  std::memcpy(&old, at, bytes);
  u64 result = apply(op, type, old, value, compare);
  std::memcpy(at, &result, bytes);
  if (writes) publish(thread, at, shared);
  if (reads) take_over(thread, at, shared, order & kAcquire);
  bool changed = std::memcmp(&old, &result, bytes) != 0;
  if (changed) {
    progressed();
    if (machine->options.order == SIMT_RANDOM && random_below(4) == 0) give_way();
  } else if (reads) {
    polled(site);
  }
  return old;
}

void volatile_access(void* at, const Site& what, u32 site) {
  Thread& thread = *machine->current;
  bool shared = is_shared(at);
  if (!what.write) polled(site);  // before the load: between here and there nobody else runs
  access(at, what.bytes, what.align, (what.write ? kWrite : kRead) | kAtomic, site);
  if (what.write) {
    publish(thread, at, shared);
    progressed();
  } else {
    take_over(thread, at, shared, false);
  }
}

}  // namespace fusec::simt
