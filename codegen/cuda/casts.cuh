// Conversions between compute types (lib/ir/convert.h): floats truncate to integers, saturate, NaN gives 0; integers wrap.
template <class I, class F> D I saturate(F x) {
  if (x != x) return (I)0;
  if (x <= (F)lowest<I>()) return lowest<I>();
  if (x >= (F)highest<I>()) return highest<I>();  // the bound rounds up to a power of two, which is already too large
  return (I)x;
}
template <class T> struct Cast {
  template <class F> static __device__ __forceinline__ T from(F x) { return (T)x; }
  static __device__ __forceinline__ T from(f32 x) {
#ifndef FUSEC_SIMT
    // Hardware truncates, saturates to 32 bits and turns NaN into 0.
    if constexpr (sizeof(T) <= 4 && is_signed<T>()) {
      const i32 n = __float2int_rz(x);
      return (T)(n < (i32)lowest<T>() ? (i32)lowest<T>() : n > (i32)highest<T>() ? (i32)highest<T>() : n);
    } else if constexpr (sizeof(T) <= 4) {
      const u32 n = __float2uint_rz(x);
      return (T)(n > (u32)highest<T>() ? (u32)highest<T>() : n);
    }
#endif
    return saturate<T>(x);
  }
  static __device__ __forceinline__ T from(f64 x) { return saturate<T>(x); }
};
template <> struct Cast<f32> { template <class F> static __device__ __forceinline__ f32 from(F x) { return (f32)x; } };
template <> struct Cast<f64> { template <class F> static __device__ __forceinline__ f64 from(F x) { return (f64)x; } };
template <> struct Cast<bool> { template <class F> static __device__ __forceinline__ bool from(F x) { return x != (F)0; } };
template <class T, class F> D T fusec_cast(F x) { return Cast<T>::from(x); }

// Of an x that is known to lie inside T, or is NaN.
template <class T> D T cast_inside(f32 x) {
#ifdef FUSEC_SIMT
  return saturate<T>(x);
#else
  return (T)__float2int_rz(x);
#endif
}

// To f32 on the way to a narrower float: rounded to odd, so that the rounding that follows is the only one.
D f32 odd(f64 x) {
  f32 y = (f32)x;
  const f64 a = x < 0 ? -x : x, b = y < 0 ? -(f64)y : (f64)y;
  if (a != b && x == x) {
    u32 u = bits(u32, y);
    if (b > a) u -= 1;  // towards zero
    y = bits(f32, u | 1);
  }
  return y;
}
D f32 odd(u64 m) {
  if (m >> 53) m = (m & ~0x7ffull) | ((m & 0x7ffull) ? 0x800ull : 0);
  return odd((f64)m);
}
D f32 odd(i64 m) { return m < 0 ? -odd((u64)0 - (u64)m) : odd((u64)m); }
D f32 odd(i32 m) { return odd((f64)m); }
D f32 odd(u32 m) { return odd((f64)m); }
template <class T> D f32 odd(T x) { return fusec_cast<f32>(x); }  // exact: f32, bool and integers of up to 16 bits
