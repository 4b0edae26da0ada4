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

struct Library {
  Sgemm sgemm = nullptr;
  std::string fault;
};

const Library& library() {
  static const Library kLibrary = [] {
    Library out;
    const char* named = std::getenv("FUSEC_BLAS");
    const char* name = named && *named ? named : "libopenblas.so.0";
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle) out.sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "cblas_sgemm"));
    if (!out.sgemm) {
      const char* why = dlerror();
      out.fault =
          std::string("matrix products of whole models need OpenBLAS (Debian: libopenblas0): ") + (why ? why : name);
    }
    return out;
  }();
  return kLibrary;
}

}  // namespace

Status product_library() { return library().sgemm ? Status(Done{}) : Status(environment_error(library().fault)); }

Status product(const Product& p, const float* a, const float* b, float* c) {
  if (Status s = product_library(); !s) return s;
  for (int64_t size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc})
    if (size > std::numeric_limits<int>::max()) return input_error("a matrix of more than 2^31 rows or columns");
  if (p.m == 0 || p.n == 0) return Done{};
  const auto narrow = [](int64_t x) { return static_cast<int>(std::max<int64_t>(x, 1)); };
  library().sgemm(kRowMajor, p.transpose_a ? kTransposed : kAsIs, p.transpose_b ? kTransposed : kAsIs,
                  static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), p.alpha, a, narrow(p.lda), b,
                  narrow(p.ldb), p.beta, c, narrow(p.ldc));
  return Done{};
}

}  // namespace fusec
