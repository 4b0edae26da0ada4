// Running sums and products, in log2(n) steps of shift and combine (Hillis & Steele, CACM 1986): after step k every
// element holds the combination of the 2^k elements up to it. n log n work, and the order of a sum is that of a tree.
//
//   [1, 2, 3, 4]  + shifted by 1  →  [1, 3, 5, 7]  + shifted by 2  →  [1, 3, 6, 10]

#include "lib/import/onnx_ops.h"
#include "lib/ir/convert.h"

namespace fusec::onnx {
namespace {

constexpr int64_t kLongest = int64_t{1} << 24;

/// Moves x towards the end of the axis by k, with `fill` in front.
Value shifted(Call& c, Value x, int64_t axis, int64_t n, int64_t k, const std::shared_ptr<const Tensor>& fill) {
  const size_t rank = c.shape(x).size(), a = static_cast<size_t>(axis);
  Attrs cut{.start = std::vector<Dim>(rank, Dim(0)), .stop = c.shape(x), .step = std::vector<int64_t>(rank, 1)};
  cut.stop[a] = n - k;
  Attrs pad{.low = std::vector<Dim>(rank, Dim(0)), .high = std::vector<Dim>(rank, Dim(0)), .value = fill};
  pad.low[a] = k;
  return c.add(Op::pad, {c.add(Op::slice, {x}, cut)}, pad);
}

template <Op op>
void scan(Call& c) {
  Value x = c.in(0);
  const auto given = c.integer(1);
  if (!given || c.failed()) return;
  const int64_t axis = c.axis(*given, c.rank(x));
  if (c.failed()) return;
  const int64_t n = c.number(c.shape(x)[static_cast<size_t>(axis)], "the length of a running sum");
  if (n > kLongest) return c.fail("a running sum of " + std::to_string(n) + " elements");
  const auto fill = scalar_tensor(c.dtype(x), op == Op::add ? 0 : 1);
  if (!fill || c.failed()) return;
  const auto neutral = std::make_shared<const Tensor>(*fill);
  const bool reverse = c.i("reverse", 0) != 0;
  if (reverse) x = c.add(Op::reverse, {x}, {.axes = {axis}});
  if (c.i("exclusive", 0) != 0 && n > 0) x = shifted(c, x, axis, n, 1, neutral);
  for (int64_t k = 1; k < n && !c.failed(); k *= 2) x = c.add(op, {x, shifted(c, x, axis, n, k, neutral)});
  if (reverse) x = c.add(Op::reverse, {x}, {.axes = {axis}});
  c.out(x);
}

const OpRow kRows[] = {
    //  operator   since  inputs  out  attributes           import
    {"CumSum",       11,  2, 2,    1,  "exclusive reverse", scan<Op::add>},
    {"CumProd",      26,  2, 2,    1,  "exclusive reverse", scan<Op::mul>},
};

}  // namespace

std::span<const OpRow> scan_rows() { return kRows; }

}  // namespace fusec::onnx
