// The table of what compiled kernels may call: the runtime, libm, and what code generation itself asks for.

#include "test/simt/symbols.h"

#include <cmath>
#include <cstring>

// Declared as bare names: only the addresses matter here, and a declaration with the right types stands where each is
// defined.
#define RUNTIME(X)                                                                                                                     \
  X(simt_is_thread) X(simt_is_block) X(simt_is_block_size) X(simt_is_grid_size) X(simt_is_rank) X(simt_is_cluster) X(simt_is_shared)   \
  X(simt_rt_access) X(simt_rt_range) X(simt_rt_step) X(simt_rt_barrier) X(simt_rt_named) X(simt_rt_warp) X(simt_rt_active)             \
  X(simt_rt_fence) X(simt_rt_proxy_fence) X(simt_rt_atomic) X(simt_rt_map) X(simt_rt_cluster_arrive) X(simt_rt_cluster_wait)           \
  X(simt_rt_mbarrier_init) X(simt_rt_mbarrier_fence) X(simt_rt_mbarrier_arrive) X(simt_rt_mbarrier_wait) X(simt_rt_bulk_load) X(simt_rt_st_async)                \
  X(simt_rt_bulk_store) X(simt_rt_cp_async) X(simt_rt_commit) X(simt_rt_wait_group) X(simt_rt_yield) X(simt_rt_trap)
#define MATH1(X)                                                                                                          \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) \
  X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(cbrt) X(round) X(lgamma) X(tgamma) X(floor) X(ceil) X(trunc) X(rint) X(nearbyint) X(sqrt)
#define MATH2(X) X(pow) X(atan2) X(fmod) X(hypot) X(remainder) X(fmin) X(fmax)

extern "C" {
#define DECLARE(name) void name();
RUNTIME(DECLARE)
}

namespace fusec::simt {
namespace {

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

using Float1 = float(float);
using Double1 = double(double);
using Float2 = float(float, float);
using Double2 = double(double, double);

}  // namespace

const Symbol kSymbols[] = {
#define ROW(name) {#name, address(name)},
    RUNTIME(ROW)
#define ROW1(name) {#name "f", address<Float1>(name##f)}, {#name, address<Double1>(name)},
        MATH1(ROW1)
#define ROW2(name) {#name "f", address<Float2>(name##f)}, {#name, address<Double2>(name)},
            MATH2(ROW2){"fmaf", address<float(float, float, float)>(fmaf)},
    {"fma", address<double(double, double, double)>(fma)},
    {"ldexpf", address<float(float, int)>(ldexpf)},
    {"ldexp", address<double(double, int)>(ldexp)},
    {"memcpy", address(memcpy)},
    {"memmove", address(memmove)},
    {"memset", address(memset)},
};
const unsigned kSymbolCount = sizeof kSymbols / sizeof kSymbols[0];

}  // namespace fusec::simt
