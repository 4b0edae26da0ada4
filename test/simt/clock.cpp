// Joins of knowledge; see clock.h for what it means.

#include "test/simt/clock.h"

#include <algorithm>

#include "test/simt/machine.h"

namespace fusec::simt {
namespace {

auto position(auto& blocks, u32 block) {
  return std::lower_bound(blocks.begin(), blocks.end(), block,
                          [](const auto& row, u32 key) { return row.first < key; });
}

bool holds(const Times& a, const Times& b) {
  for (size_t i = 0; i < b.size(); i++)
    if (b[i] > a[i]) return false;
  return true;
}

void raise(Times& a, const Times& b) {
  for (size_t i = 0; i < b.size(); i++) a[i] = std::max(a[i], b[i]);
}

bool holds(const Clock& a, const Clock& b) {
  for (const auto& [block, times] : b.blocks) {
    const Times* mine = a.find(block);
    if (!mine || (mine != times.get() && !holds(*mine, *times))) return false;
  }
  return true;
}

}  // namespace

const Times* Clock::find(u32 block) const {
  auto row = position(blocks, block);
  return row != blocks.end() && row->first == block ? row->second.get() : nullptr;
}

namespace {

Known joined(const Known& a, const Known& b) {
  if (holds(*b, *a)) return b;
  if (holds(*a, *b)) return a;
  auto both = std::make_shared<Clock>();
  auto x = a->blocks.begin(), y = b->blocks.begin();
  while (x != a->blocks.end() || y != b->blocks.end()) {
    if (y == b->blocks.end() || (x != a->blocks.end() && x->first < y->first)) {
      both->blocks.push_back(*x++);
    } else if (x == a->blocks.end() || y->first < x->first) {
      both->blocks.push_back(*y++);
    } else if (x->second == y->second || holds(*x->second, *y->second)) {
      both->blocks.push_back(*x++), ++y;
    } else {
      auto times = std::make_shared<Times>(*x->second);
      raise(*times, *y->second);
      both->blocks.emplace_back(x->first, std::move(times));
      ++x, ++y;
    }
  }
  return both;
}

// The lanes of a warp learn the same things, one after the other.
struct Recent {
  Known a, b, both;
};
Recent recent[64];

}  // namespace

Known join(const Known& a, const Known& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  const size_t mix = reinterpret_cast<uintptr_t>(a.get()) / 16 * 31 + reinterpret_cast<uintptr_t>(b.get()) / 16;
  Recent& r = recent[mix % (sizeof recent / sizeof *recent)];
  if (r.a != a || r.b != b) r = {a, b, joined(a, b)};
  return r.both;
}

Known with_slot(const Known& known, u32 block, u32 slot, u32 stride, u32 time) {
  auto clock = known ? std::make_shared<Clock>(*known) : std::make_shared<Clock>();
  auto row = position(clock->blocks, block);
  bool have = row != clock->blocks.end() && row->first == block;
  auto times = have ? std::make_shared<Times>(*row->second) : std::make_shared<Times>(stride, 0);
  (*times)[slot] = std::max((*times)[slot], time);
  if (have) {
    row->second = std::move(times);
  } else {
    clock->blocks.insert(row, {block, std::move(times)});
  }
  return clock;
}

Known snapshot(const Thread& thread, u32 time, u32 block, u32 warp, const Known& extra) {
  const Times* had = extra ? extra->find(thread.block->linear) : nullptr;
  auto times = had ? std::make_shared<Times>(*had) : std::make_shared<Times>(machine->stride, 0);
  for (u32 i = 0; i < machine->threads; i++) (*times)[i] = std::max((*times)[i], block);
  u32 first = thread.linear & ~31u;
  for (u32 i = first; i < first + 32; i++) (*times)[i] = std::max((*times)[i], warp);
  (*times)[thread.linear] = std::max((*times)[thread.linear], time);
  auto clock = extra ? std::make_shared<Clock>(*extra) : std::make_shared<Clock>();
  auto row = position(clock->blocks, thread.block->linear);
  if (had) {
    row->second = std::move(times);
  } else {
    clock->blocks.insert(row, {thread.block->linear, std::move(times)});
  }
  return clock;
}

Times& Gathering::own(u32 block, u32 stride) {
  auto row = position(blocks_, block);
  if (row == blocks_.end() || row->first != block) row = blocks_.insert(row, {block, Times(stride, 0)});
  return row->second;
}

void Gathering::add(const Known& known) {
  if (!known || std::find(seen_.begin(), seen_.end(), known) != seen_.end()) return;
  seen_.push_back(known);
  for (const auto& [block, times] : known->blocks) raise(own(block, static_cast<u32>(times->size())), *times);
}

void Gathering::add(const Thread& thread, u32 time) {
  add(thread.extra);
  const Block& block = *thread.block;
  Times& times = own(block.linear, machine->stride);
  auto floor = position(floors_, block.linear);
  if (floor == floors_.end() || floor->first != block.linear) floor = floors_.insert(floor, {block.linear, 0});
  if (floor->second < block.known) {
    for (u32 i = 0; i < machine->threads; i++) times[i] = std::max(times[i], block.known);
    floor->second = block.known;
  }
  u32 first = thread.linear & ~31u;
  for (u32 i = first; i < first + 32; i++) times[i] = std::max(times[i], thread.warp->known);
  times[thread.linear] = std::max(times[thread.linear], time);
}

void Gathering::add_slot(u32 block, u32 slot, u32 stride, u32 time) {
  Times& times = own(block, stride);
  times[slot] = std::max(times[slot], time);
}

Known Gathering::freeze() {
  auto clock = std::make_shared<Clock>();
  for (const auto& [block, times] : blocks_) clock->blocks.emplace_back(block, std::make_shared<const Times>(times));
  seen_.clear();  // all of it is in blocks_; keeping the pointers would keep old clocks alive
  return clock;
}

}  // namespace fusec::simt
