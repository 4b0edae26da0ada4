// A block a row of 1024 floats, two sums, rows by grid stride. //NAME// comments mark what the tests take away or expect a report at.
typedef unsigned u32;
struct Args { const float* x; const float* w; const float* b; float* y; u32 rows; float eps; };

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
__device__ __forceinline__ float block_sum(float v, float* s) {
  v = warp_sum(v);
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;  //write//
  __syncthreads();                                       //publish//
  v = s[threadIdx.x & 7];                                //read//
#pragma unroll
  for (int o = 4; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
extern "C" __global__ void __launch_bounds__(256) g0(const __grid_constant__ Args a) {
  __shared__ float s0[8], s1[8];
  for (u32 row = blockIdx.x; row < a.rows; row += gridDim.x) {
    float4 v = __ldcs(reinterpret_cast<const float4*>(a.x) + (size_t)row * 256 + threadIdx.x);  //load//
    float mean = block_sum(v.x + v.y + v.z + v.w, s0) * (1.f / 1024.f);                         //first//
    v.x -= mean, v.y -= mean, v.z -= mean, v.w -= mean;
    float q = fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, v.w * v.w)));
    float r = rsqrtf(block_sum(q, s1) * (1.f / 1024.f) + a.eps);                                //second//
    float4 w = __ldg(reinterpret_cast<const float4*>(a.w) + threadIdx.x), b = __ldg(reinterpret_cast<const float4*>(a.b) + threadIdx.x);
    float4 y = make_float4(fmaf(v.x * r, w.x, b.x), fmaf(v.y * r, w.y, b.y), fmaf(v.z * r, w.z, b.z), fmaf(v.w * r, w.w, b.w));
    __stcs(reinterpret_cast<float4*>(a.y) + (size_t)row * 256 + threadIdx.x, y);                //store//
  }
}
