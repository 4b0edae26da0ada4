// Reductions: pairwise trees inside a lane's vector, butterflies across lanes, and the meeting places of warps and blocks. Every
// order is fixed: a merge is always (lower, upper), whoever asks, so all lanes of a row end with the same bits.
// (By recursion: the compiler unrolls no loop of halving bounds over 16, and an index it does not know puts the array into local memory.)
#define FUSEC_TREE(name, op)                                         \
  template <class T, int N> D T tree_##name(const T (&x)[N]) {       \
    if constexpr (N == 1) {                                          \
      return x[0];                                                   \
    } else if constexpr (N == 2) {                                   \
      return op(x[0], x[1]);                                         \
    } else if constexpr (N == 4) {                                   \
      return op(op(x[0], x[1]), op(x[2], x[3]));                     \
    } else if constexpr (N == 8) {                                   \
      return op(op(op(x[0], x[1]), op(x[2], x[3])), op(op(x[4], x[5]), op(x[6], x[7]))); \
    } else {                                                         \
      T y[N / 2];                                                    \
      _Pragma("unroll") for (int e = 0; e < N / 2; ++e) y[e] = op(x[2 * e], x[2 * e + 1]); \
      return tree_##name(y);                                         \
    }                                                                \
  }
FUSEC_TREE(add, fusec_add)
FUSEC_TREE(mul, fusec_mul)
FUSEC_TREE(min, least)
FUSEC_TREE(max, greatest)
FUSEC_TREE(or, fusec_or)
FUSEC_TREE(and, fusec_and)

template <class T, int N> D T tree_squares(const T (&x)[N]) {
  if constexpr (N == 1) {
    return x[0] * x[0];
  } else {
    T y[N / 2];
#pragma unroll
    for (int e = 0; e < N / 2; ++e) y[e] = fusec_fma(x[2 * e], x[2 * e], x[2 * e + 1] * x[2 * e + 1]);
    return tree_add(y);
  }
}

// Does (x, at j) take the place of (y, at i)? Any NaN wins, the first of several; of equal values the smaller index, or the larger.
template <bool Max, bool Last, class T> D bool beats(T x, i64 j, T y, i64 i) {
  const bool nx = x != x, ny = y != y;
  if (nx || ny) return nx && (!ny || j < i);
  if (x == y) return Last ? j > i : j < i;
  return Max ? y < x : x < y;
}

template <class T> D T peer(T x, int mask) { return (T)__shfl_xor_sync(0xffffffffu, x, mask); }

// Merges over `Lanes` neighbouring lanes of a warp (a power of two), for R rows at once. merge is symmetric to the bit, so both sides end
// alike. A state that `Meets` has a way of its own for all of them.
template <int Lanes, class A, int R> D void butterfly(A (&acc)[R]) {
  if constexpr (A::Meets && Lanes > 1) {
#pragma unroll
    for (int r = 0; r < R; ++r) acc[r].template meet<Lanes>();
  } else {
#pragma unroll
    for (int m = 1; m < Lanes; m *= 2)
#pragma unroll
      for (int r = 0; r < R; ++r) acc[r].merge(acc[r].peer(m));
  }
}
template <int Lanes, class A> D void butterfly(A& acc) { butterfly<Lanes>((A(&)[1])acc); }

// Merges over the `Lanes` lanes of a row, for R rows of each lane at once; the block holds Threads / Lanes times as many. `scratch` holds
// R states of at most Bytes a warp, twice: `turn` alternates between the halves, so that one barrier a merge is enough. The halves are the
// same for all states: sweeps of a row have states of several sizes.
template <int Lanes, int Threads, int Bytes, class A, int R> D void merge_lanes(A (&acc)[R], char* scratch, int& turn) {
#pragma unroll
  for (int r = 0; r < R; ++r) acc[r].settle();
  butterfly<(Lanes < 32 ? Lanes : 32)>(acc);
  if constexpr (Lanes > 32) {
    constexpr int kWarps = Lanes / 32, kAll = Threads / 32;
    A* at = (A*)(scratch + turn * (R * kAll) * Bytes);
    turn ^= 1;
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int r = 0; r < R; ++r) acc[r].put(at + (r * kAll + threadIdx.x / 32));
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; ++r) acc[r].get(at + (r * kAll + (Threads > Lanes ? threadIdx.x / Lanes * kWarps : 0) + threadIdx.x % kWarps));
    butterfly<kWarps>(acc);
  }
}
template <int Lanes, int Threads, int Bytes, class A> D void merge_lanes(A& acc, char* scratch, int& turn) {
  merge_lanes<Lanes, Threads, Bytes>((A(&)[1])acc, scratch, turn);
}

// Has every one of `count` blocks arrived at this counter? True in the last one, which sees what all of them wrote before, and
// sets the counter back. Called by all threads of a block.
D bool last_block(u32* counter, u32 count) {
  __shared__ u32 last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(counter, 1u) == count - 1;
    if (last) atomicExch(counter, 0u);
    __threadfence();
  }
  __syncthreads();
  return last;
}
