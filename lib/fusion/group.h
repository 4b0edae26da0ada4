#pragma once
// What one kernel computes: a set of graph nodes, no order of execution, no target. A Plan is the groups in launch order.

#include <cstdint>
#include <string>
#include <vector>

#include "fusec/graph.h"

namespace fusec {

struct Group {
  std::vector<NodeId> nodes;    // topological; a cheap node may be in several groups. Leaves (constants, iota) are in no list
  std::vector<NodeId> inputs;   // values read from memory: graph inputs, dense constants and outputs of other groups
  std::vector<NodeId> outputs;  // values written to memory: graph outputs and inputs of later groups
};

/// Why two groups stayed apart, or a group was cut: a stable code and a sentence.
struct Refusal {
  NodeId producer, consumer;  // two readers of one value: the one that comes first, and the other
  std::string code;     // e.g. "two-axis-sets"
  std::string reason;
  int64_t bytes = 0;    // memory traffic that merging would have saved
  NodeId shared = ~NodeId{0};  // of two readers: the value that both read
  bool siblings() const { return shared != ~NodeId{0}; }
};

struct GroupPlan {
  std::vector<Group> groups;       // in launch order; every computed node that an output needs is in at least one
  std::vector<Refusal> refusals;
};

}  // namespace fusec
