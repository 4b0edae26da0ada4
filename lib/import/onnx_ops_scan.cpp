// Running sums and products: scans of the IR, along an axis of any length.

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

template <Op op>
void scan(Call& c) {
  const Value x = c.in(0);
  const auto given = c.integer(1);
  if (!given || c.failed()) return;
  const int64_t axis = c.axis(*given, c.rank(x));
  if (c.failed()) return;
  c.out(c.add(op, {x}, {.axis = axis, .exclusive = c.i("exclusive", 0) != 0, .reverse = c.i("reverse", 0) != 0}));
}

const OpRow kRows[] = {
    //  operator   since  inputs  out  attributes           import
    {"CumSum",       11,  2, 2,    1,  "exclusive reverse", scan<Op::cumsum>},
    {"CumProd",      26,  2, 2,    1,  "exclusive reverse", scan<Op::cumprod>},
};

}  // namespace

std::span<const OpRow> scan_rows() { return kRows; }

}  // namespace fusec::onnx
