// MatMul and Gemm: batches of products.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/extern.h"

namespace fusec {

Status each_product(ExternValue a, ExternValue b, const ExternValue& y,
                    const std::function<Status(const Product&, int64_t, int64_t, int64_t)>& multiply) {
  if (a.rank() == 0 || b.rank() == 0) return input_error("a scalar has no rows");
  if (a.rank() == 1) a.extents.insert(a.extents.begin(), 1);
  if (b.rank() == 1) b.extents.push_back(1);
  const int64_t m = a.extents[a.rank() - 2], k = a.extents.back(), n = b.extents.back();
  const int64_t batch_a = a.elements(0, a.rank() - 2), batch_b = b.elements(0, b.rank() - 2);
  if (b.extents[b.rank() - 2] != k)
    return input_error("rows of " + std::to_string(k) + " and columns of " + std::to_string(b.extents[b.rank() - 2]));
  Product p{.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
  if (batch_b == 1) {  // all rows of a at once
    p.m = m * batch_a;
    return y.elements() == p.m * n ? multiply(p, 0, 0, 0) : input_error("a result of " + std::to_string(y.elements()) + " elements");
  }
  // Batches in the result's order; an operand of extent 1 stays where it is.
  const size_t rank = std::max(a.rank(), b.rank()) - 2;
  std::vector<int64_t> at(rank, 0), extents(rank, 1);
  std::vector<int64_t> step_a(rank, 0), step_b(rank, 0);
  for (const auto& [value, step] : {std::pair(&a, &step_a), std::pair(&b, &step_b)}) {
    int64_t stride = value->extents[value->rank() - 2] * value->extents.back();
    for (size_t x = value->rank() - 2; x-- > 0;) {
      const size_t axis = rank - (value->rank() - 2) + x;
      extents[axis] = std::max(extents[axis], value->extents[x]);
      if (value->extents[x] == 0) extents[axis] = 0;
      if (value->extents[x] != 1) (*step)[axis] = stride;
      stride *= value->extents[x];
    }
  }
  int64_t batches = 1;
  for (int64_t e : extents) batches *= e;
  if (y.elements() != batches * m * n) return input_error("a result of " + std::to_string(y.elements()) + " elements");
  int64_t off_a = 0, off_b = 0;
  std::vector<std::pair<int64_t, int64_t>> offsets;
  for (int64_t batch = 0; batch < batches; ++batch) {
    offsets.emplace_back(off_a, off_b);
    for (size_t axis = rank; axis-- > 0;) {
      off_a += step_a[axis], off_b += step_b[axis];
      if (++at[axis] < extents[axis]) break;
      off_a -= step_a[axis] * extents[axis], off_b -= step_b[axis] * extents[axis];
      at[axis] = 0;
    }
  }
  return extern_each(batches, m * n * k / 16, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t batch = begin; batch < end; ++batch) {
      const auto [from_a, from_b] = offsets[static_cast<size_t>(batch)];
      if (Status s = multiply(p, from_a, from_b, batch * m * n); !s) return s;
    }
    return Done{};
  });
}

Status extern_matmul(const ExternCall& call) {
  const float *a = call.in(0).f32(), *b = call.in(1).f32();
  float* y = call.out().f32();
  if (call.in(0).elements() == 0 || call.in(1).elements() == 0) {
    std::fill_n(y, call.out().elements(), 0.0f);
    return Done{};
  }
  return each_product(call.in(0), call.in(1), call.out(), [&](const Product& p, int64_t at_a, int64_t at_b, int64_t at) {
    return product(p, a + at_a, b + at_b, y + at);
  });
}

Status extern_gemm(const ExternCall& call) {
  const ExternValue &a = call.in(0), &b = call.in(1), &y = call.out();
  if (a.rank() != 2 || b.rank() != 2 || y.rank() != 2) return input_error("Gemm's operands have two axes");
  Product p{.transpose_a = call.i("transA", 0) != 0, .transpose_b = call.i("transB", 0) != 0};
  p.m = y.extents[0], p.n = y.extents[1], p.k = a.extents[p.transpose_a ? 0 : 1];
  if (a.extents[p.transpose_a ? 1 : 0] != p.m || b.extents[p.transpose_b ? 0 : 1] != p.n ||
      b.extents[p.transpose_b ? 1 : 0] != p.k)
    return input_error("rows and columns of different lengths");
  p.alpha = call.f("alpha", 1), p.lda = a.extents[1], p.ldb = b.extents[1], p.ldc = p.n;
  if (call.has(2)) {  // [m, n], [n], [m, 1], [1, n] or a scalar, in place of the result
    const ExternValue& c = call.in(2);
    const int64_t columns = c.rank() ? c.extents.back() : 1, rows = c.rank() > 1 ? c.extents[0] : 1;
    if (c.rank() > 2 || (columns != 1 && columns != p.n) || (rows != 1 && rows != p.m))
      return input_error("C does not broadcast to the result");
    p.beta = call.f("beta", 1);
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j)
        y.f32()[i * p.n + j] = c.f32()[(rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j)];
  }
  return product(p, a.f32(), b.f32(), y.f32());
}

}  // namespace fusec
