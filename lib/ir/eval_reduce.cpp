// Reductions of the reference evaluator: the input is walked once, row-major; each element is folded into the accumulator of
// its result, so every result sees its elements in row-major order.

#include <type_traits>

#include "lib/ir/convert.h"
#include "lib/ir/eval_numbers.h"
#include "lib/ir/eval_parts.h"
#include "lib/ir/scalar.h"
#include "lib/ir/strided.h"

namespace fusec {
namespace {

/// Steps through an input: f(result index of a run's first element, how it moves, first element, number of elements).
template <class F>
void each_run(const std::vector<int64_t>& extents, const std::vector<int64_t>& result_strides, F f) {
  int64_t total = 1;
  for (int64_t e : extents) total *= e;
  if (total == 0) return;
  const size_t rank = extents.size();
  const int64_t run = rank ? extents[rank - 1] : 1, step = rank ? result_strides[rank - 1] : 0;
  std::vector<int64_t> index(rank);
  int64_t at = 0;
  for (int64_t first = 0; first < total; first += run) {
    f(at, step, first, run);
    for (size_t k = rank ? rank - 1 : 0; k-- > 0;) {
      at += result_strides[k];
      if (++index[k] < extents[k]) break;
      at -= result_strides[k] * extents[k];
      index[k] = 0;
    }
  }
}

/// For each axis of the input, how far a step along it moves in the dense results: 0 on a reduced one.
std::vector<int64_t> result_strides(const std::vector<int64_t>& extents, const std::vector<int64_t>& axes) {
  std::vector<int64_t> kept = extents;
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<int64_t> strides = dense_strides(kept);
  for (int64_t axis : axes) strides[static_cast<size_t>(axis)] = 0;
  return strides;
}

/// As above for the index within the reduced axes, row-major.
std::vector<int64_t> index_strides(const std::vector<int64_t>& extents, const std::vector<int64_t>& axes) {
  std::vector<int64_t> strides(extents.size());
  int64_t step = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    strides[static_cast<size_t>(axes[i])] = step;
    step *= extents[static_cast<size_t>(axes[i])];
  }
  return strides;
}

template <class T, class A, class F>
std::vector<A> fold(const Node& n, const Tensor& x, const T* data, size_t results, A identity, F combine) {
  std::vector<A> acc(results, identity);
  each_run(x.extents, result_strides(x.extents, n.attrs->axes), [&](int64_t at, int64_t step, int64_t first, int64_t run) {
    if (step == 0) {
      A a = acc[static_cast<size_t>(at)];
      for (int64_t i = 0; i < run; ++i) a = combine(a, static_cast<A>(data[first + i]));
      acc[static_cast<size_t>(at)] = a;
    } else {
      for (int64_t i = 0; i < run; ++i) {
        A& a = acc[static_cast<size_t>(at + i * step)];
        a = combine(a, static_cast<A>(data[first + i]));
      }
    }
  });
  return acc;
}

template <class A>
void store(const std::vector<A>& acc, Tensor& result) {
  constexpr DType type = std::is_same_v<A, double>    ? DType::f64
                         : std::is_same_v<A, float>   ? DType::f32
                         : std::is_same_v<A, int8_t>  ? DType::i8
                         : std::is_same_v<A, int16_t> ? DType::i16
                         : std::is_same_v<A, int32_t> ? DType::i32
                         : std::is_same_v<A, int64_t> ? DType::i64
                         : std::is_same_v<A, uint8_t> ? DType::u8
                         : std::is_same_v<A, uint16_t> ? DType::u16
                         : std::is_same_v<A, uint32_t> ? DType::u32
                                                       : DType::u64;
  convert(type, reinterpret_cast<const std::byte*>(acc.data()), result.dtype, result.data.data(), acc.size());
}

/// Is `b` the winner over `a`, which came before it? A strict order: the first NaN wins, ties go to the first, or with `last`
/// to the later one.
template <class T>
bool wins(T b, T a, bool greatest, bool last) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  if (b == a) return last;
  return greatest ? a < b : b < a;
}

template <class T>
void index_of(const Node& n, const Tensor& x, const T* data, Tensor& result) {
  struct Best {
    T value;
    int64_t index = -1;
  };
  const bool greatest = n.op == Op::argmax, last = n.attrs->last;
  std::vector<Best> best(static_cast<size_t>(result.elements()));
  const std::vector<int64_t> along = index_strides(x.extents, n.attrs->axes);
  // Two walks in step: where the element's result lies, and which index it has there.
  std::vector<int64_t> firsts;
  each_run(x.extents, along, [&](int64_t at, int64_t, int64_t, int64_t) { firsts.push_back(at); });
  const int64_t index_step = along.empty() ? 0 : along.back();
  size_t row = 0;
  each_run(x.extents, result_strides(x.extents, n.attrs->axes), [&](int64_t at, int64_t step, int64_t first, int64_t run) {
    for (int64_t i = 0; i < run; ++i) {
      Best& b = best[static_cast<size_t>(at + i * step)];
      const T value = data[first + i];
      if (b.index < 0 || wins(value, b.value, greatest, last)) b = {value, firsts[row] + i * index_step};
    }
    ++row;
  });
  std::vector<int64_t> indices;
  for (const Best& b : best) indices.push_back(b.index);
  store(indices, result);
}

template <class T>
void reduce_numbers(const Node& n, const Tensor& x, const T* data, Tensor& result) {
  const auto results = static_cast<size_t>(result.elements());
  using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  switch (n.op) {
    case Op::sum: return store(fold<T, A>(n, x, data, results, A(0), [](A a, A b) { return scalar::add(a, b); }), result);
    case Op::prod: return store(fold<T, A>(n, x, data, results, A(1), [](A a, A b) { return scalar::mul(a, b); }), result);
    case Op::reduce_min: return store(fold<T, T>(n, x, data, results, kHighest<T>, [](T a, T b) { return scalar::min(a, b); }), result);
    case Op::reduce_max: return store(fold<T, T>(n, x, data, results, kLowest<T>, [](T a, T b) { return scalar::max(a, b); }), result);
    default: return index_of(n, x, data, result);
  }
}

/// Bool is 0 or 1 in a byte: any and max are or, all and min are and.
void reduce_bool(const Node& n, const Tensor& x, Tensor& result) {
  const auto* data = reinterpret_cast<const uint8_t*>(x.data.data());
  if (n.op == Op::argmax || n.op == Op::argmin) return index_of(n, x, data, result);
  const bool any = n.op == Op::any || n.op == Op::reduce_max;
  const auto acc = fold<uint8_t, uint8_t>(n, x, data, static_cast<size_t>(result.elements()), any ? 0 : 1, [any](uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(any ? a | b : a & b);
  });
  store(acc, result);
}

}  // namespace

Status evaluate_reduce(const Node& n, const Tensor& x, Tensor& result) {
  if ((n.op == Op::argmax || n.op == Op::argmin) && x.elements() == 0 && result.elements() > 0)
    return input_error("no elements along the reduced axes, so there is no index to give");
  if (x.dtype == DType::boolean) reduce_bool(n, x, result);
  else with_numbers(x, [&](const auto* data, DType) { reduce_numbers(n, x, data, result); });
  return Done{};
}

}  // namespace fusec
