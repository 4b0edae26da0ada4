// A tile of 32 x 32 floats through shared memory, padded by one word against bank conflicts.
struct Args { const float* x; float* y; int rows, columns; };

extern "C" __global__ void __launch_bounds__(256) g0(const __grid_constant__ Args a) {
  __shared__ float tile[32][33];
  int tx = threadIdx.x, ty = threadIdx.y, c = blockIdx.x * 32 + tx, r = blockIdx.y * 32 + ty;
  for (int k = 0; k < 32; k += 8)
    if (r + k < a.rows && c < a.columns) tile[ty + k][tx] = a.x[(size_t)(r + k) * a.columns + c];  //load//
  __syncthreads();  //barrier//
  c = blockIdx.y * 32 + tx, r = blockIdx.x * 32 + ty;
  for (int k = 0; k < 32; k += 8)
    if (r + k < a.columns && c < a.rows) a.y[(size_t)(r + k) * a.rows + c] = tile[tx][ty + k];  //store//
}
