// Scans of the reference evaluator: along each line of the axis one element after the other. Running sums and products of floats are f64,
// as in reductions; each one is rounded to the result's type on its own.

#include <type_traits>

#include "lib/ir/convert.h"
#include "lib/ir/eval_numbers.h"
#include "lib/ir/eval_parts.h"
#include "lib/ir/scalar.h"

namespace fusec {
namespace {

/// The lines of an axis: `outer` times `inner` of `length` elements, `inner` apart.
struct Lines {
  int64_t outer = 1, length, inner = 1;
  Lines(const std::vector<int64_t>& extents, size_t axis) : length(extents[axis]) {
    for (size_t k = 0; k < extents.size(); ++k)
      if (k != axis) (k < axis ? outer : inner) *= extents[k];
  }
};

template <class A, class T, class F>
void scan(const Node& n, const Tensor& x, const T* data, A identity, F combine, Tensor& result, DType type) {
  std::vector<A> all(static_cast<size_t>(x.elements()));
  if (all.empty()) return;
  const Lines lines(x.extents, static_cast<size_t>(n.attrs->axis));
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    const int64_t first = line / lines.inner * lines.length * lines.inner + line % lines.inner;
    A running = identity;
    for (int64_t i = 0; i < lines.length; ++i) {
      const auto at = static_cast<size_t>(first + (n.attrs->reverse ? lines.length - 1 - i : i) * lines.inner);
      const A next = combine(running, static_cast<A>(data[at]));
      all[at] = n.attrs->exclusive ? running : next;
      running = next;
    }
  }
  convert(type, reinterpret_cast<const std::byte*>(all.data()), result.dtype, result.data.data(), all.size());
}

template <class T>
void scan_numbers(const Node& n, const Tensor& x, const T* data, DType type, Tensor& result) {
  using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  const DType wide = std::is_floating_point_v<T> ? DType::f64 : type;
  switch (n.op) {
    case Op::cumsum: return scan(n, x, data, A(0), [](A a, A b) { return scalar::add(a, b); }, result, wide);
    case Op::cumprod: return scan(n, x, data, A(1), [](A a, A b) { return scalar::mul(a, b); }, result, wide);
    case Op::cummin: return scan(n, x, data, kHighest<T>, [](T a, T b) { return scalar::min(a, b); }, result, type);
    default: return scan(n, x, data, kLowest<T>, [](T a, T b) { return scalar::max(a, b); }, result, type);
  }
}

}  // namespace

void evaluate_scan(const Node& n, const Tensor& x, Tensor& result) {
  if (x.dtype == DType::boolean) return;  // the card takes numbers
  with_numbers(x, [&](const auto* data, DType type) { scan_numbers(n, x, data, type, result); });
}

}  // namespace fusec
