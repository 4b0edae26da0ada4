#pragma once
// Small pieces of CUDA text: types, literals, cells, conversions. A value is written in its compute type.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/op.h"
#include "fusec/type.h"

namespace fusec::cuda {

/// "f32", "i64", "bool": the C type of a compute type.
std::string c_type(DType compute);
/// Type of an element's bits in memory: u8, u16, u32 or u64 by size.
std::string bits_type(DType storage);
/// A constant from its bits, of a compute type: exactly.
std::string literal(DType compute, uint64_t bits);
/// `bits` of a double rounded to a compute type that is a float.
uint64_t float_bits(DType compute, double value);
bool is_narrow(DType type);  // f16, bf16, f8: computed in f32

/// An exact primitive of values of a compute type: its cell with the arguments, names or literals, put in; plain arithmetic of floats as an
/// operator, to be a whole statement or an argument.
std::string cell(Op op, DType compute, const std::vector<std::string>& args);
/// x of `from` as a value of `to`; both any dtype, x in compute_type(from), the result in compute_type(to).
std::string cast(DType from, DType to, const std::string& x);
/// x as an f32 that rounds to any narrow type as x itself would: wider types are rounded to odd.
std::string narrowable(DType from, const std::string& x);
std::string bitcast(DType from, DType to, const std::string& x);
/// x, an f32, rounded to a narrow type.
std::string round(DType type, const std::string& x);
/// Statements between words and values: words → array x, array x → words; `count` elements.
std::string unpack(DType storage, const std::string& words, const std::string& x, size_t count);
std::string pack(DType storage, const std::string& words, const std::string& x, size_t count);
/// Statements between memory and words: `bytes` in pieces of `piece`. `kind` is one of prelude.cuh's Fetch.
std::string fetch(size_t piece, size_t bytes, const std::string& kind, const std::string& words, const std::string& from, const std::string& policy);
std::string put(size_t piece, size_t bytes, const std::string& to, const std::string& words);
/// Around statements that are there for each element e of `count`: written out by the preprocessor (EACH_n of prelude.cuh) where it can be.
std::string each_begin(size_t count);
std::string each_end(size_t count);
std::string each(size_t count, const std::string& statement);

/// The name of the array whose element e this is: "row.v3" of "row.v3[e]"; nullopt for any other text.
std::optional<std::string> whole_array(const std::string& value);

/// Function of a formula for a result of a type, and its name; types that share a form share the name.
std::string formula_name(Op op, DType result);
std::string formula_text(Op op, DType result);

}  // namespace fusec::cuda
