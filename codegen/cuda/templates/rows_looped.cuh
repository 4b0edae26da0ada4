// Rows of any length, a block a row: read again for every sweep.
template <int S, class K, int Threads, int U> struct Looped {
  typedef typename K::Ix Ix;
  static __device__ __forceinline__ void sweep(const typename K::Args& a, typename K::At& t, Ix columns, u64 policy,
                                               typename K::Row& row, char* scratch, int& turn) {
    if constexpr (S < K::Folds) {
      typename K::template Acc<S> acc;
      acc.zero();
      each_vector<S, K, Threads, U>(a, t, -K::skew(a, t), columns, policy, row, [&](const typename K::At& at, int n, const typename K::template Raw<S>& raw) {
        K::fold(Int<S>(), a, at, n, raw, row, acc);
      });
      merge_lanes<Threads, Threads, K::AccBytes>(acc, scratch, turn);
      K::finish(Int<S>(), a, t, K::V, acc, row);
      Looped<S + 1, K, Threads, U>::sweep(a, t, columns, policy, row, scratch, turn);
    }
  }
};

template <class K, int Threads, int U> D void rows_looped(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  __shared__ __align__(16) char scratch[2 * (Threads / 32) * K::AccBytes];
  int turn = 0;
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  for (Ix r = blockIdx.x; r < rows; r += gridDim.x) {
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, r, t);
    K::row(a, t, K::V, row);
    Looped<0, K, Threads, U>::sweep(a, t, columns, policy, row, scratch, turn);
    if constexpr (K::Stores) {
      each_vector<K::Folds, K, Threads, U>(a, t, -K::skew(a, t), columns, policy, row,
                                           [&](const typename K::At& at, int n, const typename K::template Raw<K::Folds>& raw) {
                                             K::store(a, at, n, raw, row);
                                           });
    }
    if (threadIdx.x == 0) K::row_store(a, t, 1, row);
  }
}
