// Values that come from nothing: constants, ranges, masks.

#include <cmath>
#include <cstring>

#include "lib/import/onnx_narrow.h"
#include "lib/import/onnx_ops.h"
#include "lib/import/onnx_tensor.h"
#include "lib/ir/convert.h"

namespace fusec::onnx {
namespace {

std::optional<Tensor> tensor_attribute(Call& c, std::string_view name) {
  const Attribute* a = c.attribute(name);
  if (!a) return std::nullopt;
  if (a->kind != Attribute::tensor) {
    c.fail("attribute " + std::string(name) + " is no tensor");
    return std::nullopt;
  }
  Result<Tensor> tensor = read_tensor(a->t.message, c.source);
  if (tensor) return std::move(*tensor);
  c.fail("attribute " + std::string(name) + ": " + tensor.error().message);
  return std::nullopt;
}

Tensor float_tensor(const std::vector<float>& values, bool scalar) {
  Tensor out{DType::f32, {}, std::vector<std::byte>(values.size() * 4)};
  if (!scalar) out.extents = {static_cast<int64_t>(values.size())};
  if (!values.empty()) std::memcpy(out.data.data(), values.data(), out.data.size());
  return out;
}

void constant(Call& c) {
  if (c.node.attributes.size() != 1) return c.fail("one attribute expected, the value");
  const Attribute& a = c.node.attributes[0];
  if (a.name == "value") {
    if (std::optional<Tensor> tensor = tensor_attribute(c, "value")) c.out(std::move(*tensor));
    if (narrow_type(a.t.data_type)) c.outputs[0].narrow = a.t.data_type;
  } else if (a.name == "value_int") c.out(int_tensor({c.i(a.name, 0)}, true));
  else if (a.name == "value_ints") c.out(int_tensor(c.list(a.name).value_or(std::vector<int64_t>{})));
  else if (a.name == "value_float") c.out(float_tensor({static_cast<float>(c.f(a.name, 0))}, true));
  else if (a.name == "value_floats" && a.kind == Attribute::reals) c.out(float_tensor(a.floats, false));
  else c.fail("attribute " + quote(a.name) + ": only dense tensors of numbers are supported");
}

void constant_of_shape(Call& c) {
  const auto to = c.dims(0);
  std::optional<Tensor> value = tensor_attribute(c, "value");
  if (!value) value = scalar_tensor(DType::f32, 0);
  if (!to) return;
  if (value->elements() != 1) return c.fail("the value has " + std::to_string(value->elements()) + " elements");
  for (const Dim& d : *to)
    if (d.is_constant() && d.constant() < 0) return c.fail("a negative dim");
  value->extents.clear();
  const Attribute* a = c.attribute("value");
  c.out_narrow(c.broadcast(c.b.constant(std::move(*value)), *to), a && narrow_type(a->t.data_type) ? a->t.data_type : 0);
}

/// A line of indices along `axis` of a shape that is 1 elsewhere.
Value indices(Call& c, size_t rank, int64_t axis, const Dim& n, DType dtype = DType::i64) {
  Shape line(rank, Dim(1));
  line[static_cast<size_t>(axis)] = n;
  return c.add(Op::iota, {}, {.shape = line, .axis = axis, .to = dtype});
}

/// start + i * delta for as many i as stay before the limit; narrow floats are computed in f32.
void range(Call& c) {
  const bool of_dims = c.size() == 3 && dims_of(c.item(0)) && dims_of(c.item(1)) && dims_of(c.item(2));
  if (of_dims && !c.item(1).known) {
    const std::vector<Dim> start = *c.dims(0), limit = *c.dims(1), delta = *c.dims(2);
    if (start.size() != 1 || limit.size() != 1 || delta.size() != 1 || !delta[0].is(1))
      return c.fail("a range over a symbolic size needs a delta of 1");
    return c.out(c.add(Op::add, {indices(c, 1, 0, limit[0] - start[0], c.dtype(c.in(0))), c.reshape(c.in(0), {})}));
  }
  const Tensor *start = c.known(0), *limit = c.known(1), *delta = c.known(2);
  if (!start || !limit || !delta) return;
  const DType dtype = start->dtype;
  if (start->elements() != 1 || limit->elements() != 1 || delta->elements() != 1)
    return c.fail("start, limit and delta are scalars");
  if (limit->dtype != dtype || delta->dtype != dtype) return c.fail("start, limit and delta differ in type");
  double n;
  if (dtype == DType::i64 || dtype == DType::i32) {
    const __int128 from = (*int_values(*start))[0], to = (*int_values(*limit))[0], step = (*int_values(*delta))[0];
    if (step == 0) return c.fail("a delta of 0");
    const __int128 span = step > 0 ? to - from : from - to, size = step > 0 ? step : -step;
    n = span <= 0 ? 0 : static_cast<double>((span + size - 1) / size);
  } else {
    n = std::ceil((element(*limit, 0) - element(*start, 0)) / element(*delta, 0));
    if (std::isnan(n)) return c.fail("start, limit and delta give no number of elements");
  }
  if (n > 1e15) return c.fail("too many elements");
  const Dim count = n <= 0 ? int64_t{0} : static_cast<int64_t>(n);
  const DType wide = is_float(dtype) ? compute_type(dtype) : dtype;
  const auto scalar = [&](size_t i) { return c.cast(c.reshape(c.in(i), {}), wide); };
  const Value steps = c.add(Op::mul, {indices(c, 1, 0, count, wide), scalar(2)});
  c.out(c.cast(c.add(Op::add, {scalar(0), steps}), dtype));
}

void eye_like(Call& c) {
  const Value x = c.in(0);
  if (c.rank(x) != 2) return c.fail(text(c.type(x)) + ": rank 2 expected");
  DType dtype = c.dtype(x);
  if (c.given("dtype")) {
    Result<DType> to = dtype_of(static_cast<int32_t>(c.i("dtype", 0)));
    if (!to) return c.fail(to.error().message);
    dtype = *to;
  }
  const Value row = indices(c, 2, 0, c.shape(x)[0]), column = indices(c, 2, 1, c.shape(x)[1]);
  const Value k = c.b.constant(int_tensor({c.i("k", 0)}, true));
  c.out(c.cast(c.add(Op::eq, {c.add(Op::add, {row, k}), column}), dtype));
}

/// Keeps the upper triangle, column >= row + k, or the lower one, column <= row + k.
void trilu(Call& c) {
  const Value x = c.in(0);
  if (c.rank(x) < 2) return c.fail(text(c.type(x)) + ": rank 2 or more expected");
  const size_t rank = c.shape(x).size();
  const Value k = c.has(1) ? c.reshape(c.in(1), {}) : c.b.constant(int_tensor({0}, true));
  const Value row = c.add(Op::add, {indices(c, 2, 0, c.shape(x)[rank - 2]), k}),
              column = indices(c, 2, 1, c.shape(x)[rank - 1]);
  const Value keep = c.add(c.i("upper", 1) != 0 ? Op::ge : Op::le, {column, row});
  c.out(c.add(Op::select, {keep, x, c.like(x, 0)}));
}

/// A new axis of length `depth` that holds on at the index and off elsewhere; a negative index counts from the end.
void one_hot(Call& c) {
  const Value indices_in = c.in(0), values = c.in(2);
  const Tensor* depth_tensor = c.known(1);
  if (!depth_tensor || c.failed()) return;
  if (depth_tensor->elements() != 1) return c.fail("depth is not one number");
  const double number = element(*depth_tensor, 0);
  if (!(number >= 1 && number < 1e15)) return c.fail("a depth that is no positive number");
  const auto depth = static_cast<int64_t>(number);
  const int64_t axis = c.axis(c.i("axis", -1), c.rank(indices_in) + 1);
  if (c.failed()) return;
  Shape spread = c.shape(indices_in);
  spread.insert(spread.begin() + axis, Dim(1));
  const Value index = c.reshape(c.cast(indices_in, DType::i64), spread);
  const Value from_end = c.add(Op::add, {index, c.b.constant(int_tensor({depth}, true))});
  const Value line = indices(c, spread.size(), axis, depth);
  const Value hit = c.add(Op::or_, {c.add(Op::eq, {index, line}), c.add(Op::eq, {from_end, line})});
  const auto value = [&](int64_t k) {
    return c.reshape(c.add(Op::slice, {values}, {.start = {k}, .stop = {k + 1}, .step = {1}}), {});
  };
  c.out(c.add(Op::select, {hit, value(1), value(0)}));
}

/// a0 - a1 cos(2πi/N) + a2 cos(4πi/N), N being the size or, when not periodic, one less.
void window(Call& c, double a0, double a1, double a2) {
  const auto size = c.integer(0);
  Result<DType> to = dtype_of(static_cast<int32_t>(c.i("output_datatype", 1)));
  if (!to) return c.fail(to.error().message);
  if (!size || c.failed()) return;
  if (*size < 0) return c.fail("a negative size");
  const Value i = indices(c, 1, 0, *size, DType::f32);
  const auto period = static_cast<double>(c.i("periodic", 1) != 0 ? *size : *size - 1);
  const auto wave = [&](double amplitude, double turns) {
    return c.add(Op::mul,
                 {c.like(i, amplitude), c.add(Op::cos, {c.add(Op::mul, {i, c.like(i, turns * 2 * M_PI / period)})})});
  };
  Value w = c.add(Op::sub, {c.like(i, a0), wave(a1, 1)});
  if (a2 != 0) w = c.add(Op::add, {w, wave(a2, 2)});
  c.out(c.cast(w, *to));
}
void hann_window(Call& c) { window(c, 0.5, 0.5, 0); }
void hamming_window(Call& c) { window(c, 25.0 / 46, 21.0 / 46, 0); }
void blackman_window(Call& c) { window(c, 0.42, 0.5, 0.08); }

const OpRow kRows[] = {
    //  operator          since  inputs  out  attributes            import
    {"Constant",             1,  0, 0,    1,  "value",              constant, Narrow::handle},
    {"Constant",            11,  0, 0,    1,  "sparse_value value", constant, Narrow::handle},
    {"Constant",            12,  0, 0,    1,  "sparse_value value value_float value_floats value_int value_ints value_string value_strings", constant, Narrow::handle},
    {"ConstantOfShape",      9,  1, 1,    1,  "value",              constant_of_shape, Narrow::handle},
    {"Range",               11,  3, 3,    1,  "",                   range},
    {"Range",               27,  3, 3,    1,  "stash_type",         range},
    {"EyeLike",              9,  1, 1,    1,  "dtype k",            eye_like},
    {"Trilu",               14,  1, 2,    1,  "upper",              trilu},
    {"HannWindow",          17,  1, 1,    1,  "output_datatype periodic", hann_window},
    {"HammingWindow",       17,  1, 1,    1,  "output_datatype periodic", hamming_window},
    {"BlackmanWindow",      17,  1, 1,    1,  "output_datatype periodic", blackman_window},
    {"OneHot",               9,  3, 3,    1,  "axis",               one_hot},
};

}  // namespace

std::span<const OpRow> constant_rows() { return kRows; }

}  // namespace fusec::onnx
