// Gather, GatherElements, ReverseSequence: fusec's own gather, whose indices have the rank of the data. A few indices
// that are known while the graph is built become slices, which need no index in memory and check nothing.

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

constexpr size_t kMostRuns = 16;  // of known indices: as many slices

Value part(Call& c, Value x, int64_t axis, int64_t start, int64_t stop) {
  Attrs a{.start = std::vector<Dim>(c.shape(x).size(), Dim(0)),
          .stop = c.shape(x),
          .step = std::vector<int64_t>(c.shape(x).size(), 1)};
  a.start[static_cast<size_t>(axis)] = start;
  a.stop[static_cast<size_t>(axis)] = stop;
  return c.add(Op::slice, {x}, a);
}

/// Known indices as runs of neighbours, [first, behind the last), negative ones counted from the end.
std::vector<std::pair<int64_t, int64_t>> runs_of(Call& c, int64_t n, const std::vector<int64_t>& indices) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (int64_t index : indices) {
    const int64_t at = index < 0 ? index + n : index;
    if (at < 0 || at >= n) {
      c.fail("index " + std::to_string(index) + " of an axis of " + std::to_string(n));
      return {};
    }
    if (!runs.empty() && runs.back().second == at) ++runs.back().second;
    else runs.push_back({at, at + 1});
  }
  return runs;
}

/// Elements of x along an axis by a line of indices.
Value by_line(Call& c, Value x, Value line, int64_t axis) {
  Shape spread(c.shape(x).size(), Dim(1));
  spread[static_cast<size_t>(axis)] = elements(c.shape(line));
  return c.add(Op::gather, {x, c.reshape(line, spread)}, {.axis = axis});
}

void gather(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(x));
  if (c.failed()) return;
  const Dim n = c.shape(x)[static_cast<size_t>(axis)];
  Shape to = c.shape(x);
  to.erase(to.begin() + axis);
  if (c.item(1).known && n.is_constant()) {
    const auto indices = c.ints(1);
    if (!indices) return;
    const auto runs = runs_of(c, n.constant(), *indices);
    const std::vector<int64_t>& shape = c.item(1).known->extents;
    if (c.failed()) return;
    if (runs.size() <= kMostRuns) {
      to.insert(to.begin() + axis, shape.begin(), shape.end());
      std::vector<Value> parts;
      for (const auto& [start, stop] : runs) parts.push_back(part(c, x, axis, start, stop));
      if (parts.empty()) parts.push_back(part(c, x, axis, 0, 0));
      return c.out(c.reshape(parts.size() == 1 ? parts[0] : c.add(Op::concat, parts, {.axis = axis}), to));
    }
  }
  const Value index = c.in(1);
  if (c.failed()) return;
  const Shape shape = c.shape(index);
  to.insert(to.begin() + axis, shape.begin(), shape.end());
  c.out(c.reshape(by_line(c, x, index, axis), to));
}

/// out[i, j] = data[index[i, j], j] for axis 0; other axes of the indices may be shorter than those of the data.
void gather_elements(Call& c) {
  Value x = c.in(0);
  const Value index = c.in(1);
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(x));
  if (c.failed()) return;
  if (c.rank(index) != c.rank(x)) return c.fail(text(c.type(x)) + " and " + text(c.type(index)) + " differ in rank");
  const Shape shape = c.shape(index);
  for (int64_t a = 0; a < c.rank(x); ++a) {
    const Dim have = c.shape(x)[static_cast<size_t>(a)], want = shape[static_cast<size_t>(a)];
    if (a == axis || have == want) continue;
    if (!have.is_constant() || !want.is_constant() || want.constant() > have.constant())
      return c.fail(text(c.type(index)) + " reaches beyond " + text(c.type(x)) + " at axis " + std::to_string(a));
    x = part(c, x, a, 0, want.constant());
  }
  c.out(c.add(Op::gather, {x, index}, {.axis = axis}));
}

/// The first lens[b] steps of batch b backwards, the others as they are: step t reads lens - 1 - t where that is not negative.
void reverse_sequence(Call& c) {
  const Value x = c.in(0), lens = c.in(1);
  const int64_t batch = c.axis(c.i("batch_axis", 1), c.rank(x)), time = c.axis(c.i("time_axis", 0), c.rank(x));
  if (c.failed()) return;
  if (batch == time) return c.fail("batch_axis and time_axis are one");
  if (c.rank(lens) != 1) return c.fail("sequence_lens is " + text(c.type(lens)) + ": a vector expected");
  Shape line(c.shape(x).size(), Dim(1)), column = line;
  line[static_cast<size_t>(time)] = c.shape(x)[static_cast<size_t>(time)];
  column[static_cast<size_t>(batch)] = c.shape(lens)[0];
  const Value t = c.add(Op::iota, {}, {.shape = line, .axis = time, .to = DType::i64});
  const Value length = c.reshape(c.cast(lens, DType::i64), column);
  const Value back = c.add(Op::sub, {c.add(Op::sub, {length, c.like(length, 1)}), t});
  const Value index = c.add(Op::select, {c.add(Op::ge, {back, c.like(back, 0)}), back, t});
  c.out(c.add(Op::gather, {x, index}, {.axis = time}));
}

const OpRow kRows[] = {
    //  operator          since  inputs  out  attributes  import
    {"Gather",               1,  2, 2,    1,  "axis",     gather, Narrow::pass},
    {"GatherElements",      11,  2, 2,    1,  "axis",     gather_elements, Narrow::pass},
    {"ReverseSequence",     10,  2, 2,    1,  "batch_axis time_axis", reverse_sequence, Narrow::pass},
};

}  // namespace

std::span<const OpRow> gather_rows() { return kRows; }

}  // namespace fusec::onnx
