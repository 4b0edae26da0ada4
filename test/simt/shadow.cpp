// The detector's memory. A cell holds one write and one read in place; whatever else must be kept (several readers at
// once, halves of a word written by different threads) goes to a list. Entries that the accessing thread knows to be
// over are dropped on the way: whoever comes after this access comes after those.

#include "test/simt/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "test/simt/machine.h"

namespace fusec::simt {
namespace {

// Readers beyond this are not recorded: with 64 readers at once, a racing write meets one that is.
constexpr size_t kMostEntries = 64;

std::vector<std::vector<Entry>> lists;
std::vector<u32> free_lists;
std::multimap<size_t, Cell*> pool;
std::map<Cell*, size_t> taken;
size_t pooled;  // cells in the pool
constexpr size_t kMostPooled = (size_t{256} << 20) / sizeof(Cell);

std::vector<Entry>& list_of(Cell& cell) {
  if (!cell.more) {
    if (free_lists.empty()) {
      lists.emplace_back();
      free_lists.push_back(static_cast<u32>(lists.size()));
    }
    cell.more = free_lists.back();
    free_lists.pop_back();
    lists[cell.more - 1].clear();
  }
  return lists[cell.more - 1];
}

void drop_list(Cell& cell) {
  free_lists.push_back(cell.more);
  cell.more = 0;
}

bool same_kind(const Entry& a, const Entry& b) {
  return a.warp == b.warp && a.time == b.time && a.bytes == b.bytes && a.write == b.write && a.atomic == b.atomic &&
         a.agent == b.agent;
}

bool conflicts(const Entry& old, const Entry& access) {
  return (old.bytes & access.bytes) && (old.write || access.write) && !(old.atomic && access.atomic);
}

// A later access that is ordered after `access` is ordered after `old` too, and would find nothing more in it.
bool covered(const Entry& old, const Entry& access, const Thread& thread) {
  return !(old.bytes & ~access.bytes) && (access.write || !old.write) && ordered(old, thread);
}

const Entry* check_list(Cell& cell, const Entry& access, const Thread& thread) {
  std::vector<Entry>& list = lists[cell.more - 1];
  size_t kept = 0;
  for (const Entry& old : list) {
    if (conflicts(old, access) && !ordered(old, thread)) return &old;
    if (!covered(old, access, thread)) list[kept++] = old;
  }
  list.resize(kept);
  if (!kept) drop_list(cell);
  return nullptr;
}

void add_to_list(Cell& cell, const Entry& entry) {
  std::vector<Entry>& list = list_of(cell);
  for (Entry& old : list)
    if (same_kind(old, entry)) {
      old.lanes |= entry.lanes;
      return;
    }
  if (list.size() < kMostEntries) list.push_back(entry);
}

// Puts `entry` into its place in the cell; what stood there and still matters moves to the list.
void record(Cell& cell, Entry& here, const Entry& entry, u32 floor, const Thread& thread) {
  if (here.time >= floor && here.time) {
    if (same_kind(here, entry)) {
      here.lanes |= entry.lanes;
      return;
    }
    if (!covered(here, entry, thread)) add_to_list(cell, here);
  }
  here = entry;
}

}  // namespace

const Entry* touch(Cell& cell, const Entry& access, u32 floor, const Thread& thread) {
  bool write = cell.write.time >= floor && cell.write.time, read = cell.read.time >= floor && cell.read.time;
  if (!write && !read) {
    if (cell.more && std::max(cell.write.time, cell.read.time) >= machine->base) drop_list(cell);
    cell = Cell{};
    (access.write ? cell.write : cell.read) = access;
    return nullptr;
  }
  // The same lane again since its last release: nothing new, and a write in between would have taken the entry away.
  Entry& same = access.write ? cell.write : cell.read;
  if (same_kind(same, access) && (same.lanes & access.lanes) && !(access.write && read)) return nullptr;

  if (write && conflicts(cell.write, access) && !ordered(cell.write, thread)) return &cell.write;
  if (read && conflicts(cell.read, access) && !ordered(cell.read, thread)) return &cell.read;
  if (cell.more)
    if (const Entry* other = check_list(cell, access, thread)) return other;
  if (access.write && read && covered(cell.read, access, thread)) cell.read.time = 0;
  record(cell, same, access, floor, thread);
  return nullptr;
}

void forget_lists() {
  free_lists.clear();
  for (u32 i = 0; i < lists.size(); i++) free_lists.push_back(i + 1);
}

Cell* take_cells(size_t cells) {
  auto fit = pool.lower_bound(cells);
  if (fit != pool.end() && fit->first <= 4 * cells + 1024) {
    Cell* found = fit->second;
    taken[found] = fit->first;
    pooled -= fit->first;
    pool.erase(fit);
    return found;
  }
  void* fresh =
      mmap(nullptr, cells * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  taken[static_cast<Cell*>(fresh)] = cells;
  return static_cast<Cell*>(fresh);
}

void give_cells(Cell* cells) {
  auto size = taken.find(cells);
  if (pooled + size->second > kMostPooled) {
    munmap(cells, size->second * sizeof(Cell));
  } else {
    pool.emplace(size->second, cells);
    pooled += size->second;
  }
  taken.erase(size);
}

}  // namespace fusec::simt
