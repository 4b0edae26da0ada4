// Column: the kept axis is the contiguous one. X lanes lie along it, each with V columns and V running states; Y threads of a
// column walk the reduced positions, U rows in flight; the Y states meet in shared memory in a fixed order. With Split the positions
// are cut into parts that gridDim.y blocks take in turn: partial states go to memory and the last block of a column merges them in order.
template <class K, int X, int Y, class A> D void merge_column(A& acc, char* scratch) {
  // Neighbours first, upper into lower, so that each merge is (lower, upper). All threads leave with the result.
  A* at = (A*)scratch;
  acc.settle();
#pragma unroll
  for (int w = 1; w < Y; w *= 2) {
    const int x = threadIdx.x % X, y = threadIdx.x / X;
    __syncthreads();
    if (y % (2 * w) == w) acc.put(at + (y / (2 * w) * X + x));
    __syncthreads();
    if (y % (2 * w) == 0) {
      A upper;
      upper.get(at + (y / (2 * w) * X + x));
      acc.merge(upper);
    }
  }
  if constexpr (Y > 1) {
    const int x = threadIdx.x % X, y = threadIdx.x / X;
    __syncthreads();
    if (y == 0) acc.put(at + x);
    __syncthreads();
    acc.get(at + x);
  }
}

template <int S, class K, int Y, int U, class F>
D void each_position(const typename K::Args& a, typename K::At& t, int n, int y, typename K::Ix begin, typename K::Ix end, u64 policy,
                     const typename K::Row& row, F f) {
  typedef typename K::Ix Ix;
  Ix e = begin + y;
  // Shifted: each load takes up to 2 V elements of memory from where a lane's columns begin, and n = 2 V says that they are there. The last
  // positions do not have them.
  Ix safe = end;
  if constexpr (K::Shifted) {
    const Ix width = K::rows(a), last = K::columns(a) - 1 - (2 * K::V + width - 1) / width;
    if (last < safe) safe = last;
  }
#pragma unroll 1
  for (; e + (U - 1) * Y < safe; e += U * Y) {
    typename K::template Raw<S> raw[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      K::element_at(a, e + u * Y, t);
      K::load(Int<S>(), a, t, K::Shifted ? 2 * (int)K::V : n, policy, row, raw[u]);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      K::element_at(a, e + u * Y, t);
      f(t, raw[u]);
    }
  }
#pragma unroll 1
  for (; e < end; e += Y) {
    typename K::template Raw<S> raw;
    K::element_at(a, e, t);
    K::load(Int<S>(), a, t, n, policy, row, raw);
    f(t, raw);
  }
}

template <int S, class K, int X, int Y, int U, bool Split> struct Column {
  typedef typename K::Ix Ix;
  static __device__ __forceinline__ bool sweep(const typename K::Args& a, typename K::At& t, int n, Ix base, Ix columns, u64 policy,
                                               typename K::Row& row, char* scratch) {
    if constexpr (S < K::Folds) {
      typedef typename K::template Acc<S> Acc;
      const int x = threadIdx.x % X, y = threadIdx.x / X;
      auto read = [&](Acc& acc, Ix begin, Ix end) {
        acc.zero();
        if (n > 0)
          each_position<S, K, Y, U>(a, t, n, y, begin, end, policy, row, [&](const typename K::At& at, const typename K::template Raw<S>& raw) {
            K::fold(Int<S>(), a, at, n, raw, row, acc);
          });
        merge_column<K, X, Y>(acc, scratch);
      };
      Acc acc;
      if constexpr (Split) {
        // states[column block][part][x]
        const Ix block = base / (X * K::V), parts = (Ix)K::splits(a), part = (columns + parts - 1) / parts;
        Acc* states = (Acc*)K::states(a) + (u64)block * parts * X;
        for (Ix p = blockIdx.y; p < parts; p += gridDim.y) {
          read(acc, part * p, part * (p + 1) < columns ? part * (p + 1) : columns);
          if (y == 0) acc.put(states + (p * X + x));
        }
        if (!last_block(K::counters(a) + block, gridDim.y)) return false;
        acc.zero();
        // Several states on their way at once: each is a trip to the L2, and nobody else works any more.
        constexpr int kAhead = K::Shifted ? 1 : K::AccBytes <= 32 ? 4 : K::AccBytes <= 64 ? 2 : 1;  // (shifted pieces leave no registers)
#pragma unroll 1
        for (Ix p = y; p < parts; p += kAhead * Y) {
          Acc some[kAhead];
#pragma unroll
          for (int k = 0; k < kAhead; ++k)
            if (p + k * Y < parts) some[k].fresh(states + (p + k * Y) * X + x);
#pragma unroll
          for (int k = 0; k < kAhead; ++k)
            if (p + k * Y < parts) acc.merge(some[k]);
        }
        merge_column<K, X, Y>(acc, scratch);
      } else {
        read(acc, 0, columns);
      }
      K::finish(Int<S>(), a, t, n, acc, row);
      return Column<S + 1, K, X, Y, U, Split>::sweep(a, t, n, base, columns, policy, row, scratch);
    }
    return true;
  }
};

template <class K, int X, int Y, int U, bool Split> D void column(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  __shared__ __align__(16) char scratch[Y > 1 ? X * (Y / 2) * K::AccBytes : 16];
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const int x = threadIdx.x % X, y = threadIdx.x / X;
  for (Ix base = (Ix)blockIdx.x * (X * K::V); base < rows; base += (Ix)gridDim.x * (X * K::V)) {
    const Ix r = base + x * K::V, left = rows - r;
    const int n = left >= K::V ? K::V : left > 0 ? (int)left : 0;  // 0: a lane without columns
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, n ? r : 0, t);
    K::row(a, t, n, row);
    if (!Column<0, K, X, Y, U, Split>::sweep(a, t, n, base, columns, policy, row, scratch)) continue;
    if constexpr (K::Stores) {
      if (n > 0)
        each_position<K::Folds, K, Y, U>(a, t, n, y, 0, columns, policy, row,
                                         [&](const typename K::At& at, const typename K::template Raw<K::Folds>& raw) {
                                           K::store(a, at, n, raw, row);
                                         });
    }
    if (y == 0 && n > 0) K::row_store(a, t, n, row);
  }
}
