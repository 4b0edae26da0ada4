#include "codegen/cuda/cuda.h"

namespace fusec::cuda {
namespace {

// Public figures of A100, H100/H200 and B200. Bytes in flight as in CUB's tuning (48 KiB on Hopper, 64 KiB on Blackwell); the copy
// rate of sm_90 was measured on an H200, the others are 90 % of the data sheets. Newest last.
const Device kDevices[] = {
    // sm  SMs  shared a block  L2 bytes    in flight   copy rate  cluster, ring
    {80, 108, 163 * 1024, 40 << 20, 16 << 10, 1.40e12, 1, false},
    {90, 132, 227 * 1024, 50 << 20, 48 << 10, 4.25e12, 16, true},
    {100, 148, 227 * 1024, 126 << 20, 64 << 10, 7.20e12, 16, true},
};

}  // namespace

Device device(int sm) {
  Device out = kDevices[0];
  for (const Device& d : kDevices)
    if (d.sm <= sm) out = d;
  out.sm = sm;
  return out;
}

}  // namespace fusec::cuda
