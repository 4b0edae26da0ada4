#pragma once
// Inputs for formulas: every exponent, the range where most functions live, and the neighbourhoods of thresholds.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "lib/ir/formula_algebra.h"

namespace fusec {

/// Where some formula changes its ways: overflow, underflow, ends of domains, pivots of reductions.
inline constexpr double kThresholds[] = {
    0.0625, 0.34657359, 0.41421356, 0.5, 0.66666667, 0.69314718, 0.70710678, 0.78539816, 1, 1.0986123, 1.3333333,
    1.4142136, 1.5707963, 2, 2.0943951, 2.7182818, 3, 3.1415927, 3.92, 3.95, 4, 4.712389, 5.86, 5.95, 6, 6.2831853,
    9.01, 10, 10.0546, 10.25, 11, 13.1, 14.17, 14.5, 16, 17.33, 19.06, 20, 22, 26.55, 27.23, 27.5, 32, 36.7, 38.45,
    39, 40, 53, 64, 87.33655, 88.72284, 89.41599, 89.5, 100, 103.2789, 103.97208, 104, 110, 126, 127, 128, 149,
    150, 165, 355, 512, 708.3964, 709.78271, 710.47586, 710.5, 745.13322, 746, 760, 1000, 1022, 1023, 1024, 1074,
    1075, 1140, 4194304, 8388608, 16777216, 1e9, 35184372088832.0, 1125899906842624.0, 4503599627370496.0,
    9007199254740992.0, 18446744073709551616.0,
    7.7291064e28, 1.26145879e38 /* nearly quarter turns */};

template <class T>
class Sample {
 public:
  explicit Sample(uint64_t seed) : random_(seed) {
    using L = std::numeric_limits<T>;
    for (T v : {T(0), L::infinity(), L::quiet_NaN(), L::max(), L::min(), L::denorm_min()}) add(v);
    for (double threshold : kThresholds) {
      T v = static_cast<T>(threshold);
      for (int k = 0; k < 8; ++k) v = std::nextafter(v, T(0));
      for (int k = 0; k < 17; ++k, v = std::nextafter(v, L::infinity())) add(v);
    }
  }

  /// The fixed inputs, then random ones in turn: any bits, uniform in ±2^k for small k, magnitudes from 2^-40 to 2^10.
  T next(size_t i) {
    if (i < fixed_.size()) return fixed_[i];
    const double unit = static_cast<double>(static_cast<int64_t>(random_())) * 0x1p-63;
    switch (i % 3) {
      case 0: return std::bit_cast<T>(static_cast<formulas::UnsignedOf<sizeof(T)>>(random_()));
      case 1: return static_cast<T>(std::ldexp(unit, static_cast<int>(random_() % 11)));
      default: return static_cast<T>(std::copysign(std::exp2(std::fabs(unit) * 50 - 40), unit));
    }
  }
  /// For two operands: one of the fixed inputs, or a random one.
  T any() { return random_() % 4 ? next(fixed_.size() + random_() % 3) : fixed_[random_() % fixed_.size()]; }

 private:
  void add(T v) { fixed_.push_back(v), fixed_.push_back(-v); }

  std::mt19937_64 random_;
  std::vector<T> fixed_;
};

}  // namespace fusec
