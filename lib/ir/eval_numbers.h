#pragma once
// What the reference evaluator's reductions and scans share: elements as numbers of a C++ type, and where maxima and minima begin.

#include <limits>
#include <vector>

#include "fusec/graph.h"
#include "lib/ir/convert.h"

namespace fusec {

template <class T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
template <class T>
constexpr T kHighest = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

/// f(elements, their dtype); narrow floats come widened to f32. Bool has no numbers: f is not called.
template <class F>
void with_numbers(const Tensor& x, F f) {
  const std::byte* p = x.data.data();
  switch (x.dtype) {
#define CASE(d, T) \
  case DType::d: return f(reinterpret_cast<const T*>(p), DType::d);
    CASE(i8, int8_t) CASE(i16, int16_t) CASE(i32, int32_t) CASE(i64, int64_t)
    CASE(u8, uint8_t) CASE(u16, uint16_t) CASE(u32, uint32_t) CASE(u64, uint64_t)
    CASE(f32, float) CASE(f64, double)
#undef CASE
    case DType::boolean: return;
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2: {
      std::vector<float> wide(static_cast<size_t>(x.elements()));
      widen(x.dtype, p, wide.data(), wide.size());
      return f(static_cast<const float*>(wide.data()), DType::f32);
    }
  }
}

}  // namespace fusec
