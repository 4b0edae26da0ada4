#pragma once
// Conversions between element types: what `cast` means, bit for bit.
//   float to narrower float   one rounding, to nearest even; f8e4m3 has no infinity: beyond 464 (half way above 448) gives NaN
//   float to integer          truncates, saturates, NaN gives 0
//   integer to integer        wraps;  to bool: x != 0 (a NaN is true);  from bool: 0 or 1
// Sources: IEEE 754-2019; f8 as in "FP8 formats for deep learning" (Micikevicius et al., 2022), E4M3 in its FN form.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fusec/graph.h"
#include "fusec/type.h"

namespace fusec {

float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);
float f8e4m3_to_f32(uint8_t bits);
float f8e5m2_to_f32(uint8_t bits);

/// One rounding from a double; a float widens exactly, so these serve both. A NaN stays a quiet NaN with its sign.
uint16_t f64_to_f16(double value);
uint16_t f64_to_bf16(double value);
uint8_t f64_to_f8e4m3(double value);
uint8_t f64_to_f8e5m2(double value);

/// Storage floats (f16, bf16, f8) to f32 and back, `n` elements.
void widen(DType storage, const std::byte* from, float* to, size_t n);
void narrow(DType storage, const float* from, std::byte* to, size_t n);
void narrow(DType storage, const double* from, std::byte* to, size_t n);

/// The `cast` op on `n` elements of any two types; `from` and `to` do not overlap.
void convert(DType from_type, const std::byte* from, DType to_type, std::byte* to, size_t n);

/// A rank-0 tensor: floats round once; integers and bool must be exact, else nullopt.
std::optional<Tensor> scalar_tensor(DType type, double number);
/// The element at `index` as a double (i64 and u64 beyond 2^53 round).
double element(const Tensor& tensor, int64_t index);

}  // namespace fusec
