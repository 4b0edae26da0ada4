#pragma once
// Running states of reductions, as registers: zero, fold of one element (or of one a lane), merge of two states,
// results. Merges always take (lower, upper); states merge in a fixed tree, so a result depends on the schedule and the
// extents only.

#include "codegen/cpu/emitter.h"

namespace fusec::cpu {

/// Fields of one state; a field is a scalar, or a vector of one state a lane.
using State = llvm::SmallVector<llvm::Value*, 4>;

class Folder {
 public:
  Folder(Emitter& emitter, uint16_t reduction);

  /// Scalar register types of the fields.
  llvm::SmallVector<llvm::Type*, 4> fields() const;
  /// The state of no element, `lanes` of them (0 = scalar).
  State zero(unsigned lanes) const;
  /// `state` and one more element; lanes outside `mask` (null = none) keep theirs.
  State fold(const State& state, llvm::ArrayRef<llvm::Value*> inputs, llvm::Value* mask) const;
  State merge(const State& lower, const State& upper) const;
  /// All lanes of a vector state into one scalar state, lower halves with upper halves.
  State across(State state) const;
  /// Sets every result value of this reduction in `frame`, each in its own type and rounded where it says so.
  void finish(const State& state, Frame& frame) const;
  /// The element values to fold at a frame, in the accumulator's type.
  llvm::SmallVector<llvm::Value*, 2> inputs(Frame& frame, bool vector) const;

 private:
  using V = llvm::Value*;
  V exp(V x) const;
  bool index() const { return reduction_.op == Op::argmax || reduction_.op == Op::argmin; }
  DType field_type(size_t field) const;

  Emitter& e_;
  uint16_t number_;
  const Reduction& reduction_;
  Fold fold_;
  DType type_;  // of the running value
  Cells cells_;
};

}  // namespace fusec::cpu
