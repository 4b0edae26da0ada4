#include "lib/ir/literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "lib/ir/convert.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

/// A list is printed up to this many elements, bytes beyond.
constexpr int64_t kMaxListed = 1024;

uint64_t load_bits(DType type, const std::byte* element) {
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes(type); ++i) bits |= static_cast<uint64_t>(element[i]) << (8 * i);
  return bits;
}

void store_bits(DType type, uint64_t bits, std::byte* element) {
  for (size_t i = 0; i < bytes(type); ++i) element[i] = static_cast<std::byte>(bits >> (8 * i));
}

uint64_t usual_nan(DType type) {
  std::byte element[8];
  const double nan = std::numeric_limits<double>::quiet_NaN();
  convert(DType::f64, reinterpret_cast<const std::byte*>(&nan), type, element, 1);
  return load_bits(type, element);
}

std::string hex_text(uint64_t bits, int digits) {
  std::string text(static_cast<size_t>(digits), '0');
  for (int i = digits; i-- > 0; bits >>= 4) text[static_cast<size_t>(i)] = "0123456789abcdef"[bits & 15];
  return text;
}

double value_of(DType type, const std::byte* element) {
  double value;
  convert(type, element, DType::f64, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

Error no_value(std::string_view literal, DType type) {
  return input_error(std::string(literal.substr(0, 64)) + " is no value of " + std::string(name(type)));
}

/// Digits without sign. nullopt when it is no number; too large gives infinity, too small zero.
template <class F>
std::optional<F> parse_digits(std::string_view digits) {
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (hex) digits.remove_prefix(2);
  if (digits.empty() || digits[0] == '-' || digits[0] == 'i' || digits[0] == 'n' || digits[0] == 'I' || digits[0] == 'N') return std::nullopt;
  F value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, hex ? std::chars_format::hex : std::chars_format::general);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too large or too small: the exponent's sign tells, or, without one, a leading "0.".
    const size_t exponent = digits.find_first_of(hex ? "pP" : "eE");
    const bool small = exponent != std::string_view::npos ? digits[exponent + 1] == '-' : digits[0] == '0' || digits[0] == '.';
    return small ? F(0) : std::numeric_limits<F>::infinity();
  }
  return value;
}

Status parse_float(DType type, std::string_view literal, std::byte* element) {
  std::string_view digits = literal;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.starts_with("nan(0x") && digits.ends_with(')')) {
    uint64_t bits = 0;
    const char* end = digits.data() + digits.size() - 1;
    const auto [stop, error] = std::from_chars(digits.data() + 6, end, bits, 16);
    const size_t width = 8 * bytes(type);
    if (stop != end || error != std::errc() || negative || (width < 64 && bits >> width)) return no_value(literal, type);
    store_bits(type, bits, element);
    if (!std::isnan(value_of(type, element))) return no_value(literal, type);
    return Done{};
  }
  double value;
  if (digits == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (digits == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else {
    // f32 from its digits directly: by way of f64 it could round twice.
    std::optional<double> parsed;
    if (type == DType::f32) {
      if (const auto single = parse_digits<float>(digits)) parsed = static_cast<double>(*single);
    } else {
      parsed = parse_digits<double>(digits);
    }
    if (!parsed) return no_value(literal, type);
    value = *parsed;
  }
  if (negative) value = std::copysign(value, -1.0);
  convert(DType::f64, reinterpret_cast<const std::byte*>(&value), type, element, 1);
  const double kept = value_of(type, element);
  const bool infinite = digits == "inf";
  if (infinite ? !std::isinf(kept) : digits != "nan" && !std::isfinite(kept))
    return input_error(std::string(literal.substr(0, 64)) + " is beyond the values of " + std::string(name(type)));
  return Done{};
}

Status parse_integer(DType type, std::string_view literal, std::byte* element) {
  std::string_view digits = literal;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) base = 16, digits.remove_prefix(2);
  uint64_t magnitude = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, magnitude, base);
  if (digits.empty() || stop != end || error == std::errc::invalid_argument) return no_value(literal, type);
  const unsigned bits = 8 * static_cast<unsigned>(bytes(type));
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t most = !is_signed(type) ? (negative ? 0 : ones) : (ones >> 1) + negative;
  if (error == std::errc::result_out_of_range || magnitude > most)
    return input_error(std::string(literal.substr(0, 64)) + " is out of range for " + std::string(name(type)));
  store_bits(type, negative ? 0 - magnitude : magnitude, element);
  return Done{};
}

bool all_equal(const Tensor& t) {
  const size_t size = bytes(t.dtype);
  return t.data.size() > size && std::memcmp(t.data.data(), t.data.data() + size, t.data.size() - size) == 0;
}

std::string list_text(const Tensor& t) {
  // Brackets open where an axis begins and close where it ends: counted on the index, no recursion.
  std::string out;
  const size_t size = bytes(t.dtype);
  const int64_t count = t.elements();
  for (int64_t i = 0; i < count; ++i) {
    int64_t run = 1;
    size_t opens = 0;
    for (size_t k = t.extents.size(); k-- > 0;) {
      run *= t.extents[k];
      opens += i % run == 0;
    }
    if (i > 0) out += ", ";
    out.append(opens, '[');
    out += element_text(t.dtype, t.data.data() + static_cast<size_t>(i) * size);
    run = 1;
    for (size_t k = t.extents.size(); k-- > 0;) {
      run *= t.extents[k];
      if ((i + 1) % run == 0) out += ']';
    }
  }
  return count == 0 ? "[]" : out;
}

}  // namespace

std::string element_text(DType type, const std::byte* element) {
  if (type == DType::boolean) return *element == std::byte{0} ? "false" : "true";
  if (type == DType::u64) return std::to_string(load_bits(type, element));
  if (is_integer(type)) {
    int64_t value;
    convert(type, element, DType::i64, reinterpret_cast<std::byte*>(&value), 1);
    return std::to_string(value);
  }
  const double value = value_of(type, element);
  if (std::isnan(value)) {
    const uint64_t bits = load_bits(type, element);
    return bits == usual_nan(type) ? "nan" : "nan(0x" + hex_text(bits, 2 * static_cast<int>(bytes(type))) + ")";
  }
  return type == DType::f64 ? number_text(value) : number_text(static_cast<float>(value));
}

Status parse_element(DType type, std::string_view literal, std::byte* element) {
  if (literal == "true" || literal == "false") {
    if (type != DType::boolean) return no_value(literal, type);
    *element = static_cast<std::byte>(literal == "true");
    return Done{};
  }
  if (type == DType::boolean) return no_value(literal, type);
  return is_float(type) ? parse_float(type, literal, element) : parse_integer(type, literal, element);
}

std::string text(const Tensor& t) {
  std::string out = text(Type{t.dtype, {t.extents.begin(), t.extents.end()}}) + " ";
  if (all_equal(t)) return out + element_text(t.dtype, t.data.data());
  if (t.elements() <= kMaxListed) return out + list_text(t);
  out += "0x";
  for (std::byte b : t.data) out += hex_text(static_cast<uint64_t>(b), 2);
  return out;
}

namespace {

Result<Tensor> take_bytes(Cursor& cursor, Tensor t, size_t size) {
  const size_t begin = cursor.here();
  const std::string_view digits = cursor.literal().substr(2);
  if (digits.size() != 2 * size)
    return cursor.error_at(begin, std::to_string(digits.size()) + " hex digits for " + std::to_string(size) + " bytes");
  t.data.resize(size);
  for (size_t i = 0; i < size; ++i) {
    uint8_t byte = 0;
    const char* at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, byte, 16).ptr != at + 2) return cursor.error_at(begin, "a byte is two hex digits");
    t.data[i] = std::byte{byte};
    if (t.dtype == DType::boolean && byte > 1) return cursor.error_at(begin, "a bool is 00 or 01");
  }
  return t;
}

Result<Tensor> take_splat(Cursor& cursor, Tensor t, size_t size) {
  const size_t begin = cursor.here();
  std::byte element[8];
  if (auto done = parse_element(t.dtype, cursor.literal(), element); !done) return cursor.error_at(begin, done.error().message);
  if (!cursor.unfold(size))  // text bounds all other constants by its own length
    return cursor.error_at(begin, "a constant of " + std::to_string(size) + " bytes: at most 2^28 in a text; use broadcast");
  t.data.resize(size);
  for (size_t i = 0; i < size; i += bytes(t.dtype)) std::memcpy(t.data.data() + i, element, bytes(t.dtype));
  return t;
}

/// The nesting is data for people: what counts is the order. Depth 1 or the rank; elements must fill the extents.
Result<Tensor> take_list(Cursor& cursor, Tensor t, uint64_t count) {
  const size_t begin = cursor.here(), size = bytes(t.dtype);
  size_t depth = 0;
  bool wants_comma = false;
  do {
    const size_t here = cursor.here();
    if (cursor.take("]")) {
      --depth;
      wants_comma = true;
    } else if (wants_comma) {
      if (auto comma = cursor.expect(",", "or ']' in a list"); !comma) return comma.error();
      wants_comma = false;
    } else if (cursor.take("[")) {
      if (++depth > std::max<size_t>(t.extents.size(), 1)) return cursor.error_at(here, "the list is nested deeper than the rank");
    } else if (const std::string_view literal = cursor.literal(); !literal.empty()) {
      if (t.data.size() / size == count)
        return cursor.error_at(here, "more elements than the " + std::to_string(count) + " of " +
                                         text(Type{t.dtype, {t.extents.begin(), t.extents.end()}}));
      t.data.resize(t.data.size() + size);
      if (auto done = parse_element(t.dtype, literal, t.data.data() + t.data.size() - size); !done)
        return cursor.error_at(here, done.error().message);
      wants_comma = true;
    } else {
      return cursor.error("expected an element, not " + cursor.found());
    }
  } while (depth > 0);
  if (t.data.size() / size != count)
    return cursor.error_at(begin, std::to_string(t.data.size() / size) + " elements for " +
                                      text(Type{t.dtype, {t.extents.begin(), t.extents.end()}}));
  return t;
}

}  // namespace

Result<Tensor> take_elements(Cursor& cursor, DType type, std::vector<int64_t> extents) {
  Tensor t{type, std::move(extents), {}};
  const auto count = static_cast<uint64_t>(t.elements());
  uint64_t size;
  if (__builtin_mul_overflow(count, bytes(type), &size)) return cursor.error("a constant of 2^63 bytes or more");
  if (cursor.peek() == '[') return take_list(cursor, std::move(t), count);
  // 0x starts bytes, unless it is one hex number: those of rank 0 and splats have no more digits than an element or a point.
  Cursor ahead = cursor;
  const std::string_view literal = ahead.literal();
  if (literal.empty()) return cursor.error("expected elements, not " + cursor.found());
  const bool hex_number = literal.find_first_of(".pP") != std::string_view::npos;
  if (literal.starts_with("0x") && !hex_number) return take_bytes(cursor, std::move(t), size);
  return take_splat(cursor, std::move(t), size);
}

Result<Tensor> take_tensor(Cursor& cursor) {
  const size_t begin = cursor.here();
  auto type = cursor.type();
  if (!type) return type.error();
  std::vector<int64_t> extents;
  for (const Dim& d : type->shape) {
    if (!d.is_constant()) return cursor.error_at(begin, "a constant's dims are numbers, not " + d.text());
    extents.push_back(d.constant());
  }
  return take_elements(cursor, type->dtype, std::move(extents));
}

Result<Tensor> parse_tensor(std::string_view text) {
  Cursor cursor(text);
  auto tensor = take_tensor(cursor);
  if (tensor && !cursor.done()) return cursor.error("expected the end, not " + cursor.found());
  return tensor;
}

}  // namespace fusec
