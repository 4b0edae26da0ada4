#pragma once
// What is remembered of each 4 bytes of memory: the last write and the reads since, exactly, for the race detector.

#include "test/simt/clock.h"

namespace fusec::simt {

/// Accesses of some lanes of one warp, all since the same release, to the same bytes of a word.
struct Entry {
  u32 warp = 0;  // of the grid: slot / 32; the warps behind a block's threads are its agents
  u32 lanes = 0;
  u32 time = 0;  // 0: none
  u32 site : 22 = 0;
  u32 bytes : 4 = 0;
  u32 atomic : 1 = 0;
  u32 agent : 1 = 0;
  u32 write : 1 = 0;
};

struct Cell {
  Entry write, read;
  u32 more = 0;  // list of further entries, 1-based; meaningful while one of the two is of this launch
};

/// Memory for `cells` cells, all zero or of earlier launches. Pooled: wiping shadows costs more than all checks (times
/// never restart).
Cell* take_cells(size_t cells);
void give_cells(Cell* cells);

/// One access to a word. `floor`: entries older than that belong to others who used this memory before.
/// Returns the entry that this access races with, or null; then the access is recorded.
const Entry* touch(Cell& cell, const Entry& access, u32 floor, const Thread& thread);

/// Forgets all lists of further entries (a new launch begins).
void forget_lists();

}  // namespace fusec::simt
