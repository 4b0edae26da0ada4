// By hand, for its compile time only: what somebody would write in a quarter of an hour.
typedef unsigned short bf16;  // as bits
__device__ __forceinline__ float up(bf16 x) { return __uint_as_float((unsigned)x << 16); }
__device__ __forceinline__ bf16 down(float x) { const unsigned b = __float_as_uint(x); return (b + 0x7fff + (b >> 16 & 1)) >> 16; }
extern "C" __global__ void __launch_bounds__(256) plain(const bf16* q, const bf16* c, const bf16* s, bf16* y, unsigned n) {
  const unsigned i = blockIdx.x * 256 + threadIdx.x;  // a pair of halves
  if (i >= n) return;
  const unsigned row = i / 64, k = i % 64, t = row % 4096 * 64 + k;
  const float a = up(q[row * 128 + k]), b = up(q[row * 128 + 64 + k]), u = up(c[t]), v = up(s[t]);
  y[row * 128 + k] = down(up(down(a * u)) - up(down(b * v)));
  y[row * 128 + 64 + k] = down(up(down(b * u)) + up(down(a * v)));
}
