#pragma once
// Elements and tensors as text, both ways and bit for bit:
//   0.1   -0.0   inf   nan   nan(0x7fc00001)   0x1.8p-3   -128   true          elements
//   f32[2,2] [[1.0, nan], [-0.0, 2.0]]     f32[1000] 0.5 (all the same)     u8[3] 0x0a0b0c (bytes, little endian)

#include <string>
#include <string_view>

#include "fusec/graph.h"
#include "lib/ir/cursor.h"

namespace fusec {

/// Shortest text that parse_element turns back into the same bits. A NaN other than the type's usual one shows its bits.
std::string element_text(DType type, const std::byte* element);
/// Writes one element. Floats round once; a finite literal beyond the type, a fraction for an integer, a number for a bool or
/// an infinity where the type has none is an error.
Status parse_element(DType type, std::string_view literal, std::byte* element);

/// "f32[3] [1.0, nan, -0.0]".
std::string text(const Tensor& tensor);
/// The same from a text that holds nothing else.
Result<Tensor> parse_tensor(std::string_view text);
/// The same at a cursor.
Result<Tensor> take_tensor(Cursor& cursor);
/// What follows the type: a list, flat or nested, one element for all, or 0x and all bytes.
Result<Tensor> take_elements(Cursor& cursor, DType type, std::vector<int64_t> extents);

}  // namespace fusec
