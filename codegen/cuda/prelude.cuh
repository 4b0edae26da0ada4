// Types, words and memory: what every kernel uses. All inline PTX of the project lives in helpers like these; where FUSEC_SIMT
// is defined the kernel runs on the host (test/simt) and a helper has a plain branch.
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32; typedef double f64;
#define D static __device__ __forceinline__
template <int N> struct Int { enum { value = N }; };
#define bits(T, x) __builtin_bit_cast(T, x)
// Statements for each element e, written out by the preprocessor; see below for FETCH and PUT. A macro costs the compiler a fraction of
// what a function or a loop does (docs/performance.md).
#define EACH_ELEMENT(k, ...) { enum { e = k }; __VA_ARGS__ }
#define EACH_1(...) EACH_ELEMENT(0, __VA_ARGS__)
#define EACH_2(...) EACH_1(__VA_ARGS__) EACH_ELEMENT(1, __VA_ARGS__)
#define EACH_4(...) EACH_2(__VA_ARGS__) EACH_ELEMENT(2, __VA_ARGS__) EACH_ELEMENT(3, __VA_ARGS__)
#define EACH_8(...)                                                                                     \
  EACH_4(__VA_ARGS__) EACH_ELEMENT(4, __VA_ARGS__) EACH_ELEMENT(5, __VA_ARGS__) EACH_ELEMENT(6, __VA_ARGS__) EACH_ELEMENT(7, __VA_ARGS__)
#define EACH_16(...)                                                                                    \
  EACH_8(__VA_ARGS__) EACH_ELEMENT(8, __VA_ARGS__) EACH_ELEMENT(9, __VA_ARGS__) EACH_ELEMENT(10, __VA_ARGS__) EACH_ELEMENT(11, __VA_ARGS__) \
  EACH_ELEMENT(12, __VA_ARGS__) EACH_ELEMENT(13, __VA_ARGS__) EACH_ELEMENT(14, __VA_ARGS__) EACH_ELEMENT(15, __VA_ARGS__)

// A kernel that may start before the one in front has ended: before this returns, nothing of memory may be read or written.
D void wait_for_kernel_in_front() {
#ifndef FUSEC_SIMT
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// B bytes as 32-bit words: how a loaded vector waits for its turn, and how a stored one leaves.
template <int B> struct Words { u32 w[(B + 3) / 4]; };

// Cache policy of streamed loads: evict_last leaves room for the stores of a large call (docs/cuda.md), else the default.
D u64 make_policy(u32 keep) {
  u64 policy = 0;
#ifndef FUSEC_SIMT
  if (keep) asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  else asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}
// Of loads that come for the last time.
D u64 make_last_policy(u32 keep) {
  u64 policy = 0;
#ifndef FUSEC_SIMT
  if (keep) asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

// Loads of one piece. Streamed ones carry the policy; without a "memory" clobber, so that a phase of loads stays a phase. Read-only ones
// are of memory that the kernel does not write: they may move before its stores, and so ask for all of a row's parameters at once.
enum Fetch { kPlain, kStreamed, kReadOnly };
template <Fetch F> D uint4 load16(const char* p, u64 policy) {
#ifndef FUSEC_SIMT
  if constexpr (F == kStreamed) {
    uint4 q;
    asm("ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;" : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "l"(p), "l"(policy));
    return q;
  }
#endif
  if constexpr (F == kReadOnly) return __ldg((const uint4*)p);
  return *(const uint4*)p;
}
template <Fetch F> D uint2 load8(const char* p, u64 policy) {
#ifndef FUSEC_SIMT
  if constexpr (F == kStreamed) {
    uint2 q;
    asm("ld.global.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;" : "=r"(q.x), "=r"(q.y) : "l"(p), "l"(policy));
    return q;
  }
#endif
  if constexpr (F == kReadOnly) return __ldg((const uint2*)p);
  return *(const uint2*)p;
}
template <Fetch F> D u32 load4(const char* p, u64 policy) {
#ifndef FUSEC_SIMT
  if constexpr (F == kStreamed) {
    u32 q;
    asm("ld.global.L2::cache_hint.b32 %0, [%1], %2;" : "=r"(q) : "l"(p), "l"(policy));
    return q;
  }
#endif
  if constexpr (F == kReadOnly) return __ldg((const u32*)p);
  return *(const u32*)p;
}

template <class T, Fetch F> D T load_part(const char* p) {
  if constexpr (F == kReadOnly) return __ldg((const T*)p);
  return *(const T*)p;
}

// Piece k of 16 bytes: nearly all loads and stores.
#define FETCH(r, k, from) { const uint4 q_ = ((const uint4*)(from))[k]; (r).w[4 * k] = q_.x; (r).w[4 * k + 1] = q_.y; (r).w[4 * k + 2] = q_.z; (r).w[4 * k + 3] = q_.w; }
#ifdef FUSEC_SIMT
#define FETCH_READ_ONLY(r, k, from) FETCH(r, k, from)
#define FETCH_STREAMED(r, k, from, policy) FETCH(r, k, from)
#define FETCH_PAST(r, k, from) FETCH(r, k, from)
#else
#define FETCH_READ_ONLY(r, k, from) { const uint4 q_ = __ldg((const uint4*)(from) + k); (r).w[4 * k] = q_.x; (r).w[4 * k + 1] = q_.y; (r).w[4 * k + 2] = q_.z; (r).w[4 * k + 3] = q_.w; }
#define FETCH_STREAMED(r, k, from, policy) asm("ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4 + %6], %5;" \
  : "=r"((r).w[4 * k]), "=r"((r).w[4 * k + 1]), "=r"((r).w[4 * k + 2]), "=r"((r).w[4 * k + 3]) : "l"((const uint4*)(from)), "l"(policy), "n"(16 * k))
// Past the L1, and where they are written: neither the compiler nor ptxas moves them behind one another or behind a branch.
#define FETCH_PAST(r, k, from) asm volatile("ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4 + %5];" \
  : "=r"((r).w[4 * k]), "=r"((r).w[4 * k + 1]), "=r"((r).w[4 * k + 2]), "=r"((r).w[4 * k + 3]) : "l"((const uint4*)(from)), "n"(16 * k))
#endif
#define PUT(to, k, r) ((uint4*)(to))[k] = uint4{(r).w[4 * k], (r).w[4 * k + 1], (r).w[4 * k + 2], (r).w[4 * k + 3]}

// A sector of memory comes into the L1, by way of a word of shared memory that nobody reads. (prefetch.global.L1 is slow:
// layer_norm f32 [1024,4096] 13.4 us, 11.4 by these copies.)
D void warm(const void* from, u32* nobody) {
#ifdef FUSEC_SIMT
  *nobody = *(const u32*)from;
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((u32)__cvta_generic_to_shared(nobody)), "l"(from));
#endif
}
// Nothing is on its way into shared memory any more: a block ends behind this.
D void warmed() {
#ifndef FUSEC_SIMT
  asm volatile("cp.async.wait_all;");
#endif
}
// False, which ptxas does not know: it puts loads behind the arithmetic on others, but not behind the branch on this.
D bool never() {
#ifdef FUSEC_SIMT
  return false;
#else
  u32 z;
  asm volatile("mov.u32 %0, %%nctaid.z;" : "=r"(z));
  return z == 0;
#endif
}

// B contiguous bytes in pieces of P. The widest piece that a call's pointers and strides allow, down to one element.
// (The usual sizes without a loop, here and below: what the optimizer need not unroll costs it less.)
template <int P, Fetch F, int B> D void fetch(Words<B>& r, const void* from, u64 policy) {
  const char* p = (const char*)from;
  if constexpr (P == 16 && B == 16) {
    const uint4 q = load16<F>(p, policy);
    r.w[0] = q.x; r.w[1] = q.y; r.w[2] = q.z; r.w[3] = q.w;
    return;
  }
  if constexpr (P < 4) {
#pragma unroll
    for (int k = 0; k < (B + 3) / 4; ++k) r.w[k] = 0;
  }
#pragma unroll
  for (int k = 0; k < B / P; ++k) {
    if constexpr (P == 16) {
      const uint4 q = load16<F>(p + k * P, policy);
      r.w[k * 4] = q.x; r.w[k * 4 + 1] = q.y; r.w[k * 4 + 2] = q.z; r.w[k * 4 + 3] = q.w;
    } else if constexpr (P == 8) {
      const uint2 q = load8<F>(p + k * P, policy);
      r.w[k * 2] = q.x; r.w[k * 2 + 1] = q.y;
    } else if constexpr (P == 4) {
      r.w[k] = load4<F>(p + k * P, policy);
    } else if constexpr (P == 2) {
      r.w[k / 2] |= (u32)load_part<u16, F>(p + k * P) << 16 * (k % 2);
    } else {
      r.w[k / 4] |= (u32)load_part<u8, F>(p + k) << 8 * (k % 4);
    }
  }
}
// B bytes that begin at a bit of the first word.
template <int B> D void shift_words(Words<B>& r, const u32 (&word)[B / 4 + 1], u32 bit) {
#pragma unroll
  for (int k = 0; k < B / 4; ++k) r.w[k] = __funnelshift_r(word[k], word[k + 1], bit);
}
// 16 bytes that begin at any element of E bytes: out of the two aligned pieces that they lie in, both of which must be there.
template <int E, Fetch F> D void fetch_shifted(Words<16>& r, const void* from, u64 policy) {
  const u32 at = (u32)(u64)from & 15, bit = at % 4 * 8;
  const char* p = (const char*)from - at;
  const uint4 x = load16<F>(p, policy), y = load16<F>(p + 16, policy);
  const u32 w[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
  u32 half[6], word[5];
#pragma unroll
  for (int k = 0; k < 6; ++k) half[k] = at & 8 ? w[k + 2] : w[k];
#pragma unroll
  for (int k = 0; k < 5; ++k) word[k] = at & 4 ? half[k + 1] : half[k];
  if constexpr (E < 4) return shift_words(r, word, bit);
#pragma unroll
  for (int k = 0; k < 4; ++k) r.w[k] = word[k];
}
// B bytes that begin at any element of E bytes: out of the words that they lie in, all of which must be there.
template <Fetch F, int B> D void fetch_words(Words<B>& r, const void* from) {
  const u32 at = (u32)(u64)from & 3, bit = at * 8;
  const char* p = (const char*)from - at;
  u32 word[B / 4 + 1];
#pragma unroll
  for (int k = 0; k < B / 4; ++k) word[k] = load4<F>(p + 4 * k, 0);
  word[B / 4] = at ? load4<F>(p + B, 0) : 0u;
  shift_words(r, word, bit);
}
template <int P, int B> D void put(void* to, const Words<B>& r) {
  char* p = (char*)to;
  if constexpr (P == 16 && B == 16) {
    *(uint4*)p = make_uint4(r.w[0], r.w[1], r.w[2], r.w[3]);
    return;
  }
#pragma unroll
  for (int k = 0; k < B / P; ++k) {
    if constexpr (P == 16) *(uint4*)(p + k * P) = make_uint4(r.w[k * 4], r.w[k * 4 + 1], r.w[k * 4 + 2], r.w[k * 4 + 3]);
    else if constexpr (P == 8) *(uint2*)(p + k * P) = make_uint2(r.w[k * 2], r.w[k * 2 + 1]);
    else if constexpr (P == 4) *(u32*)(p + k * P) = r.w[k];
    else if constexpr (P == 2) *(u16*)(p + k * P) = (u16)(r.w[k / 2] >> 16 * (k % 2));
    else *(u8*)(p + k) = (u8)(r.w[k / 4] >> 8 * (k % 4));
  }
}
// put, in pieces of 8 and 16 bytes by a predicate: a branch would part what the compiler otherwise puts side by side.
template <int P, int B> D void put_where(bool there, void* to, const Words<B>& r) {
#ifndef FUSEC_SIMT
  if constexpr (P == 16 || P == 8) {
#pragma unroll
    for (int k = 0; k < B / P; ++k) {
      const u64 at = __cvta_generic_to_global((char*)to + k * P);
      if constexpr (P == 16)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v4.b32 [%1], {%2, %3, %4, %5}; }" ::"r"((u32)there), "l"(at), "r"(r.w[k * 4]), "r"(r.w[k * 4 + 1]),
                     "r"(r.w[k * 4 + 2]), "r"(r.w[k * 4 + 3]));
      else
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v2.b32 [%1], {%2, %3}; }" ::"r"((u32)there), "l"(at), "r"(r.w[k * 2]), "r"(r.w[k * 2 + 1]));
    }
    return;
  }
#endif
  if (there) put<P>(to, r);
}
// One element of E bytes, number e of a vector, from or to its own address: strided and guarded accesses, ends of rows.
template <int E, int B> D void fetch_one(Words<B>& r, int e, const void* p) {
  if constexpr (E == 1) r.w[e / 4] = (r.w[e / 4] & ~(0xffu << 8 * (e % 4))) | (u32)*(const u8*)p << 8 * (e % 4);
  else if constexpr (E == 2) r.w[e / 2] = (r.w[e / 2] & ~(0xffffu << 16 * (e % 2))) | (u32)*(const u16*)p << 16 * (e % 2);
  else if constexpr (E == 4) r.w[e] = *(const u32*)p;
  else { const uint2 q = *(const uint2*)p; r.w[2 * e] = q.x; r.w[2 * e + 1] = q.y; }
}
template <int E, int B> D void put_one(void* p, const Words<B>& r, int e) {
  if constexpr (E == 1) *(u8*)p = (u8)(r.w[e / 4] >> 8 * (e % 4));
  else if constexpr (E == 2) *(u16*)p = (u16)(r.w[e / 2] >> 16 * (e % 2));
  else if constexpr (E == 4) *(u32*)p = r.w[e];
  else *(uint2*)p = make_uint2(r.w[2 * e], r.w[2 * e + 1]);
}
template <int B> D void clear(Words<B>& r) {
#pragma unroll
  for (int k = 0; k < (B + 3) / 4; ++k) r.w[k] = 0;
}
// XOR with a run-time zero: stops ptxas from keeping unpacked values of an earlier sweep alive in place of the packed words.
template <int B> D void hide_words(Words<B>& r, u32 zero) {
#pragma unroll
  for (int k = 0; k < (B + 3) / 4; ++k) r.w[k] ^= zero;
}

// Words to V values and back, for types that are computed as they are stored.
template <class T, int V, int B> D void unpack_raw(const Words<B>& r, T (&x)[V]) {
  if constexpr (sizeof(T) == 4 && V == 4) {
    x[0] = bits(T, r.w[0]); x[1] = bits(T, r.w[1]); x[2] = bits(T, r.w[2]); x[3] = bits(T, r.w[3]);
    return;
  }
#pragma unroll
  for (int e = 0; e < V; ++e) {
    if constexpr (sizeof(T) == 8) x[e] = bits(T, (u64)r.w[2 * e] | (u64)r.w[2 * e + 1] << 32);
    else if constexpr (sizeof(T) == 4) x[e] = bits(T, r.w[e]);
    else if constexpr (sizeof(T) == 2) x[e] = (T)(r.w[e / 2] >> 16 * (e % 2));
    else x[e] = (T)(r.w[e / 4] >> 8 * (e % 4));
  }
}
template <class T, int V, int B> D void pack_raw(Words<B>& r, const T (&x)[V]) {
  if constexpr (sizeof(T) == 4 && V == 4) {
    r.w[0] = bits(u32, x[0]); r.w[1] = bits(u32, x[1]); r.w[2] = bits(u32, x[2]); r.w[3] = bits(u32, x[3]);
    return;
  }
  if constexpr (sizeof(T) < 4) clear(r);
#pragma unroll
  for (int e = 0; e < V; ++e) {
    if constexpr (sizeof(T) == 8) { r.w[2 * e] = (u32)bits(u64, x[e]); r.w[2 * e + 1] = (u32)(bits(u64, x[e]) >> 32); }
    else if constexpr (sizeof(T) == 4) r.w[e] = bits(u32, x[e]);
    else if constexpr (sizeof(T) == 2) r.w[e / 2] |= (u32)(u16)x[e] << 16 * (e % 2);
    else r.w[e / 4] |= (u32)(u8)x[e] << 8 * (e % 4);
  }
}
template <int V, int B> D void unpack_boolean(const Words<B>& r, bool (&x)[V]) {
#pragma unroll
  for (int e = 0; e < V; ++e) x[e] = (r.w[e / 4] >> 8 * (e % 4) & 0xff) != 0;
}

// Bytes straight to f32: a permutation makes 2^23 + byte, a subtraction the byte's value. Conversion instructions run at an eighth of
// the rate (int8 dequantise and requantise: four conversions an element held it at 0.7 of the copy rate).
D u32 take_byte(u32 w, int e) {
#ifdef FUSEC_SIMT
  return 0x4b000000u | (w >> 8 * e & 0xffu);
#else
  return __byte_perm(w, 0x4b000000u, 0x7440u | e);
#endif
}
template <int V, int B> D void unpack_float_u8(const Words<B>& r, f32 (&x)[V]) {
#pragma unroll
  for (int e = 0; e < V; ++e) x[e] = bits(f32, take_byte(r.w[e / 4], e % 4)) - 8388608.0f;
}
template <int V, int B> D void unpack_float_i8(const Words<B>& r, f32 (&x)[V]) {
#pragma unroll
  for (int e = 0; e < V; ++e) x[e] = bits(f32, take_byte(r.w[e / 4] ^ 0x80808080u, e % 4)) - 8388736.0f;
}

// The same in one instruction, with 2^15 added (of i8 2^15 + 128): what only compares and subtracts need not take it off.
template <bool Signed, int V, int B> D void lift_bytes(const Words<B>& r, f32 (&x)[V]) {
#pragma unroll
  for (int e = 0; e < V; ++e) {
    const u32 w = Signed ? r.w[e / 4] ^ 0x80808080u : r.w[e / 4];
    x[e] = bits(f32, __byte_perm(w, 0x47000000u, 0x7604u | (e % 4) << 4));
  }
}

// The sum of a vector's bytes, or of those from `from` up to `to`: a whole number below 2^13, which is what any tree of f32 makes of them. A word is
// one instruction; it begins at 1.5 * 2^23, where an f32 counts ones.
template <bool Signed> D i32 add_bytes(u32 w, i32 sum) {
#ifdef FUSEC_SIMT
  for (int e = 0; e < 4; ++e) sum += Signed ? (i32)(i8)(w >> 8 * e) : (i32)(u8)(w >> 8 * e);
  return sum;
#else
  return Signed ? __dp4a((i32)w, 0x01010101, sum) : (i32)__dp4a(w, 0x01010101u, (u32)sum);
#endif
}
// What is left without the `low` lower bits and the `high` upper ones, wherever it lies; 32 and more are all.
D u32 cut_bits(u32 w, u32 low, u32 high) {
#ifdef FUSEC_SIMT
  return low + high > 31 ? 0 : w >> low << (low + high);
#else
  return __funnelshift_lc(0u, __funnelshift_rc(w, 0u, low), low + high);
#endif
}
template <bool Signed, int B> D f32 sum_bytes(const Words<B>& r) {
  i32 sum = 0x4b400000;
#pragma unroll
  for (int k = 0; k < B / 4; ++k) sum = add_bytes<Signed>(r.w[k], sum);
  return bits(f32, sum) - 12582912.0f;
}
template <bool Signed, int B> D f32 sum_bytes(const Words<B>& r, int from, int to) {
  i32 sum = 0x4b400000;
#pragma unroll
  for (int k = 0; k < B / 4; ++k) {
    const int low = 8 * from - 32 * k, high = 32 * (k + 1) - 8 * to;
    sum = add_bytes<Signed>(cut_bits(r.w[k], low > 0 ? (u32)low : 0u, high > 0 ? (u32)high : 0u), sum);
  }
  return bits(f32, sum) - 12582912.0f;
}
// Columns of bytes: U rows of a lane's vector are added as whole numbers of 16 bits, then to the running sums.
D u32 every_other_byte(u32 w) {
#ifdef FUSEC_SIMT
  return w >> 8 & 0x00ff00ffu;
#else
  return __byte_perm(w, 0, 0x4341);
#endif
}
D u32 take_half(u32 w, int high) {
#ifdef FUSEC_SIMT
  return 0x4b000000u | (w >> 16 * high & 0xffffu);
#else
  return __byte_perm(w, 0x4b000000u, high ? 0x7632 : 0x7610);
#endif
}
template <bool Signed, int U, int V, class R> D void add_rows(const R (&raw)[U], const Words<V> R::*words, f32 (&q)[V]) {
  const f32 zero = 8388608.0f + (Signed ? 128 * U : 0);
#pragma unroll
  for (int k = 0; k < V / 4; ++k) {
    u32 even = 0, odd = 0;
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const u32 w = (raw[u].*words).w[k] ^ (Signed ? 0x80808080u : 0u);
      even += w & 0x00ff00ffu, odd += every_other_byte(w);
    }
    q[4 * k] = q[4 * k] + (bits(f32, take_half(even, 0)) - zero);
    q[4 * k + 1] = q[4 * k + 1] + (bits(f32, take_half(odd, 0)) - zero);
    q[4 * k + 2] = q[4 * k + 2] + (bits(f32, take_half(even, 1)) - zero);
    q[4 * k + 3] = q[4 * k + 3] + (bits(f32, take_half(odd, 1)) - zero);
  }
}

// n / d for 0 <= n < 2^31 (2^63) with the multiplier and shift of codegen/magic.h.
D i32 divide(i32 n, u32 multiplier, u32 shift) { return (i32)((__umulhi((u32)n, multiplier) + (u32)n) >> shift); }
D i64 divide(i64 n, u64 multiplier, u32 shift) { return (i64)((__umul64hi((u64)n, multiplier) + (u64)n) >> shift); }
