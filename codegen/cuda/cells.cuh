// Exact primitives as overloads on compute types; the cells of ops.def name them. Integers wrap, floats round to nearest even.
template <class T> struct Unsigned { typedef T type; };
template <> struct Unsigned<i8> { typedef u8 type; };
template <> struct Unsigned<i16> { typedef u16 type; };
template <> struct Unsigned<i32> { typedef u32 type; };
template <> struct Unsigned<i64> { typedef u64 type; };
template <class T> D constexpr bool is_signed() { return (T)-1 < (T)1; }
template <class T> D constexpr T lowest() { return is_signed<T>() ? (T)((u64)1 << (8 * sizeof(T) - 1)) : (T)0; }
template <class T> D constexpr T highest() { return (T)~lowest<T>(); }
template <> __device__ constexpr bool is_signed<bool>() { return false; }
template <> __device__ constexpr bool highest<bool>() { return true; }
template <> __device__ constexpr f32 lowest<f32>() { return -__builtin_bit_cast(f32, 0x7f800000u); }
template <> __device__ constexpr f32 highest<f32>() { return __builtin_bit_cast(f32, 0x7f800000u); }
template <> __device__ constexpr f64 lowest<f64>() { return -__builtin_bit_cast(f64, 0x7ff0000000000000ull); }
template <> __device__ constexpr f64 highest<f64>() { return __builtin_bit_cast(f64, 0x7ff0000000000000ull); }

template <class T> D T fusec_one(T) { return (T)1; }
template <class T> D T fusec_zero(T) { return (T)0; }
template <class T> D bool fusec_is_nan(T x) { return x != x; }
template <class T> D bool fusec_is_finite(T x) { return x - x == x - x; }
template <class T> D bool fusec_is_inf(T x) { return x == x && !fusec_is_finite(x); }

// Integers. Arithmetic goes through the unsigned type of the same width, which wraps; narrower ones are cut by the cast back.
#define W(op) (T)(typename Unsigned<T>::type)((typename Unsigned<T>::type)x op (typename Unsigned<T>::type)y)
template <class T> D T fusec_add(T x, T y) { return W(+); }
template <class T> D T fusec_sub(T x, T y) { return W(-); }
template <class T> D T fusec_mul(T x, T y) {
  if constexpr (sizeof(T) < 4) return (T)((u32)x * (u32)y);  // not int * int, which u16 could overflow
  else return W(*);
}
template <class T> D T fusec_and(T x, T y) { return (T)(x & y); }
template <class T> D T fusec_or(T x, T y) { return (T)(x | y); }
template <class T> D T fusec_xor(T x, T y) { return (T)(x ^ y); }
template <class T> D T fusec_min(T x, T y) { return y < x ? y : x; }
template <class T> D T fusec_max(T x, T y) { return x < y ? y : x; }
#undef W
template <class T> D T fusec_neg(T x) { return fusec_sub((T)0, x); }
template <class T> D T fusec_abs(T x) { return is_signed<T>() && x < (T)0 ? fusec_sub((T)0, x) : x; }
#ifndef FUSEC_SIMT
// Two minima of i32, one of the other, become one instruction of three operands on sm_90 and sm_100 (VIMNMX3), and ptxas 13.0 drops the sign where
// the middle one is a negation: max(max(-a, b), c) comes out as max(max(a, b), c). An identity that ptxas does not see through keeps them apart.
D i32 opaque(i32 x) { asm("prmt.b32 %0, %0, 0, 0x3210;" : "+r"(x)); return x; }
// The same for f32: NVVM 13.0 does not fold inf - inf of constants, and yet takes it for a number where it is compared with itself.
D f32 opaque(f32 x) { return bits(f32, opaque(bits(i32, x))); }
D i32 fusec_min(i32 x, i32 y) { return opaque(y < x ? y : x); }
D i32 fusec_max(i32 x, i32 y) { return opaque(x < y ? y : x); }
D i32 fusec_neg(i32 x) { return opaque((i32)(0 - (u32)x)); }
#else
D f32 opaque(f32 x) { return x; }
#endif
template <class T> D T fusec_sign(T x) { return (T)((x > (T)0) - (x < (T)0)); }
template <class T> D T fusec_bitwise_not(T x) { return (T)~x; }
D bool fusec_bitwise_not(bool x) { return !x; }
// Total division: by zero gives 0, the lowest value by -1 wraps to itself.
template <class T> D T fusec_trunc_div(T x, T y) {
  if (y == (T)0) return (T)0;
  if (is_signed<T>() && y == (T)-1) return fusec_neg(x);
  return (T)(x / y);
}
template <class T> D T fusec_trunc_mod(T x, T y) {
  if (y == (T)0 || is_signed<T>() && y == (T)-1) return (T)0;
  return (T)(x % y);
}
template <class T> D T fusec_div(T x, T y) { return fusec_trunc_div(x, y); }
template <class T> D T fusec_floor_div(T x, T y) {
  const T q = fusec_trunc_div(x, y), r = fusec_trunc_mod(x, y);
  return r != (T)0 && (r < (T)0) != (y < (T)0) ? (T)(q - (T)1) : q;
}
template <class T> D T fusec_floor_mod(T x, T y) {
  const T r = fusec_trunc_mod(x, y);
  return r != (T)0 && (r < (T)0) != (y < (T)0) ? (T)(r + y) : r;
}
// A count outside 0 .. width-1, negative ones included, shifts everything out.
template <class T> D T fusec_shl(T x, T y) {
  typedef typename Unsigned<T>::type U;
  return (U)y < (U)(8 * sizeof(T)) ? (T)(U)((u64)(U)x << (u32)(U)y) : (T)0;
}
template <class T> D T fusec_shr(T x, T y) {
  typedef typename Unsigned<T>::type U;
  if ((U)y < (U)(8 * sizeof(T))) return (T)(x >> (u32)(U)y);
  return x < (T)0 ? (T)-1 : (T)0;
}

// Floats, a declaration each: a text gets only those that it reaches (prune.h), and those of f64 only where it computes in f64.
D f32 fusec_add(f32 x, f32 y) { return x + y; }
D f32 fusec_sub(f32 x, f32 y) { return x - y; }
D f32 fusec_mul(f32 x, f32 y) { return x * y; }
D f32 fusec_div(f32 x, f32 y) { return x / y; }
D f32 fusec_neg(f32 x) { return bits(f32, bits(u32, x) ^ 0x80000000u); }
D f32 fusec_abs(f32 x) { return bits(f32, bits(u32, x) & ~0x80000000u); }
D f32 fusec_sign(f32 x) { return x != x ? x : (f32)((x > 0) - (x < 0)); }
D f32 fusec_ceil(f32 x) { return ceilf(x); }
D f32 fusec_floor(f32 x) { return floorf(x); }
D f32 fusec_round_even(f32 x) { return rintf(x); }
D f32 fusec_trunc(f32 x) { return truncf(x); }
D f32 fusec_sqrt(f32 x) { return sqrtf(x); }
D f32 fusec_fma(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
D f32 fusec_copysign(f32 x, f32 y) { return bits(f32, (bits(u32, x) & ~0x80000000u) | (bits(u32, y) & 0x80000000u)); }
D f32 fusec_trunc_mod(f32 x, f32 y) { return fmodf(x, y); }
D f64 fusec_add(f64 x, f64 y) { return x + y; }
D f64 fusec_sub(f64 x, f64 y) { return x - y; }
D f64 fusec_mul(f64 x, f64 y) { return x * y; }
D f64 fusec_div(f64 x, f64 y) { return x / y; }
D f64 fusec_neg(f64 x) { return bits(f64, bits(u64, x) ^ 0x8000000000000000ull); }
D f64 fusec_abs(f64 x) { return bits(f64, bits(u64, x) & ~0x8000000000000000ull); }
D f64 fusec_sign(f64 x) { return x != x ? x : (f64)((x > 0) - (x < 0)); }
D f64 fusec_ceil(f64 x) { return ceil(x); }
D f64 fusec_floor(f64 x) { return floor(x); }
D f64 fusec_round_even(f64 x) { return rint(x); }
D f64 fusec_trunc(f64 x) { return trunc(x); }
D f64 fusec_sqrt(f64 x) { return sqrt(x); }
D f64 fusec_fma(f64 x, f64 y, f64 z) { return fma(x, y, z); }
D f64 fusec_copysign(f64 x, f64 y) { return bits(f64, (bits(u64, x) & ~0x8000000000000000ull) | (bits(u64, y) & 0x8000000000000000ull)); }
D f64 fusec_trunc_mod(f64 x, f64 y) { return fmod(x, y); }
template <class F> D F float_trunc_div(F x, F y) {
  const F plain = x / y;
  if (!(plain - plain == 0) || plain == 0) return plain;
  return fusec_copysign(fusec_round_even((x - fusec_trunc_mod(x, y)) / y), plain);
}
template <class F> D F float_floor_mod(F x, F y) {
  const F r = fusec_trunc_mod(x, y);
  if (r == 0) return fusec_copysign((F)0, y);
  return (r < 0) != (y < 0) ? r + y : r;
}
template <class F> D F float_floor_div(F x, F y) {
  if (y == 0) return x / y;
  const F r = fusec_trunc_mod(x, y);
  F q = (x - r) / y;
  if (r != 0 && (r < 0) != (y < 0)) q -= 1;
  if (q == 0) return fusec_copysign((F)0, x / y);
  const F f = fusec_floor(q);
  return q - f > (F)0.5 ? f + 1 : f;
}
D f32 fusec_trunc_div(f32 x, f32 y) { return float_trunc_div(x, y); }
D f32 fusec_floor_mod(f32 x, f32 y) { return float_floor_mod(x, y); }
D f32 fusec_floor_div(f32 x, f32 y) { return float_floor_div(x, y); }
D f64 fusec_trunc_div(f64 x, f64 y) { return float_trunc_div(x, y); }
D f64 fusec_floor_mod(f64 x, f64 y) { return float_floor_mod(x, y); }
D f64 fusec_floor_div(f64 x, f64 y) { return float_floor_div(x, y); }
// Division of a vector by one number: its reciprocal once, then two corrections by fma, which round as the division does where no
// step under- or overflows (Cornea, Harrison & Tang, "Scientific Computing on Itanium", theorem of Markstein).
struct Divisor {
  f32 d, r;
  bool safe;
};
D Divisor divisor(f32 d) {
  const f32 a = fusec_abs(d);
  return {d, 1.0f / d, a >= bits(f32, 0x2b800000u) && a <= bits(f32, 0x53800000u)};  // 2^-40 .. 2^40
}
// `bad`: x is out of range, and the result is not to be used.
D f32 over(f32 x, const Divisor& g, bool& bad) {
  const f32 q0 = x * g.r, q1 = fmaf(fmaf(-q0, g.d, x), g.r, q0), q = fmaf(fmaf(-q1, g.d, x), g.r, q1);
  bad |= (bits(u32, x) & 0x7fffffffu) - 0x21800000u > 0x3c000000u && x != 0;  // 2^-60 .. 2^60
  return x == 0 ? q0 : q;
}

// The same for x from an integer of up to 16 bits: 0 or 1 .. 65535, always in range.
D f32 over_small(f32 x, const Divisor& g) {
  const f32 q0 = x * g.r, q1 = fmaf(fmaf(-q0, g.d, x), g.r, q0);
  return fmaf(fmaf(-q1, g.d, x), g.r, q1);
}

// The same of bf16 by bf16, for a result that is rounded to bf16: a quotient of two numbers of 8 bits is no midpoint of 9 bits, and stays 2^-17
// away from each, so that a reciprocal and a product, within 2^-21, round as the quotient does (all pairs were compared). A divisor
// below 2^-126, whose reciprocal is too large, is scaled.
struct NarrowDivisor {
  f32 r, scale;
};
D NarrowDivisor narrow_divisor(f32 d) {
  const f32 scale = fusec_abs(d) < bits(f32, 0x00800000u) ? bits(f32, 0x5f800000u) : 1.0f;  // 2^64
  return {1.0f / (d * scale), scale};
}
D f32 over_bf16(f32 x, const NarrowDivisor& g) { return x * g.r * g.scale; }

// NaN in, NaN out; of zeros of both signs the first operand, as the reference has it.
D f32 fusec_min(f32 x, f32 y) { return y < x || y != y ? y : x; }
D f32 fusec_max(f32 x, f32 y) { return x < y || y != y ? y : x; }
D f64 fusec_min(f64 x, f64 y) { return y < x || y != y ? y : x; }
D f64 fusec_max(f64 x, f64 y) { return x < y || y != y ? y : x; }

// min and max inside reductions, where no order of zeros is promised: one instruction.
template <class T> D T least(T x, T y) { return fusec_min(x, y); }
template <class T> D T greatest(T x, T y) { return fusec_max(x, y); }
#ifndef FUSEC_SIMT
D f32 least(f32 x, f32 y) { f32 r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
D f32 greatest(f32 x, f32 y) { f32 r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); return r; }
#endif

// Inside composites that grant fewer terms (kFewerTerms): within 2^-22 of 2^x, and within 2^-18 of e^x, where half a unit of f16
// is 2^-12.
#define kLog2e 1.44269504f  /* a constant would be a variable of every module */
D f32 exp2_few(f32 x) {
#ifdef FUSEC_SIMT
  return simt_exp2(x);
#else
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
D f32 exp_few(f32 x) { return exp2_few(x * kLog2e); }
// e^(x - m) as exp2_few(x k - m k), k = log2 e; what the rounding of m k did is taken out in the end. Where m k reaches 2^31 that is up to
// 2^128, which no f32 holds; all x but m itself lie at least 64 below m there, so that a power of two will do for k: nothing is rounded.
D f32 log2e_at(f32 m) { return fabsf(m) < 0x1.6p30f ? kLog2e : fabsf(m) < 0x1p126f ? 2.0f : 0.5f; }
D f32 scaled(f32 m) { return m * log2e_at(m); }
// exp inside softmax of f32 (kNear): 2^h e^d, h = x log2 e rounded, d = x - h ln 2 what the rounding left. Within 3 ulp, results below
// 2^-126 are 0; x <= 88. Six instructions where the formula has eighteen.
D f32 exp_near(f32 x) {
  x = greatest(x, -150.0f);  // -inf would meet an infinite h
  const f32 h = x * kLog2e, e = exp2_few(h);
  return fmaf(e, fmaf(h, bits(f32, 0x3102e308u), fmaf(h, bits(f32, 0xbf317218u), x)), e);  // ln 2 in two parts
}
// exp(x - m) / sum of a row, an element: of few terms 2^(x k - m k) times a number of the row; its numbers, from m and 1 / sum.
struct RowExp {
  f32 factor, shift, level, slope;
};
D RowExp few_of_row(f32 m, f32 inverse) {
  const f32 k = log2e_at(m), s = scaled(m);
  return {k, s, inverse * exp2_few(-fmaf(m, k, -s)), 0.0f};
}
D f32 few_in_row(f32 x, const RowExp& row) { return exp2_few(fmaf(x, row.factor, -row.shift)) * row.level; }
// The same of bytes (kNear), lifted (prelude.cuh). k is log2 e to 17 places behind the point, so that the lifted m k is rounded to 8 of them, and
// h = x k - m k not at all, where 2^h is no less than 2^-128. e^(x - m) is then 2^h (1 + h d) 2^-r: d is what log2 e is beside k, in units of e^h, and
// r what the rounding did. Within 3 ulp, results below 2^-126 are 0.
#define kLog2eOfBytes (189097.0f / 131072.0f)
#define kRestOfBytes -2.7711885e-7f  /* (log2 e / k - 1) ln 2 */
D RowExp bytes_of_row(f32 m, f32 inverse) {
  m = greatest(m, 32768.0f);  // nothing is there
  const f32 s = m * kLog2eOfBytes, r = fmaf(m, kLog2eOfBytes, -s) * bits(f32, 0x3f317218u);  // ln 2
  const f32 level = fmaf(inverse, r * fmaf(r, 0.5f, -1.0f), inverse);                          // e^-r
  return {kLog2eOfBytes, s, level, kRestOfBytes * level};
}
D f32 bytes_in_row(f32 x, const RowExp& row) {
  const f32 h = fmaf(x, kLog2eOfBytes, -row.shift);
  return exp2_few(h) * fmaf(h, row.slope, row.level);
}
D f32 rcp_few(f32 x) {
#ifdef FUSEC_SIMT
  return 1.0f / x;
#else
  f32 y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
// 1 / x rounded as a division rounds it, for x from 2^-60 to 2^60: what the compiler makes of a division, without its guards.
D f32 rcp_plain(f32 x) {
#ifdef FUSEC_SIMT
  return 1.0f / x;
#else
  const f32 y = rcp_few(x);
  return fmaf(y, fmaf(-x, y, 1.0f), y);
#endif
}
// 1 / sqrt(x), both rounded to nearest: instruction by instruction what the compiler makes of them where its fast ways hold, from 2^-100 on
// (sm_80 to sm_120, CUDA 13.0); what is below is scaled to there, by powers of two that round nothing. Its guards and calls for the rest are a
// quarter of layer_norm's code and 5 ms of its compilation.
D f32 rsqrt_plain(f32 x) {
#ifdef FUSEC_SIMT
  return 1.0f / sqrtf(x);
#else
  const bool small = x < 0x1p-100f;
  const f32 y = small ? x * 0x1p64f : x;
  f32 r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  const f32 g = y * r, root = fmaf(fmaf(-g, g, y), r * 0.5f, g), q = rcp_plain(root);
  return !(y > 0.0f && y < bits(f32, 0x7f800000u)) ? r : small ? q * 0x1p32f : q;  // r of zeros, infinity, NaN and below 0 is exact
#endif
}
// Under Numerics::fast, too: within 2^-18 where operands and results are normal numbers below 2^126. e^-x is scaled so that neither it nor its
// reciprocal overflows.
D f32 div_few(f32 x, f32 y) { return x * rcp_few(y); }
D f32 sigmoid_few(f32 x) { return rcp_few(least(exp2_few(fmaf(x, -kLog2e, -16.0f)), 0x1p125f) + 0x1p-16f) * 0x1p-16f; }
D f32 silu_few(f32 x) { return greatest(x, -98.0f) * sigmoid_few(x); }
// silu of a bf16 for a bf16, in strict mode, too: rounded to bf16 it has the bits of the formula (formula_narrow.h says why) in 7 instructions
// instead of 19. Of other operands it has not.
D f32 silu_of_bf16(f32 x) {
  x = greatest(x, -98.0f);
  return x * 0x1.000022p-16f * rcp_few(exp2_few(fmaf(x, -kLog2e, -16.0f)) + 0x1p-16f);
}
