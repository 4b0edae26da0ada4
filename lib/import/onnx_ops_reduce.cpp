// Reductions. Axes are an attribute first; from 13 (ReduceSum) or 18 (the others) on they are an operand.
//
// A reduction over no axes at all (noop_with_empty_axes=1) still does its per-element part: ReduceL1 gives |x|,
// ReduceLogSum gives log(x).

#include "lib/import/onnx_ops.h"

namespace fusec::onnx {
namespace {

std::vector<int64_t> all_axes(int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
  return axes;
}

/// The axes to reduce, none when there is nothing to reduce.
std::vector<int64_t> reduced_axes(Call& c, Value x, bool as_operand) {
  std::optional<std::vector<int64_t>> axes;
  if (!as_operand) axes = c.list("axes");
  else if (c.has(1)) axes = c.ints(1);
  if (axes && !axes->empty()) return c.axes(*axes, c.rank(x));
  if (c.i("noop_with_empty_axes", 0) != 0) return {};
  return all_axes(c.rank(x));
}

/// One of fusec's reductions; over no axes the value itself.
Value over(Call& c, Op op, Value x, const std::vector<int64_t>& axes, bool keep) {
  return axes.empty() ? x : c.reduce(op, x, axes, keep);
}

Dim count(Call& c, Value x, const std::vector<int64_t>& axes) {
  Dim n = 1;
  for (int64_t a : axes) n = n * c.shape(x)[static_cast<size_t>(a)];
  return n;
}

// What each operator makes of x, the axes and keepdims.

template <Op op>
Value direct(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  return over(c, op, x, axes, keep);
}

/// ONNX lets integers have a mean: the truncated quotient.
Value mean(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  if (is_float(c.dtype(x))) return over(c, Op::mean, x, axes, keep);
  const Value n =
      c.like(x, static_cast<double>(c.number(count(c, x, axes), "the number of elements of an integer mean")));
  return c.add(Op::div, {over(c, Op::sum, x, axes, keep), n});
}

Value l1(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  return axes.empty() ? c.add(Op::abs, {x}) : c.reduce(Op::norm_l1, x, axes, keep);
}

Value l2(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return c.add(Op::abs, {x});
  if (is_float(c.dtype(x))) return c.reduce(Op::norm_l2, x, axes, keep);
  return c.cast(c.reduce(Op::norm_l2, c.cast(x, DType::f64), axes, keep), c.dtype(x));
}

/// Narrow floats are summed in f32 and rounded once, after the logarithm or of the whole sum of squares: 256² is no
/// f16.
Value widened(Call& c, Value x) {
  if (!x.valid() || !is_float(c.dtype(x))) return x;
  return c.cast(x, compute_type(c.dtype(x)));
}

Value log_sum(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  const Value wide = is_float(c.dtype(x)) ? widened(c, x) : c.cast(x, DType::f64);
  return c.cast(c.add(Op::log, {over(c, Op::sum, wide, axes, keep)}), c.dtype(x));
}

Value log_sum_exp(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return x;
  if (is_float(c.dtype(x))) return c.reduce(Op::logsumexp, x, axes, keep);
  return c.cast(c.reduce(Op::logsumexp, c.cast(x, DType::f64), axes, keep), c.dtype(x));
}

Value sum_square(Call& c, Value x, const std::vector<int64_t>& axes, bool keep) {
  const Value wide = widened(c, x);
  return c.cast(over(c, Op::sum, c.add(Op::mul, {wide, wide}), axes, keep), c.dtype(x));
}

using Meaning = Value (*)(Call&, Value, const std::vector<int64_t>&, bool);

template <Meaning meaning, bool as_operand>
void reduce(Call& c) {
  const Value x = c.in(0);
  if (!x.valid()) return;
  const std::vector<int64_t> axes = reduced_axes(c, x, as_operand);
  if (!c.failed()) c.out(meaning(c, x, axes, c.i("keepdims", 1) != 0));
}

template <Op op>
void arg(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.i("axis", 0), c.rank(x));
  c.out(c.add(
      op, {x},
      {.axes = {axis}, .to = DType::i64, .keep = c.i("keepdims", 1) != 0, .last = c.i("select_last_index", 0) != 0}));
}

/// Mean, greatest element or norm over all axes behind the channels.
template <Op op>
void global_pool(Call& c) {
  const Value x = c.in(0);
  std::vector<int64_t> axes;
  for (int64_t a = 2; a < c.rank(x); ++a) axes.push_back(a);
  if (axes.empty()) c.fail("rank " + std::to_string(c.rank(x)) + ": no spatial axes");
  c.out(c.reduce(op, x, axes, true));
}

void global_lp_pool(Call& c) {
  const int64_t p = c.i("p", 2);
  if (p != 1 && p != 2) return c.fail("p is " + std::to_string(p) + ", not 1 or 2");
  if (p == 1) global_pool<Op::norm_l1>(c);
  else global_pool<Op::norm_l2>(c);
}

#define ATTRIBUTE(op, meaning) {op, 1, 1, 1, 1, "axes keepdims", reduce<meaning, false>}
#define OPERAND(op, since, meaning) {op, since, 1, 2, 1, "keepdims noop_with_empty_axes", reduce<meaning, true>}

const OpRow kRows[] = {
    ATTRIBUTE("ReduceSum", direct<Op::sum>),         OPERAND("ReduceSum", 13, direct<Op::sum>),
    ATTRIBUTE("ReduceProd", direct<Op::prod>),       OPERAND("ReduceProd", 18, direct<Op::prod>),
    ATTRIBUTE("ReduceMax", direct<Op::reduce_max>),  OPERAND("ReduceMax", 18, direct<Op::reduce_max>),
    ATTRIBUTE("ReduceMin", direct<Op::reduce_min>),  OPERAND("ReduceMin", 18, direct<Op::reduce_min>),
    ATTRIBUTE("ReduceMean", mean),                   OPERAND("ReduceMean", 18, mean),
    ATTRIBUTE("ReduceL1", l1),                       OPERAND("ReduceL1", 18, l1),
    ATTRIBUTE("ReduceL2", l2),                       OPERAND("ReduceL2", 18, l2),
    ATTRIBUTE("ReduceLogSum", log_sum),              OPERAND("ReduceLogSum", 18, log_sum),
    ATTRIBUTE("ReduceLogSumExp", log_sum_exp),       OPERAND("ReduceLogSumExp", 18, log_sum_exp),
    ATTRIBUTE("ReduceSumSquare", sum_square),        OPERAND("ReduceSumSquare", 18, sum_square),
    {"ArgMax", 1, 1, 1, 1, "axis keepdims", arg<Op::argmax>},
    {"ArgMax", 12, 1, 1, 1, "axis keepdims select_last_index", arg<Op::argmax>},
    {"ArgMin", 1, 1, 1, 1, "axis keepdims", arg<Op::argmin>},
    {"ArgMin", 12, 1, 1, 1, "axis keepdims select_last_index", arg<Op::argmin>},
    {"GlobalAveragePool", 1, 1, 1, 1, "", global_pool<Op::mean>},
    {"GlobalLpPool", 2, 1, 1, 1, "p", global_lp_pool},
    {"GlobalMaxPool", 1, 1, 1, 1, "", global_pool<Op::reduce_max>},
};

}  // namespace

std::span<const OpRow> reduce_rows() { return kRows; }

}  // namespace fusec::onnx
