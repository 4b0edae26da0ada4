// Column sums: 32 columns a block along x, rows split over gridDim.y; the last block of a strip adds the partial sums in order.
struct Args { const float* x; float* part; float* out; unsigned* ticket; int rows, columns; };

extern "C" __global__ void __launch_bounds__(256) g0(const __grid_constant__ Args a) {
  __shared__ float s[8][33];
  __shared__ bool last;
  int tx = threadIdx.x & 31, ty = threadIdx.x >> 5, c = blockIdx.x * 32 + tx;
  float sum = 0.f;
  for (int r = blockIdx.y * 8 + ty; r < a.rows; r += gridDim.y * 8)
    if (c < a.columns)  //tail//
      sum += a.x[(size_t)r * a.columns + c];  //load//
  s[ty][tx] = sum;
  __syncthreads();
  for (int h = 4; h; h >>= 1) {
    if (ty < h) s[ty][tx] += s[ty + h][tx];  //tree//
    __syncthreads();                         //tree-barrier//
  }
  if (ty == 0 && c < a.columns) a.part[(size_t)blockIdx.y * a.columns + c] = s[0][tx];  //part//
  __syncthreads();                                                                      //before//
  if (threadIdx.x == 0) {
    __threadfence();                                                                    //release//
    last = atomicAdd(&a.ticket[blockIdx.x], 1u) == gridDim.y - 1;                       //ticket//
    __threadfence();                                                                    //acquire//
  }
  __syncthreads();                                                                      //after//
  if (last) {                                                                           //last//
    if (threadIdx.x == 0) a.ticket[blockIdx.x] = 0;                                     //reset//
    if (ty == 0 && c < a.columns) {
      float t = 0.f;
      for (int k = 0; k < (int)gridDim.y; k++) t += a.part[(size_t)k * a.columns + c];  //combine//
      a.out[c] = t;
    }
  }
}
