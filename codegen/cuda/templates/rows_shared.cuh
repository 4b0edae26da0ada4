// Rows that are too long for registers: a block, or a cluster of blocks, keeps the packed words of the cut in shared memory. A
// lane comes back to its own vectors only, so the words need no barrier; states meet as in `rows`, then across the cluster.

template <int S, class K, int Threads, int U, int Cluster> struct Shared {
  typedef typename K::Ix Ix;
  typedef typename K::Keep Keep;
  static __device__ __forceinline__ void sweep(const typename K::Args& a, typename K::At& t, Ix begin, Ix end, u64 policy, Keep* kept,
                                               typename K::Row& row, char* scratch, char* meet, int& turn) {
    if constexpr (S < K::Folds) {
      constexpr Ix kStep = (Ix)Threads * K::V;
      typename K::template Acc<S> acc;
      acc.zero();
      Keep* slot = kept;
      Ix e = begin + (Ix)threadIdx.x * K::V;
      if constexpr (S == 0) {
#pragma unroll 1
        for (; e + (U - 1) * kStep + K::V <= end; e += U * kStep, slot += U * Threads) {
          typename K::template Raw<0> raw[U];
#pragma unroll
          for (int u = 0; u < U; ++u) {
            K::element_at(a, e + u * kStep, t);
            K::load(Int<0>(), a, t, K::V, policy, row, raw[u]);
          }
#pragma unroll
          for (int u = 0; u < U; ++u) {
            Keep keep;
            K::element_at(a, e + u * kStep, t);
            K::cut(a, t, raw[u], row, keep);
            slot[u * Threads] = keep;
            K::fold(Int<0>(), a, t, K::V, keep, row, acc);
          }
        }
#pragma unroll 1
        for (; e < end; e += kStep, slot += Threads) {
          typename K::template Raw<0> raw;
          Keep keep;
          const int n = K::Full || end - e >= K::V ? (int)K::V : (int)(end - e);
          K::element_at(a, e, t);
          K::load(Int<0>(), a, t, n, policy, row, raw);
          K::cut(a, t, raw, row, keep);
          *slot = keep;
          K::fold(Int<0>(), a, t, n, keep, row, acc);
        }
      } else {
#pragma unroll 2
        for (; e < end; e += kStep, slot += Threads) {
          const Keep keep = *slot;
          K::element_at(a, e, t);
          K::fold(Int<S>(), a, t, K::Full || end - e >= K::V ? (int)K::V : (int)(end - e), keep, row, acc);
        }
      }
      const int now = turn;
      merge_lanes<Threads, Threads, K::AccBytes>(acc, scratch, turn);
      merge_cluster<Cluster, K::AccBytes>(acc, meet, now);
      K::finish(Int<S>(), a, t, K::V, acc, row);
      Shared<S + 1, K, Threads, U, Cluster>::sweep(a, t, begin, end, policy, kept, row, scratch, meet, turn);
    }
  }
};

template <class K, int Threads, int U, int Cluster> D void rows_shared(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  extern __shared__ __align__(16) char dynamic[];
  __shared__ __align__(16) char scratch[2 * (Threads / 32) * K::AccBytes];
  __shared__ __align__(16) char meet[2 * K::AccBytes];
  int turn = 0;
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const u32 rank = Cluster > 1 ? cluster_rank() : 0;
  // Parts of a row are whole vectors, so that a vector never has two owners.
  const Ix part = ((columns + (K::Windows ? 2 : 1) * (K::V - 1)) / K::V + (Cluster - 1)) / Cluster * K::V;
  typename K::Keep* kept = (typename K::Keep*)dynamic + threadIdx.x;
  for (Ix r = blockIdx.x / Cluster; r < rows; r += gridDim.x / Cluster) {
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, r, t);
    K::row(a, t, K::V, row);
    const Ix begin = part * (Ix)rank - K::skew(a, t), end = begin + part < columns ? begin + part : columns;
    Shared<0, K, Threads, U, Cluster>::sweep(a, t, begin, end, policy, kept, row, scratch, meet, turn);
    if constexpr (K::Stores) {
      constexpr Ix kStep = (Ix)Threads * K::V;
      const typename K::Keep* slot = kept;
      const typename K::Late late{};
#pragma unroll 2
      for (Ix e = begin + (Ix)threadIdx.x * K::V; e < end; e += kStep, slot += Threads) {
        const typename K::Keep keep = *slot;
        K::element_at(a, e, t);
        K::store(a, t, K::Full || end - e >= K::V ? (int)K::V : (int)(end - e), keep, late, row);
      }
    }
    if (rank == 0 && threadIdx.x == 0) K::row_store(a, t, 1, row);
  }
  if constexpr (Cluster > 1) cluster_sync();  // a peer may still read from here
}
