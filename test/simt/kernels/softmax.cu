// A warp a row of bf16; no block barrier.
typedef unsigned u32;
typedef unsigned short u16;
struct Args { const u16* x; u16* y; int rows, columns; };

__device__ __forceinline__ float widen(u16 h) { return __uint_as_float((u32)h << 16); }
__device__ __forceinline__ u16 narrow(float f) {
  u32 u = __float_as_uint(f);
  return (u16)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
template <class F> __device__ __forceinline__ float fold(float v, F f) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v = f(v, __shfl_xor_sync(0xffffffffu, v, o));  //shuffle//
  return v;
}
extern "C" __global__ void __launch_bounds__(128) g0(const __grid_constant__ Args a) {
  int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= a.rows) return;  //guard//
  const u16* x = a.x + (size_t)row * a.columns;
  float m = -__int_as_float(0x7f800000), s = 0.f;
  for (int i = lane; i < a.columns; i += 32) m = fmaxf(m, widen(x[i]));  //load//
  m = fold(m, [](float p, float q) { return fmaxf(p, q); });
  for (int i = lane; i < a.columns; i += 32) s += __expf(widen(x[i]) - m);
  s = fold(s, [](float p, float q) { return p + q; });
  for (int i = lane; i < a.columns; i += 32) a.y[(size_t)row * a.columns + i] = narrow(__expf(widen(x[i]) - m) / s);
}
