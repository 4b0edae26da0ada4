#include "codegen/cuda/plain.h"

namespace fusec::cuda {

Code plain_read() {
  Code out;
  out.entry = "fusec_read";
  // Four loads of 16 bytes in flight a thread. What is read decides about a store, so the loads stay.
  out.text = R"(struct Args { const uint4* from; unsigned long long count; uint4* sink; };
extern "C" __global__ void __launch_bounds__(256, 8) fusec_read(const __grid_constant__ Args a) {
  unsigned x = 0;
  const unsigned long long step = (unsigned long long)gridDim.x * 256;
  unsigned long long i = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  for (; i + 3 * step < a.count; i += 4 * step) {
    const uint4 p = a.from[i], q = a.from[i + step], r = a.from[i + 2 * step], s = a.from[i + 3 * step];
    x |= p.x ^ p.y ^ p.z ^ p.w ^ q.x ^ q.y ^ q.z ^ q.w ^ r.x ^ r.y ^ r.z ^ r.w ^ s.x ^ s.y ^ s.z ^ s.w;
  }
  for (; i < a.count; i += step) {
    const uint4 p = a.from[i];
    x |= p.x ^ p.y ^ p.z ^ p.w;
  }
  if (x == 0x9e3779b9u) *a.sink = make_uint4(x, x, x, x);
}
)";
  return out;
}

Code plain_empty(size_t argument_bytes) {
  Code out;
  out.entry = "fusec_empty";
  out.text = "struct Args { unsigned long long words[" + std::to_string((argument_bytes + 7) / 8 + (argument_bytes == 0)) +
             "]; };\nextern \"C\" __global__ void fusec_empty(const __grid_constant__ Args a) {}\n";
  return out;
}

}  // namespace fusec::cuda
