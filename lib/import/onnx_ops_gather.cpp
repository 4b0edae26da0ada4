// Gather. Indices that are known while the graph is built become slices. Others, over a short axis, become a
// comparison of each index with each position, a select and a reduction:
//
//   out[i] = max over n of (n == index[i] ? data[n] : lowest)
//
// which moves every bit (a sum would turn -0.0 into 0.0) and fuses, at the price of one comparison for each position.
// fusec's own gather is reserved; long axes are refused until it is there.

#include <cmath>
#include <limits>

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

constexpr int64_t kMostRuns = 256;       // of known indices
constexpr int64_t kMostPositions = 256;  // of a compared axis

Value part(Call& c, Value x, int64_t axis, int64_t start, int64_t stop) {
  Attrs a{.start = std::vector<Dim>(c.shape(x).size(), Dim(0)),
          .stop = c.shape(x),
          .step = std::vector<int64_t>(c.shape(x).size(), 1)};
  a.start[static_cast<size_t>(axis)] = start;
  a.stop[static_cast<size_t>(axis)] = stop;
  return c.add(Op::slice, {x}, a);
}

/// A Gather by known indices: runs of them are slices.
Value slices(Call& c, Value x, int64_t axis, int64_t n, const std::vector<int64_t>& indices) {
  std::vector<Value> runs;
  for (size_t k = 0; k < indices.size() && !c.failed();) {
    const int64_t first = indices[k];
    size_t end = k + 1;
    while (end < indices.size() && indices[end] == first + static_cast<int64_t>(end - k) && indices[end] != 0) ++end;
    const int64_t start = first < 0 ? first + n : first, stop = start + static_cast<int64_t>(end - k);
    if (start < 0 || stop > n)
      c.fail("index " + std::to_string(start < 0 ? first : stop - 1) + " of an axis of " + std::to_string(n));
    else if (static_cast<int64_t>(runs.size()) == kMostRuns)
      c.fail("more than " + std::to_string(kMostRuns) + " runs of indices");
    else runs.push_back(part(c, x, axis, start, stop));
    k = end;
  }
  if (runs.empty()) runs.push_back(part(c, x, axis, 0, 0));
  return runs.size() == 1 ? runs[0] : c.add(Op::concat, runs, {.axis = axis});
}

/// No element of the type is less.
Value lowest(Call& c, Value x) {
  const DType dtype = c.dtype(x);
  if (dtype == DType::f8e4m3) return c.like(x, -448);
  if (is_float(dtype)) return c.like(x, -std::numeric_limits<double>::infinity());
  return c.like(x, is_signed(dtype) ? -std::ldexp(1.0, static_cast<int>(8 * bytes(dtype)) - 1) : 0);
}

/// The reduction over `axis` of data, where position == index and both broadcast; zero where an index is outside.
Value compared(Call& c, Value data, Value index, int64_t axis, int64_t n) {
  const Value size = c.like(index, static_cast<double>(n)), zero = c.like(index, 0);
  index = c.add(Op::select, {c.add(Op::lt, {index, zero}), c.add(Op::add, {index, size}), index});
  Shape line(c.shape(data).size(), Dim(1));
  line[static_cast<size_t>(axis)] = n;
  const Value position = c.add(Op::iota, {}, {.shape = line, .axis = axis, .to = c.dtype(index)});
  const Value found = c.reduce(
      Op::reduce_max, c.add(Op::select, {c.add(Op::eq, {index, position}), data, lowest(c, data)}), {axis}, true);
  const Value inside = c.add(Op::and_, {c.add(Op::ge, {index, zero}), c.add(Op::lt, {index, size})});
  return c.add(Op::select, {inside, found, c.like(data, 0)});
}

int64_t short_axis(Call& c, Value x, int64_t axis) {
  const int64_t n = c.number(c.shape(x)[static_cast<size_t>(axis)], "the axis to gather from");
  if (n > kMostPositions)
    c.fail("an axis of " + std::to_string(n) + " by indices that are not known here: at most " +
           std::to_string(kMostPositions) + " positions are supported");
  return n;
}

void gather(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(x));
  if (c.failed()) return;
  const auto at = static_cast<size_t>(axis);
  Shape to = c.shape(x);
  to.erase(to.begin() + axis);
  if (c.has(1) && c.item(1).known) {
    const auto indices = c.ints(1);
    const int64_t n = c.number(c.shape(x)[at], "the axis to gather from");
    if (c.failed()) return;
    const std::vector<int64_t>& shape = c.item(1).known->extents;
    to.insert(to.begin() + axis, shape.begin(), shape.end());
    return c.out(c.reshape(slices(c, x, axis, n, *indices), to));
  }
  // data as [before, 1, n, behind], all indices as [1, k, 1, 1].
  const Value index = c.in(1);
  const int64_t n = short_axis(c, x, axis);
  if (c.failed()) return;
  const Dim before = elements({c.shape(x).begin(), c.shape(x).begin() + axis}),
            behind = elements({c.shape(x).begin() + axis + 1, c.shape(x).end()});
  const Shape shape = c.shape(index);
  const Value rows =
      compared(c, c.reshape(x, {before, 1, n, behind}), c.reshape(index, {1, elements(shape), 1, 1}), 2, n);
  to.insert(to.begin() + axis, shape.begin(), shape.end());
  c.out(c.reshape(rows, to));
}

/// out[i, j] = data[index[i, j], j] for axis 0; other axes of the indices may be shorter than those of the data.
void gather_elements(Call& c) {
  Value x = c.in(0);
  const Value index = c.in(1);
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(x));
  if (c.failed()) return;
  if (c.rank(index) != c.rank(x)) return c.fail(text(c.type(x)) + " and " + text(c.type(index)) + " differ in rank");
  const int64_t n = short_axis(c, x, axis);
  if (c.failed()) return;
  const Shape shape = c.shape(index);
  for (int64_t a = 0; a < c.rank(x); ++a) {
    const Dim have = c.shape(x)[static_cast<size_t>(a)], want = shape[static_cast<size_t>(a)];
    if (a == axis || have == want) continue;
    if (!have.is_constant() || !want.is_constant() || want.constant() > have.constant())
      return c.fail(text(c.type(index)) + " reaches beyond " + text(c.type(x)) + " at axis " + std::to_string(a));
    x = part(c, x, a, 0, want.constant());
  }
  // data gets an axis before the gathered one, indices one behind theirs.
  Shape wide = c.shape(x), spread = shape;
  wide.insert(wide.begin() + axis, Dim(1));
  spread.insert(spread.begin() + axis + 1, Dim(1));
  c.out(c.reshape(compared(c, c.reshape(x, wide), c.reshape(index, spread), axis + 1, n), shape));
}

const OpRow kRows[] = {
    //  operator          since  inputs  out  attributes  import
    {"Gather",               1,  2, 2,    1,  "axis",     gather},
    {"GatherElements",      11,  2, 2,    1,  "axis",     gather_elements},
};

}  // namespace

std::span<const OpRow> gather_rows() { return kRows; }

}  // namespace fusec::onnx
