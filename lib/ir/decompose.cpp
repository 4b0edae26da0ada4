// Composites as primitives. For x: bf16[R,C]
//
//   softmax %x, axes=[1]   →   %f = cast %x, to=f32            %e = exp (%f - %m)          fewer terms
//                              %m = reduce_max %f, axes=[1]    %s = sum %e, axes=[1]       online
//                                                              cast (%e / %s), to=bf16     reciprocal
//
// Counts of symbolic dims are `size` leaves. Sources: the online pair of softmax after Milakov & Gimelshein (2018); variance in two
// passes, corrected by what the rounding of the mean left, and merged where a kernel takes one sweep, after Chan, Golub & LeVeque (1979,
// "Algorithms for computing the sample variance", equations 1.7 and 2.1).

#include "lib/ir/decompose.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/ir/rebuild.h"

namespace fusec {
namespace {

/// Elements along `axes`. Where that leaves int64 another axis is empty, or the value could not be: no element reads the count.
Dim product(const Shape& dims, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes)
    if (dims[size_t(axis)].is(0)) return 0;
  try {
    Dim n = 1;
    for (int64_t axis : axes) n = n * dims[size_t(axis)];
    return n;
  } catch (const std::overflow_error&) {
    return 0;
  }
}

bool is_narrow_float(DType type) { return is_float(type) && bytes(type) < 4; }

/// The composite being written: its builder, the type its interior computes in, and the axes it reduces.
struct Writer {
  GraphBuilder& b;
  Op op;
  Attrs attrs;             // normalised
  Type result;
  DType operand, compute;  // of the first operand as given
  std::vector<Value> args;  // in `compute`
  Shape shape;             // of the first operand

  Value node(Op o, std::vector<Value> operands, uint8_t relax = 0) {
    Attrs a;
    a.relax = relax;
    return b.add(o, std::move(operands), std::move(a));
  }
  // Arithmetic of a composite's interior. Only what a flag can change carries it, so that equal nodes stay equal.
  Value add(Value x, Value y) { return node(Op::add, {x, y}, kContract); }
  Value sub(Value x, Value y) { return node(Op::sub, {x, y}, kContract); }
  Value mul(Value x, Value y) { return node(Op::mul, {x, y}, kContract); }
  Value transcendental(Op o, Value x) { return node(o, {x}, is_narrow_float(result.dtype) ? kFewerTerms : 0); }
  /// An exp that only the logarithm of a sum sees: what it needs is a small error of the sum, so fewer terms, whatever the result's type.
  Value exponential(Value x) { return node(Op::exp, {x}, compute == DType::f32 ? kFewerTerms : 0); }
  Value scalar(double number) { return b.scalar(compute, number); }

  Value reduce(Op o, Value x, const std::vector<int64_t>& axes, bool keep, uint8_t relax = 0) {
    Attrs a;
    a.axes = axes;
    a.keep = keep;
    a.relax = relax;
    return b.add(o, {x}, std::move(a));
  }
  Value reshape(Value x, Shape to) {
    if (!x.valid() || b.type(x).shape == to) return x;
    Attrs a;
    a.shape = std::move(to);
    return b.add(Op::reshape, {x}, std::move(a));
  }

  /// max(0, elements along `axes` - ddof) in the compute type: a constant, or computed from `size` leaves.
  Value count(const Shape& dims, const std::vector<int64_t>& axes, int64_t ddof = 0) {
    const Dim n = product(dims, axes);
    if (n.is_constant()) return scalar(double(std::max<int64_t>(0, n.constant() - ddof)));
    Attrs a;
    a.shape = {n};
    Value value = b.add(Op::size, {}, std::move(a));
    if (ddof != 0) {
      value = b.add(Op::sub, {value, b.scalar(DType::i64, double(ddof))});
      value = b.add(Op::max, {value, b.scalar(DType::i64, 0)});
    }
    return b.cast(value, compute);
  }

  struct Moments {
    Value deviation;  // x - the mean rounded
    Value residual;   // the mean of that, over `axes`: what the rounding left. Invalid where it is not worth taking out
    Value variance;
  };
  /// Mean and variance in two passes. The second sum is the pair that one sweep may carry (Welford). With f32 operands a mean of 1e4 is
  /// off by half a thousandth, which narrower operands cannot tell from their own rounding: the deviations' own mean is taken out.
  Moments moments(Value x, const std::vector<int64_t>& axes, int64_t ddof, bool keep) {
    const Shape dims = b.type(x).shape;
    const Value mean = node(Op::div, {reduce(Op::sum, x, axes, true), count(dims, axes)});
    Moments out{sub(x, mean), {}, {}};
    Value squares = reduce(Op::sum, mul(out.deviation, out.deviation), axes, keep, kOnline);
    if (operand == DType::f32 && compute == DType::f32) {
      // Beyond 2^63 its square would overflow, as that of the deviations has: then it is left alone.
      const Value left = reduce(Op::sum, out.deviation, axes, keep, kOnline);
      const Value moderate = node(Op::lt, {node(Op::abs, {left}), scalar(0x1p63)});
      const Value sum = node(Op::select, {moderate, left, scalar(0)});
      out.residual = node(Op::div, {sum, count(dims, axes)});
      squares = node(Op::max, {sub(squares, mul(sum, out.residual)), scalar(0)});
    }
    out.variance = node(Op::div, {squares, count(dims, axes, ddof)});
    return out;
  }

  /// One number a channel of `axis`, with ones behind so that it broadcasts to x.
  Value per_channel(Value parameter, size_t axis) {
    Shape spread(shape.size() - axis, Dim(1));
    spread[0] = shape[axis];
    return reshape(parameter, std::move(spread));
  }
};

Value mean(Writer& w) {
  return w.node(Op::div, {w.reduce(Op::sum, w.args[0], w.attrs.axes, w.attrs.keep), w.count(w.shape, w.attrs.axes)});
}

Value var(Writer& w) { return w.moments(w.args[0], w.attrs.axes, w.attrs.ddof, w.attrs.keep).variance; }

Value softmax(Writer& w) {
  const Value x = w.args[0];
  const Value max = w.reduce(Op::reduce_max, x, w.attrs.axes, true);
  const Value e = w.node(Op::exp, {w.node(Op::sub, {x, max})}, w.compute != DType::f32 ? 0 : is_narrow_float(w.result.dtype) ? kFewerTerms : kNear);
  return w.node(Op::div, {e, w.reduce(Op::sum, e, w.attrs.axes, true, kOnline)}, kReciprocal);
}

Value log_softmax(Writer& w) {
  const Value x = w.args[0];
  const Value max = w.reduce(Op::reduce_max, x, w.attrs.axes, true);
  const Value shifted = w.node(Op::sub, {x, max});
  const Value sum = w.reduce(Op::sum, w.exponential(shifted), w.attrs.axes, true, kOnline);
  return w.node(Op::sub, {shifted, w.transcendental(Op::log, sum)});
}

// An infinite max is the answer itself: inf - inf would make it NaN. The guard stands behind the sum, so that the pair of
// reductions stays max and sum of exp(x - max). A NaN makes the max NaN, which is not infinite.
Value logsumexp(Writer& w) {
  const Value x = w.args[0];
  const Value max = w.reduce(Op::reduce_max, x, w.attrs.axes, true);
  const Value e = w.exponential(w.node(Op::sub, {x, max}));
  const Value sum = w.reduce(Op::sum, e, w.attrs.axes, true, kOnline);
  const Value log = w.node(Op::add, {max, w.transcendental(Op::log, sum)});
  return w.reshape(w.node(Op::select, {w.node(Op::is_inf, {max}), max, log}), w.result.shape);
}

/// y * scale + bias, where operands 1 and 2 are given; they broadcast to x.
Value affine(Writer& w, Value y) {
  if (w.args.size() > 1) y = w.mul(y, w.args[1]);
  if (w.args.size() > 2) y = w.add(y, w.args[2]);
  return y;
}

Value layer_norm(Writer& w) {
  const Writer::Moments m = w.moments(w.args[0], w.attrs.axes, 0, true);
  const Value scale = w.node(Op::rsqrt, {w.add(m.variance, w.scalar(w.attrs.eps))});
  if (!m.residual.valid()) return affine(w, w.mul(m.deviation, scale));
  const Value shift = w.node(Op::neg, {w.mul(m.residual, scale)});  // a product and a sum: an element costs one fma
  return affine(w, w.add(w.mul(m.deviation, scale), shift));
}

Value rms_norm(Writer& w) {
  const Value x = w.args[0];
  const Value squares = w.reduce(Op::sum, w.mul(x, x), w.attrs.axes, true);
  const Value mean_square = w.node(Op::div, {squares, w.count(w.shape, w.attrs.axes)});
  const Value scale = w.node(Op::rsqrt, {w.add(mean_square, w.scalar(w.attrs.eps))});
  return affine(w, w.mul(x, scale));
}

// scale / √(var + eps) is one number a channel, so an element costs a subtraction and one multiply-add.
Value batch_norm(Writer& w) {
  const size_t axis = size_t(w.attrs.axis);
  const Value scale = w.per_channel(w.args[1], axis), bias = w.per_channel(w.args[2], axis);
  const Value mean = w.per_channel(w.args[3], axis), variance = w.per_channel(w.args[4], axis);
  const Value factor = w.mul(w.node(Op::rsqrt, {w.add(variance, w.scalar(w.attrs.eps))}), scale);
  return w.add(w.mul(w.sub(w.args[0], mean), factor), bias);
}

// [N,C,...] as [N,G,rest]: channels of a group and all later axes are neighbours, so one axis holds them. With a scale its product
// with 1 / √(var + eps) is one number a channel, as in batch_norm.
Value group_norm(Writer& w) {
  const Dim groups(w.attrs.groups), channels = *exact_quotient(w.shape[1], groups);  // infer has checked it
  Dim rest = channels;
  for (size_t k = 2; k < w.shape.size(); k++) rest = rest * w.shape[k];
  const Value grouped = w.reshape(w.args[0], {w.shape[0], groups, rest});
  if (!grouped.valid()) return grouped;
  const Writer::Moments m = w.moments(grouped, {2}, 0, true);
  const Value factor = w.node(Op::rsqrt, {w.add(m.variance, w.scalar(w.attrs.eps))});
  const Value deviation = m.residual.valid() ? w.sub(m.deviation, m.residual) : m.deviation;
  if (w.args.size() == 1) return w.reshape(w.mul(deviation, factor), w.shape);
  Attrs each;
  each.shape = {w.shape[0], groups, channels};
  Shape per_channel(w.shape.size(), Dim(1));
  per_channel[0] = w.shape[0], per_channel[1] = w.shape[1];
  const Value spread = w.reshape(w.b.add(Op::broadcast, {factor}, std::move(each)), std::move(per_channel));
  Value y = w.mul(w.reshape(deviation, w.shape), w.mul(spread, w.per_channel(w.args[1], 1)));
  return w.args.size() > 2 ? w.add(y, w.per_channel(w.args[2], 1)) : y;
}

Value norm_l1(Writer& w) { return w.reduce(Op::sum, w.node(Op::abs, {w.args[0]}), w.attrs.axes, w.attrs.keep); }

Value norm_l2(Writer& w) {
  const Value squares = w.reduce(Op::sum, w.mul(w.args[0], w.args[0]), w.attrs.axes, w.attrs.keep);
  return w.node(Op::sqrt, {squares});
}

Value split(Writer& w) {
  const size_t axis = size_t(w.attrs.axis);
  const Dim part = w.result.shape[axis];
  Attrs a;
  a.start.assign(w.shape.size(), Dim(0));
  a.stop = w.shape;
  a.step.assign(w.shape.size(), 1);
  a.start[axis] = part * Dim(w.attrs.index);
  a.stop[axis] = part * Dim(w.attrs.index + 1);
  return w.b.add(Op::slice, {w.args[0]}, std::move(a));
}

Value write(Writer& w) {
  switch (w.op) {
    case Op::mean: return mean(w);
    case Op::var: return var(w);
    case Op::softmax: return softmax(w);
    case Op::log_softmax: return log_softmax(w);
    case Op::logsumexp: return logsumexp(w);
    case Op::layer_norm: return layer_norm(w);
    case Op::rms_norm: return rms_norm(w);
    case Op::batch_norm: return batch_norm(w);
    case Op::group_norm: return group_norm(w);
    case Op::norm_l1: return norm_l1(w);
    case Op::norm_l2: return norm_l2(w);
    case Op::split: return split(w);
    default: break;  // every other op is a primitive
  }
  w.b.fail(internal_error("no decomposition of " + std::string(name(w.op))));
  return {};
}

/// f64 when an operand is; f32 for other floats; integers and bool as they are.
DType interior_type(std::span<const Type> types) {
  if (!is_float(types[0].dtype)) return types[0].dtype;
  const bool wide = std::any_of(types.begin(), types.end(), [](const Type& t) { return t.dtype == DType::f64; });
  return wide ? DType::f64 : DType::f32;
}

}  // namespace

Value decompose(GraphBuilder& b, Op op, std::span<const Value> args, const Attrs& attrs) {
  std::vector<Type> types;
  for (Value arg : args) {
    if (!arg.valid()) return {};
    types.push_back(b.type(arg));
  }
  Writer w{b, op, attrs, {}, types[0].dtype, DType::f32, {}, {}};
  const Result<Type> result = infer(op, types, w.attrs);
  if (!result) {
    b.fail(result.error());
    return {};
  }
  w.result = *result;
  w.shape = types[0].shape;
  w.compute = op == Op::split ? types[0].dtype : interior_type(types);
  for (Value arg : args) w.args.push_back(b.cast(arg, w.compute));
  try {
    const Value value = write(w);
    return value.valid() ? b.cast(value, w.result.dtype) : value;
  } catch (const std::overflow_error&) {  // the merged axes of a group_norm on f32[0,8,2^40,2^40]
    b.fail(input_error(std::string(name(op)) + ": the number of elements of a group does not fit 63 bits"));
    return {};
  }
}

Result<Graph> decompose(const Graph& graph) {
  GraphBuilder b(graph.name());
  return rebuild(graph, b, [&](NodeId id, std::vector<Value> args) {
    const Node& node = graph.node(id);
    if (is_composite(node.op)) return decompose(b, node.op, args, *node.attrs);
    return b.add(node.op, std::move(args), *node.attrs);
  });
}

}  // namespace fusec
