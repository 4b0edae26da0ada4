#pragma once
// Elements of any type as unsigned integers in the same order, neighbours one apart:
//   -inf < … < -denormal < -0 < +0 < denormal < … < +inf; integers and bool as they are; a NaN has no place in it.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lib/ir/convert.h"

namespace fusec::fuzz {

class Order {
 public:
  explicit Order(DType type) : type_(type), size_(bytes(type)), top_(uint64_t{1} << (size_ * 8 - 1)), mask_(top_ | (top_ - 1)) {
    if (!is_float(type)) {
      lowest_ = 0;
      highest_ = type == DType::boolean ? 1 : mask_;
      return;
    }
    const double most = type == DType::f8e4m3 ? 448 : INFINITY, least = -most;
    std::byte at[8] = {};
    convert(DType::f64, reinterpret_cast<const std::byte*>(&least), type, at, 1), lowest_ = key(at);
    convert(DType::f64, reinterpret_cast<const std::byte*>(&most), type, at, 1), highest_ = key(at);
  }

  uint64_t key(const std::byte* at) const {
    uint64_t bits = 0;
    std::memcpy(&bits, at, size_);
    if (is_float(type_)) return bits & top_ ? ~bits & mask_ : bits | top_;
    return is_signed(type_) ? bits ^ top_ : bits;
  }
  void put(uint64_t key, std::byte* at) const {
    uint64_t bits = key;
    if (is_float(type_)) bits = key & top_ ? key ^ top_ : ~key & mask_;
    else if (is_signed(type_)) bits = key ^ top_;
    std::memcpy(at, &bits, size_);
  }
  /// Only for floats; false for all others.
  bool is_nan(const std::byte* at) const { return is_float(type_) && (key(at) < lowest_ || key(at) > highest_); }
  double number(uint64_t key) const {
    std::byte at[8] = {};
    put(key, at);
    double out = 0;
    convert(type_, at, DType::f64, reinterpret_cast<std::byte*>(&out), 1);
    return out;
  }
  /// The element that a number rounds to.
  uint64_t nearest(double number) const {
    std::byte at[8] = {};
    convert(DType::f64, reinterpret_cast<const std::byte*>(&number), type_, at, 1);
    if (is_nan(at)) return number < 0 ? lowest_ : highest_;  // f8e4m3 has no infinity
    return key(at);
  }
  uint64_t below(uint64_t key, uint64_t steps) const { return key - lowest_ < steps ? lowest_ : key - steps; }
  uint64_t above(uint64_t key, uint64_t steps) const { return highest_ - key < steps ? highest_ : key + steps; }
  uint64_t lowest() const { return lowest_; }
  uint64_t highest() const { return highest_; }
  /// Keys of -0 and +0, or of 0 twice.
  uint64_t zero_below() const { return is_float(type_) ? top_ - 1 : is_signed(type_) ? top_ : 0; }
  uint64_t zero_above() const { return is_float(type_) ? top_ : zero_below(); }

 private:
  DType type_;
  size_t size_;
  uint64_t top_, mask_, lowest_ = 0, highest_ = 0;
};

}  // namespace fusec::fuzz
