#pragma once
// Two views in a row as one, and views that change nothing: pure functions over attributes, used by the pass `views`.

#include <optional>

#include "fusec/graph.h"

namespace fusec {

/// A node that is not built yet.
struct Pending {
  Op op;
  std::vector<Value> args;
  Attrs attrs;
};

/// Does the view return its operand as it is?
bool is_identity_view(const GraphBuilder& b, const Pending& view);

/// The view with the view below it taken in, when the two are one: reshape of reshape, slice of slice, a slice that falls into one
/// operand of a concat, concat of neighbouring slices … nullopt when they are not.
std::optional<Pending> compose_views(const GraphBuilder& b, const Pending& view);

/// A slice of a transpose, broadcast or reverse as that view of a slice: `inner` is the slice, `outer` (whose operand is still to
/// be filled in) goes around it.
struct Swapped {
  Pending inner, outer;
};
std::optional<Swapped> slice_first(const GraphBuilder& b, const Pending& slice);

}  // namespace fusec
