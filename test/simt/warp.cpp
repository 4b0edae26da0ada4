// Warp collectives: lanes meet by mask. Shuffles and votes carry values and, as on a device, order no memory;
// __syncwarp does.

#include <algorithm>

#include "test/simt/machine.h"

namespace fusec::simt {
namespace {

// The order of simt_op_* in shim.h.
enum WarpOp {
  kSync,
  kXor,
  kDown,
  kUp,
  kIndex,
  kBallot,
  kAny,
  kAll,
  kAdd,
  kMin,
  kMax,
  kSignedMin,
  kSignedMax,
  kAnd,
  kOr,
  kXorBits
};
const char* const kNames[] = {"__syncwarp",        "__shfl_xor_sync",   "__shfl_down_sync",  "__shfl_up_sync",
                              "__shfl_sync",       "__ballot_sync",     "__any_sync",        "__all_sync",
                              "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync",
                              "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync"};

bool is_shuffle(int op) { return op >= kXor && op <= kIndex; }

// The lane that lane `i` reads from; itself where that would leave its segment (the programming guide, warp shuffle
// functions).
int source(int op, int i, int pick, int width) {
  int first = i & ~(width - 1), from = i;
  switch (op) {
    case kXor: from = i ^ pick; return from >= first + width ? i : from;
    case kDown: from = i + pick; return from >= first + width ? i : from;
    case kUp: from = i - pick; return from < first ? i : from;
    default: return first + (pick & (width - 1));
  }
}

u64 combine(int op, u64 a, u64 b) {
  auto x = static_cast<u32>(a), y = static_cast<u32>(b);
  auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
  switch (op) {
    case kAny:
    case kOr: return a | b;
    case kAll:
    case kAnd: return a & b;
    case kAdd: return x + y;
    case kMin: return std::min(x, y);
    case kMax: return std::max(x, y);
    case kSignedMin: return static_cast<u32>(std::min(sx, sy));
    case kSignedMax: return static_cast<u32>(std::max(sx, sy));
    case kXorBits: return a ^ b;
    default: return 0;
  }
}

u64 vote(int op, const Warp& warp, u32 mask) {
  u64 all = 0;
  if (op == kBallot) {
    for (u32 m = mask; m; m &= m - 1) all |= warp.value[__builtin_ctz(m)] << __builtin_ctz(m);
    return all;
  }
  all = warp.value[__builtin_ctz(mask)];
  for (u32 m = mask & (mask - 1); m; m &= m - 1) all = combine(op, all, warp.value[__builtin_ctz(m)]);
  return all;
}

void order_memory(Warp& warp, u32 mask) {
  u32 time = next_time();
  Known all;
  Gathering gathering;
  bool whole = (mask & warp.live) == warp.live;
  for (u32 m = mask; m; m &= m - 1) {
    Thread& thread = *warp.lane[__builtin_ctz(m)];
    if (whole) {
      all = join(all, thread.extra);
    } else {
      gathering.add(thread, time);
    }
    thread.since = time;
  }
  if (whole) {
    warp.known = time;
  } else {
    all = gathering.freeze();
  }
  if (all)
    for (u32 m = mask; m; m &= m - 1) learn(*warp.lane[__builtin_ctz(m)], all);
}

void complete(Warp& warp, Collective& open) {
  u32 mask = open.mask;
  int op = open.op;
  progressed();
  if (op == kSync) order_memory(warp, mask);
  u64 all = op == kSync || is_shuffle(op) ? 0 : vote(op, warp, mask);
  Thread* waiting[32];
  size_t count = 0;
  for (u32 m = mask; m; m &= m - 1) {
    int i = __builtin_ctz(m);
    Thread& thread = *warp.lane[i];
    thread.result = all;
    if (is_shuffle(op)) {
      int from = source(op, i, warp.pick[i], warp.width[i]);
      if (!(mask >> from & 1))
        fail(SIMT_DIVERGENT_WARP, open.site,
             format("%s at %s: lane %d of warp %u reads lane %d, which mask %08x leaves out", kNames[op],
                    place(open.site).c_str(), i, thread.linear / 32, from, mask));
      thread.result = warp.value[from];
    }
    waiting[count++] = &thread;
  }
  open = {};
  wake_all({waiting, count});
}

void check_mask(const Thread& thread, int op, u32 mask, u32 site) {
  if (!(mask >> thread.lane & 1))
    fail_here(SIMT_DIVERGENT_WARP, site, "%s with mask %08x, which leaves out its own lane %u,", kNames[op], mask,
              thread.lane);
  u32 gone = mask & thread.warp->exists & ~thread.warp->live;
  if (gone)
    fail_here(SIMT_DIVERGENT_WARP, site, "%s with mask %08x, of which lanes %08x have ended,", kNames[op], mask, gone);
}

Collective& meeting(const Thread& thread, int op, u32 mask, u32 site) {
  Warp& warp = *thread.warp;
  for (Collective& open : warp.open) {
    if (!open.mask) continue;
    if (open.mask == mask && open.op == op) return open;
    if (open.arrived & mask)  // they wait elsewhere for good: this one would never complete
      fail_here(SIMT_DIVERGENT_WARP, site, "%s with mask %08x, while lanes %08x wait in %s at %s with mask %08x,",
                kNames[op], mask, open.arrived, kNames[open.op], place(open.site).c_str(), open.mask);
  }
  for (Collective& open : warp.open)
    if (!open.mask) {
      open = {mask, 0, site, op};
      return open;
    }
  fail_here(SIMT_DIVERGENT_WARP, site, "more than 4 collectives of a warp under way, the last");
}

}  // namespace

extern "C" u64 simt_rt_warp(int op, u32 mask, u64 value, int pick, int width, u32 site) {
  step(site);
  Thread& thread = *machine->current;
  Warp& warp = *thread.warp;
  check_mask(thread, op, mask, site);
  mask &= warp.exists;  // lanes that a short last warp does not have
  Collective& open = meeting(thread, op, mask, site);
  warp.value[thread.lane] = value;
  warp.pick[thread.lane] = pick;
  warp.width[thread.lane] = width;
  open.arrived |= 1u << thread.lane;
  expect(Wait::warp, site, mask);
  if (open.arrived == mask) complete(warp, open);
  suspend();
  return thread.result;
}

extern "C" u32 simt_rt_active(u32 site) {
  step(site);
  return machine->current->warp->live;
}

}  // namespace fusec::simt
