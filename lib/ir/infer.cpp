// The type rules that the cards name, and the normal form of attributes.
//
//   mul: f32[N,4] and f32[4]       → f32[N,4]     aligned right; only a constant 1 repeats, a symbol never does
//   sum {axes=[-1]}: f32[N,4]      → f32[N]       and axes becomes [1]
//
// An error names the op, the types and the axis: "mul: f32[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3
// on the right".

#include <algorithm>
#include <stdexcept>

#include "fusec/graph.h"
#include "lib/ir/convert.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

/// What every rule sees. A rule that fails returns an Error whose message lacks only the op's name.
struct Call {
  Op op;
  std::span<const Type> args;
  Attrs& attrs;

  const Type& x() const { return args[0]; }
  size_t rank() const { return args[0].shape.size(); }
};

using Types = Result<Type>;

Error complain(std::string message) { return input_error(std::move(message)); }
std::string number(int64_t n) { return std::to_string(n); }

std::string_view words(Domain domain) {
  switch (domain) {
    case Domain::any: return "of any type";
    case Domain::numbers: return "a number";
    case Domain::floats: return "a float";
    case Domain::integers: return "an integer";
    case Domain::bits: return "a bool or an integer";
    case Domain::boolean: return "a bool";
  }
  return "";
}

Status check_domain(const Call& call, const Type& type) {
  const Domain domain = info(call.op).domain;
  if (accepts(domain, type.dtype)) return Done{};
  std::string message = "takes " + std::string(words(domain)) + ", not " + text(type);
  if (type.dtype == DType::boolean && is_elementwise(call.op)) message += ": and, or, xor, not and select are the ops of bool";
  return complain(message);
}

/// "axis -1": into 0 … rank-1.
Status normalise_axis(int64_t& axis, const Type& type) {
  const auto rank = static_cast<int64_t>(type.shape.size());
  if (axis >= -rank && axis < rank) {
    if (axis < 0) axis += rank;
    return Done{};
  }
  const std::string has = rank == 0 ? "no axes" : rank == 1 ? "only axis 0" : "axes 0 to " + number(rank - 1);
  return complain("axis " + number(axis) + " is out of range: " + text(type) + " has " + has);
}

/// None means all; ascending; twice is an error.
Status normalise_axes(std::vector<int64_t>& axes, const Type& type) {
  if (axes.empty())
    for (size_t i = 0; i < type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : axes)
    if (auto fits = normalise_axis(axis, type); !fits) return fits;
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) return complain("axis " + number(*twice) + " of " + text(type) + " is given twice");
  return Done{};
}

bool contains(const std::vector<int64_t>& axes, size_t axis) {
  return std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis));
}

/// One number an axis, or none at all.
Status check_count(std::string_view what, size_t count, size_t rank) {
  if (count == rank) return Done{};
  return complain(std::string(what) + " has " + number(static_cast<int64_t>(count)) + " entries for " +
                  number(static_cast<int64_t>(rank)) + " axes");
}

/// Shape of an elementwise result, operand by operand.
Result<Shape> broadcast_all(std::span<const Type> types) {
  Shape shape = types[0].shape;
  for (size_t i = 1; i < types.size(); ++i) {
    size_t axis = 0;
    auto both = broadcast(shape, types[i].shape, &axis);
    if (both) {
      shape = std::move(*both);
      continue;
    }
    const size_t rank = std::max(shape.size(), types[i].shape.size());
    const Dim left = shape[axis + shape.size() - rank], right = types[i].shape[axis + types[i].shape.size() - rank];
    const Type partial{types[0].dtype, shape};
    return complain(text(i == 1 ? types[0] : partial) + " and " + text(types[i]) + " do not broadcast: axis " +
                    number(static_cast<int64_t>(axis)) + " is " + left.text() + " on the left and " + right.text() + " on the right");
  }
  return shape;
}

Status check_same(std::span<const Type> types) {
  for (const Type& t : types)
    if (t.dtype != types[0].dtype)
      return complain(text(types[0]) + " and " + text(t) + " differ in element type: cast one of them");
  return Done{};
}

Types infer_elementwise(const Call& call, std::span<const Type> data) {
  if (auto fits = check_domain(call, data[0]); !fits) return fits.error();
  if (auto fits = check_same(data); !fits) return fits.error();
  auto shape = broadcast_all(call.args);
  if (!shape) return shape.error();
  return Type{data[0].dtype, std::move(*shape)};
}

Types infer_select(const Call& call) {
  if (call.x().dtype != DType::boolean) return complain("the condition is " + text(call.x()) + ", not bool");
  return infer_elementwise(call, call.args.subspan(1));
}

Types infer_bitcast(const Call& call) {
  const DType from = call.x().dtype, to = *call.attrs.to;
  if (from == DType::boolean || to == DType::boolean) return complain("a bool is no pattern of bits: cast it");
  if (bytes(from) != bytes(to))
    return complain(std::string(name(from)) + " has " + number(static_cast<int64_t>(8 * bytes(from))) + " bits and " +
                    std::string(name(to)) + " has " + number(static_cast<int64_t>(8 * bytes(to))));
  return Type{to, call.x().shape};
}

Types infer_reduce(const Call& call) {
  if (auto fits = check_domain(call, call.x()); !fits) return fits.error();
  if (auto fits = normalise_axes(call.attrs.axes, call.x()); !fits) return fits.error();
  if (call.attrs.ddof < 0) return complain("ddof is " + number(call.attrs.ddof) + ": it cannot be negative");
  Type result{call.x().dtype, {}};
  for (size_t i = 0; i < call.rank(); ++i) {
    if (!contains(call.attrs.axes, i))
      result.shape.push_back(call.x().shape[i]);
    else if (call.attrs.keep)
      result.shape.push_back(1);
  }
  return result;
}

Types infer_index(const Call& call) {
  auto result = infer_reduce(call);
  if (!result) return result;
  const DType to = *call.attrs.to;
  if (!is_integer(to) || bytes(to) < 4)
    return complain("an index of type " + std::string(name(to)) + ": i32, i64, u32 and u64 hold one");
  for (int64_t axis : call.attrs.axes)
    if (call.x().shape[static_cast<size_t>(axis)].is(0))
      return complain("axis " + number(axis) + " of " + text(call.x()) + " is empty, so there is no index to give");
  result->dtype = to;
  return result;
}

Types infer_broadcast(const Call& call) {
  const Shape& from = call.x().shape;
  const Shape& to = call.attrs.shape;
  if (to.size() < from.size()) return complain(text(call.x()) + " has more axes than " + text(to));
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t axis = to.size() - from.size() + i;
    if (from[i] != to[axis] && !from[i].is(1))
      return complain(text(call.x()) + " does not broadcast to " + text(to) + ": axis " + number(static_cast<int64_t>(axis)) +
                      " is " + from[i].text() + " and shall be " + to[axis].text());
  }
  return Type{call.x().dtype, to};
}

Types infer_reshape(const Call& call) {
  Shape& to = call.attrs.shape;
  const Dim total = elements(call.x().shape);
  const auto open = std::find(to.begin(), to.end(), Dim(-1));
  if (open != to.end()) {
    if (std::find(open + 1, to.end(), Dim(-1)) != to.end()) return complain(text(to) + " leaves more than one dim open");
    *open = 1;
    const Dim known = elements(to);
    const auto rest = exact_quotient(total, known);
    if (!rest) {
      *open = -1;
      const std::string why = known.is(0) ? "any number fits" : total.text() + " is no multiple of " + known.text();
      return complain(text(call.x()) + " to " + text(to) + ": the dim -1 cannot be solved, " + why);
    }
    *open = *rest;
  }
  if (elements(to) != total)
    return complain(text(call.x()) + " to " + text(to) + ": " + total.text() + " elements do not fill " + elements(to).text());
  return Type{call.x().dtype, to};
}

Types infer_transpose(const Call& call) {
  std::vector<int64_t>& perm = call.attrs.perm;
  if (perm.empty())
    for (size_t i = call.rank(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  if (auto fits = check_count("perm", perm.size(), call.rank()); !fits) return fits.error();
  Type result{call.x().dtype, {}};
  std::vector<bool> seen(call.rank());
  for (int64_t& axis : perm) {
    if (auto fits = normalise_axis(axis, call.x()); !fits) return fits.error();
    const auto k = static_cast<size_t>(axis);
    if (seen[k]) return complain("perm: axis " + number(axis) + " of " + text(call.x()) + " is given twice");
    seen[k] = true;
    result.shape.push_back(call.x().shape[k]);
  }
  return result;
}

/// start, stop of one axis as numpy reads them: negative counts from the end, too long is cut. Where the dim is a symbol only
/// its own call can tell whether constants fit (bind checks them); a stop near 2^63 stands for "to the end".
Result<Dim> slice_axis(const Dim& dim, Dim& start, Dim& stop, int64_t step, size_t axis) {
  const std::string where = "axis " + number(static_cast<int64_t>(axis));
  if (step <= 0) return complain(where + ": step is " + number(step) + ": only positive steps are slices (see reverse)");
  const auto normalise = [&](Dim& bound) {
    if (!bound.is_constant()) return;
    const int64_t n = bound.constant();
    if (dim.is_constant()) {
      const int64_t from_end = n < 0 ? (n < -dim.constant() ? 0 : n + dim.constant()) : n;
      bound = std::min(from_end, dim.constant());
    } else if (n < 0) {
      bound = n <= INT64_MIN / 2 ? Dim(0) : dim + n;
    } else if (n >= INT64_MAX / 2) {
      bound = dim;
    }
  };
  normalise(start);
  normalise(stop);
  Dim length = stop - start;
  if (length.is_constant()) {
    if (length.constant() <= 0) {
      stop = start;  // one form for all empty slices
      return Dim(0);
    }
    return Dim((length.constant() - 1) / step + 1);
  }
  if (step == 1) return length;
  const auto steps = exact_quotient(length, step);
  if (steps) return *steps;
  return complain(where + ": " + length.text() + " elements in steps of " + number(step) + " are no whole number of steps");
}

Types infer_slice(const Call& call) {
  Attrs& a = call.attrs;
  const size_t rank = call.rank();
  if (a.start.empty()) a.start.assign(rank, 0);
  if (a.stop.empty()) a.stop = call.x().shape;
  if (a.step.empty()) a.step.assign(rank, 1);
  if (auto fits = check_count("start", a.start.size(), rank); !fits) return fits.error();
  if (auto fits = check_count("stop", a.stop.size(), rank); !fits) return fits.error();
  if (auto fits = check_count("step", a.step.size(), rank); !fits) return fits.error();
  Type result{call.x().dtype, {}};
  for (size_t i = 0; i < rank; ++i) {
    auto length = slice_axis(call.x().shape[i], a.start[i], a.stop[i], a.step[i], i);
    if (!length) return length.error();
    if (length->is(0) || length->is(1)) a.step[i] = 1;
    if (length->is(1)) a.stop[i] = a.start[i] + 1;
    result.shape.push_back(*length);
  }
  return result;
}

Types infer_concat(const Call& call) {
  if (auto fits = check_same(call.args); !fits) return fits.error();
  if (auto fits = normalise_axis(call.attrs.axis, call.x()); !fits) return fits.error();
  const auto axis = static_cast<size_t>(call.attrs.axis);
  Type result = call.x();
  for (const Type& t : call.args.subspan(1)) {
    if (t.shape.size() != call.rank()) return complain(text(call.x()) + " and " + text(t) + " differ in rank");
    for (size_t i = 0; i < call.rank(); ++i) {
      if (i == axis)
        result.shape[i] = result.shape[i] + t.shape[i];
      else if (!(t.shape[i] == call.x().shape[i]))
        return complain(text(call.x()) + " and " + text(t) + " differ at axis " + number(static_cast<int64_t>(i)) +
                        ", along which they are not joined");
    }
  }
  return result;
}

Types infer_pad(const Call& call) {
  Attrs& a = call.attrs;
  if (a.low.empty()) a.low.assign(call.rank(), 0);
  if (a.high.empty()) a.high.assign(call.rank(), 0);
  if (auto fits = check_count("low", a.low.size(), call.rank()); !fits) return fits.error();
  if (auto fits = check_count("high", a.high.size(), call.rank()); !fits) return fits.error();
  Type result = call.x();
  for (size_t i = 0; i < call.rank(); ++i) {
    for (const Dim& d : {a.low[i], a.high[i]})
      if (d.is_constant() && d.constant() < 0)
        return complain("axis " + number(static_cast<int64_t>(i)) + ": " + d.text() + " elements: a pad cannot be negative");
    result.shape[i] = a.low[i] + result.shape[i] + a.high[i];
  }
  if (!a.value) a.value = std::make_shared<const Tensor>(*scalar_tensor(call.x().dtype, 0));
  if (a.value->dtype != call.x().dtype || !a.value->extents.empty() || a.value->data.size() != bytes(call.x().dtype))
    return complain("the value is no scalar of type " + std::string(name(call.x().dtype)));
  return result;
}

Types infer_reverse(const Call& call) {
  if (auto fits = normalise_axes(call.attrs.axes, call.x()); !fits) return fits.error();
  return call.x();
}

/// [N,4] by indices [K,1] along axis 0 gives [K,4]: along the axis as many as there are indices, else as a broadcast.
Types infer_gather(const Call& call) {
  Attrs& a = call.attrs;
  const Type& index = call.args[1];
  if (auto fits = normalise_axis(a.axis, call.x()); !fits) return fits.error();
  if (!is_integer(index.dtype) || index.dtype == DType::u64)
    return complain("indices are integers (u64 is none of them), not " + text(index));
  if (index.shape.size() != call.rank()) return complain(text(call.x()) + " and indices " + text(index) + " differ in rank");
  const auto axis = static_cast<size_t>(a.axis);
  Shape data = call.x().shape, by = index.shape;
  data[axis] = by[axis];
  size_t at = 0;
  const auto both = broadcast(data, by, &at);
  if (!both) return complain(text(call.x()) + " and indices " + text(index) + " do not broadcast at axis " + number(static_cast<int64_t>(at)));
  return Type{call.x().dtype, *both};
}

Types infer_scan(const Call& call) {
  if (auto fits = check_domain(call, call.x()); !fits) return fits.error();
  if (auto fits = normalise_axis(call.attrs.axis, call.x()); !fits) return fits.error();
  return call.x();
}

Types infer_split(const Call& call) {
  Attrs& a = call.attrs;
  if (auto fits = normalise_axis(a.axis, call.x()); !fits) return fits.error();
  if (a.parts <= 0) return complain("into " + number(a.parts) + " parts");
  if (a.index < 0 || a.index >= a.parts)
    return complain("part " + number(a.index) + " of " + number(a.parts) + ": parts count from 0");
  Type result = call.x();
  Dim& dim = result.shape[static_cast<size_t>(a.axis)];
  const auto part = exact_quotient(dim, a.parts);
  if (!part)
    return complain("axis " + number(a.axis) + " of " + text(call.x()) + " has no " + number(a.parts) + " equal parts");
  dim = *part;
  return result;
}

Types infer_shape(const Call& call) {
  switch (call.op) {
    case Op::broadcast: return infer_broadcast(call);
    case Op::reshape: return infer_reshape(call);
    case Op::transpose: return infer_transpose(call);
    case Op::slice: return infer_slice(call);
    case Op::concat: return infer_concat(call);
    case Op::pad: return infer_pad(call);
    case Op::reverse: return infer_reverse(call);
    case Op::gather: return infer_gather(call);
    case Op::split: return infer_split(call);
    case Op::cumsum: case Op::cumprod: case Op::cummin: case Op::cummax: return infer_scan(call);
    default: return internal_error("no rule for its shape");
  }
}

/// Composites that normalise. Statistics, scale and bias may be of another float type than x (ONNX allows it): all arithmetic
/// is in the compute type anyway.
Types infer_keep(const Call& call) {
  if (auto fits = check_domain(call, call.x()); !fits) return fits.error();
  Attrs& a = call.attrs;
  for (const Type& t : call.args)
    if (!is_float(t.dtype)) return complain("takes floats, not " + text(t));
  const auto channels = [&](size_t axis) -> Status {
    for (const Type& t : call.args.subspan(1))
      if (t.shape.size() != 1 || !(t.shape[0] == call.x().shape[axis]))
        return complain(text(t) + " is not one number for each of the " + call.x().shape[axis].text() + " channels of axis " +
                        number(static_cast<int64_t>(axis)) + " of " + text(call.x()));
    return Done{};
  };
  if (call.op == Op::batch_norm) {
    if (auto fits = normalise_axis(a.axis, call.x()); !fits) return fits.error();
    if (auto fits = channels(static_cast<size_t>(a.axis)); !fits) return fits.error();
  } else if (call.op == Op::group_norm) {
    if (call.rank() < 2) return complain(text(call.x()) + " has no channels at axis 1");
    if (a.groups <= 0 || !exact_quotient(call.x().shape[1], a.groups))
      return complain("axis 1 of " + text(call.x()) + " has no " + number(a.groups) + " equal groups");
    if (auto fits = channels(1); !fits) return fits.error();
  } else {
    if (auto fits = normalise_axes(a.axes, call.x()); !fits) return fits.error();
    for (const Type& t : call.args.subspan(1)) {
      const auto both = broadcast(call.x().shape, t.shape);
      if (!both || *both != call.x().shape) return complain(text(t) + " does not broadcast to " + text(call.x()));
    }
  }
  return call.x();
}

Types infer_leaf(const Call& call) {
  Attrs& a = call.attrs;
  if (call.op == Op::constant) {
    if (!a.value) return complain("has no value");
    Type type{a.value->dtype, {a.value->extents.begin(), a.value->extents.end()}};
    if (auto fits = check_type(type); !fits) return fits.error();
    if (a.value->data.size() / bytes(type.dtype) != static_cast<uint64_t>(a.value->elements()) ||
        a.value->data.size() % bytes(type.dtype) != 0)
      return complain(number(static_cast<int64_t>(a.value->data.size())) + " bytes do not fill " + text(type));
    if (type.dtype == DType::boolean)
      for (std::byte b : a.value->data)
        if (b > std::byte{1}) return complain("a bool is 0 or 1, not " + number(static_cast<int64_t>(b)));
    return type;
  }
  if (call.op == Op::iota) {
    const Type type{*a.to, a.shape};
    if (auto fits = check_domain(call, type); !fits) return fits.error();
    if (auto fits = normalise_axis(a.axis, type); !fits) return fits.error();
    return type;
  }
  if (call.op == Op::size) {
    if (a.shape.size() != 1) return complain("takes one dim, not " + text(a.shape));
    return Type{DType::i64, {}};
  }
  return internal_error("its type comes from the graph's header");
}

Types infer_rule(const Call& call) {
  switch (info(call.op).rule) {
    case Rule::leaf: return infer_leaf(call);
    case Rule::same: return infer_elementwise(call, call.args);
    case Rule::compare:
    case Rule::test: {
      auto type = infer_elementwise(call, call.args);
      if (type) type->dtype = DType::boolean;
      return type;
    }
    case Rule::select: return infer_select(call);
    case Rule::cast: return Type{*call.attrs.to, call.x().shape};
    case Rule::bitcast: return infer_bitcast(call);
    case Rule::reduce: return infer_reduce(call);
    case Rule::index: return infer_index(call);
    case Rule::shape: return infer_shape(call);
    case Rule::keep: return infer_keep(call);
  }
  return internal_error("no such rule");
}

Status check_arity(const Call& call) {
  const OpInfo& card = info(call.op);
  const auto count = static_cast<int>(call.args.size());
  if (card.arity < 0) return count > 0 ? Status(Done{}) : complain("takes at least one operand");
  if (count <= card.arity && count >= card.arity - card.optional_args) return Done{};
  const std::string range = card.optional_args ? number(card.arity - card.optional_args) + " to " : "";
  return complain("takes " + range + number(card.arity) + (card.arity == 1 ? " operand" : " operands") + ", not " + number(count));
}

/// Fields that the card does not list go back to their defaults, so that equal nodes have equal attributes; a type that was not given is.
void keep_listed(const OpInfo& card, Attrs& attrs) {
  std::string_view list = card.attributes;
  Attrs kept;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const std::string_view field = list.substr(0, end);
#define KEEP(f) \
  if (field == #f) kept.f = std::move(attrs.f);
    KEEP(axes) KEEP(perm) KEEP(shape) KEEP(start) KEEP(stop) KEEP(step) KEEP(low) KEEP(high) KEEP(axis) KEEP(groups) KEEP(ddof)
    KEEP(parts) KEEP(index) KEEP(alpha) KEEP(beta) KEEP(eps) KEEP(to) KEEP(keep) KEEP(last) KEEP(value)
    KEEP(exclusive) KEEP(reverse)
#undef KEEP
    if (field == "to" && !kept.to) kept.to = card.rule == Rule::index ? DType::i64 : DType::f32;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  if (card.form != Form::leaf && card.form != Form::view && card.form != Form::scan) kept.relax = attrs.relax;
  attrs = std::move(kept);
}

}  // namespace

Status check_type(const Type& type) {
  if (type.shape.size() > kMaxRank)
    return complain(number(static_cast<int64_t>(type.shape.size())) + " axes: the rank is at most " + number(kMaxRank));
  int64_t product = 1;
  bool empty = false, overflow = false;
  for (const Dim& d : type.shape) {
    if (!d.is_constant()) continue;
    if (d.constant() < 0) return complain(text(type) + ": a dim cannot be negative");
    empty |= d.is(0);
    overflow |= !d.is(0) && __builtin_mul_overflow(product, d.constant(), &product);
  }
  if (overflow && !empty) return complain(text(type) + " has 2^63 elements or more");
  return Done{};
}

Result<Type> infer(Op op, std::span<const Type> args, Attrs& attrs) {
  const OpInfo& card = info(op);
  const auto located = [&](const Error& e) {
    Error named = e;
    named.message = std::string(card.name) + ": " + e.message;
    return named;
  };
  if (card.form == Form::reserved) return located(complain("not supported yet"));
  const Call call{op, args, attrs};
  if (auto fits = check_arity(call); !fits) return located(fits.error());
  keep_listed(card, attrs);
  try {
    auto type = infer_rule(call);
    if (!type) return located(type.error());
    if (auto fits = check_type(*type); !fits) return located(fits.error());
    return type;
  } catch (const std::overflow_error& e) {
    return located(complain(e.what()));
  }
}

}  // namespace fusec
