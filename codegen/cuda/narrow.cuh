// f16, bf16 and f8: storage to f32 and back, one rounding to nearest even (lib/ir/convert.h says what overflow gives).
// Integer versions for the host, and for f8 on devices before sm_89. E exponent bits, M mantissa bits; FN: no infinity.
template <int E, int M, bool FN> D u32 encode(f32 value) {
  const u32 x = bits(u32, value), sign = x >> 31 << (E + M), a = x & 0x7fffffffu;
  const u32 nan = (1u << (E + M)) - 1, beyond = FN ? nan : nan >> M << M, bias = (1 << (E - 1)) - 1;
  if (a > 0x7f800000u) return sign | (FN ? nan : beyond | 1u << (M - 1));
  const int exponent = (int)(a >> 23) - 127, lowest_exponent = 1 - (int)bias;
  if (exponent > (int)bias + 1) return sign | beyond;
  if (exponent < lowest_exponent - M - 1 || a < 0x00800000u && E < 8) return sign;
  const int below = exponent < lowest_exponent ? lowest_exponent - exponent : 0, shift = 23 - M + below;
  const u32 whole = (a >> 23 ? (a & 0x7fffffu) | 0x800000u : a), half = 1u << (shift - 1), rest = whole & (2 * half - 1);
  u32 units = whole >> shift;
  units += rest > half || rest == half && (units & 1);
  const u32 result = ((below ? 0u : (u32)(exponent - lowest_exponent)) << M) + units;
  return sign | (result > beyond ? beyond : result);
}
template <int E, int M, bool FN> D f32 decode(u32 x) {
  const u32 sign = x >> (E + M) << 31, a = x & ((1u << (E + M)) - 1), exponent = a >> M, mantissa = a & ((1u << M) - 1);
  if (FN ? a == (1u << (E + M)) - 1 : exponent == (1u << E) - 1)
    return bits(f32, sign | 0x7f800000u | (FN ? 0x400000u : mantissa << (23 - M)));
  // 2^(1 - bias - M), exact: a subnormal is its mantissa times this.
  if (!exponent) return bits(f32, sign | bits(u32, (f32)mantissa * bits(f32, (u32)(128 - (1 << (E - 1)) + 1 - M + 0) << 23)));
  return bits(f32, sign | (exponent + 128 - (1 << (E - 1))) << 23 | mantissa << (23 - M));
}

D f32 from_f16(u32 x) {
#ifdef FUSEC_SIMT
  return decode<5, 10, false>(x & 0xffffu);
#else
  f32 y;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(y) : "r"(x));
  return y;
#endif
}
D u32 pair_f16(f32 low, f32 high) {
#ifdef FUSEC_SIMT
  return encode<5, 10, false>(low) | encode<5, 10, false>(high) << 16;
#else
  u32 y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#endif
}
D f32 from_bf16(u32 x) { return bits(f32, x << 16); }
D u32 pair_bf16(f32 low, f32 high) {
#ifdef FUSEC_SIMT
  const u32 a = bits(u32, low), b = bits(u32, high);
  const u32 l = low != low ? 0x7fffu : (a + 0x7fffu + (a >> 16 & 1)) >> 16, h = high != high ? 0x7fffu : (b + 0x7fffu + (b >> 16 & 1)) >> 16;
  return l | h << 16;
#else
  u32 y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#endif
}
#if !defined(FUSEC_SIMT) && __CUDA_ARCH__ >= 890
#define FUSEC_F8_CVT 1
#endif
// Two f8 as the two halves of an f16 pair: every f8 value is an f16 value.
D u32 halves_f8e4m3(u32 x) {
#ifdef FUSEC_F8_CVT
  u32 y;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rn.f16x2.e4m3x2 %0, l;}" : "=r"(y) : "r"(x));
  return y;
#else
  return pair_f16(decode<4, 3, true>(x & 0xff), decode<4, 3, true>(x >> 8 & 0xff));
#endif
}
D u32 halves_f8e5m2(u32 x) { return (x & 0xff) << 8 | (x >> 8 & 0xff) << 24; }
D u32 pair_f8e4m3(f32 low, f32 high) {
#ifdef FUSEC_F8_CVT
  const f32 nan = bits(f32, 0x7fffffffu);  // hardware saturates; beyond 464 the result is NaN
  u32 y;
  asm("{.reg .b16 l; cvt.rn.satfinite.e4m3x2.f32 l, %1, %2; cvt.u32.u16 %0, l;}"
      : "=r"(y) : "f"(fabsf(high) > 464.0f ? nan : high), "f"(fabsf(low) > 464.0f ? nan : low));
  return y;
#else
  return encode<4, 3, true>(low) | encode<4, 3, true>(high) << 8;
#endif
}
D u32 pair_f8e5m2(f32 low, f32 high) {
#ifdef FUSEC_F8_CVT
  u32 y;
  asm("{.reg .b16 l; cvt.rn.satfinite.e5m2x2.f32 l, %1, %2; cvt.u32.u16 %0, l;}" : "=r"(y) : "f"(high), "f"(low));
  // Hardware saturates; from 61440, half way above 57344, the result is an infinity.
  if (fabsf(low) >= 61440.0f) y = (y & 0xff80u) | 0x7cu;
  if (fabsf(high) >= 61440.0f) y = (y & 0x80ffu) | 0x7c00u;
  return y;
#else
  return encode<5, 2, false>(low) | encode<5, 2, false>(high) << 8;
#endif
}
D f32 round_f16(f32 x) { return from_f16(pair_f16(x, 0.0f)); }
D f32 round_bf16(f32 x) { return from_bf16(pair_bf16(x, 0.0f)); }
D f32 round_f8e4m3(f32 x) { return from_f16(halves_f8e4m3(pair_f8e4m3(x, 0.0f))); }
D f32 round_f8e5m2(f32 x) { return from_f16(halves_f8e5m2(pair_f8e5m2(x, 0.0f))); }

#define FUSEC_HALF(T, LOW, HIGH)                                                                       \
  template <int V, int B> D void unpack_##T(const Words<B>& r, f32 (&x)[V]) {                          \
    _Pragma("unroll") for (int e = 0; e < V; ++e) x[e] = e % 2 ? HIGH(r.w[e / 2]) : LOW(r.w[e / 2]);   \
  }                                                                                                    \
  template <int V, int B> D void pack_##T(Words<B>& r, const f32 (&x)[V]) {                            \
    _Pragma("unroll") for (int e = 0; e < V; e += 2) r.w[e / 2] = pair_##T(x[e], e + 1 < V ? x[e + 1 < V ? e + 1 : e] : 0.0f); \
  }
D f32 high_f16(u32 x) { return from_f16(x >> 16); }
D f32 high_bf16(u32 x) { return bits(f32, x & 0xffff0000u); }
FUSEC_HALF(f16, from_f16, high_f16)
FUSEC_HALF(bf16, from_bf16, high_bf16)
#define FUSEC_F8(T)                                                                                    \
  template <int V, int B> D void unpack_##T(const Words<B>& r, f32 (&x)[V]) {                          \
    _Pragma("unroll") for (int e = 0; e < V; e += 2) {                                                 \
      const u32 h = halves_##T(r.w[e / 4] >> 8 * (e % 4));                                             \
      x[e] = from_f16(h);                                                                              \
      if (e + 1 < V) x[e + 1 < V ? e + 1 : e] = from_f16(h >> 16);                                     \
    }                                                                                                  \
  }                                                                                                    \
  template <int V, int B> D void pack_##T(Words<B>& r, const f32 (&x)[V]) {                            \
    clear(r);                                                                                          \
    _Pragma("unroll") for (int e = 0; e < V; e += 2)                                                   \
      r.w[e / 4] |= pair_##T(x[e], e + 1 < V ? x[e + 1 < V ? e + 1 : e] : 0.0f) << 8 * (e % 4);        \
  }
FUSEC_F8(f8e4m3)
FUSEC_F8(f8e5m2)

// Two f16 or bf16 at a time. One fma of the type rounds once; an operation in f32 rounded to the type gives the same bits for sums,
// differences and products (24 bits are 2p + 2 and more: Figueroa, "When is double rounding innocuous?", 1995; products of bf16 in
// f32's subnormal range would need 17 bits to differ). So the graph's roundings cost half an instruction, not three.
D u32 pair_fma_f16(u32 x, u32 y, u32 z) {
#if defined(FUSEC_SIMT) || __CUDA_ARCH__ < 800
  return pair_f16(fmaf(from_f16(x), from_f16(y), from_f16(z)), fmaf(high_f16(x), high_f16(y), high_f16(z)));
#else
  u32 r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  return r;
#endif
}
D u32 pair_fma_bf16(u32 x, u32 y, u32 z) {
#if defined(FUSEC_SIMT) || __CUDA_ARCH__ < 800
  return pair_bf16(fmaf(from_bf16(x), from_bf16(y), from_bf16(z)), fmaf(high_bf16(x), high_bf16(y), high_bf16(z)));
#else
  u32 r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  return r;
#endif
}
// x * 1 + y, y * -1 + x, x * y + -0.
D u32 pair_add_f16(u32 x, u32 y) { return pair_fma_f16(x, 0x3c003c00u, y); }
D u32 pair_sub_f16(u32 x, u32 y) { return pair_fma_f16(y, 0xbc00bc00u, x); }
D u32 pair_mul_f16(u32 x, u32 y) { return pair_fma_f16(x, y, 0x80008000u); }
D u32 pair_add_bf16(u32 x, u32 y) { return pair_fma_bf16(x, 0x3f803f80u, y); }
D u32 pair_sub_bf16(u32 x, u32 y) { return pair_fma_bf16(y, 0xbf80bf80u, x); }
D u32 pair_mul_bf16(u32 x, u32 y) { return pair_fma_bf16(x, y, 0x80008000u); }
