// Matrix products through OpenBLAS, opened when first used: nobody who runs no whole model needs it.

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "runtime/extern.h"

namespace fusec {
namespace {

// cblas.h: row-major, (no) transpose. 32-bit sizes, as in distributions' libopenblas.so.0.
constexpr int kRowMajor = 101, kAsIs = 111, kTransposed = 112;
using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
using Sgemv = void (*)(int order, int transpose, int m, int n, float alpha, const float* a, int lda, const float* x, int step_x,
                       float beta, float* y, int step_y);

constexpr int64_t kBlock = 32;    // rows or columns that go to one thread
constexpr int64_t kPerStep = 16;  // products in the time of one plain operation

struct Library {
  Sgemm sgemm = nullptr;
  Sgemv sgemv = nullptr;
  std::string fault;
};

const Library& library() {
  static const Library kLibrary = [] {
    Library out;
    const char* named = std::getenv("FUSEC_BLAS");
    const char* name = named && *named ? named : "libopenblas.so.0";
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle) out.sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "cblas_sgemm"));
    if (handle) out.sgemv = reinterpret_cast<Sgemv>(dlsym(handle, "cblas_sgemv"));
#if FUSEC_HAS_CPU
    if (handle)
      if (void* set = dlsym(handle, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(1);
#endif
    if (!out.sgemm || !out.sgemv) {
      const char* why = dlerror();
      out.fault =
          std::string("matrix products of whole models need OpenBLAS (Debian: libopenblas0): ") + (why ? why : name);
    }
    return out;
  }();
  return kLibrary;
}

}  // namespace

Status product_library() { return library().fault.empty() ? Status(Done{}) : Status(environment_error(library().fault)); }

Status product(const Product& p, const float* a, const float* b, float* c) {
  if (Status s = product_library(); !s) return s;
  for (int64_t size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc})
    if (size > std::numeric_limits<int>::max()) return input_error("a matrix of more than 2^31 rows or columns");
  if (p.m == 0 || p.n == 0) return Done{};
  const auto narrow = [](int64_t x) { return static_cast<int>(std::max<int64_t>(x, 1)); };
  // One row or one column is no matrix: sgemm would pack the other operand first, which takes longer than the product.
  const auto part = [&](int64_t rows, int64_t columns, const float* left, const float* right, float* out) {
    const int k = static_cast<int>(p.k);
    const bool vector = k > 0 && (rows == 1 || columns == 1);
    for (int64_t i = 0; vector && p.beta == 0 && i < std::max(rows, columns); ++i) out[i * (rows == 1 ? 1 : p.ldc)] = 0;  // 0 * NaN is NaN
    const float beta = p.beta == 0 ? 1 : p.beta;
    if (vector && rows == 1)
      return library().sgemv(kRowMajor, p.transpose_b ? kAsIs : kTransposed, p.transpose_b ? static_cast<int>(columns) : k,
                             p.transpose_b ? k : static_cast<int>(columns), p.alpha, right, narrow(p.ldb), left,
                             p.transpose_a ? narrow(p.lda) : 1, beta, out, 1);
    if (vector)
      return library().sgemv(kRowMajor, p.transpose_a ? kTransposed : kAsIs, p.transpose_a ? k : static_cast<int>(rows),
                             p.transpose_a ? static_cast<int>(rows) : k, p.alpha, left, narrow(p.lda), right,
                             p.transpose_b ? 1 : narrow(p.ldb), beta, out, narrow(p.ldc));
    library().sgemm(kRowMajor, p.transpose_a ? kTransposed : kAsIs, p.transpose_b ? kTransposed : kAsIs, static_cast<int>(rows),
                    static_cast<int>(columns), k, p.alpha, left, narrow(p.lda), right, narrow(p.ldb), p.beta, out,
                    narrow(p.ldc));
  };
  const int64_t work = std::max<int64_t>(p.k, 1) * kBlock / kPerStep;
  if (p.m > p.n)
    extern_parallel((p.m + kBlock - 1) / kBlock, work * p.n, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kBlock, rows = std::min(p.m, end * kBlock) - first;
      part(rows, p.n, a + first * (p.transpose_a ? 1 : p.lda), b, c + first * p.ldc);
    });
  else
    extern_parallel((p.n + kBlock - 1) / kBlock, work * p.m, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kBlock, columns = std::min(p.n, end * kBlock) - first;
      part(p.m, columns, a, b + first * (p.transpose_b ? p.ldb : 1), c + first);
    });
  return Done{};
}

}  // namespace fusec
