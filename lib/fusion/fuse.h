#pragma once
// The fusion planner: Graph to GroupPlan.

#include "lib/fusion/group.h"
#include "lib/kernel/kernel.h"

namespace fusec {

struct FuseOptions {
  Numerics numerics = Numerics::strict;
  size_t max_nodes = 400;           // of one group: keeps compile time near linear
  size_t max_operands = 48;         // buffers of one kernel
  size_t argument_bytes = 3800;     // of one kernel: the driver's limit is 4 KB, less a margin
  double launch_bytes = 8e6;        // what one launch costs, as the bytes that could be copied in that time
  double few_rows = 64;             // fewer rows than this, each longer than …
  double long_row_bytes = 1 << 19;  // … this: reduced by the whole device first, applied by a second kernel
  bool merge = true;                // false: one kernel a node
};

/// Group nodes into kernels.
/// Takes    a verified graph without composites, dims static or symbolic; sizes are in elements, costs in bytes.
/// Returns  groups in launch order. Every computed node that an output needs is in at least one; a cheap one may be in several.
/// Ensures  no cycles between groups; every group has a Kernel (`build` accepts it).
/// Errors   internal, when a single node has no kernel. A pair that stays apart is a Refusal with its reason, for explain.
/// Source   greedy pairwise fusion by traffic saved, after Kennedy & McKinley (LCPC 1993); the cost model is ours (docs/tour.md).
Result<GroupPlan> fuse(const Graph& graph, const FuseOptions& options = {});

}  // namespace fusec
