// Views and movement of data. Everything that decides a shape must be known while the graph is built, or be made of
// dims.

#include <algorithm>

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

constexpr int64_t kEnd = 1'000'000'000;  // exporters write "to the end" as the largest i32 or i64; tf2onnx as this

void expand(Call& c) {
  const Value x = c.in(0);
  const auto to = c.dims(1);
  if (!to) return;
  size_t axis = 0;
  const auto both = fusec::broadcast(c.shape(x), *to, &axis);
  if (!both)
    return c.fail(text(c.type(x)) + " and " + text(*to) + " do not broadcast, at axis " + std::to_string(axis) +
                  " of the result");
  c.out(c.broadcast(x, *both));
}

/// 0 copies the operand's dim (unless allowzero), -1 is what is left over.
void reshape(Call& c) {
  const Value x = c.in(0);
  auto to = c.dims(1);
  if (!to) return;
  const bool copies = c.i("allowzero", 0) == 0;
  for (size_t a = 0; a < to->size() && copies; ++a) {
    if (!(*to)[a].is(0)) continue;
    if (a >= c.shape(x).size())
      return c.fail("dim " + std::to_string(a) + " is 0, and " + text(c.type(x)) + " has no such axis to copy");
    (*to)[a] = c.shape(x)[a];
  }
  for (const Dim& d : *to)
    if (d.is_constant() && d.constant() < -1) return c.fail("a dim of " + d.text());
  c.out(c.reshape(x, *to));
}

void transpose(Call& c) {
  const Value x = c.in(0);
  c.out(c.transpose(x, c.list("perm").value_or(std::vector<int64_t>{})));
}

void flatten(Call& c) {
  const Value x = c.in(0);
  const int64_t rank = c.rank(x), given = c.i("axis", 1);
  const int64_t axis = given == rank ? rank : c.axis(given, rank);
  Dim rows = 1, row = 1;
  for (int64_t a = 0; a < rank; ++a) {
    Dim& part = a < axis ? rows : row;
    part = part * c.shape(x)[static_cast<size_t>(a)];
  }
  c.out(c.reshape(x, {rows, row}));
}

/// Axes of Squeeze and Unsqueeze: an attribute before 13, then an operand.
std::optional<std::vector<int64_t>> listed_axes(Call& c) {
  if (c.row.since < 13) return c.list("axes");
  return c.has(1) ? c.ints(1) : std::nullopt;
}

void squeeze(Call& c) {
  const Value x = c.in(0);
  auto axes = listed_axes(c);
  if (c.failed()) return;
  std::vector<bool> gone(c.shape(x).size());
  if (axes) {
    for (int64_t a : c.axes(*axes, c.rank(x))) gone[static_cast<size_t>(a)] = true;
  } else {
    for (size_t a = 0; a < gone.size(); ++a) gone[a] = c.shape(x)[a].is(1);
  }
  if (c.failed()) return;
  Shape to;
  for (size_t a = 0; a < gone.size(); ++a) {
    if (!gone[a]) to.push_back(c.shape(x)[a]);
    else if (!c.shape(x)[a].is(1)) return c.fail("axis " + std::to_string(a) + " of " + text(c.type(x)) + " is not 1");
  }
  c.out(c.reshape(x, to));
}

void unsqueeze(Call& c) {
  const Value x = c.in(0);
  const auto given = listed_axes(c);
  if (!given) return c.fail("axes are missing");
  const int64_t rank = c.rank(x) + static_cast<int64_t>(given->size());
  const std::vector<int64_t> axes = c.axes(*given, rank);
  if (c.failed()) return;
  Shape to = c.shape(x);
  for (int64_t a : axes) to.insert(to.begin() + a, Dim(1));
  c.out(c.reshape(x, to));
}

void concat(Call& c) {
  std::vector<Value> parts;
  for (size_t i = 0; i < c.size(); ++i) parts.push_back(c.in(i));
  c.out(c.add(Op::concat, parts, {.axis = c.required("axis")}));
}

// --- slices
// -----------------------------------------------------------------------------------------------------------

/// One axis of a slice as ONNX writes it.
struct Cut {
  Dim start, stop;
  int64_t step;
};

/// A bound of a reversed axis: index k from the front is n-1-k there, and -1-k from the end is k.
Dim mirrored(const Dim& bound, const Dim& n, bool is_start) {
  if (!bound.is_constant()) return n - 1 - bound;
  int64_t k = bound.constant();
  if (n.is_constant()) {
    const int64_t size = n.constant();
    if (k < 0) k = k < -size ? -1 : k + size;
    k = std::clamp(k, is_start ? int64_t{0} : int64_t{-1}, size - 1);
    return size - 1 - k;
  }
  if (k >= kEnd) return 0;
  if (k <= -kEnd) return n;
  return k < 0 ? Dim(-1 - k) : n - 1 - k;
}

/// Negative steps read an axis backwards: reverse it, then slice forwards.
Value slice(Call& c, Value x, const std::vector<int64_t>& axes, const std::vector<Cut>& cuts) {
  const size_t rank = c.shape(x).size();
  Attrs a{.start = std::vector<Dim>(rank, Dim(0)), .stop = c.shape(x), .step = std::vector<int64_t>(rank, 1)};
  std::vector<int64_t> backwards;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const Dim n = c.shape(x)[axis];
    Cut cut = cuts[k];
    if (cut.step == 0) {
      c.fail("a step of 0");
      return {};
    }
    if (n.is(0)) continue;
    if (cut.step < 0) {
      backwards.push_back(axes[k]);
      cut = {mirrored(cut.start, n, true), mirrored(cut.stop, n, false), cut.step == INT64_MIN ? INT64_MAX : -cut.step};
    } else if (!n.is_constant()) {
      if (cut.stop.is_constant() && cut.stop.constant() >= kEnd) cut.stop = n;
      if (cut.start.is_constant() && cut.start.constant() <= -kEnd) cut.start = 0;
    }
    a.start[axis] = cut.start;
    a.stop[axis] = cut.stop;
    a.step[axis] = cut.step;
  }
  if (!backwards.empty()) x = c.add(Op::reverse, {x}, {.axes = backwards});
  return c.add(Op::slice, {x}, a);
}

/// Elements start … stop-1 of one axis.
Value part(Call& c, Value x, int64_t axis, Dim start, Dim stop) {
  return slice(c, x, {axis}, {{start, stop, 1}});
}

void slice_by(Call& c, Value x, const std::vector<Dim>& starts, const std::vector<Dim>& stops,
              std::optional<std::vector<int64_t>> axes, std::optional<std::vector<int64_t>> steps) {
  const size_t n = starts.size();
  if (!axes) {
    axes.emplace();
    for (size_t k = 0; k < n; ++k) axes->push_back(static_cast<int64_t>(k));
  }
  if (!steps) steps.emplace(n, 1);
  if (stops.size() != n || axes->size() != n || steps->size() != n)
    return c.fail("starts, ends, axes and steps differ in length");
  std::vector<Cut> cuts;
  for (size_t k = 0; k < n; ++k) {
    (*axes)[k] = c.axis((*axes)[k], c.rank(x));
    cuts.push_back({starts[k], stops[k], (*steps)[k]});
  }
  if (c.failed()) return;
  std::vector<int64_t> sorted = *axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return c.fail("an axis is given twice");
  c.out(slice(c, x, *axes, cuts));
}

void slice_by_attributes(Call& c) {
  const auto starts = c.list("starts"), stops = c.list("ends");
  if (!starts || !stops) return c.fail("starts and ends are needed");
  slice_by(c, c.in(0), {starts->begin(), starts->end()}, {stops->begin(), stops->end()}, c.list("axes"), std::nullopt);
}

void slice_by_operands(Call& c) {
  const Value x = c.in(0);
  const auto starts = c.dims(1), stops = c.dims(2);
  const auto axes = c.has(3) ? c.ints(3) : std::nullopt, steps = c.has(4) ? c.ints(4) : std::nullopt;
  if (!c.failed()) slice_by(c, x, *starts, *stops, axes, steps);
}

/// Equal parts, parts of given lengths, or (from 18 on) num_outputs parts of which the last may be shorter.
void split(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(x)), parts = static_cast<int64_t>(c.outputs.size());
  if (c.failed()) return;
  const Dim n = c.shape(x)[static_cast<size_t>(axis)];
  std::optional<std::vector<int64_t>> lengths;
  if (c.row.since < 13) lengths = c.list("split");
  else if (c.has(1)) lengths = c.ints(1);
  if (c.failed()) return;
  if (c.given("num_outputs")) {
    if (lengths) return c.fail("both split and num_outputs are given");
    if (c.i("num_outputs", 0) != parts) return c.fail("num_outputs differs from the number of outputs");
    if (n.is_constant() && n.constant() % parts != 0) {
      const int64_t each = (n.constant() + parts - 1) / parts;
      lengths.emplace();
      for (int64_t k = 0; k < parts; ++k) lengths->push_back(std::clamp(n.constant() - k * each, int64_t{0}, each));
    }
  }
  if (!lengths) {
    for (int64_t k = 0; k < parts; ++k)
      c.out(c.add(Op::split, {x}, {.axis = axis, .parts = parts, .index = k}), static_cast<size_t>(k));
    return;
  }
  if (static_cast<int64_t>(lengths->size()) != parts)
    return c.fail("split has " + std::to_string(lengths->size()) + " lengths for " + std::to_string(parts) +
                  " outputs");
  Dim at = 0;
  for (size_t k = 0; k < lengths->size(); ++k) {
    if ((*lengths)[k] < 0) return c.fail("a negative length");
    c.out(part(c, x, axis, at, at + (*lengths)[k]), k);
    at = at + (*lengths)[k];
  }
  if (at != n) c.fail("the lengths add up to " + at.text() + ", axis " + std::to_string(axis) + " has " + n.text());
}

// --- padding
// ------------------------------------------------------------------------------------------------------------

/// What lies before and behind one axis in the modes that repeat data. Of an axis of open length the slices are checked by each call.
Value padded(Call& c, Value x, int64_t axis, int64_t low, int64_t high, std::string_view mode) {
  if (low == 0 && high == 0) return x;
  const Dim n = c.shape(x)[static_cast<size_t>(axis)];
  const int64_t size = n.is_constant() ? n.constant() : INT64_MAX;
  const int64_t most = mode == "reflect" ? size - 1 : mode == "wrap" ? size : size > 0 ? INT64_MAX : 0;
  if (std::max(low, high) > most) {
    c.fail("a pad of " + std::to_string(std::max(low, high)) + " on an axis of " + n.text() + " in mode " + std::string(mode));
    return {};
  }
  const auto edge = [&](const Dim& at, int64_t times) {
    Shape to = c.shape(x);
    to[static_cast<size_t>(axis)] = times;
    return c.broadcast(part(c, x, axis, at, at + 1), to);
  };
  const auto mirror = [&](const Dim& from, const Dim& to) {
    return c.add(Op::reverse, {part(c, x, axis, from, to)}, {.axes = {axis}});
  };
  std::vector<Value> parts;
  if (low > 0)
    parts.push_back(mode == "edge" ? edge(0, low) : mode == "wrap" ? part(c, x, axis, n - low, n) : mirror(1, low + 1));
  parts.push_back(x);
  if (high > 0)
    parts.push_back(mode == "edge"   ? edge(n - 1, high)
                    : mode == "wrap" ? part(c, x, axis, 0, high)
                                     : mirror(n - 1 - high, n - 1));
  return c.add(Op::concat, parts, {.axis = axis});
}

/// Negative pads cut; then positive ones add.
void pad_by(Call& c, Value x, const std::vector<int64_t>& pads, std::vector<int64_t> axes,
            std::shared_ptr<const Tensor> value) {
  const std::string_view mode = c.s("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && (mode != "wrap" || c.row.since < 19))
    return c.fail("mode " + quote(mode) + " is not known");
  const size_t n = axes.size(), rank = c.shape(x).size();
  if (pads.size() != 2 * n) return c.fail(std::to_string(pads.size()) + " pads for " + std::to_string(n) + " axes");
  for (size_t k = 0; k < n && x.valid(); ++k) {
    if (std::min(pads[k], pads[n + k]) >= 0) continue;
    const Dim size = c.shape(x)[static_cast<size_t>(axes[k])];
    x = part(c, x, axes[k], -std::clamp(pads[k], -kEnd, int64_t{0}), size + std::clamp(pads[n + k], -kEnd, int64_t{0}));
  }
  if (mode == "constant") {
    Attrs a{.low = std::vector<Dim>(rank, Dim(0)), .high = std::vector<Dim>(rank, Dim(0)), .value = std::move(value)};
    for (size_t k = 0; k < n; ++k) {
      a.low[static_cast<size_t>(axes[k])] = std::max(pads[k], int64_t{0});
      a.high[static_cast<size_t>(axes[k])] = std::max(pads[n + k], int64_t{0});
    }
    return c.out(c.add(Op::pad, {x}, a));
  }
  for (size_t k = 0; k < n && x.valid(); ++k)
    x = padded(c, x, axes[k], std::max(pads[k], int64_t{0}), std::max(pads[n + k], int64_t{0}), mode);
  c.out(x);
}

std::vector<int64_t> every_axis(Call& c, Value x) {
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < c.rank(x); ++a) axes.push_back(a);
  return axes;
}

void pad_by_attributes(Call& c) {
  const Value x = c.in(0);
  const auto pads = c.list("pads");
  if (!pads) return c.fail("attribute pads is missing");
  const Value value = c.like(x, c.f("value", 0));
  if (value.valid()) pad_by(c, x, *pads, every_axis(c, x), c.b.node(value).attrs->value);
}

void pad_by_operands(Call& c) {
  const Value x = c.in(0);
  const auto pads = c.ints(1);
  std::shared_ptr<const Tensor> value;
  if (c.has(2) && c.known(2)) {
    Tensor scalar = *c.known(2);
    if (scalar.elements() != 1) return c.fail("constant_value has " + std::to_string(scalar.elements()) + " elements");
    scalar.extents.clear();
    value = std::make_shared<const Tensor>(std::move(scalar));
  }
  auto axes = c.has(3) ? c.ints(3) : every_axis(c, x);
  if (c.failed()) return;
  for (int64_t& a : *axes) a = c.axis(a, c.rank(x));
  std::vector<int64_t> sorted = *axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return c.fail("an axis is given twice");
  if (!c.failed()) pad_by(c, x, *pads, *axes, value);
}

// --- blocks
// ---------------------------------------------------------------------------------------------------------------

/// One axis at a time, seen as [before, 1, axis, behind]: the rank never exceeds 4.
void tile(Call& c) {
  Value x = c.in(0);
  const auto repeats = c.dims(1);
  if (!repeats) return;
  if (repeats->size() != c.shape(x).size())
    return c.fail(std::to_string(repeats->size()) + " repeats for " + text(c.type(x)));
  Shape shape = c.shape(x);
  for (size_t a = 0; a < shape.size(); ++a) {
    const Dim times = (*repeats)[a];
    if (times.is(1)) continue;
    if (times.is_constant() && times.constant() < 0) return c.fail("a negative number of repeats");
    const Dim before = elements({shape.begin(), shape.begin() + static_cast<int64_t>(a)});
    const Dim behind = elements({shape.begin() + static_cast<int64_t>(a) + 1, shape.end()});
    const Dim n = shape[a];
    shape[a] = times * n;
    x = c.reshape(c.broadcast(c.reshape(x, {before, 1, n, behind}), {before, times, n, behind}), shape);
  }
  c.out(x);
}

/// Block size and the four dims of an image; false with an error when they do not fit.
bool image(Call& c, Value x, int64_t& block, Shape& dims) {
  block = c.required("blocksize");
  dims = c.shape(x);
  if (dims.size() != 4) c.fail(text(c.type(x)) + ": rank 4 expected");
  if (block < 1 || block > (int64_t{1} << 20)) c.fail("a blocksize of " + std::to_string(block));
  return !c.failed();
}

Dim divided(Call& c, const Dim& d, int64_t by) {
  if (const auto q = exact_quotient(d, by)) return *q;
  c.fail(d.text() + " is no multiple of " + std::to_string(by));
  return 1;
}

void depth_to_space(Call& c) {
  const Value x = c.in(0);
  int64_t b;
  Shape d;
  if (!image(c, x, b, d)) return;
  const std::string_view mode = c.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail("mode " + quote(mode) + " is not known");
  const Dim depth = divided(c, d[1], b * b);
  const Value y = mode == "DCR" ? c.transpose(c.reshape(x, {d[0], b, b, depth, d[2], d[3]}), {0, 3, 4, 1, 5, 2})
                                : c.transpose(c.reshape(x, {d[0], depth, b, b, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  c.out(c.reshape(y, {d[0], depth, d[2] * b, d[3] * b}));
}

void space_to_depth(Call& c) {
  const Value x = c.in(0);
  int64_t b;
  Shape d;
  if (!image(c, x, b, d)) return;
  const Dim height = divided(c, d[2], b), width = divided(c, d[3], b);
  const Value y = c.transpose(c.reshape(x, {d[0], d[1], height, b, width, b}), {0, 3, 5, 1, 2, 4});
  c.out(c.reshape(y, {d[0], d[1] * (b * b), height, width}));
}

/// Inference: nothing is dropped. Training with a ratio of 0 drops nothing either.
void dropout(Call& c) {
  const Value x = c.in(0);
  if (c.has(2)) {
    const Tensor* training = c.known(2);
    if (!training) return;
    if (training->dtype != DType::boolean || training->elements() != 1) return c.fail("training_mode is not one bool");
    if (training->data[0] != std::byte{0}) {
      const Tensor* ratio = c.has(1) ? c.known(1) : nullptr;
      const bool none =
          ratio && std::all_of(ratio->data.begin(), ratio->data.end(), [](std::byte b) { return b == std::byte{0}; });
      if (!none) return c.fail("training with a ratio other than 0 is not supported");
    }
  }
  c.out(x);
  if (!c.wants(1)) return;
  const Value all = c.b.scalar(c.row.since < 10 ? c.dtype(x) : DType::boolean, 1);  // the mask is of x's type before 10
  c.out(c.broadcast(all, c.shape(x)), 1);
}

const OpRow kRows[] = {
    //  operator        since  inputs  out   attributes            import
    {"Expand",             8,  2, 2,    1,   "",                   expand, Narrow::pass},
    {"Reshape",            5,  2, 2,    1,   "",                   reshape, Narrow::pass},
    {"Reshape",           14,  2, 2,    1,   "allowzero",          reshape, Narrow::pass},
    {"Transpose",          1,  1, 1,    1,   "perm",               transpose, Narrow::pass},
    {"Flatten",            1,  1, 1,    1,   "axis",               flatten, Narrow::pass},
    {"Squeeze",            1,  1, 1,    1,   "axes",               squeeze, Narrow::pass},
    {"Squeeze",           13,  1, 2,    1,   "",                   squeeze, Narrow::pass},
    {"Unsqueeze",          1,  1, 1,    1,   "axes",               unsqueeze, Narrow::pass},
    {"Unsqueeze",         13,  2, 2,    1,   "",                   unsqueeze, Narrow::pass},
    {"Concat",             4,  1, kAny, 1,   "axis",               concat, Narrow::pass},
    {"Slice",              1,  1, 1,    1,   "axes ends starts",   slice_by_attributes, Narrow::pass},
    {"Slice",             10,  3, 5,    1,   "",                   slice_by_operands, Narrow::pass},
    {"Split",              2,  1, 1,    kAny, "axis split",        split, Narrow::pass},
    {"Split",             13,  1, 2,    kAny, "axis",              split, Narrow::pass},
    {"Split",             18,  1, 2,    kAny, "axis num_outputs",  split, Narrow::pass},
    {"Pad",                2,  1, 1,    1,   "mode pads value",    pad_by_attributes},
    {"Pad",               11,  2, 3,    1,   "mode",               pad_by_operands},
    {"Pad",               18,  2, 4,    1,   "mode",               pad_by_operands},
    {"Pad",               19,  2, 4,    1,   "mode",               pad_by_operands},
    {"Tile",               6,  2, 2,    1,   "",                   tile, Narrow::pass},
    {"DepthToSpace",       1,  1, 1,    1,   "blocksize",          depth_to_space},
    {"DepthToSpace",      11,  1, 1,    1,   "blocksize mode",     depth_to_space},
    {"SpaceToDepth",       1,  1, 1,    1,   "blocksize",          space_to_depth},
    {"Dropout",            7,  1, 1,    2,   "ratio",              dropout},
    {"Dropout",           10,  1, 1,    2,   "ratio",              dropout},
    {"Dropout",           12,  1, 3,    2,   "seed",               dropout},
};

}  // namespace

std::span<const OpRow> layout_rows() { return kRows; }

}  // namespace fusec::onnx
