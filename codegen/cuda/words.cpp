// Words of the CUDA dialect. The cells come from ops.def; numbers are printed as their bits, so that no locale and no parser
// stands between a constant and its value.

#include "codegen/cuda/words.h"

#include <algorithm>
#include <bit>
#include <charconv>

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
// What the cells of floats come to; every function less compiles faster.
const Cell kOperators[] = {{Op::add, " + "}, {Op::sub, " - "}, {Op::mul, " * "}, {Op::div, " / "}};

std::string hex(uint64_t n) {
  char buffer[20];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, n, 16).ptr;
  return "0x" + std::string(buffer, end);
}

}  // namespace

std::string c_type(DType compute) { return compute == DType::boolean ? "bool" : std::string(name(compute)); }

std::string bits_type(DType storage) { return "u" + std::to_string(8 * bytes(storage)); }

bool is_narrow(DType type) { return is_float(type) && compute_type(type) != type; }

std::string literal(DType compute, uint64_t bits) {
  switch (compute) {
    case DType::boolean: return bits ? "true" : "false";
    case DType::f64: return "bits<f64>(" + hex(bits) + "ull)";
    case DType::i64:
    case DType::u64: return "(" + c_type(compute) + ")" + hex(bits) + "ull";
    case DType::i8: case DType::u8: return "(" + c_type(compute) + ")" + hex(bits & 0xff) + "u";
    case DType::i16: case DType::u16: return "(" + c_type(compute) + ")" + hex(bits & 0xffff) + "u";
    case DType::i32: case DType::u32: return "(" + c_type(compute) + ")" + hex(bits & 0xffffffff) + "u";
    case DType::f16: case DType::bf16: case DType::f32: case DType::f8e4m3: case DType::f8e5m2:
      return "bits<f32>(" + hex(bits & 0xffffffff) + "u)";
  }
  return "";
}

uint64_t float_bits(DType compute, double value) {
  return compute == DType::f64 ? std::bit_cast<uint64_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
}

std::string cell(Op op, DType compute, const std::vector<std::string>& args) {
  if (compute == DType::f32 || compute == DType::f64)
    for (const Cell& c : kOperators)
      if (c.op == op) return args[0] + c.text + args[1];
  std::string out;
  for (const char* p = kCells[static_cast<size_t>(op)].text; *p; ++p) {
    if (*p == '{') {
      out += args[static_cast<size_t>(p[1] - '0')];
      p += 2;
    } else {
      out += *p;
    }
  }
  return out;
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
  if (bytes(from) == 8) return "bits<" + c_type(b) + ">(" + x + ")";
  std::string u = is_narrow(from)        ? "pair_" + std::string(name(from)) + "(" + x + ", 0.0f)"
                  : from == DType::f32   ? "bits<u32>(" + x + ")"
                  : bytes(from) < 4      ? "(u32)(" + bits_type(from) + ")" + x
                                         : "(u32)" + x;
  (void)a;
  switch (to) {
    case DType::f32: return "bits<f32>(" + u + ")";
    case DType::f16: case DType::bf16: return "from_" + std::string(name(to)) + "(" + u + ")";
    case DType::f8e4m3: case DType::f8e5m2: return "from_f16(halves_" + std::string(name(to)) + "(" + u + "))";
    case DType::boolean: return "((" + u + " & 0xffu) != 0u)";
    default: return "(" + c_type(b) + ")(" + u + ")";
  }
}

std::string unpack(DType storage, const std::string& words, const std::string& x) {
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

std::string pack(DType storage, const std::string& words, const std::string& x) {
  return "pack_" + (is_narrow(storage) ? std::string(name(storage)) : std::string("raw")) + "(" + words + ", " + x + ");";
}

}  // namespace fusec::cuda
