// Softmax and the normalisations: fusec's composites, which compute narrow floats in f32 and round once.

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

std::vector<int64_t> from(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t a = axis; a < rank; ++a) axes.push_back(a);
  return axes;
}

/// The axes of a softmax. Before 13 the operand is seen as a matrix, split at `axis` (default 1): one row is
/// everything behind.
std::vector<int64_t> softmax_axes(Call& c, Value x) {
  const int64_t rank = c.rank(x);
  if (c.row.since >= 13) return {c.axis(c.i("axis", -1), rank)};
  const int64_t axis = c.i("axis", 1);
  return from(axis == rank ? rank : c.axis(axis, rank), rank);
}

template <Op op>
void softmax(Call& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> axes = softmax_axes(c, x);
  if (c.failed()) return;
  if (!axes.empty()) return c.out(c.add(op, {x}, {.axes = axes}));
  // Rows of one element.
  const Value row = c.reshape(x, [&] { Shape s = c.shape(x); s.push_back(1); return s; }());
  c.out(c.reshape(c.add(op, {row}, {.axes = {c.rank(x)}}), c.shape(x)));
}

/// 1 at the first greatest element of a row, 0 elsewhere.
void hardmax(Call& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> axes = softmax_axes(c, x);
  if (c.failed() || axes.empty()) return c.fail("a row of no axes");
  // All the row's axes as one, so that the index counts along one axis.
  Shape rows = c.shape(x);
  Dim length = 1;
  for (int64_t a : axes) length = length * rows[static_cast<size_t>(a)];
  if (axes.size() > 1) {
    rows.resize(static_cast<size_t>(axes[0]));
    rows.push_back(length);
  }
  const Value flat = c.reshape(x, rows);
  const Value best = c.add(Op::argmax, {flat}, {.axes = {axes[0]}, .to = DType::i64, .keep = true});
  Shape line(rows.size(), Dim(1));
  line[static_cast<size_t>(axes[0])] = rows[static_cast<size_t>(axes[0])];
  const Value index = c.add(Op::iota, {}, {.shape = line, .axis = axes[0], .to = DType::i64});
  const Value hit = c.broadcast(c.add(Op::eq, {best, index}), rows);
  c.out(c.reshape(c.cast(hit, c.dtype(x)), c.shape(x)));
}

double epsilon(Call& c) { return c.f("epsilon", 1e-5f); }

void check_stash(Call& c) {
  if (const int64_t stash = c.i("stash_type", 1); stash != 1)
    c.fail("stash_type " + dtype_name(static_cast<int32_t>(stash)) + " is not supported: the interior is f32");
}

/// 1 / sqrt(v + eps)
Value inverse_deviation(Call& c, Value variance, double eps) {
  return c.add(Op::reciprocal, {c.add(Op::sqrt, {c.add(Op::add, {variance, c.like(variance, eps)})})});
}

void layer_norm(Call& c) {
  check_stash(c);
  const Value x = c.in(0);
  const std::vector<int64_t> axes = from(c.axis(c.i("axis", -1), c.rank(x)), c.rank(x));
  std::vector<Value> args{x, c.in(1)};
  if (c.has(2)) args.push_back(c.in(2));
  if (c.failed()) return;
  c.out(c.add(Op::layer_norm, args, {.axes = axes, .eps = epsilon(c)}));
  if (!c.wants(1) && !c.wants(2)) return;
  // Statistics have the stash type, f32.
  const Value wide = c.cast(x, compute_type(c.dtype(x)));
  c.out(c.cast(c.reduce(Op::mean, wide, axes, true), DType::f32), 1);
  c.out(c.cast(inverse_deviation(c, c.reduce(Op::var, wide, axes, true), epsilon(c)), DType::f32), 2);
}

void rms_norm(Call& c) {
  check_stash(c);
  const Value x = c.in(0), scale = c.in(1);
  const std::vector<int64_t> axes = from(c.axis(c.i("axis", -1), c.rank(x)), c.rank(x));
  if (c.failed()) return;
  const Value y = c.add(Op::rms_norm, {x, scale}, {.axes = axes, .eps = epsilon(c)});
  c.out(c.cast(y, c.dtype(scale)));
}

/// [C] as [C, 1, 1 …]: one number a channel, for values whose channels are axis 1.
Value per_channel(Call& c, Value v, Value x) {
  Shape s(static_cast<size_t>(c.rank(x)) - 1, Dim(1));
  if (c.rank(v) != 1) c.fail(text(c.type(v)) + " is not one number a channel");
  else s[0] = c.shape(v)[0];
  return c.reshape(v, s);
}

void instance_norm(Call& c) {
  const Value x = c.in(0);
  if (c.rank(x) < 3) return c.fail(text(c.type(x)) + ": rank 3 or more expected");
  c.out(c.add(Op::layer_norm, {x, per_channel(c, c.in(1), x), per_channel(c, c.in(2), x)},
              {.axes = from(2, c.rank(x)), .eps = epsilon(c)}));
}

/// Scale and bias are for a group at 18, for a channel from 21 on.
void group_norm(Call& c) {
  check_stash(c);
  const Value x = c.in(0);
  const int64_t groups = c.required("num_groups");
  if (c.rank(x) < 2) return c.fail(text(c.type(x)) + ": rank 2 or more expected");
  Value scale = c.in(1), bias = c.in(2);
  const Dim channels = c.shape(x)[1];
  if (c.row.since < 21 && groups > 0) {
    const auto each = exact_quotient(channels, groups);
    if (!each) return c.fail(channels.text() + " channels in " + std::to_string(groups) + " groups");
    const auto spread = [&](Value v) {
      return c.reshape(c.broadcast(c.reshape(v, {groups, 1}), {groups, *each}), {channels});
    };
    scale = spread(scale);
    bias = spread(bias);
  }
  c.out(c.add(Op::group_norm, {x, scale, bias}, {.groups = groups, .eps = epsilon(c)}));
}

/// Statistics of this call, and running ones moved towards them.
void train_batch_norm(Call& c, Value x, double eps) {
  std::vector<int64_t> axes{0};
  for (int64_t a = 2; a < c.rank(x); ++a) axes.push_back(a);
  const Value wide = c.cast(x, compute_type(c.dtype(x)));
  const Value mean = c.reduce(Op::mean, wide, axes, false), variance = c.reduce(Op::var, wide, axes, false);
  c.out(c.add(Op::batch_norm, {x, c.in(1), c.in(2), mean, variance}, {.axis = 1, .eps = eps}));
  const double momentum = c.f("momentum", 0.9f);
  const auto moved = [&](Value running, Value current) {
    const Value old = c.add(Op::mul, {running, c.like(running, momentum)});
    const Value now = c.add(Op::mul, {c.cast(current, c.dtype(running)), c.like(running, 1 - momentum)});
    return c.add(Op::add, {old, now});
  };
  if (c.wants(1)) c.out(moved(c.in(3), mean), 1);
  if (c.wants(2)) c.out(moved(c.in(4), variance), 2);
}

void batch_norm(Call& c) {
  const Value x = c.in(0);
  const double eps = epsilon(c);
  if (c.rank(x) < 2) return c.fail(text(c.type(x)) + " has no channels at axis 1");
  if (c.i("spatial", 1) != 1) return c.fail("spatial=0 is not supported");
  if (c.i("training_mode", 0) != 0) return train_batch_norm(c, x, eps);
  for (size_t k = 1; k < 5; ++k)
    if (c.wants(k)) return c.fail("output " + std::to_string(k) + " is there in training only");
  c.out(c.add(Op::batch_norm, {x, c.in(1), c.in(2), c.in(3), c.in(4)}, {.axis = 1, .eps = eps}));
}

/// x / norm; a norm of 0 gives 0 (said from 22 on; before, 0 / 0 was left open).
void lp_norm(Call& c) {
  const Value x = c.in(0);
  const int64_t p = c.i("p", 2);
  if (p != 1 && p != 2) return c.fail("p is " + std::to_string(p) + ", not 1 or 2");
  const Value norm = c.reduce(p == 1 ? Op::norm_l1 : Op::norm_l2, x, {c.axis(c.i("axis", -1), c.rank(x))}, true);
  const Value none = c.add(Op::eq, {norm, c.like(norm, 0)});
  c.out(c.add(Op::select, {none, c.like(x, 0), c.add(Op::div, {x, norm})}));
}

/// (x - mean) / (deviation + 1e-9), the constant being that of ONNX's own function body.
void mean_variance_norm(Call& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> axes = c.axes(c.list("axes").value_or(std::vector<int64_t>{0, 2, 3}), c.rank(x));
  if (c.failed()) return;
  if (axes.empty()) return c.fail("no axes");
  const Value wide = c.cast(x, compute_type(c.dtype(x)));
  const Value centred = c.add(Op::sub, {wide, c.reduce(Op::mean, wide, axes, true)});
  const Value deviation = c.add(Op::sqrt, {c.reduce(Op::var, wide, axes, true)});
  c.out(c.cast(c.add(Op::div, {centred, c.add(Op::add, {deviation, c.like(wide, 1e-9)})}), c.dtype(x)));
}

/// x / (bias + alpha / size * sum of x² over `size` neighbouring channels) ^ beta. The window of an even size reaches
/// one channel further forwards.
void lrn(Call& c) {
  const Value x = c.in(0);
  const int64_t size = c.required("size"), before = (size - 1) / 2;
  if (size < 1 || size > 64) return c.fail("a size of " + std::to_string(size) + ": 1 to 64 are supported");
  if (c.rank(x) < 2) return c.fail(text(c.type(x)) + " has no channels");
  const Value wide = c.cast(x, compute_type(c.dtype(x)));
  const Value square = c.add(Op::mul, {wide, wide});
  const size_t rank = c.shape(x).size();
  Attrs around{.low = std::vector<Dim>(rank, Dim(0)), .high = std::vector<Dim>(rank, Dim(0))};
  around.low[1] = before;
  around.high[1] = size - 1 - before;
  const Value padded = c.add(Op::pad, {square}, around);
  Value sum;
  for (int64_t k = 0; k < size && !c.failed(); ++k) {
    Attrs window{.start = std::vector<Dim>(rank, Dim(0)), .stop = c.shape(padded), .step = std::vector<int64_t>(rank, 1)};
    window.start[1] = k;
    window.stop[1] = c.shape(x)[1] + k;
    const Value part = c.add(Op::slice, {padded}, window);
    sum = k == 0 ? part : c.add(Op::add, {sum, part});
  }
  const Value mean = c.add(Op::mul, {sum, c.like(sum, c.f("alpha", 1e-4f) / static_cast<double>(size))});
  const Value base = c.add(Op::add, {mean, c.like(sum, c.f("bias", 1))});
  c.out(c.cast(c.add(Op::div, {wide, c.add(Op::pow, {base, c.like(base, c.f("beta", 0.75f))})}), c.dtype(x)));
}

const OpRow kRows[] = {
    //  operator                     since  inputs  out  attributes                          import
    {"Softmax",                         1,  1, 1,    1,  "axis",                             softmax<Op::softmax>},
    {"Softmax",                        13,  1, 1,    1,  "axis",                             softmax<Op::softmax>},
    {"LogSoftmax",                      1,  1, 1,    1,  "axis",                             softmax<Op::log_softmax>},
    {"LogSoftmax",                     13,  1, 1,    1,  "axis",                             softmax<Op::log_softmax>},
    {"Hardmax",                         1,  1, 1,    1,  "axis",                             hardmax},
    {"Hardmax",                        13,  1, 1,    1,  "axis",                             hardmax},
    {"LayerNormalization",             17,  2, 3,    3,  "axis epsilon stash_type",          layer_norm},
    {"RMSNormalization",               23,  2, 2,    1,  "axis epsilon stash_type",          rms_norm},
    {"InstanceNormalization",           6,  3, 3,    1,  "epsilon",                          instance_norm},
    {"GroupNormalization",             18,  3, 3,    1,  "epsilon num_groups",               group_norm},
    {"GroupNormalization",             21,  3, 3,    1,  "epsilon num_groups stash_type",    group_norm},
    {"BatchNormalization",              7,  5, 5,    5,  "epsilon momentum spatial",         batch_norm},
    {"BatchNormalization",              9,  5, 5,    5,  "epsilon momentum",                 batch_norm},
    {"BatchNormalization",             14,  5, 5,    3,  "epsilon momentum training_mode",   batch_norm},
    {"LRN",                             1,  1, 1,    1,  "alpha beta bias size",             lrn},
    {"LpNormalization",                 1,  1, 1,    1,  "axis p",                           lp_norm},
    {"MeanVarianceNormalization",       9,  1, 1,    1,  "axes",                             mean_variance_norm},
};

}  // namespace

std::span<const OpRow> normalize_rows() { return kRows; }

}  // namespace fusec::onnx
