#pragma once
// State of one attempt to build a kernel: the domain's atoms, what coordinates every node is wanted at, and the values so far.
// An attempt that finds an atom too coarse for a reshape splits it and starts over (build.cpp).

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/kernel/index.h"
#include "lib/kernel/kernel.h"

namespace fusec {

/// A node wanted at some coordinates, only where `guard` is true.
struct Demand {
  index::Coords at;
  Val guard = kNoVal;
  std::vector<uint32_t> operands{};  // which demand of each operand it reads
  std::vector<Val> within{};         // pad, concat, gather: where each operand is read
  Val value = kNoVal;                // filled in by the forward pass
};

/// An atom that must become two: extent = (extent / inner) * inner.
struct Split {
  size_t list, position;  // which dim of the domain (kept dims first, then reduced), which of its atoms
  Dim inner;
};

/// The domain: dims of the root, then dims that only reductions have; each cut into atoms, outermost first.
struct DomainAxes {
  std::vector<std::vector<Dim>> kept, reduced;
};

struct KernelBuilder {
  const Graph& graph;
  const Group& group;
  const BuildOptions& options;
  DomainAxes& domain;

  std::vector<Dim> atoms;           // all of them, kept lists first
  std::vector<bool> atom_reduced;
  std::vector<std::pair<size_t, size_t>> atom_home;  // list and position, for splits
  bool reduced_known = false;
  int gathers = 0;                  // nested in one another
  NodeId scan = ~NodeId{0}, fold = ~NodeId{0};  // one of the scans, one of the other reductions
  Kernel kernel;
  std::vector<std::vector<Demand>> demands;  // one list a graph node
  std::vector<char> inside, is_input, is_output;
  std::map<std::string, Val> known{};  // equal values are one

  std::optional<Split> split;       // set: start over with this atom split
  std::optional<Error> refusal;     // set: this group is no kernel

  bool failed() const { return split || refusal; }
  void refuse(const std::string& code, const std::string& reason) {
    if (!refusal) refusal = input_error(code + ": " + reason);
  }

  // builder.cpp: values
  Val push(Inst inst);
  Val constant(DType type, uint64_t bits);
  Val integer(int64_t number) { return constant(DType::i64, uint64_t(number)); }
  Val size_of(const Dim& dim);
  Val compute(Op op, DType type, std::vector<Val> args);
  Val position(const index::Coord& coord);           // the coordinate as an i64 value
  Val both(Val a, Val b);                            // guard and guard; kNoVal is "always"
  Val inside_range(const index::Coord& coord, const Dim& low, const Dim& high);

  // elements.cpp: values of nodes at coordinates
  uint16_t operand_of(NodeId node, bool output) const;
  Map map_of(const Operand& operand, const index::Coords& at, Val guard);
  Val leaf_or_load(NodeId node, const Demand& wanted);
  Val element(NodeId node, const Demand& wanted);     // of a node in the group whose operands have values
  Val value_now(NodeId node, uint32_t demand);        // of an index, before the forward pass

  // coordinates.cpp: where operands are wanted
  uint32_t demand(NodeId node, index::Coords at, Val guard);
  void pull(NodeId node, Demand& wanted);             // demands of a node's operands; once
  void pull_gather(const Node& node, Demand& wanted);
  std::optional<index::Coords> through_reshape(const index::Coords& at, const Shape& to, const Shape& from);
  index::Coords operand_coords(const index::Coords& at, const Shape& shape, const Shape& operand) const;
  bool scan_fits(NodeId node, const index::Coords& at);
  std::optional<index::Coords> reduce_coords(NodeId node, const index::Coords& at);
  bool covers_kept_atoms(const index::Coords& at, const Shape& shape) const;
  index::Coords identity() const;                    // of the domain's kept dims
};

/// The dims of a view's operand, the reading of pads and concats: shared by pull and by the forward pass.
std::vector<bool> reduced_dims(const Node& node, size_t rank);

}  // namespace fusec
