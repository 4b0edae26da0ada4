// Schedules beside the model's that are worth measuring: a table of fields for each skeleton. None changes which elements are read or
// what is computed; sums may fold in another order.

#include <algorithm>
#include <set>

#include "codegen/cuda/cuda.h"

namespace fusec::cuda {
namespace {

using Edits = std::vector<std::string>;

/// "name=n" for each number, without repeats.
Edits each(const char* name, const std::set<int>& numbers) {
  Edits out;
  for (int n : numbers) out.push_back(std::string(name) + "=" + std::to_string(n));
  return out;
}

/// Around what the model chose: fewer and more blocks a multiprocessor, that is more and fewer registers a thread.
Edits min_blocks(int own) { return each("min_blocks", {std::max(1, own / 2), own, own + std::max(1, own / 3)}); }

const char kLeaveRing[] = "skeleton=rows slots=0 slices=0 ahead=0 column_slots=0 dynamic_rows=0 cluster=1";

void pointwise(CandidateList& list) {
  const Schedule& s = list.own();
  const int lane = std::max<int>(1, s.lane[s.vector_axis]);
  list.combine({each("lane", {std::max(1, lane / 2), lane, 2 * lane}), each("threads", {128, 256, 512}), each("rows_in_flight", {1, 2, 4}),
                each("min_blocks", {std::max(1, s.min_blocks / 2), int(s.min_blocks)})});
}

void rows(CandidateList& list) {
  const Schedule& s = list.own();
  if (s.keep == Keep::registers) {
    const int lanes = s.lanes_per_row, threads = s.threads;
    list.combine({each("lanes_per_row", {std::max(1, lanes / 2), lanes, lanes * 2}), each("threads", {threads, threads * 2}), each("rows_in_flight", {1, 2}),
                  min_blocks(s.min_blocks)});
  }
  if (s.keep == Keep::shared || s.keep == Keep::cluster)
    list.combine({each("cluster", {std::max(1, s.cluster / 2), int(s.cluster), s.cluster * 2}), each("threads", {256, 512, 1024}),
                  each("rows_in_flight", {1, 2, 4}), each("min_blocks", {1, 2})});
  list.combine({{"keep=reload"}, each("threads", {256, 512}), each("rows_in_flight", {2, 4, 8}), each("min_blocks", {1, 2})});
  if (!s.cut.empty())
    list.combine({{"skeleton=ring keep=shared min_blocks=1 slots=0 ahead=1"}, each("cluster", {1, 2, 4}), each("slices", {1, 2}), each("threads", {256, 512})});
}

void ring(CandidateList& list) {
  const Schedule& s = list.own();
  const int slices = std::max<int>(1, s.slices);
  if (s.team) list.combine({{"slots=0"}, each("team", {s.team / 2, int(s.team)}), each("slices", {slices, slices * 2}),
                            each("threads", {256, int(s.threads)}), each("ahead", {2, 3, 4})});
  const int cluster = s.team ? 16 : s.cluster;
  list.combine({{"slots=0 team=0"}, each("cluster", {std::max(1, cluster / 2), cluster, cluster * 2}), each("slices", {std::max(1, slices / 2), slices, slices * 2}),
                each("threads", {256, int(s.threads), 512}), each("ahead", {0, 1})});
  if (!s.cut.empty()) list.combine({{std::string(kLeaveRing) + " keep=registers"}, each("lanes_per_row", {512, 1024}), each("min_blocks", {1, 2})});
  list.combine({{std::string(kLeaveRing) + " keep=reload"}, each("threads", {512, 1024}), each("rows_in_flight", {2, 4}), each("min_blocks", {1, 2})});
}

void column(CandidateList& list) {
  const Schedule& s = list.own();
  const int lane = std::max<int>(1, s.lane[s.vector_axis]);
  list.combine({each("lane", {std::max(1, lane / 2), lane}), each("lanes_per_row", {16, 32}), each("threads", {128, 256, 512}), each("rows_in_flight", {2, 4, 8}),
                each("min_blocks", {std::max(1, s.min_blocks / 2), int(s.min_blocks)})});
}

void split(CandidateList& list) {
  const Schedule& s = list.own();
  list.combine({each("threads", {128, 256, 512}), each("rows_in_flight", {2, 4, 8}),
                each("min_blocks", {std::max(1, s.min_blocks / 2), int(s.min_blocks), s.min_blocks * 2})});
}

void scan(CandidateList& list) {
  const Schedule& s = list.own();
  const int lanes = s.lanes_per_row, steps = s.steps;
  list.combine({each("lanes_per_row", {std::max(1, lanes / 2), lanes, lanes * 2}), each("steps", {std::max(1, steps / 2), steps, steps * 2}),
                min_blocks(s.min_blocks)});
}

}  // namespace

std::vector<Candidate> candidates(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts) {
  CandidateList list(scheduler, kernel, facts);
  switch (list.own().skeleton) {
    case Template::pointwise: pointwise(list); break;
    case Template::rows: rows(list); break;
    case Template::ring: ring(list); break;
    case Template::column: column(list); break;
    case Template::split: split(list); break;
    case Template::transpose: list.combine({each("min_blocks", {1, 2, 3, 4, 5, 6, 8})}); break;
    case Template::scan: scan(list); break;
    case Template::cpu_flat: case Template::cpu_rows: case Template::cpu_column: case Template::cpu_tile: break;
  }
  return list.take();
}

}  // namespace fusec::cuda
