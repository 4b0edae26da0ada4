#pragma once
// What the choices of a schedule look at: schedule.cpp (order, pointwise, transposes), schedule_rows.cpp, schedule_columns.cpp.

#include <algorithm>
#include <bit>

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/shape.h"

namespace fusec::cuda {

inline int64_t pow2_floor(int64_t n) { return n < 1 ? 1 : int64_t(std::bit_floor(uint64_t(n))); }
inline int64_t pow2_ceil(int64_t n) { return n < 1 ? 1 : int64_t(std::bit_ceil(uint64_t(n))); }

/// Everything that the choices below look at.
struct Scene {
  const Kernel& kernel;
  const Facts& facts;
  const Device& device;
  View view;
  Schedule s;
  unsigned V = 1;
  int64_t loaded = 0;   // bytes a lane step loads that vary with everything: what has to be in flight
  int64_t stored = 0;   // bytes a lane step stores
  int heavy = 0;        // arithmetic an element, in adds
  bool formulas = false;  // some element goes through a formula, not only through an exp of few terms
  bool reduces = false;
  bool column = false;

  size_t size(Val access) const { return bytes(kernel.operands[kernel.values[access].operand].type); }
};

inline int64_t vector_extent(const Scene& c) { return c.kernel.axes.empty() ? 1 : c.facts.extents[c.s.vector_axis]; }

/// Bytes of the widest element that a lane's vector moves.
int64_t widest_size(const Scene& c);
/// Width of the pieces each access is fetched in: what this call's address and strides allow.
void choose_pieces(Scene& c);
/// Is the formula of this op a few instructions (body.cpp)? A composite grants it.
bool has_few_terms(const Inst& inst);
/// Loads, stores and arithmetic of a lane step.
void measure(Scene& c);
/// Blocks a multiprocessor holds when a thread takes about `registers`.
uint16_t blocks_for(int threads, int64_t registers);

/// The schedule of a kernel that folds along its vectors, of one that folds across them, and of running sums.
void rows(Scene& c);
void column(Scene& c);
void scan(Scene& c);
/// Long rows, reduced once: each is cut into parts, so that all multiprocessors read also when rows are few.
bool split(Scene& c);

}  // namespace fusec::cuda
