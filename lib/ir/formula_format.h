#pragma once
// What formulas know of each float type: its layout, constants in two parts (name and name_tail) and the ends beyond
// which a result no longer changes. A constant named _short has so few bits that its product with a small integer is
// exact.

namespace fusec::formulas {

template <class T>
struct Format;

template <>
struct Format<float> {
  static constexpr int mantissa = 23;
  static constexpr float bias = 127;
  static constexpr float round = 0x1.8p23f;  // x + round - round is x to the nearest integer
  static constexpr float min_normal = 0x1p-126f, denormal_scale = 0x1p23f, denormal_shift = 23;
  static constexpr float two_thirds = 0x1.555556p-1f;

  static constexpr float ln2 = 0x1.62e43p-1f, ln2_tail = -0x1.05c61p-29f;
  static constexpr float ln2_short = 0x1.62ep-1f, ln2_short_tail = 0x1.0bfbe8p-15f;
  static constexpr float log2e = 0x1.715476p0f, log2e_tail = 0x1.4ae0cp-26f;
  static constexpr float log10e = 0x1.bcb7b2p-2f, log10e_tail = -0x1.5b235ep-27f;
  static constexpr float log10_2 = 0x1.344136p-2f, log10_2_tail = -0x1.ec10cp-27f;

  static constexpr float exp_low = -110, exp_high = 89.5f;       // e^x is 0 and inf, also when multiplied by x
  static constexpr float tiny_exponent = 64, tiny = 0x1p-64f;    // e^exp_low / tiny is a normal number
  static constexpr float expm1_low = -20, expm1_high = 88.73f;   // -1; overflow is just below
  static constexpr float sinh_high = 89.5f, tanh_high = 10;      // inf; 1
  static constexpr float linear = 0x1p-26f, quadratic = 0x1p23f; // |x| below: f(x) = x; above: x² + 1 is x²
  static constexpr float erf_high = 3.95f;                       // 1
  static constexpr float erfc_high = 10.25f, erfc_center = 1.5f;
  static constexpr float mills_high = 14.5f, mills_exponent = 26, mills_slope = 0.4665f, mills_center = 1.2159f;

  static constexpr float gelu_tanh_high = 11;
  static constexpr int cube_bits = 16;  // without its last 16 bits a number has an exact cube
  static constexpr float linear_short = 0x1.98p0f, linear_tail = 0x1.08a67ap-9f;    // 2 √(2/π)
  static constexpr float cubic = 0x1.2444f2p-4f, cubic_tail = 0x1.49b16ap-29f;      // 0.044715 of that
};

template <>
struct Format<double> {
  static constexpr int mantissa = 52;
  static constexpr double bias = 1023;
  static constexpr double round = 0x1.8p52;
  static constexpr double min_normal = 0x1p-1022, denormal_scale = 0x1p52, denormal_shift = 52;
  static constexpr double two_thirds = 0x1.5555555555555p-1;

  static constexpr double ln2 = 0x1.62e42fefa39efp-1, ln2_tail = 0x1.abc9e3b39803fp-56;
  static constexpr double ln2_short = 0x1.62e42fef8p-1, ln2_short_tail = 0x1.1cf79abc9e3b4p-36;
  static constexpr double log2e = 0x1.71547652b82fep0, log2e_tail = 0x1.777d0ffda0d24p-56;
  static constexpr double log10e = 0x1.bcb7b1526e50ep-2, log10e_tail = 0x1.95355baaafad3p-57;
  static constexpr double log10_2 = 0x1.34413509f79ffp-2, log10_2_tail = -0x1.9dc1da994fd21p-59;

  static constexpr double exp_low = -760, exp_high = 710;
  static constexpr double tiny_exponent = 256, tiny = 0x1p-256;
  static constexpr double expm1_low = -40, expm1_high = 709.79;
  static constexpr double sinh_high = 710.5, tanh_high = 20;
  static constexpr double linear = 0x1p-55, quadratic = 0x1p50;
  static constexpr double erf_high = 5.95;
  static constexpr double erfc_high = 27.5, erfc_center = 3.078125;  // with it the first coefficient is nearly exact
  static constexpr double mills_high = 39, mills_center = 4;

  static constexpr double gelu_tanh_high = 22;
  static constexpr int cube_bits = 36;
  static constexpr double linear_short = 0x1.9884p0, linear_tail = 0x1.4cf50d942343fp-18;
  static constexpr double cubic = 0x1.2444f2a4d8b4bp-4, cubic_tail = -0x1.6c843a29d1c7p-61;
};

}  // namespace fusec::formulas
