// What import functions lean on: operands, attributes, small builders.

#include "lib/import/onnx_call.h"

#include <algorithm>
#include <cstring>

namespace fusec::onnx {

Tensor int_tensor(const std::vector<int64_t>& values, bool scalar) {
  Tensor out{DType::i64, {}, std::vector<std::byte>(values.size() * 8)};
  if (!scalar) out.extents = {static_cast<int64_t>(values.size())};
  if (!values.empty()) std::memcpy(out.data.data(), values.data(), out.data.size());
  return out;
}

std::optional<std::vector<int64_t>> int_values(const Tensor& tensor) {
  std::vector<int64_t> out(static_cast<size_t>(tensor.elements()));
  if (tensor.dtype == DType::i64) {
    if (!out.empty()) std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
    return out;
  }
  if (tensor.dtype != DType::i32) return std::nullopt;
  for (size_t i = 0; i < out.size(); ++i) {
    int32_t v;
    std::memcpy(&v, tensor.data.data() + 4 * i, 4);
    out[i] = v;
  }
  return out;
}

std::optional<std::vector<Dim>> dims_of(const Item& item) {
  if (item.dims) return *item.dims;
  if (!item.known || item.known->extents.size() > 1) return std::nullopt;
  const std::optional<std::vector<int64_t>> values = int_values(*item.known);
  return values ? std::optional(std::vector<Dim>(values->begin(), values->end())) : std::nullopt;
}

// --- operands
// ---------------------------------------------------------------------------------------------------------

Value value_of(GraphBuilder& b, Item& item) {
  if (item.value.valid()) return item.value;
  if (item.known) return item.value = b.constant(*item.known);
  if (!item.dims) return {};  // of a node that failed
  // Sizes as data: one leaf a dim, joined to a vector.
  std::vector<Value> parts;
  for (const Dim& d : *item.dims) {
    const Value part =
        d.is_constant() ? b.constant(int_tensor({d.constant()}, true)) : b.add(Op::size, {}, {.shape = {d}});
    parts.push_back(item.dims_scalar ? part : b.add(Op::reshape, {part}, {.shape = {1}}));
  }
  if (parts.empty()) parts.push_back(b.constant(int_tensor({})));
  const Value all = parts.size() == 1 ? parts[0] : b.add(Op::concat, parts, {.axis = 0});
  return item.value = item.dims_type == DType::i64 ? all : b.cast(all, item.dims_type);
}

Value Call::in(size_t i) {
  if (has(i)) return value_of(b, *inputs_[i]);
  fail("input " + std::to_string(i) + " is missing");
  return {};
}

const Tensor* Call::known(size_t i) {
  if (!has(i)) {
    fail("input " + std::to_string(i) + " is missing");
    return nullptr;
  }
  if (inputs_[i]->known) return inputs_[i]->known.get();
  if (!needed_) needed_ = i;
  fail("input " + std::to_string(i) + ", " + quote(node.inputs[i]) + ", has to be known when the graph is built");
  return nullptr;
}

std::optional<std::vector<int64_t>> Call::ints(size_t i) {
  const Tensor* tensor = known(i);
  if (!tensor) return std::nullopt;
  std::optional<std::vector<int64_t>> out = int_values(*tensor);
  if (!out)
    fail("input " + std::to_string(i) + ", " + quote(node.inputs[i]) + ": i64 or i32 expected, not " +
         std::string(name(tensor->dtype)));
  return out;
}

std::optional<std::vector<Dim>> Call::dims(size_t i) {
  if (has(i))
    if (std::optional<std::vector<Dim>> dims = dims_of(item(i))) return dims;
  const std::optional<std::vector<int64_t>> numbers = ints(i);
  if (!numbers) return std::nullopt;
  return std::vector<Dim>(numbers->begin(), numbers->end());
}

std::optional<int64_t> Call::integer(size_t i) {
  const std::optional<std::vector<int64_t>> all = ints(i);
  if (!all) return std::nullopt;
  if (all->size() == 1) return all->front();
  fail("input " + std::to_string(i) + ", " + quote(node.inputs[i]) + ": one number expected, not " +
       std::to_string(all->size()));
  return std::nullopt;
}

// --- attributes
// -------------------------------------------------------------------------------------------------------

namespace {
std::string kind_name(int32_t kind) {
  constexpr std::string_view kNames[] = {"undefined", "FLOAT",  "INT",  "STRING", "TENSOR",
                                         "GRAPH",     "FLOATS", "INTS", "STRINGS"};
  return kind >= 0 && static_cast<size_t>(kind) < std::size(kNames) ? std::string(kNames[kind])
                                                                    : "type " + std::to_string(kind);
}

/// The attribute, when it is there and of that kind.
const Attribute* of_kind(Call& c, std::string_view name, Attribute::Kind kind) {
  const Attribute* a = c.attribute(name);
  if (!a || a->kind == kind) return a;
  c.fail("attribute " + std::string(name) + " is of type " + kind_name(a->kind) + ", not " + kind_name(kind));
  return nullptr;
}
}  // namespace

const Attribute* Call::attribute(std::string_view name) const {
  for (const Attribute& a : node.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

int64_t Call::i(std::string_view name, int64_t absent) {
  const Attribute* a = of_kind(*this, name, Attribute::integer);
  return a ? a->i : absent;
}
double Call::f(std::string_view name, double absent) {
  const Attribute* a = of_kind(*this, name, Attribute::real);
  return a ? a->f : absent;
}
std::string_view Call::s(std::string_view name, std::string_view absent) {
  const Attribute* a = of_kind(*this, name, Attribute::string);
  return a ? a->s : absent;
}
std::optional<std::vector<int64_t>> Call::list(std::string_view name) {
  const Attribute* a = of_kind(*this, name, Attribute::integers);
  return a ? std::optional(a->ints) : std::nullopt;
}
int64_t Call::required(std::string_view name) {
  if (!given(name)) fail("attribute " + std::string(name) + " is missing");
  return i(name, 0);
}

// --- building
// ---------------------------------------------------------------------------------------------------------

const Type& Call::type(Value v) const {
  static const Type kNone;
  return v.valid() ? b.type(v) : kNone;
}

Value Call::reshape(Value x, Shape to) {
  return x.valid() && shape(x) == to ? x : add(Op::reshape, {x}, {.shape = std::move(to)});
}
Value Call::broadcast(Value x, Shape to) {
  return x.valid() && shape(x) == to ? x : add(Op::broadcast, {x}, {.shape = std::move(to)});
}
Value Call::transpose(Value x, std::vector<int64_t> perm) { return add(Op::transpose, {x}, {.perm = std::move(perm)}); }

Value Call::reduce(Op op, Value x, std::vector<int64_t> axes, bool keep) {
  return add(op, {x}, {.axes = std::move(axes), .keep = keep});
}

int64_t Call::axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  fail("axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  return 0;
}

std::vector<int64_t> Call::axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& a : axes) a = axis(a, rank);
  std::sort(axes.begin(), axes.end());
  if (!failed() && std::adjacent_find(axes.begin(), axes.end()) != axes.end()) fail("an axis is given twice");
  return axes;
}

int64_t Call::number(const Dim& dim, std::string_view what) {
  if (dim.is_constant()) return dim.constant();
  fail(std::string(what) + " is " + dim.text() + ": it has to be a number here");
  return 1;
}

// --- results
// ----------------------------------------------------------------------------------------------------------

void Call::out(Value v, size_t k) {
  if (k < outputs.size()) outputs[k].value = v;
}
void Call::out_narrow(Value v, int32_t data_type) {
  out(v);
  if (!outputs.empty()) outputs[0].narrow = data_type;
}
void Call::out(Tensor tensor) {
  if (!outputs.empty()) outputs[0].known = std::make_shared<const Tensor>(std::move(tensor));
}
void Call::out(std::vector<Dim> dims, bool scalar) {
  if (outputs.empty()) return;
  std::vector<int64_t> numbers;
  for (const Dim& d : dims)
    if (d.is_constant()) numbers.push_back(d.constant());
  if (numbers.size() == dims.size()) return out(int_tensor(numbers, scalar));
  outputs[0].dims = std::make_shared<const std::vector<Dim>>(std::move(dims));
  outputs[0].dims_scalar = scalar;
}

}  // namespace fusec::onnx
