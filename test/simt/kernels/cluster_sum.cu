// A row over a cluster of 4 blocks; block sums go to every peer through distributed shared memory.
struct Args { const float* x; float* out; int columns; };

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128) g0(const __grid_constant__ Args a) {
  extern __shared__ __align__(16) unsigned char bytes[];
  float* s = reinterpret_cast<float*>(bytes);
  __shared__ float peer[4];
  unsigned rank = simt_cluster_rank(), row = blockIdx.x / 4;
  float v = 0.f;
  for (int i = rank * 128 + threadIdx.x; i < a.columns; i += 512) v += a.x[(size_t)row * a.columns + i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int h = 64; h >= 32; h >>= 1) {
    if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];  //tree//
    __syncthreads();                                            //tree-barrier//
  }
  if (threadIdx.x < 32) {
    v = s[threadIdx.x];  //last-warp//
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    v = __shfl_sync(~0u, v, 0);
    if (threadIdx.x < 4) simt_cluster_map(peer, threadIdx.x)[rank] = v;  //remote//
  }
  simt_cluster_arrive(), simt_cluster_wait();                            //meet//
  if (threadIdx.x == 0 && rank == 0) a.out[row] = peer[0] + peer[1] + peer[2] + peer[3];  //sum//
}
