#pragma once
// A parallel loop over work items. Threads start with the first loop that is worth them and sleep between loops; a
// child after fork starts its own. A loop inside a loop, and a loop of little work, run on the caller. Results of
// kernels do not depend on how many threads there are: items are independent.

#include <cstdint>
#include <functional>

namespace fusec::cpu {

using Range = std::function<void(int64_t begin, int64_t end)>;

/// Calls body on disjoint ranges that cover [0, items), each at least `min_items` long but for the last; returns when
/// all are done.
void parallel_for(int64_t items, int64_t min_items, const Range& body);

/// Threads a loop may use, the caller included. 0 = the default: FUSEC_THREADS, else the processors this process may
/// run on.
void set_threads(int threads);
int threads();

/// A host's own parallel loop in place of ours: it must call body on ranges that cover [0, items) and return when all
/// are done.
using Hook = std::function<void(int64_t items, int64_t min_items, const Range& body)>;
/// An empty hook brings ours back.
void set_parallel_for(Hook hook);

}  // namespace fusec::cpu
