#pragma once
// A Schedule is how one kernel runs on one kind of call: plain data, compared and hashed as bytes. Its bytes *are* the
// specialisation class: two calls that choose equal schedules share code, and no other class exists.
//
// Facts are what a schedule may look at: extents, strides and alignment of one call, or of the dense, aligned call that compile()
// assumes. schedule(kernel, facts, device) is pure and takes microseconds; each back end has its own.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/result.h"
#include "lib/kernel/kernel.h"

namespace fusec {

enum class Template : uint8_t { pointwise, transpose, rows, ring, column, split, scan, cpu_flat, cpu_rows, cpu_column, cpu_tile };
enum class Keep : uint8_t { none, registers, shared, cluster, reload, cache_buffer };  // where values live between sweeps
enum class Edges : uint8_t { full, tail, window, each };  // no mask; masked row tail; aligned window; element by element
enum class Finish : uint8_t { none, last_block, next_kernel };
// Their names in print() and set(), in the order of the values.
inline constexpr const char* kTemplateNames[] = {"pointwise", "transpose", "rows",     "ring",       "column",  "split",
                                                 "scan",      "cpu_flat",  "cpu_rows", "cpu_column", "cpu_tile"};
inline constexpr const char* kKeepNames[] = {"none", "registers", "shared", "cluster", "reload", "cache_buffer"};
inline constexpr const char* kEdgesNames[] = {"full", "tail", "window", "each"};
inline constexpr const char* kFinishNames[] = {"none", "last_block", "next_kernel"};

/// How one load or store is fetched. `bytes` never decides which lane owns which element, so it never changes a bit of a result.
struct Access {
  uint8_t bytes = 0;      // of one piece: element size … 16 (CUDA) or 64 (CPU)
  uint8_t staged : 1 = 0, streamed : 1 = 0, early : 1 = 0, prefetch : 1 = 0, bypass : 1 = 0;
  bool operator==(const Access&) const = default;
};

struct Schedule {
  Template skeleton = Template::pointwise;
  Keep keep = Keep::none;
  Edges edges = Edges::tail;
  Finish finish = Finish::none;
  uint16_t threads = 1, min_blocks = 1, lanes_per_row = 1, rows_in_flight = 1, cluster = 1;
  uint16_t steps = 0;               // lane steps of a row held on chip; 0 = looped. Pointwise: rows from one vector of a lane to the next; 0 = neighbours
  uint8_t slots = 0, slices = 0, ahead = 0;  // ring
  uint16_t team = 0;                // ring: blocks that hold a row together and meet in global memory, all running at once; 0: a block or a cluster
  uint8_t column_slots = 0;         // ring: slots for the parameters of a slice's columns; as many as slices: they stay; 0: lanes load them
  uint8_t vector_axis = 0;          // axis whose neighbours a lane holds
  uint16_t lane[kMaxAxes] = {};     // elements a lane covers along each axis (0 = 1): decides who owns what, and every sum's order
  uint16_t block[kMaxAxes] = {};    // elements a block covers along each axis (0 = 1)
  uint16_t baked = 0;               // axes whose extent is a literal in the text
  bool wide_index = false;          // 64-bit address arithmetic
  bool dynamic_rows = false, dependent_launch = false;
  bool merged = false;              // the code is that of merge_sweeps(kernel): fewer sweeps over rows that leave the chip
  std::vector<Access> access;       // one a load and store, in the order of kernel.values
  std::vector<Val> cut;             // full values carried from sweep to sweep; the rest is computed again

  bool operator==(const Schedule&) const = default;
};

/// Canonical bytes: equal exactly when the schedules are. Part of every cache key.
std::string bytes(const Schedule& schedule);
/// The schedule of these bytes; nullopt for anything that `bytes` never wrote.
std::optional<Schedule> parse_schedule(std::string_view bytes);
/// One readable line, for explain and the `schedules` command.
std::string print(const Schedule& schedule);
/// Sets one field by hand, in the words of print(): "threads=256", "keep=reload", "lane=4" (along the vector axis) or "lane=1x4",
/// "access.0=16x" or "access=16x,4", "cut=v0,v3", "dependent_launch=1". What other fields follow from it is settle's to say (scheduler.h).
/// Errors   input: no such field, or a value that it cannot take. The schedule is then as before.
Status set(Schedule& schedule, std::string_view edit);
/// The VALUE for which set(schedule, "FIELD=VALUE") changes nothing; "" for a field that there is not, or that set cannot leave empty.
std::string value_of(const Schedule& schedule, std::string_view field);

/// What one call looks like to a kernel.
struct Facts {
  struct Access {
    std::vector<int64_t> step;  // elements from one index to the next, for each axis
    uint32_t align;             // largest power of two, at most 128, that divides the address of the first element
  };
  std::vector<int64_t> extents;  // one an axis
  std::vector<Access> access;    // one a load and store, in the order of kernel.values
  int64_t rows, columns;         // products of the kept and of the reduced extents
  int64_t footprint;             // bytes read and written, each operand once
  bool wide;                     // some address does not fit 32-bit element arithmetic
};

/// A buffer of a call, as the kernel's operand sees it. Strides in elements, one a dim.
struct BoundOperand {
  void* data = nullptr;
  std::vector<int64_t> strides;
};

struct Binding {
  Sizes sizes;
  std::vector<BoundOperand> operands;  // one a kernel operand
};

/// Strides in which a dim of extent 1, whose stride says nothing, walks with its neighbours; the others stay. What an argument block
/// holds and what `facts` and `layout` look at.
std::vector<int64_t> canonical_strides(const std::vector<int64_t>& extents, std::vector<int64_t> strides);
/// Facts of a call. Every symbol of the kernel must be in binding.sizes.
Facts facts(const Kernel& kernel, const Binding& binding);
/// The dense, 128-byte-aligned call with these sizes: what compile() assumes.
Binding dense_binding(const Kernel& kernel, const Sizes& sizes);
/// Layout class of a buffer: which neighbouring dims walk as one. Dims of extent 1 join with anything.
Layout layout(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides);

}  // namespace fusec
