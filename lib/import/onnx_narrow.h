#pragma once
// Element types of ONNX that fusec's IR does not have: f8 fnuz, f8e8m0, and everything below a byte.
//
// A value of such a type is *held* in the smallest type of fusec that has all of its numbers, so what computes with it
// needs to know nothing: INT4 in i8, FLOAT8E4M3FNUZ in f16. A conversion to one rounds to its numbers (`narrowed`).
// Large weights stay packed in memory, and the kernel that reads them unpacks them (`unpacked`).

#include <span>
#include <vector>

#include "fusec/graph.h"

namespace fusec::onnx {

struct NarrowType {
  int32_t data_type;  // of TensorProto
  DType held;
  int bits;
  // Integers: mantissa is -1, and lowest … top the range. Floats: bits of mantissa, the exponent of the smallest
  // normal number, the largest number. f8e8m0 has no mantissa: exponents from lowest to log2(top).
  int mantissa;
  double lowest, top;

  bool is_integer() const { return mantissa < 0; }
};
/// The type, or null when TensorProto's `data_type` is none of these.
const NarrowType* narrow_type(int32_t data_type);

/// Bytes of `elements` packed ones.
uint64_t packed_bytes(const NarrowType& type, uint64_t elements);
/// Packed bytes as elements of the held type. `packed` has packed_bytes of them.
std::vector<std::byte> widened(const NarrowType& type, std::span<const std::byte> packed, uint64_t elements);

/// The same in a graph: u8[packed bytes] to elements of the held type and of that static shape.
Value unpacked(GraphBuilder& b, const NarrowType& type, Value packed, const Shape& shape);
/// Any number to one of the type's, held: integers drop their upper bits; floats round half to even, and what is too
/// large becomes the largest number, or NaN without `saturate`. FLOAT4E2M1 has no NaN: it gives -0.0.
/// f8e8m0 takes magnitudes; `round_mode` is up, down or nearest there.
Value narrowed(GraphBuilder& b, const NarrowType& type, Value x, bool saturate, std::string_view round_mode);

}  // namespace fusec::onnx
