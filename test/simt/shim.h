// What a kernel's text sees in front of it: everything that NVRTC builds in, as plain C++ for the host.
//
// Whatever needs other threads (barriers, shuffles, atomics, copies in flight) is a call into the runtime, simt_rt_*;
// the pass (instrument.cpp) puts the call's place in the text into its last argument. Calls are `convergent nomerge`,
// so that the optimiser neither duplicates nor joins them. No header is included on purpose: parsing this is a part of
// every compilation.
#pragma once
#define FUSEC_SIMT 1
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
typedef __SIZE_TYPE__ size_t;
typedef unsigned long long simt_u64;

#define __global__ __attribute__((section("simt_kernels"), used))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __shared__ __attribute__((require_constant_initialization)) thread_local
#define __constant__
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define SIMT static inline __attribute__((always_inline))

// --- the runtime: every function with a last `int site` gets the place of its call there ---------
struct uint3 { unsigned x, y, z; };
struct int3 { int x, y, z; };
struct float3 { float x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
#define SIMT_QUERY __attribute__((const)) extern
#define SIMT_CALL __attribute__((convergent, nomerge)) extern
extern "C" {
SIMT_QUERY uint3 simt_is_thread();
SIMT_QUERY uint3 simt_is_block();
SIMT_QUERY uint3 simt_is_block_size();
SIMT_QUERY uint3 simt_is_grid_size();
SIMT_QUERY unsigned simt_is_rank();
SIMT_QUERY unsigned simt_is_cluster();
SIMT_CALL int simt_rt_barrier(int vote, int predicate, int site);
SIMT_CALL void simt_rt_named(unsigned id, unsigned threads, int waits, int site);
SIMT_CALL simt_u64 simt_rt_warp(int op, unsigned mask, simt_u64 value, int lane, int width, int site);
SIMT_CALL unsigned simt_rt_active(int site);
SIMT_CALL void simt_rt_fence(int scope, int site);
SIMT_CALL simt_u64 simt_rt_atomic(int op, int type, int order, void* at, simt_u64 value, simt_u64 compare, int site);
SIMT_CALL void* simt_rt_map(const void* at, unsigned rank, int site);
SIMT_CALL void simt_rt_cluster_arrive(int relaxed, int site);
SIMT_CALL void simt_rt_cluster_wait(int site);
SIMT_CALL void simt_rt_mbarrier_init(void* at, unsigned count, int site);
SIMT_CALL void simt_rt_mbarrier_fence(int site);
SIMT_CALL void simt_rt_mbarrier_arrive(void* at, unsigned arrivals, unsigned bytes, int site);
SIMT_CALL int simt_rt_mbarrier_wait(void* at, unsigned parity, int blocks, int site);
SIMT_CALL void simt_rt_bulk_load(void* to, const void* from, unsigned bytes, void* barrier, int site);
SIMT_CALL void simt_rt_st_async(void* to, const void* value, unsigned bytes, void* barrier, int site);
SIMT_CALL void simt_rt_bulk_store(void* to, const void* from, unsigned bytes, int site);
SIMT_CALL void simt_rt_cp_async(void* to, const void* from, unsigned bytes, unsigned read, int site);
SIMT_CALL void simt_rt_commit(int kind, int site);
SIMT_CALL void simt_rt_wait_group(int kind, unsigned left, int site);
SIMT_CALL void simt_rt_proxy_fence(int site);
SIMT_CALL void simt_rt_yield(int site);
SIMT_CALL __attribute__((noreturn)) void simt_rt_trap(int site);
}
#define threadIdx (simt_is_thread())
#define blockIdx (simt_is_block())
#define blockDim (simt_is_block_size())
#define gridDim (simt_is_grid_size())
static constexpr int warpSize = 32;

// --- vector types: clang's own, so that one 16-byte access stays one access of 16 bytes and wants 16-byte alignment ---
#define SIMT_VECTORS(T, name)                                              \
  typedef T name##2 __attribute__((ext_vector_type(2)));                   \
  typedef T name##4 __attribute__((ext_vector_type(4)));                   \
  SIMT name##2 make_##name##2(T x, T y) { return (name##2){x, y}; }        \
  SIMT name##4 make_##name##4(T x, T y, T z, T w) { return (name##4){x, y, z, w}; }
SIMT_VECTORS(float, float)
SIMT_VECTORS(int, int)
SIMT_VECTORS(unsigned, uint)
SIMT_VECTORS(short, short)
SIMT_VECTORS(unsigned short, ushort)
SIMT_VECTORS(signed char, char)
SIMT_VECTORS(unsigned char, uchar)
#define SIMT_PAIRS(T, name)                              \
  typedef T name##2 __attribute__((ext_vector_type(2))); \
  SIMT name##2 make_##name##2(T x, T y) { return (name##2){x, y}; }
SIMT_PAIRS(double, double)
SIMT_PAIRS(long long, longlong)
SIMT_PAIRS(unsigned long long, ulonglong)

template <class To, class From> SIMT To simt_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  return __builtin_bit_cast(To, from);
}
template <int Bytes> struct simt_word;
template <> struct simt_word<1> { typedef unsigned char type; };
template <> struct simt_word<2> { typedef unsigned short type; };
template <> struct simt_word<4> { typedef unsigned type; };
template <> struct simt_word<8> { typedef simt_u64 type; };
template <class T> SIMT simt_u64 simt_wide(T v) { return simt_bits<typename simt_word<sizeof(T)>::type>(v); }
template <class T> SIMT T simt_narrow(simt_u64 v) { return simt_bits<T>((typename simt_word<sizeof(T)>::type)v); }

// --- barriers, warps, fences ---------------------------------------------------------------------
SIMT void __syncthreads() { simt_rt_barrier(0, 0, 0); }
SIMT int __syncthreads_or(int p) { return simt_rt_barrier(1, p, 0); }
SIMT int __syncthreads_and(int p) { return simt_rt_barrier(2, p, 0); }
SIMT int __syncthreads_count(int p) { return simt_rt_barrier(3, p, 0); }
SIMT void __threadfence_block() { simt_rt_fence(0, 0); }
SIMT void __threadfence() { simt_rt_fence(1, 0); }
SIMT void __threadfence_system() { simt_rt_fence(1, 0); }
SIMT void __nanosleep(unsigned) { simt_rt_yield(0); }
SIMT void __trap() { simt_rt_trap(0); }

// The order of WarpOp in warp.cpp.
enum { simt_op_sync, simt_op_xor, simt_op_down, simt_op_up, simt_op_index, simt_op_ballot, simt_op_any, simt_op_all,
       simt_op_add, simt_op_min, simt_op_max, simt_op_smin, simt_op_smax, simt_op_and, simt_op_or, simt_op_xor_bits };
SIMT void __syncwarp(unsigned mask = ~0u) { simt_rt_warp(simt_op_sync, mask, 0, 0, 32, 0); }
#define SIMT_SHUFFLE(name, op, L)                                                                    \
  template <class T> SIMT T name(unsigned mask, T v, L lane, int width = 32) {                       \
    return simt_narrow<T>(simt_rt_warp(op, mask, simt_wide(v), (int)lane, width, 0));                \
  }
SIMT_SHUFFLE(__shfl_xor_sync, simt_op_xor, int)
SIMT_SHUFFLE(__shfl_down_sync, simt_op_down, unsigned)
SIMT_SHUFFLE(__shfl_up_sync, simt_op_up, unsigned)
SIMT_SHUFFLE(__shfl_sync, simt_op_index, int)
SIMT unsigned __ballot_sync(unsigned mask, int p) {
  return (unsigned)simt_rt_warp(simt_op_ballot, mask, p != 0, 0, 32, 0);
}
SIMT int __any_sync(unsigned mask, int p) { return (int)simt_rt_warp(simt_op_any, mask, p != 0, 0, 32, 0); }
SIMT int __all_sync(unsigned mask, int p) { return (int)simt_rt_warp(simt_op_all, mask, p != 0, 0, 32, 0); }
SIMT unsigned __activemask() { return simt_rt_active(0); }
#define SIMT_REDUCE(name, T, op) \
  SIMT T name(unsigned mask, T v) { return (T)simt_rt_warp(op, mask, (unsigned)v, 0, 32, 0); }
SIMT_REDUCE(__reduce_add_sync, unsigned, simt_op_add)
SIMT_REDUCE(__reduce_add_sync, int, simt_op_add)
SIMT_REDUCE(__reduce_min_sync, unsigned, simt_op_min)
SIMT_REDUCE(__reduce_min_sync, int, simt_op_smin)
SIMT_REDUCE(__reduce_max_sync, unsigned, simt_op_max)
SIMT_REDUCE(__reduce_max_sync, int, simt_op_smax)
SIMT_REDUCE(__reduce_and_sync, unsigned, simt_op_and)
SIMT_REDUCE(__reduce_or_sync, unsigned, simt_op_or)
SIMT_REDUCE(__reduce_xor_sync, unsigned, simt_op_xor_bits)

// --- atomics: the orders of AtomicOp, AtomicType and AtomicOrder in atomics.cpp ------------------
enum { simt_at_load, simt_at_store, simt_at_add, simt_at_min, simt_at_max, simt_at_exch, simt_at_cas, simt_at_inc,
       simt_at_dec, simt_at_and, simt_at_or, simt_at_xor };
enum { simt_ty_u32, simt_ty_i32, simt_ty_u64, simt_ty_i64, simt_ty_f32, simt_ty_f64, simt_ty_u8, simt_ty_u16 };
enum { simt_relaxed, simt_acquire, simt_release, simt_acq_rel };
template <class T> struct simt_type;
template <> struct simt_type<unsigned> { enum { is = simt_ty_u32 }; };
template <> struct simt_type<int> { enum { is = simt_ty_i32 }; };
template <> struct simt_type<unsigned long long> { enum { is = simt_ty_u64 }; };
template <> struct simt_type<long long> { enum { is = simt_ty_i64 }; };
template <> struct simt_type<unsigned long> { enum { is = simt_ty_u64 }; };
template <> struct simt_type<long> { enum { is = simt_ty_i64 }; };
template <> struct simt_type<float> { enum { is = simt_ty_f32 }; };
template <> struct simt_type<double> { enum { is = simt_ty_f64 }; };
template <> struct simt_type<unsigned char> { enum { is = simt_ty_u8 }; };
template <> struct simt_type<unsigned short> { enum { is = simt_ty_u16 }; };
template <class T> SIMT T simt_atomic(int op, int order, const volatile T* at, T value, T compare) {
  return simt_narrow<T>(simt_rt_atomic(op, simt_type<T>::is, order, (void*)at, simt_wide(value), simt_wide(compare), 0));
}
#define SIMT_ATOMIC(name, op, T) \
  SIMT T name(T* at, T value) { return simt_atomic<T>(op, simt_relaxed, at, value, 0); }
#define SIMT_ATOMICS(name, op) SIMT_ATOMIC(name, op, int) SIMT_ATOMIC(name, op, unsigned) SIMT_ATOMIC(name, op, simt_u64)
SIMT_ATOMICS(atomicAdd, simt_at_add)
SIMT_ATOMIC(atomicAdd, simt_at_add, float)
SIMT_ATOMIC(atomicAdd, simt_at_add, double)
SIMT_ATOMICS(atomicMin, simt_at_min)
SIMT_ATOMIC(atomicMin, simt_at_min, long long)
SIMT_ATOMICS(atomicMax, simt_at_max)
SIMT_ATOMIC(atomicMax, simt_at_max, long long)
SIMT_ATOMICS(atomicExch, simt_at_exch)
SIMT_ATOMIC(atomicExch, simt_at_exch, float)
SIMT_ATOMICS(atomicAnd, simt_at_and)
SIMT_ATOMICS(atomicOr, simt_at_or)
SIMT_ATOMICS(atomicXor, simt_at_xor)
SIMT_ATOMIC(atomicInc, simt_at_inc, unsigned)
SIMT_ATOMIC(atomicDec, simt_at_dec, unsigned)
SIMT int atomicSub(int* at, int v) { return atomicAdd(at, -v); }
SIMT unsigned atomicSub(unsigned* at, unsigned v) { return atomicAdd(at, -v); }
#define SIMT_CAS(T) \
  SIMT T atomicCAS(T* at, T compare, T value) { return simt_atomic(simt_at_cas, simt_relaxed, at, value, compare); }
SIMT_CAS(int)
SIMT_CAS(unsigned)
SIMT_CAS(simt_u64)
template <class T> SIMT T simt_ld_relaxed(const T* at) { return simt_atomic(simt_at_load, simt_relaxed, at, T(), T()); }
template <class T> SIMT T simt_ld_acquire(const T* at) { return simt_atomic(simt_at_load, simt_acquire, at, T(), T()); }
template <class T> SIMT void simt_st_relaxed(T* at, T v) { simt_atomic(simt_at_store, simt_relaxed, at, v, T()); }
template <class T> SIMT void simt_st_release(T* at, T v) { simt_atomic(simt_at_store, simt_release, at, v, T()); }
template <class T> SIMT T simt_add_relaxed(T* at, T v) { return simt_atomic(simt_at_add, simt_relaxed, at, v, T()); }
template <class T> SIMT T simt_add_release(T* at, T v) { return simt_atomic(simt_at_add, simt_release, at, v, T()); }
template <class T> SIMT T simt_add_acq_rel(T* at, T v) { return simt_atomic(simt_at_add, simt_acq_rel, at, v, T()); }

// --- clusters, mbarriers, copies in flight: the seam of README.md --------------------------------
SIMT unsigned simt_cluster_rank() { return simt_is_rank(); }
SIMT unsigned simt_cluster_size() { return simt_is_cluster(); }
template <class T> SIMT T* simt_cluster_map(T* mine, unsigned rank) {
  return (T*)simt_rt_map((const void*)mine, rank, 0);
}
SIMT void simt_cluster_arrive() { simt_rt_cluster_arrive(0, 0); }
SIMT void simt_cluster_arrive_relaxed() { simt_rt_cluster_arrive(1, 0); }
SIMT void simt_cluster_wait() { simt_rt_cluster_wait(0); }
SIMT void simt_griddep_wait() {}
SIMT void simt_griddep_launch() {}
SIMT void simt_bar_sync(unsigned id, unsigned threads) { simt_rt_named(id, threads, 1, 0); }
SIMT void simt_bar_arrive(unsigned id, unsigned threads) { simt_rt_named(id, threads, 0, 0); }
SIMT void simt_mbarrier_init(simt_u64* at, unsigned count) { simt_rt_mbarrier_init(at, count, 0); }
SIMT void simt_mbarrier_fence() { simt_rt_mbarrier_fence(0); }
SIMT void simt_mbarrier_arrive(simt_u64* at) { simt_rt_mbarrier_arrive(at, 1, 0, 0); }
SIMT void simt_mbarrier_expect(simt_u64* at, unsigned bytes) { simt_rt_mbarrier_arrive(at, 0, bytes, 0); }
SIMT void simt_mbarrier_arrive_expect(simt_u64* at, unsigned bytes) { simt_rt_mbarrier_arrive(at, 1, bytes, 0); }
SIMT void simt_mbarrier_wait(simt_u64* at, unsigned parity) { simt_rt_mbarrier_wait(at, parity, 1, 0); }
SIMT bool simt_mbarrier_test(simt_u64* at, unsigned parity) { return simt_rt_mbarrier_wait(at, parity, 0, 0); }
SIMT void simt_bulk_load(void* to, const void* from, unsigned bytes, simt_u64* barrier) {
  simt_rt_bulk_load(to, from, bytes, barrier, 0);
}
SIMT void simt_bulk_store(void* to, const void* from, unsigned bytes) { simt_rt_bulk_store(to, from, bytes, 0); }
SIMT void simt_bulk_commit() { simt_rt_commit(0, 0); }
SIMT void simt_bulk_wait_read(unsigned left) { simt_rt_wait_group(0, left, 0); }
SIMT void simt_bulk_wait(unsigned left) { simt_rt_wait_group(2, left, 0); }
SIMT void simt_proxy_fence() { simt_rt_proxy_fence(0); }
template <class T> SIMT void simt_st_async(T* remote, T value, simt_u64* barrier) {
  simt_rt_st_async((void*)remote, &value, sizeof(T), barrier, 0);
}
SIMT void simt_cp_async(void* to, const void* from, unsigned bytes, unsigned read) {
  simt_rt_cp_async(to, from, bytes, read, 0);
}
SIMT void simt_cp_async_commit() { simt_rt_commit(1, 0); }
SIMT void simt_cp_async_wait(unsigned left) { simt_rt_wait_group(1, left, 0); }

// --- loads and stores with a cache hint ----------------------------------------------------------
#define SIMT_LOAD(name) \
  template <class T> SIMT T name(const T* p) { return *p; }
SIMT_LOAD(__ldg) SIMT_LOAD(__ldcs) SIMT_LOAD(__ldcg) SIMT_LOAD(__ldca) SIMT_LOAD(__ldlu)
template <class T> SIMT T __ldcv(const T* p) { return *(const volatile T*)p; }
#define SIMT_STORE(name) \
  template <class T> SIMT void name(T* p, T v) { *p = v; }
SIMT_STORE(__stcs) SIMT_STORE(__stcg) SIMT_STORE(__stwb) SIMT_STORE(__stwt)
SIMT size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }
SIMT size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }

// --- integers ------------------------------------------------------------------------------------
SIMT int __popc(unsigned x) { return __builtin_popcount(x); }
SIMT int __popcll(simt_u64 x) { return __builtin_popcountll(x); }
SIMT int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SIMT int __clzll(long long x) { return x ? __builtin_clzll((simt_u64)x) : 64; }
SIMT int __ffs(int x) { return __builtin_ffs(x); }
SIMT int __ffsll(long long x) { return __builtin_ffsll(x); }
SIMT unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
SIMT simt_u64 __brevll(simt_u64 x) { return __builtin_bitreverse64(x); }
SIMT unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((simt_u64)a * b >> 32); }
SIMT int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
SIMT simt_u64 __umul64hi(simt_u64 a, simt_u64 b) { return (simt_u64)((unsigned __int128)a * b >> 64); }
SIMT long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
SIMT unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  simt_u64 ab = (simt_u64)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    unsigned pick = s >> 4 * i & 15, byte = (unsigned)(ab >> 8 * (pick & 7)) & 255;
    r |= (pick & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;  // bit 3: the sign of the byte, eight times
  }
  return r;
}
SIMT unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((simt_u64)hi << 32 | lo) << (n & 31) >> 32);
}
SIMT unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((simt_u64)hi << 32 | lo) >> (n & 31));
}
SIMT int abs(int x) { return x < 0 ? (int)-(unsigned)x : x; }
SIMT long long llabs(long long x) { return x < 0 ? (long long)-(simt_u64)x : x; }
#define SIMT_MINMAX(T, A, B)                                                  \
  SIMT T min(A a, B b) { return (T)b < (T)a ? (T)b : (T)a; }                  \
  SIMT T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
SIMT_MINMAX(int, int, int)
SIMT_MINMAX(unsigned, unsigned, unsigned)
SIMT_MINMAX(unsigned, int, unsigned)
SIMT_MINMAX(unsigned, unsigned, int)
SIMT_MINMAX(long, long, long)
SIMT_MINMAX(unsigned long, unsigned long, unsigned long)
SIMT_MINMAX(long long, long long, long long)
SIMT_MINMAX(simt_u64, simt_u64, simt_u64)

// --- bits of floats ------------------------------------------------------------------------------
SIMT unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
SIMT int __float_as_int(float x) { return simt_bits<int>(x); }
SIMT float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
SIMT float __int_as_float(int x) { return simt_bits<float>(x); }
SIMT long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
SIMT double __longlong_as_double(long long x) { return simt_bits<double>(x); }
SIMT int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
SIMT int __double2loint(double x) { return (int)__double_as_longlong(x); }
SIMT double __hiloint2double(int hi, int lo) {
  return __longlong_as_double((long long)((simt_u64)(unsigned)hi << 32 | (unsigned)lo));
}

// --- arithmetic that is exact or correctly rounded -----------------------------------------------
#define SIMT_ROUND(F, f, s)                                                      \
  SIMT F floor##s(F x) { return __builtin_floor##s(x); }                         \
  SIMT F ceil##s(F x) { return __builtin_ceil##s(x); }                           \
  SIMT F trunc##s(F x) { return __builtin_trunc##s(x); }                         \
  SIMT F rint##s(F x) { return __builtin_rint##s(x); }                           \
  SIMT F nearbyint##s(F x) { return __builtin_nearbyint##s(x); }                 \
  SIMT F sqrt##s(F x) { return __builtin_sqrt##s(x); }                           \
  SIMT F fabs##s(F x) { return __builtin_fabs##s(x); }                           \
  SIMT F copysign##s(F x, F y) { return __builtin_copysign##s(x, y); }           \
  SIMT F fma##s(F x, F y, F z) { return __builtin_fma##s(x, y, z); }             \
  /* as PTX: a NaN gives way to a number, and -0 < +0 */                         \
  SIMT F fmin##s(F x, F y) {                                                     \
    return x != x ? y : y != y ? x : x == y ? (__builtin_signbit(x) ? x : y) : x < y ? x : y; \
  }                                                                              \
  SIMT F fmax##s(F x, F y) {                                                     \
    return x != x ? y : y != y ? x : x == y ? (__builtin_signbit(x) ? y : x) : x < y ? y : x; \
  }                                                                              \
  SIMT F __##f##add_rn(F x, F y) { return x + y; }                               \
  SIMT F __##f##sub_rn(F x, F y) { return x - y; }                               \
  SIMT F __##f##mul_rn(F x, F y) { return x * y; }                               \
  SIMT F __##f##div_rn(F x, F y) { return x / y; }                               \
  SIMT F __##f##sqrt_rn(F x) { return __builtin_sqrt##s(x); }                    \
  SIMT F __##f##rcp_rn(F x) { return (F)1 / x; }                                 \
  SIMT F min(F x, F y) { return fmin##s(x, y); }                                 \
  SIMT F max(F x, F y) { return fmax##s(x, y); }                                 \
  SIMT bool isnan(F x) { return x != x; }                                        \
  SIMT bool isinf(F x) { return __builtin_isinf(x); }                            \
  SIMT bool isfinite(F x) { return __builtin_isfinite(x); }                      \
  SIMT bool signbit(F x) { return __builtin_signbit(x); }
SIMT_ROUND(float, f, f)
SIMT_ROUND(double, d, )
SIMT float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
SIMT float __fmaf_ieee_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
SIMT double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
// Conversions saturate and send NaN to 0, as the device's do (the text is compiled with
// -fno-strict-float-cast-overflow).
#define SIMT_CONVERT(F, name, f)                                        \
  SIMT int __##name##2int_rz(F x) { return (int)x; }                    \
  SIMT int __##name##2int_rn(F x) { return (int)rint##f(x); }           \
  SIMT int __##name##2int_rd(F x) { return (int)floor##f(x); }          \
  SIMT int __##name##2int_ru(F x) { return (int)ceil##f(x); }           \
  SIMT unsigned __##name##2uint_rz(F x) { return (unsigned)x; }         \
  SIMT unsigned __##name##2uint_rn(F x) { return (unsigned)rint##f(x); }\
  SIMT long long __##name##2ll_rz(F x) { return (long long)x; }         \
  SIMT long long __##name##2ll_rn(F x) { return (long long)rint##f(x); }\
  SIMT simt_u64 __##name##2ull_rz(F x) { return (simt_u64)x; }          \
  SIMT simt_u64 __##name##2ull_rn(F x) { return (simt_u64)rint##f(x); }
SIMT_CONVERT(float, float, f)
SIMT_CONVERT(double, double, )
SIMT float __double2float_rn(double x) { return (float)x; }
SIMT float __int2float_rn(int x) { return (float)x; }
SIMT float __uint2float_rn(unsigned x) { return (float)x; }
SIMT float __ll2float_rn(long long x) { return (float)x; }
SIMT float __ull2float_rn(simt_u64 x) { return (float)x; }
SIMT double __int2double_rn(int x) { return (double)x; }
SIMT double __uint2double_rn(unsigned x) { return (double)x; }
SIMT double __ll2double_rn(long long x) { return (double)x; }
SIMT double __ull2double_rn(simt_u64 x) { return (double)x; }

// --- functions of the host's libm: right within their ulp, not the device's bits -----------------
#define SIMT_MATH1(n) \
  extern "C" __attribute__((const)) float n##f(float); \
  extern "C" __attribute__((const)) double n(double);
#define SIMT_MATH2(n) \
  extern "C" __attribute__((const)) float n##f(float, float); \
  extern "C" __attribute__((const)) double n(double, double);
SIMT_MATH1(exp) SIMT_MATH1(exp2) SIMT_MATH1(expm1) SIMT_MATH1(log) SIMT_MATH1(log2) SIMT_MATH1(log10) SIMT_MATH1(log1p)
SIMT_MATH1(sin) SIMT_MATH1(cos) SIMT_MATH1(tan) SIMT_MATH1(asin) SIMT_MATH1(acos) SIMT_MATH1(atan) SIMT_MATH1(sinh) SIMT_MATH1(cosh)
SIMT_MATH1(tanh) SIMT_MATH1(asinh) SIMT_MATH1(acosh) SIMT_MATH1(atanh) SIMT_MATH1(erf) SIMT_MATH1(erfc) SIMT_MATH1(cbrt)
SIMT_MATH1(round) SIMT_MATH1(lgamma) SIMT_MATH1(tgamma)
SIMT_MATH2(pow) SIMT_MATH2(atan2) SIMT_MATH2(fmod) SIMT_MATH2(hypot) SIMT_MATH2(remainder)
extern "C" __attribute__((const)) float ldexpf(float, int);
extern "C" __attribute__((const)) double ldexp(double, int);
SIMT float rsqrtf(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
SIMT double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
SIMT float __frsqrt_rn(float x) { return rsqrtf(x); }
SIMT float exp10f(float x) { return powf(10.f, x); }
SIMT float __expf(float x) { return expf(x); }
SIMT float __exp10f(float x) { return powf(10.f, x); }
SIMT float __logf(float x) { return logf(x); }
SIMT float __log2f(float x) { return log2f(x); }
SIMT float __log10f(float x) { return log10f(x); }
SIMT float __sinf(float x) { return sinf(x); }
SIMT float __cosf(float x) { return cosf(x); }
SIMT float __tanf(float x) { return tanf(x); }
SIMT float __powf(float x, float y) { return powf(x, y); }
SIMT float __fdividef(float x, float y) { return x / y; }
SIMT float __saturatef(float x) { return x > 0.f ? x < 1.f ? x : 1.f : 0.f; }
SIMT float fdividef(float x, float y) { return x / y; }
SIMT float simt_exp2(float x) { const float y = exp2f(x); return y < 0x1p-126f ? 0.f : y; }  // ex2.approx.ftz: no denormals
SIMT float simt_log2(float x) { return log2f(x); }
SIMT float simt_rcp(float x) { return 1.f / x; }
SIMT float simt_rsqrt(float x) { return rsqrtf(x); }
SIMT float simt_tanh(float x) { return tanhf(x); }
SIMT float simt_sin(float x) { return sinf(x); }
SIMT float simt_cos(float x) { return cosf(x); }
