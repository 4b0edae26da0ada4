#pragma once
// Rows whose beginnings lie anywhere between 16-byte pieces of memory (templates/rows_tiled.cuh): whole rows, which follow each other without
// gaps, travel through shared memory as one run.

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/shape.h"

namespace fusec::cuda {

/// A team is the threads that share a tile: a warp, or the block where a row takes more than 32 lanes.
inline int tile_team(const Schedule& s) { return s.lanes_per_row > 32 ? s.threads : 32; }
/// Rows of a tile.
inline int tile_rows(const Schedule& s) { return tile_team(s) / s.lanes_per_row * s.rows_in_flight; }

/// What of a kernel travels so.
struct TileShape {
  struct Part {
    Val access;
    size_t region;  // index into `sizes`
  };
  std::vector<Part> parts;    // staged accesses, in the order of the view
  std::vector<size_t> sizes;  // bytes of an element of each region of a slot; a store takes the region of a load of its size
  /// Bytes of a region: the run, and what shares its first and last piece.
  static int64_t region_bytes(int64_t rows, int64_t columns, size_t size) { return (rows * columns * int64_t(size) + 30) / 16 * 16; }
  int64_t slot_bytes(int64_t rows, int64_t columns) const;
};
TileShape tile_shape(const View& view, const Schedule& schedule);

/// Can rows of this kernel be taken so, in dense calls? From the kernel alone.
bool tileable(const View& view, const Device& device);

/// Given V, lanes_per_row, threads, steps, min_blocks: rows of a tile, slots, and what travels through them in this call. Without slots the
/// lanes load and store themselves: the same lanes, the same order, the same bits.
void fit_tiles(const View& view, const Facts& facts, const Device& device, Schedule& schedule);

/// Aligned windows: parameters of the columns, of 16 bytes a vector, come as the two pieces that they lie in (rows in registers).
void shift_parameters(const View& view, const Facts& facts, Schedule& schedule);

}  // namespace fusec::cuda
