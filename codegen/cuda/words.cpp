// Words of the CUDA dialect. The cells come from ops.def; numbers are printed exactly, so that no locale and no rounding parser
// stands between a constant and its value.

#include "codegen/cuda/words.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace fusec::cuda {
namespace {

struct Cell {
  Op op;
  const char* text;
};
#define OP(name, form, arity, optional, rule, domain, traits, cost, attributes, summary, reference, cuda, llvm) {Op::name, cuda},
const Cell kCells[] = {
#include "fusec/ops.def"
};
#undef OP
// What the cells of floats come to: "#" is the suffix of f32, of a constant and of a function. Every function less compiles faster.
const Cell kOperators[] = {{Op::add, "{0} + {1}"},     {Op::sub, "{0} - {1}"},          {Op::mul, "{0} * {1}"},
                           {Op::div, "{0} / {1}"},     {Op::reciprocal, "1.0# / {0}"},  {Op::relu, "fusec_max({0}, 0.0#)"},
                           {Op::sqrt, "sqrt#({0})"},   {Op::fma, "fma#({0}, {1}, {2})"}};

std::string fill(const char* text, DType compute, const std::vector<std::string>& args) {
  std::string out;
  for (const char* p = text; *p; ++p) {
    if (*p == '{') {
      out += args[static_cast<size_t>(p[1] - '0')];
      p += 2;
    } else if (*p == '#') {
      if (compute == DType::f32) out += 'f';
    } else {
      out += *p;
    }
  }
  return out;
}

std::string hex(uint64_t n) {
  char buffer[20];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, n, 16).ptr;
  return "0x" + std::string(buffer, end);
}

/// Small whole numbers as such, others in hexadecimal: nothing is rounded on the way.
template <class F> std::string number(F x, const char* suffix) {
  const F magnitude = std::fabs(x);
  const bool whole = magnitude < F(1 << 24) && magnitude == std::floor(magnitude);
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, whole ? std::chars_format::fixed : std::chars_format::hex).ptr;
  const std::string text = (whole ? "" : "0x") + std::string(buffer, end) + (whole ? ".0" : "") + suffix;
  return std::signbit(x) ? "(-" + text + ")" : text;
}

}  // namespace

std::string c_type(DType compute) { return compute == DType::boolean ? "bool" : std::string(name(compute)); }

/// Are vectors of this type words and halves of words, of which few are written out one by one? (It compiles faster than a call.)
bool written_out(DType storage, size_t count) {
  return bytes(storage) == 4 ? count <= 8 : (storage == DType::bf16 || storage == DType::f16) && count % 2 == 0 && count <= 8;
}

/// Is there an EACH_n of so many elements?
bool has_each(size_t count) { return count == 1 || count == 2 || count == 4 || count == 8 || count == 16; }

std::string bits_type(DType storage) { return "u" + std::to_string(8 * bytes(storage)); }

bool is_narrow(DType type) { return is_float(type) && compute_type(type) != type; }

std::string literal(DType compute, uint64_t bits) {
  switch (compute) {
    case DType::boolean: return bits ? "true" : "false";
    case DType::f64: return std::isfinite(std::bit_cast<double>(bits)) ? number(std::bit_cast<double>(bits), "") : "bits(f64, " + hex(bits) + "ull)";
    case DType::i64:
    case DType::u64: return "(" + c_type(compute) + ")" + hex(bits) + "ull";
    case DType::i8: case DType::u8: return "(" + c_type(compute) + ")" + hex(bits & 0xff) + "u";
    case DType::i16: case DType::u16: return "(" + c_type(compute) + ")" + hex(bits & 0xffff) + "u";
    case DType::i32: case DType::u32: return "(" + c_type(compute) + ")" + hex(bits & 0xffffffff) + "u";
    case DType::f16: case DType::bf16: case DType::f32: case DType::f8e4m3: case DType::f8e5m2: {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      return std::isfinite(x) ? number(x, "f") : "bits(f32, " + hex(bits & 0xffffffff) + "u)";
    }
  }
  return "";
}

uint64_t float_bits(DType compute, double value) {
  return compute == DType::f64 ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

std::string cell(Op op, DType compute, const std::vector<std::string>& args) {
  if (compute == DType::f32 || compute == DType::f64)
    for (const Cell& c : kOperators)
      if (c.op == op) return fill(c.text, compute, args);
  return fill(kCells[static_cast<size_t>(op)].text, compute, args);
}

std::string round(DType type, const std::string& x) {
  return is_narrow(type) ? "round_" + std::string(name(type)) + "(" + x + ")" : x;
}

std::string narrowable(DType from, const std::string& x) { return compute_type(from) == DType::f32 ? x : "odd(" + x + ")"; }

std::string cast(DType from, DType to, const std::string& x) {
  const DType a = compute_type(from), b = compute_type(to);
  if (is_narrow(to)) return from == to ? x : round(to, narrowable(from, x));
  if (a == b) return x;
  return "fusec_cast<" + c_type(b) + ">(" + x + ")";
}

std::string bitcast(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  const DType a = compute_type(from), b = compute_type(to);
  if (bytes(from) == 8) return "bits(" + c_type(b) + ", " + x + ")";
  std::string u = is_narrow(from)        ? "pair_" + std::string(name(from)) + "(" + x + ", 0.0f)"
                  : from == DType::f32   ? "bits(u32, " + x + ")"
                  : bytes(from) < 4      ? "(u32)(" + bits_type(from) + ")" + x
                                         : "(u32)" + x;
  (void)a;
  switch (to) {
    case DType::f32: return "bits(f32, " + u + ")";
    case DType::f16: case DType::bf16: return "from_" + std::string(name(to)) + "(" + u + ")";
    case DType::f8e4m3: case DType::f8e5m2: return "from_f16(halves_" + std::string(name(to)) + "(" + u + "))";
    case DType::boolean: return "((" + u + " & 0xffu) != 0u)";
    default: return "(" + c_type(b) + ")(" + u + ")";
  }
}

std::string fetch(size_t piece, size_t bytes, const std::string& kind, const std::string& words, const std::string& from, const std::string& policy) {
  if (piece != 16 || bytes > 32) return "fetch<" + std::to_string(piece) + ", " + kind + ">(" + words + ", " + from + ", " + policy + ");";
  const std::string name = kind == "kStreamed" ? "FETCH_STREAMED(" : kind == "kReadOnly" ? "FETCH_READ_ONLY(" : kind == "kPast" ? "FETCH_PAST(" : "FETCH(";
  std::string out;
  for (size_t k = 0; k < bytes / 16; ++k)
    out += (k ? " " : "") + name + words + ", " + std::to_string(k) + ", " + from + (kind == "kStreamed" ? ", " + policy : "") + ");";
  return bytes > 16 ? "{ " + out + " }" : out;
}

std::string put(size_t piece, size_t bytes, const std::string& to, const std::string& words) {
  const std::string one = "PUT(" + to + ", 0, " + words + ");", two = "PUT(" + to + ", 1, " + words + ");";
  if (piece == 16 && bytes <= 32) return bytes > 16 ? "{ " + one + " " + two + " }" : one;
  return "put<" + std::to_string(piece) + ">(" + to + ", " + words + ");";
}

std::string unpack(DType storage, const std::string& words, const std::string& x, size_t count) {
  std::string out;
  for (size_t e = 0; e < count && written_out(storage, count); ++e) {
    const std::string at = " " + x + "[" + std::to_string(e) + "] = ", word = words + ".w[" + std::to_string(bytes(storage) == 4 ? e : e / 2) + "]";
    const bool high = bytes(storage) == 2 && e % 2;
    out += at.substr(e ? 0 : 1);
    if (storage == DType::bf16) out += high ? "bits(f32, " + word + " & 0xffff0000u)" : "bits(f32, " + word + " << 16)";
    else if (storage == DType::f16) out += (high ? "high_f16(" : "from_f16(") + word + ")";
    else out += "bits(" + c_type(storage) + ", " + word + ")";
    out += ";";
  }
  if (!out.empty()) return out;
  const std::string kind = storage == DType::boolean ? "boolean" : is_narrow(storage) ? std::string(name(storage)) : "raw";
  return "unpack_" + kind + "(" + words + ", " + x + ");";
}

std::optional<std::string> whole_array(const std::string& value) {
  if (!value.ends_with("[e]")) return std::nullopt;
  const std::string name = value.substr(0, value.size() - 3);
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  return plain ? std::optional(name) : std::nullopt;
}

std::string pack(DType storage, const std::string& words, const std::string& x, size_t count) {
  std::string out;
  const size_t step = 4 / std::max<size_t>(bytes(storage), 1);
  for (size_t e = 0; e < count && written_out(storage, count); e += step) {
    const std::string one = x + "[" + std::to_string(e) + "]", two = x + "[" + std::to_string(e + 1) + "]";
    out += std::string(e ? " " : "") + words + ".w[" + std::to_string(e / step) + "] = ";
    out += step == 1 ? "bits(u32, " + one + ");" : "pair_" + std::string(name(storage)) + "(" + one + ", " + two + ");";
  }
  if (!out.empty()) return out;
  return "pack_" + (is_narrow(storage) ? std::string(name(storage)) : std::string("raw")) + "(" + words + ", " + x + ");";
}

std::string each_begin(size_t count) {
  return has_each(count) ? "EACH_" + std::to_string(count) + "({" : "_Pragma(\"unroll\") for (int e = 0; e < " + std::to_string(count) + "; ++e) {";
}
std::string each_end(size_t count) { return has_each(count) ? "})" : "}"; }
std::string each(size_t count, const std::string& statement) { return each_begin(count) + " " + statement + " " + each_end(count); }

}  // namespace fusec::cuda
