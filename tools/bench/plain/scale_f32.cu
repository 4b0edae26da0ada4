// By hand, for its compile time only: what somebody would write in a quarter of an hour.
extern "C" __global__ void __launch_bounds__(256) plain(const float4* a, float4* y, unsigned n) {
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float4 v = a[i];
  v.x *= 2.0f, v.y *= 2.0f, v.z *= 2.0f, v.w *= 2.0f;
  y[i] = v;
}
