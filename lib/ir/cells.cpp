#include "lib/ir/cells.h"

#include <type_traits>

#include "lib/ir/scalar.h"

namespace fusec {
namespace {

/// Cells of ops that are no exact primitive, and of cast and bitcast, which depend on two types.
struct None {};
[[maybe_unused]] constexpr None NONE;

template <Op op> struct Cell;
#define OP(name, form, arity, optional, rule, domain, traits, cost, attributes, summary, reference, cuda, llvm)     \
  template <> struct Cell<Op::name> {                                                                               \
    template <class X, class T>                                                                                     \
    static auto apply([[maybe_unused]] X x, [[maybe_unused]] T y, [[maybe_unused]] T z)                             \
        -> std::decay_t<decltype(reference)> {                                                                      \
      return reference;                                                                                             \
    }                                                                                                               \
  };
#include "fusec/ops.def"
#undef OP

template <Op op, class X, class T>
constexpr bool defined = requires(X x, T y) { Cell<op>::apply(x, y, y); };

template <Op op, class T>
void loop(void* out, const void* x, const void* y, const void* z, size_t n) {
  using X = std::conditional_t<op == Op::select, bool, T>;
  using R = decltype(Cell<op>::apply(X(), T(), T()));
  const auto* a = static_cast<const X*>(x);
  const auto* b = static_cast<const T*>(y);
  const auto* c = static_cast<const T*>(z);
  auto* r = static_cast<R*>(out);
  if constexpr (std::is_same_v<X, T>) {
    if (!b) b = a;  // never read by the cell, but read by the loop
    if (!c) c = a;
  }
  for (size_t i = 0; i < n; ++i) r[i] = Cell<op>::apply(a[i], b[i], c[i]);
}

#if defined(__x86_64__) && defined(__GNUC__)
// Formulas are mostly fma, and a call into the C library for each would be most of their time.
template <class T>
[[gnu::target("avx2,fma")]] void fma_loop(void* out, const void* x, const void* y, const void* z, size_t n) {
  const auto* a = static_cast<const T*>(x);
  const auto* b = static_cast<const T*>(y);
  const auto* c = static_cast<const T*>(z);
  auto* r = static_cast<T*>(out);
  for (size_t i = 0; i < n; ++i) r[i] = __builtin_fma(a[i], b[i], c[i]);
}
template <>
[[gnu::target("avx2,fma")]] void fma_loop<float>(void* out, const void* x, const void* y, const void* z, size_t n) {
  const auto* a = static_cast<const float*>(x);
  const auto* b = static_cast<const float*>(y);
  const auto* c = static_cast<const float*>(z);
  auto* r = static_cast<float*>(out);
  for (size_t i = 0; i < n; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
}

template <class T>
CellLoop hardware_fma() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has ? fma_loop<T> : nullptr;
}
#else
template <class T>
CellLoop hardware_fma() {
  return nullptr;
}
#endif

template <Op op>
CellLoop of_type(DType type) {
  const auto make = [&]<class T>(T) -> CellLoop {
    using X = std::conditional_t<op == Op::select, bool, T>;
    if constexpr (op == Op::fma && std::is_floating_point_v<T>)
      if (CellLoop fast = hardware_fma<T>()) return fast;
    if constexpr (defined<op, X, T>) return loop<op, T>;
    return nullptr;
  };
  switch (type) {
    case DType::boolean: return make(bool());
    case DType::i8: return make(int8_t());
    case DType::i16: return make(int16_t());
    case DType::i32: return make(int32_t());
    case DType::i64: return make(int64_t());
    case DType::u8: return make(uint8_t());
    case DType::u16: return make(uint16_t());
    case DType::u32: return make(uint32_t());
    case DType::u64: return make(uint64_t());
    case DType::f32: return make(float());
    case DType::f64: return make(double());
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2: return nullptr;  // storage: computed in f32
  }
  return nullptr;
}

template <Op op, Form form>
CellLoop of([[maybe_unused]] DType type) {
  if constexpr (form == Form::exact && op != Op::cast && op != Op::bitcast)
    return of_type<op>(type);
  else
    return nullptr;
}

}  // namespace

CellLoop cell_loop(Op op, DType type) {
  switch (op) {
#define OP(name, form, ...) \
  case Op::name: return of<Op::name, Form::form>(type);
#include "fusec/ops.def"
#undef OP
  }
  return nullptr;
}

}  // namespace fusec
