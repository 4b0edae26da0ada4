// Losses over class indices. The class that a target names is picked without indexing: compare with the channel
// numbers, select, sum over the channels, which fuses with the softmax before it.

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

std::vector<int64_t> all_axes(Call& c, Value x) {
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < c.rank(x); ++a) axes.push_back(a);
  return axes;
}

/// x: [N, C, d…] log probabilities, target: [N, d…]. A target outside 0 … C-1 picks nothing (ONNX leaves it open).
void pick(Call& c, Value x, Value target, Value weight) {
  if (c.rank(x) < 2 || c.rank(target) != c.rank(x) - 1)
    return c.fail(text(c.type(x)) + " and " + text(c.type(target)) + ": [N, C, …] and [N, …] expected");
  const size_t rank = c.shape(x).size();
  const auto sum_channels = [&](Value v) { return c.reduce(Op::sum, v, {1}, false); };

  Shape spread = c.shape(target), line(rank, Dim(1));
  spread.insert(spread.begin() + 1, Dim(1));
  line[1] = c.shape(x)[1];
  const Value channel = c.add(Op::iota, {}, {.shape = line, .axis = 1, .to = c.dtype(target)});
  const Value hit = c.add(Op::eq, {c.reshape(target, spread), channel}), zero = c.like(x, 0);
  Value loss = c.add(Op::neg, {sum_channels(c.add(Op::select, {hit, x, zero}))});

  Value share;  // of each element in the mean; invalid = all the same
  if (weight.valid()) {
    share = sum_channels(c.add(Op::select, {c.broadcast(hit, c.shape(x)), c.reshape(weight, line), zero}));
    loss = c.add(Op::mul, {loss, share});
  }
  if (c.given("ignore_index")) {
    const Value ignored = c.add(Op::eq, {target, c.like(target, static_cast<double>(c.i("ignore_index", 0)))});
    loss = c.add(Op::select, {ignored, zero, loss});
    share = c.add(Op::select, {ignored, zero, share.valid() ? share : c.broadcast(c.like(x, 1), c.shape(target))});
  }

  const std::string_view reduction = c.s("reduction", "mean");
  if (reduction == "none") return c.out(loss);
  if (reduction != "sum" && reduction != "mean") return c.fail("reduction " + quote(reduction) + " is not known");
  if (reduction == "mean" && !share.valid()) return c.out(c.reduce(Op::mean, loss, all_axes(c, loss), false));
  const Value sum = c.reduce(Op::sum, loss, all_axes(c, loss), false);
  c.out(reduction == "sum" ? sum : c.add(Op::div, {sum, c.reduce(Op::sum, share, all_axes(c, share), false)}));
}

void log_likelihood(Call& c) {
  const Value x = c.in(0), target = c.in(1), weight = c.has(2) ? c.in(2) : Value{};
  if (!c.failed()) pick(c, x, target, weight);
}

void cross_entropy(Call& c) {
  const Value scores = c.in(0), target = c.in(1), weight = c.has(2) ? c.in(2) : Value{};
  if (c.failed()) return;
  if (c.rank(scores) < 2) return c.fail(text(c.type(scores)) + ": [N, C, …] expected");
  const Value x = c.add(Op::log_softmax, {scores}, {.axes = {1}});
  pick(c, x, target, weight);
  if (c.wants(1)) c.out(x, 1);
}

const OpRow kRows[] = {
    //  operator                     since  inputs  out  attributes                import
    {"NegativeLogLikelihoodLoss",      12,  2, 3,    1,  "ignore_index reduction", log_likelihood},
    {"SoftmaxCrossEntropyLoss",        12,  2, 3,    2,  "ignore_index reduction", cross_entropy},
};

}  // namespace

std::span<const OpRow> loss_rows() { return kRows; }

}  // namespace fusec::onnx
