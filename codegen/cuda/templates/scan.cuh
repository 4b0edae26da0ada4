// Scans: running values along a row, in registers; what came before is carried from chunk to chunk. The order of every fold follows from
// the row's length and the element type alone.
//
//   lane      runs over its vector, in order
//   warp      log2 steps of shuffles over the lanes' totals (Kogge & Stone, IEEE Trans. Computers C-22, 1973), vector after vector
//   block     the warps' totals through shared memory, one barrier a chunk
//   row       chunk after chunk
template <int W, bool Reverse, class T> D T lane_before(T x, int d) {
  return Reverse ? (T)__shfl_down_sync(0xffffffffu, x, d, W) : (T)__shfl_up_sync(0xffffffffu, x, d, W);
}
template <int W, class T> D T lane_at(T x, int lane) { return (T)__shfl_sync(0xffffffffu, x, lane, W); }

// `own`: a lane's total; then the fold of the lanes before it. `all`: of all W lanes.
template <int W, bool Reverse, class A> D void scan_warp(A& own, A& all) {
  const int lane = threadIdx.x % W, before = Reverse ? W - 1 - lane : lane;
#pragma unroll
  for (int d = 1; d < W; d *= 2) {
    A lower = own.template from<W>(d);
    lower.merge(own);
    if (before >= d) own = lower;
  }
  all = own.template at<W>(Reverse ? 0 : W - 1);
  own = own.template from<W>(1);
  if (before == 0) own.zero();
}

// The fold of what `Of` parties put into shared memory, in order: `front` up to party `me`, `all` of all.
template <int Of, int Stride, bool Reverse, class A> D void scan_parties(const A* at, int me, A& front, A& all) {
  all.zero();
#pragma unroll
  for (int k = 0; k < Of; ++k) {
    const int party = Reverse ? Of - 1 - k : k;
    if (party == me) front = all;
    A one;
    one.get(at + party * Stride);
    all.merge(one);
  }
}

// Where rows begin anywhere between vectors, vectors are aligned and a row begins inside its first one.
template <class K> D typename K::Ix scan_width(const typename K::Args& a) { return K::columns(a) + (K::Windows ? K::V - 1 : 0); }
template <class K> D typename K::Ix scan_skew(const typename K::Args& a, const typename K::At& t) {
  if constexpr (K::Windows) return K::skew(a, t);
  return 0;
}

// A lane's part of a chunk, where the axis is contiguous: Steps vectors, W lanes apart. read: loads and runs; write: what came before is folded in.
template <class K, int W, int Steps> struct RowChunk {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  typename K::template Raw<0> raw[Steps];
  typename K::template Lane<0> x[Steps];
  Acc before[Steps], run;  // of the warp's lanes and vectors before; of all of them

  __device__ __forceinline__ void read(const typename K::Args& a, typename K::At& t, const typename K::Row& row, Ix first, Ix columns, u64 policy) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const Ix e = first + (Ix)(s * W) * K::V, left = columns - e;
      if (left > 0) {
        K::element_at(a, e, t);
        K::load(a, t, left >= K::V ? (int)K::V : (int)left, policy, row, raw[s]);
      }
    }
    run.zero();
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      const int s = K::Reverse ? Steps - 1 - k : k;
      const Ix e = first + (Ix)(s * W) * K::V, left = columns - e;
      if (left <= 0) {
        x[s].none();
      } else {
        K::element_at(a, e, t);
        K::take(a, t, left >= K::V ? (int)K::V : (int)left, raw[s], row, x[s]);
      }
      Acc all, own;
      own.zero();
      own.run(x[s]);
      scan_warp<W, K::Reverse>(own, all);
      before[s] = run;
      before[s].merge(own);
      run.merge(all);
    }
  }
  __device__ __forceinline__ void write(const typename K::Args& a, typename K::At& t, const typename K::Row& row, Ix first, Ix columns, const Acc& lower) {
#pragma unroll
    for (int s = 0; s < Steps; ++s) {
      const Ix e = first + (Ix)(s * W) * K::V, left = columns - e;
      if (left > 0) {
        Acc all = lower;
        all.merge(before[s]);
        all.follow(x[s]);
        K::element_at(a, e, t);
        K::store(a, t, left >= K::V ? (int)K::V : (int)left, raw[s], row, x[s]);
      }
    }
  }
};

// Lanes lanes a row, several rows a block.
template <class K, int Lanes, int Steps, int Threads> D void scan_rows(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  constexpr int W = Lanes < 32 ? Lanes : 32, kWarps = Lanes / W, kRows = Threads / Lanes;
  __shared__ __align__(16) char scratch[kWarps > 1 ? 2 * kRows * kWarps * K::AccBytes : 16];
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const int line = threadIdx.x / Lanes, lane = threadIdx.x % W, warp = threadIdx.x % Lanes / W;
  constexpr Ix kChunk = (Ix)Lanes * Steps * K::V;
  const Ix chunks = (scan_width<K>(a) + kChunk - 1) / kChunk;
  int turn = 0;
  for (Ix base = (Ix)blockIdx.x * kRows; base < rows; base += (Ix)gridDim.x * kRows) {
    // Lanes without a row of their own repeat the last one and store nothing: barriers and shuffles need everybody.
    const bool live = base + line < rows;
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, live ? base + line : rows - 1, t);
    K::row(a, t, K::V, row);
    const Ix skew = scan_skew<K>(a, t);
    Acc carry;
    carry.zero();
#pragma unroll 1
    for (Ix c = 0; c < chunks; ++c) {
      const Ix first = (K::Reverse ? chunks - 1 - c : c) * kChunk + (Ix)(warp * Steps * W + lane) * K::V - skew;
      RowChunk<K, W, Steps> chunk;
      chunk.read(a, t, row, first, columns, policy);
      Acc lower = carry, all = chunk.run;
      if constexpr (kWarps > 1) {
        Acc front;
        Acc* at = (Acc*)(scratch + (turn * kRows + line) * kWarps * K::AccBytes);
        turn ^= 1;
        if (lane == 0) chunk.run.put(at + warp);
        __syncthreads();
        scan_parties<kWarps, 1, K::Reverse>(at, warp, front, all);
        lower.merge(front);
      }
      carry.merge(all);
      if (live) chunk.write(a, t, row, first, columns, lower);
    }
    if constexpr (K::RowStores)
      if (live && threadIdx.x % Lanes == 0) K::row_store(a, t, K::V, row);
    if constexpr (sizeof(Ix) == 4) break;  // as in rows_held
  }
}

// The same where another axis is contiguous: Steps positions of a lane's V columns, of which n are there.
template <class K, int Steps> struct ColumnChunk {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  typename K::template Raw<0> raw[Steps];
  typename K::template Lane<0> x[Steps];
  Acc run;

  __device__ __forceinline__ void read(const typename K::Args& a, typename K::At& t, int n, const typename K::Row& row, Ix first, Ix columns, u64 policy) {
#pragma unroll
    for (int s = 0; s < Steps; ++s)
      if (n > 0 && first + s < columns) {
        K::element_at(a, first + s, t);
        K::load(a, t, n, policy, row, raw[s]);
      }
    run.zero();
#pragma unroll
    for (int k = 0; k < Steps; ++k) {
      const int s = K::Reverse ? Steps - 1 - k : k;
      if (n <= 0 || first + s >= columns) continue;
      K::element_at(a, first + s, t);
      K::take(a, t, n, raw[s], row, x[s]);
      run.run(x[s]);
    }
  }
  __device__ __forceinline__ void write(const typename K::Args& a, typename K::At& t, int n, const typename K::Row& row, Ix first, Ix columns, const Acc& lower) {
#pragma unroll
    for (int s = 0; s < Steps; ++s)
      if (n > 0 && first + s < columns) {
        lower.follow(x[s]);
        K::element_at(a, first + s, t);
        K::store(a, t, n, raw[s], row, x[s]);
      }
  }
};

// X lanes along the columns; the Y threads of a column take Steps positions each in a chunk.
template <class K, int X, int Steps, int Threads> D void scan_columns(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  constexpr int Y = Threads / X;
  __shared__ __align__(16) char scratch[Y > 1 ? 2 * Threads * K::AccBytes : 16];
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const int lane = threadIdx.x % X, y = threadIdx.x / X;
  constexpr Ix kChunk = (Ix)Y * Steps;
  const Ix chunks = (columns + kChunk - 1) / kChunk;
  int turn = 0;
  for (Ix base = (Ix)blockIdx.x * (X * K::V); base < rows; base += (Ix)gridDim.x * (X * K::V)) {
    const Ix r = base + lane * K::V, there = rows - r;
    const int n = there >= K::V ? (int)K::V : there > 0 ? (int)there : 0;  // 0: a lane without columns
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, n ? r : 0, t);
    K::row(a, t, n, row);
    Acc carry;
    carry.zero();
#pragma unroll 1
    for (Ix c = 0; c < chunks; ++c) {
      const Ix first = (K::Reverse ? chunks - 1 - c : c) * kChunk + (Ix)(y * Steps);
      ColumnChunk<K, Steps> chunk;
      chunk.read(a, t, n, row, first, columns, policy);
      Acc lower = carry, all = chunk.run;
      if constexpr (Y > 1) {
        Acc front;
        Acc* at = (Acc*)(scratch + turn * Threads * K::AccBytes) + lane;
        turn ^= 1;
        chunk.run.put(at + y * X);
        __syncthreads();
        scan_parties<Y, X, K::Reverse>(at, y, front, all);
        lower.merge(front);
      }
      carry.merge(all);
      chunk.write(a, t, n, row, first, columns, lower);
    }
    if constexpr (K::RowStores)
      if (y == 0 && n > 0) K::row_store(a, t, n, row);
    if constexpr (sizeof(Ix) == 4) break;
  }
}
