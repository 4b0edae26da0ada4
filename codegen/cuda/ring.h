#pragma once
// Rows in a ring of slots (templates/ring.cuh): how a row falls into slices, which calls bulk copies can take, and what is chosen for them.

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/shape.h"

namespace fusec::cuda {

/// How a row falls into slots. Elements, and bytes of shared memory.
struct RingShape {
  int64_t granule = 1;     // parts and slices are multiples of it: whole vectors, whole 16-byte pieces of every copied operand
  int64_t part = 0;        // elements of a row for one block of the cluster
  int64_t slice = 0;       // elements of a slot
  int64_t slot_bytes = 0;
  int64_t row_bytes = 0;   // of one element, over all copied operands
  int64_t column_slot_bytes = 0;  // of a slot of parameters
};
RingShape ring_shape(const Kernel& kernel, const Schedule& schedule, int64_t columns);
/// Do the rows of this load or store follow each other without gaps? Then a copy may take the neighbours along that share its first and
/// last piece.
bool dense_rows(const View& view, const Schedule& schedule, const Facts& facts, Val access);
/// Do slices end between 16-byte pieces, or begin there too? In the second case a slot holds a piece more for each operand.
bool ring_windowed(const View& view, const Schedule& schedule);
bool ring_leads(const View& view, const Schedule& schedule);

/// Parameters of the columns (scale, bias) that may stand in slots of their own.
std::vector<Val> ring_columns(const View& view, const Schedule& schedule);

/// Teams (templates/team.cuh): the words of 64 bits through which the blocks of one meet, zero before and after a launch.
int64_t team_words(const Kernel& kernel, const Schedule& schedule);

/// Fills in what follows from cluster, slices, threads, keep, column_slots and (0 = as many as fit) slots: steps, cut, ahead, and whether the lanes
/// load themselves (slots = 0) because bulk copies cannot take this call. "" or why the kernel cannot run like that.
std::string fit_ring(const Kernel& kernel, const Facts& facts, const Device& device, Schedule& schedule);

/// The ring for long rows, by their length alone; `start` holds lanes, edges and pieces. nullopt: something else is better.
std::optional<Schedule> ring_schedule(const Kernel& kernel, const Facts& facts, const Device& device, const Schedule& start);

}  // namespace fusec::cuda
