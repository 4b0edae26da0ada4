//   transpose (transpose %x, perm=p), perm=q          →  transpose %x, perm = p[q[k]]
//   slice (concat %a, %b, axis=0), start=[0], stop=[3]  →  slice %a, … when the range lies within %a
//   concat (slice %x, [0:2]), (slice %x, [2:5])       →  slice %x, [0:5]

#include "lib/passes/view_compose.h"

#include <algorithm>
#include <numeric>

namespace fusec {
namespace {

/// a <= b for every value of the symbols, as far as that is plain to see.
bool at_most(const Dim& a, const Dim& b) {
  const Dim difference = b - a;
  return difference.is_constant() && difference.constant() >= 0;
}

const Node& operand(const GraphBuilder& b, const Pending& view, size_t k = 0) { return b.node(view.args[k]); }

bool all_zero(const std::vector<Dim>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is(0); });
}

/// Axes in which a broadcast repeats, counted in its result.
bool repeats(const Shape& from, const Shape& to, size_t axis) {
  const size_t missing = to.size() - from.size();
  return axis < missing || !(from[axis - missing] == to[axis]);
}

std::optional<Pending> transpose_of(const Pending& view, const Node& below, const Shape& shape) {
  if (below.op == Op::transpose) {
    Pending out{Op::transpose, {{below.args[0]}}, {}};
    for (int64_t axis : view.attrs.perm) out.attrs.perm.push_back(below.attrs->perm[size_t(axis)]);
    return out;
  }
  // Only ones move: the order of the elements stays.
  int64_t last = -1;
  Shape moved;
  for (int64_t axis : view.attrs.perm) {
    moved.push_back(shape[size_t(axis)]);
    if (shape[size_t(axis)].is(1)) continue;
    if (axis < last) return std::nullopt;
    last = axis;
  }
  Pending out{Op::reshape, view.args, {}};
  out.attrs.shape = std::move(moved);
  return out;
}

std::optional<Pending> broadcast_of(const GraphBuilder& b, const Pending& view, const Node& below) {
  Pending out{Op::broadcast, {}, view.attrs};
  if (!below.args.empty()) out.args = {{below.args[0]}};
  if (below.op == Op::broadcast) return out;
  if (below.op != Op::reshape) return std::nullopt;
  // A reshape that only puts ones in front is what aligning right does anyway.
  const Shape& from = b.type(out.args[0]).shape;
  const Shape& to = below.type.shape;
  if (from.size() > to.size() || !std::equal(from.rbegin(), from.rend(), to.rbegin())) return std::nullopt;
  return out;
}

std::optional<Pending> slice_of_slice(const Pending& view, const Node& below) {
  const Attrs& in = *below.attrs;
  Pending out{Op::slice, {{below.args[0]}}, view.attrs};
  for (size_t k = 0; k < in.step.size(); k++) {
    // With a step the end may lie beyond the operand; only a known size can cut it there.
    if (in.step[k] != 1 && !(below.type.shape[k].is_constant() && in.start[k].is_constant())) return std::nullopt;
    out.attrs.start[k] = in.start[k] + view.attrs.start[k] * Dim(in.step[k]);
    out.attrs.stop[k] = in.start[k] + view.attrs.stop[k] * Dim(in.step[k]);
    if (__builtin_mul_overflow(in.step[k], view.attrs.step[k], &out.attrs.step[k])) return std::nullopt;
  }
  return out;
}

std::optional<Pending> slice_of_concat(const GraphBuilder& b, const Pending& view, const Node& below) {
  const size_t axis = size_t(below.attrs->axis);
  Dim offset = 0;
  for (NodeId arg : below.args) {
    const Dim end = offset + b.type({arg}).shape[axis];
    if (at_most(offset, view.attrs.start[axis]) && at_most(view.attrs.stop[axis], end)) {
      Pending out{Op::slice, {{arg}}, view.attrs};
      out.attrs.start[axis] = view.attrs.start[axis] - offset;
      out.attrs.stop[axis] = view.attrs.stop[axis] - offset;
      return out;
    }
    offset = end;
  }
  return std::nullopt;
}

std::optional<Pending> slice_of_pad(const GraphBuilder& b, const Pending& view, const Node& below) {
  const Shape& inner = b.type({below.args[0]}).shape;
  Pending out{Op::slice, {{below.args[0]}}, view.attrs};
  for (size_t k = 0; k < inner.size(); k++) {
    const Dim low = below.attrs->low[k];
    if (!at_most(low, view.attrs.start[k]) || !at_most(view.attrs.stop[k], low + inner[k])) return std::nullopt;
    out.attrs.start[k] = view.attrs.start[k] - low;
    out.attrs.stop[k] = view.attrs.stop[k] - low;
  }
  return out;
}

std::optional<Pending> pad_of_pad(const Pending& view, const Node& below) {
  if (!(*view.attrs.value == *below.attrs->value)) return std::nullopt;
  Pending out{Op::pad, {{below.args[0]}}, view.attrs};
  for (size_t k = 0; k < view.attrs.low.size(); k++) {
    out.attrs.low[k] = view.attrs.low[k] + below.attrs->low[k];
    out.attrs.high[k] = view.attrs.high[k] + below.attrs->high[k];
  }
  return out;
}

std::optional<Pending> reverse_of(const GraphBuilder& b, const Pending& view, const Node& below, const Shape& shape) {
  Pending out{Op::reverse, view.args, {}};
  if (below.op == Op::reverse) {  // axes that one of the two turns
    std::set_symmetric_difference(view.attrs.axes.begin(), view.attrs.axes.end(), below.attrs->axes.begin(),
                                  below.attrs->axes.end(), std::back_inserter(out.attrs.axes));
    out.args = {{below.args[0]}};
    if (!out.attrs.axes.empty()) return out;
    Pending same{Op::reshape, out.args, {}};
    same.attrs.shape = shape;
    return same;
  }
  for (int64_t axis : view.attrs.axes) {
    const bool still = shape[size_t(axis)].is(1) ||
                       (below.op == Op::broadcast && repeats(b.type({below.args[0]}).shape, shape, size_t(axis)));
    if (!still) out.attrs.axes.push_back(axis);
  }
  if (out.attrs.axes.size() == view.attrs.axes.size()) return std::nullopt;
  if (!out.attrs.axes.empty()) return out;
  Pending same{Op::reshape, view.args, {}};
  same.attrs.shape = shape;
  return same;
}

/// Operands that are concats along the same axis, opened; empty ones left out. nullopt when there is none.
std::optional<Pending> flat_concat(const GraphBuilder& b, const Pending& view) {
  const size_t axis = size_t(view.attrs.axis);
  Pending out{Op::concat, {}, view.attrs};
  for (Value v : view.args) {
    const Node& n = b.node(v);
    if (n.op == Op::concat && n.attrs->axis == view.attrs.axis)
      for (NodeId arg : n.args) out.args.push_back({arg});
    else if (!n.type.shape[axis].is(0))
      out.args.push_back(v);
  }
  if (out.args.empty()) out.args = {view.args[0]};
  if (out.args == view.args) return std::nullopt;
  return out;
}

/// Slices of one value that follow each other along the axis, as one.
std::optional<Pending> joined_slices(const GraphBuilder& b, const Pending& view) {
  const size_t axis = size_t(view.attrs.axis);
  const Node& first = operand(b, view);
  if (view.args.size() < 2 || first.op != Op::slice) return std::nullopt;
  Attrs joined = *first.attrs;
  for (size_t k = 1; k < view.args.size(); k++) {
    const Node& n = operand(b, view, k);
    if (n.op != Op::slice || n.args != first.args || n.attrs->step != joined.step || joined.step[axis] != 1) return std::nullopt;
    if (!(n.attrs->start[axis] == joined.stop[axis])) return std::nullopt;
    Attrs moved = *n.attrs;  // apart from this axis they must be the same slice
    moved.start[axis] = joined.start[axis];
    moved.stop[axis] = joined.stop[axis];
    if (!(moved == joined)) return std::nullopt;
    joined.stop[axis] = n.attrs->stop[axis];
  }
  return Pending{Op::slice, {{first.args[0]}}, std::move(joined)};
}

}  // namespace

bool is_identity_view(const GraphBuilder& b, const Pending& view) {
  const Shape& shape = b.type(view.args[0]).shape;
  switch (view.op) {
    case Op::broadcast:
    case Op::reshape: return view.attrs.shape == shape;
    case Op::transpose: return std::is_sorted(view.attrs.perm.begin(), view.attrs.perm.end());
    case Op::slice: {
      const auto& step = view.attrs.step;
      return view.attrs.stop == shape && all_zero(view.attrs.start) &&
             std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 1; });
    }
    case Op::pad: return all_zero(view.attrs.low) && all_zero(view.attrs.high);
    case Op::concat: return view.args.size() == 1;
    default: return false;
  }
}

std::optional<Pending> compose_views(const GraphBuilder& b, const Pending& view) {
  const Node& below = operand(b, view);
  const Shape& shape = below.type.shape;
  switch (view.op) {
    case Op::reshape:
      if (below.op == Op::reshape) return Pending{Op::reshape, {{below.args[0]}}, view.attrs};
      if (below.op != Op::broadcast) return std::nullopt;
      if (elements(b.type({below.args[0]}).shape) == elements(shape)) return Pending{Op::reshape, {{below.args[0]}}, view.attrs};
      if (b.type({below.args[0]}).shape.empty()) return Pending{Op::broadcast, {{below.args[0]}}, view.attrs};
      return std::nullopt;
    case Op::transpose:
      if (below.op == Op::broadcast && b.type({below.args[0]}).shape.empty()) {
        Pending out{Op::broadcast, {{below.args[0]}}, {}};
        for (int64_t axis : view.attrs.perm) out.attrs.shape.push_back(shape[size_t(axis)]);
        return out;
      }
      return transpose_of(view, below, shape);
    case Op::broadcast: return broadcast_of(b, view, below);
    case Op::slice:
      if (below.op == Op::slice) return slice_of_slice(view, below);
      if (below.op == Op::concat) return slice_of_concat(b, view, below);
      if (below.op == Op::pad) return slice_of_pad(b, view, below);
      return std::nullopt;
    case Op::pad: return below.op == Op::pad ? pad_of_pad(view, below) : std::nullopt;
    case Op::reverse: return reverse_of(b, view, below, shape);
    case Op::concat: {
      std::optional<Pending> flat = flat_concat(b, view);
      return flat ? std::move(flat) : joined_slices(b, view);
    }
    default: return std::nullopt;
  }
}

std::optional<Swapped> slice_first(const GraphBuilder& b, const Pending& slice) {
  const Node& below = operand(b, slice);
  const Attrs& at = slice.attrs;
  if (below.op != Op::transpose && below.op != Op::broadcast && below.op != Op::reverse) return std::nullopt;
  const Value source{below.args[0]};
  const Shape& from = b.type(source).shape;
  Swapped out{{Op::slice, {source}, {}}, {below.op, {}, {}}};
  Attrs& inner = out.inner.attrs;
  inner.start.assign(from.size(), Dim(0));
  inner.stop = from;
  inner.step.assign(from.size(), 1);
  const auto take = [&](size_t to, size_t axis) {
    inner.start[to] = at.start[axis];
    inner.stop[to] = at.stop[axis];
    inner.step[to] = at.step[axis];
  };
  if (below.op == Op::transpose) {
    for (size_t k = 0; k < from.size(); k++) take(size_t(below.attrs->perm[k]), k);
    out.outer.attrs.perm = below.attrs->perm;
  } else if (below.op == Op::broadcast) {
    const size_t missing = below.type.shape.size() - from.size();
    for (size_t k = missing; k < below.type.shape.size(); k++)
      if (!repeats(from, below.type.shape, k)) take(k - missing, k);
    Attrs whole = at;
    const Type operand_type[] = {below.type};
    const Result<Type> sliced = infer(Op::slice, operand_type, whole);
    if (!sliced) return std::nullopt;
    out.outer.attrs.shape = sliced->shape;
  } else {
    for (size_t k = 0; k < from.size(); k++) take(k, k);
    for (int64_t axis : below.attrs->axes) {
      const size_t k = size_t(axis);
      if (at.step[k] != 1) return std::nullopt;  // where the last step lands depends on the size
      inner.start[k] = from[k] - at.stop[k];
      inner.stop[k] = from[k] - at.start[k];
    }
    out.outer.attrs.axes = below.attrs->axes;
  }
  return out;
}

}  // namespace fusec
