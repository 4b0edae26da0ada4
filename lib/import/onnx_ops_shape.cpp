// Shapes as values: Shape and Size, and the arithmetic that exporters do with them before a Reshape or an Expand.
//
//   Shape(x: f32[N,4]) = [N, 4];  Gather(·, 0) = N;  Mul(N, 4) = 4*N;  Concat(·, 4) = [4*N, 4]
//
// Such values are lists of dims, symbolic or not; nothing is computed when the graph runs. Known numbers need none of
// this: nodes whose operands are all known are evaluated at import (onnx.cpp).

#include <algorithm>

#include "lib/import/onnx_ops.h"
#include "lib/import/onnx_tensor.h"
#include "lib/ir/convert.h"

namespace fusec::onnx {
namespace {

using Dims = std::vector<Dim>;

DType integer_type(const Item& item) { return item.known ? item.known->dtype : item.dims_type; }

/// From i64, which everything here is made as, to i32.
void retype(Item& item) {
  item.dims_type = DType::i32;
  if (!item.known || item.known->dtype != DType::i64) return;
  Tensor narrow{DType::i32, item.known->extents, std::vector<std::byte>(item.known->data.size() / 2)};
  convert(DType::i64, item.known->data.data(), DType::i32, narrow.data.own().data(), static_cast<size_t>(narrow.elements()));
  item.known = std::make_shared<const Tensor>(std::move(narrow));
}

bool is_scalar(const Item& item) { return item.dims ? item.dims_scalar : item.known && item.known->extents.empty(); }

void shape(Call& c) {
  const Value x = c.in(0);
  const Shape& all = c.shape(x);
  const int64_t rank = c.rank(x);
  const auto bound = [&](int64_t k) { return std::clamp(k < 0 ? k + rank : k, int64_t{0}, rank); };
  const int64_t start = bound(c.i("start", 0)), end = bound(c.given("end") ? c.i("end", 0) : rank);
  if (!c.failed()) c.out(start < end ? Dims(all.begin() + start, all.begin() + end) : Dims{}, false);
}

void size(Call& c) {
  const Value x = c.in(0);
  if (!c.failed()) c.out({elements(c.shape(x))}, true);
}

// --- arithmetic on dims. Each returns false when it cannot say the result in dims.
// ----------------------------------------

std::optional<Dim> combine(std::string_view op, const Dim& a, const Dim& b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  return b.is(0) ? std::nullopt : exact_quotient(a, b);
}

bool arithmetic(Call& c, const std::vector<Dims>& in) {
  const size_t n = std::max(in[0].size(), in[1].size());
  if ((in[0].size() != n && in[0].size() != 1) || (in[1].size() != n && in[1].size() != 1)) return false;
  Dims out;
  for (size_t k = 0; k < n; ++k) {
    const auto d = combine(c.node.op, in[0][in[0].size() == 1 ? 0 : k], in[1][in[1].size() == 1 ? 0 : k]);
    if (!d) return false;
    out.push_back(*d);
  }
  c.out(std::move(out), is_scalar(c.item(0)) && is_scalar(c.item(1)));
  return true;
}

bool concat(Call& c, const std::vector<Dims>& in) {
  Dims out;
  for (const Dims& part : in) out.insert(out.end(), part.begin(), part.end());
  c.out(std::move(out), false);
  return true;
}

bool gather(Call& c, const std::vector<Dims>& in) {
  const auto n = static_cast<int64_t>(in[0].size());
  Dims out;
  for (const Dim& d : in[1]) {
    if (!d.is_constant()) return false;
    const int64_t k = d.constant() < 0 ? d.constant() + n : d.constant();
    if (k < 0 || k >= n) {
      c.fail("index " + d.text() + " of " + std::to_string(n) + " dims");
      return true;
    }
    out.push_back(in[0][static_cast<size_t>(k)]);
  }
  c.out(std::move(out), is_scalar(c.item(1)));
  return true;
}

bool slice(Call& c, const std::vector<Dims>& in) {
  if (c.row.since < 10) return false;
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i].size() != 1 || !in[i][0].is_constant()) return false;
  const auto n = static_cast<int64_t>(in[0].size());
  if (in.size() == 5 && !in[4][0].is(1)) return false;
  const auto bound = [&](int64_t k) { return std::clamp(k < 0 ? k + n : k, int64_t{0}, n); };
  const int64_t start = bound(in[1][0].constant()), stop = bound(in[2][0].constant());
  c.out(start < stop ? Dims(in[0].begin() + start, in[0].begin() + stop) : Dims{}, false);
  return true;
}

/// Operators that only change whether it is a scalar or a vector of one.
template <bool to_scalar>
bool reframe(Call& c, const std::vector<Dims>& in) {
  if (in[0].size() != 1) return false;
  c.out(in[0], to_scalar);
  return true;
}

bool same(Call& c, const std::vector<Dims>& in) {
  c.out(in[0], is_scalar(c.item(0)));
  return true;
}

/// To i32 too, as exporters of TensorFlow and PaddlePaddle do: no sensible size leaves it.
bool cast(Call& c, const std::vector<Dims>& in) {
  const int64_t to = c.i("to", 0);
  return (to == data_type_of(DType::i64) || to == data_type_of(DType::i32)) && same(c, in);
}

bool reshape(Call& c, const std::vector<Dims>& in) {
  if (in[1].size() > 1) return false;
  if (in[1].size() == 1 && !in[1][0].is(-1) && !in[1][0].is(static_cast<int64_t>(in[0].size()))) return false;
  if (in[1].empty() && in[0].size() != 1) return false;
  c.out(in[0], in[1].empty());
  return true;
}

bool product(Call& c, const std::vector<Dims>& in) {
  Dim all = 1;
  for (const Dim& d : in[0]) all = all * d;
  c.out({all}, c.i("keepdims", 1) == 0);
  return true;
}

/// Sizes are never negative, so a symbol differs from every negative number: exporters compare with -1.
bool equal(Call& c, const std::vector<Dims>& in) {
  const size_t n = in[0].size();
  if (in[1].size() != n && in[1].size() != 1) return false;
  Tensor out{DType::boolean, {}, {}};
  if (!is_scalar(c.item(0))) out.extents = {static_cast<int64_t>(n)};
  for (size_t k = 0; k < n; ++k) {
    const Dim &a = in[0][k], &b = in[1][in[1].size() == 1 ? 0 : k];
    const bool decided = (a.is_constant() && b.is_constant()) || a == b || (b.is_constant() && b.constant() < 0);
    if (!decided) return false;
    out.data.own().push_back(std::byte(a == b));
  }
  c.out(std::move(out));
  return true;
}

bool where(Call& c) {
  if (c.size() != 3 || !c.has(0) || !c.has(1) || !c.has(2)) return false;
  const auto yes = dims_of(c.item(1)), no = dims_of(c.item(2));
  const Tensor* condition = c.item(0).known.get();
  if (!yes || !no || !condition || condition->dtype != DType::boolean || yes->size() != no->size()) return false;
  if (condition->data.size() != yes->size()) return false;
  Dims out;
  for (size_t k = 0; k < yes->size(); ++k) out.push_back(condition->data[k] != std::byte{0} ? (*yes)[k] : (*no)[k]);
  c.out(std::move(out), is_scalar(c.item(1)));
  return true;
}

struct DimsRow {
  std::string_view op;
  bool (*compute)(Call&, const std::vector<Dims>&);
  bool one_type = false;  // all operands have it
};
const DimsRow kDimsRows[] = {
    {"Add", arithmetic, true}, {"Sub", arithmetic, true}, {"Mul", arithmetic, true},    {"Div", arithmetic, true}, {"Concat", concat, true},
    {"Gather", gather},        {"Slice", slice},          {"Unsqueeze", reframe<false>}, {"Squeeze", reframe<true>}, {"Cast", cast},
    {"Identity", same},        {"Reshape", reshape},      {"ReduceProd", product},       {"Equal", equal, true},
};

const OpRow kRows[] = {
    //  operator  since  inputs  out  attributes     import
    {"Shape",        1,  1, 1,    1,  "",            shape, Narrow::handle},
    {"Shape",       15,  1, 1,    1,  "end start",   shape, Narrow::handle},
    {"Size",         1,  1, 1,    1,  "",            size, Narrow::handle},
};

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

bool import_dims(Call& c) {
  bool symbolic = false;
  for (size_t i = 0; i < c.size(); ++i) symbolic |= c.has(i) && c.item(i).dims;
  if (!symbolic) return false;
  if (c.node.op == "Where") {
    if (!where(c)) return false;
    if (integer_type(c.item(1)) == DType::i32 && !c.outputs.empty()) retype(c.outputs[0]);
    return true;
  }
  const auto row =
      std::find_if(std::begin(kDimsRows), std::end(kDimsRows), [&](const DimsRow& r) { return r.op == c.node.op; });
  if (row == std::end(kDimsRows)) return false;
  std::vector<Dims> in;
  for (size_t i = 0; i < c.size(); ++i) {
    const auto dims = c.has(i) ? dims_of(c.item(i)) : std::nullopt;
    if (!dims || (row->one_type && integer_type(c.item(i)) != integer_type(c.item(0)))) return false;
    in.push_back(*dims);
  }
  if (!row->compute(c, in)) return false;
  const DType type = c.node.op == "Cast" ? *dtype_of(static_cast<int32_t>(c.i("to", 0))) : integer_type(c.item(0));
  if (type == DType::i32 && !c.outputs.empty()) retype(c.outputs[0]);
  return true;
}

}  // namespace fusec::onnx
