// Split: long rows, reduced once. A row is cut into parts, as many as its length asks for whatever the number of rows: it has the same
// bits in any company. gridDim.y blocks take the parts in turn, partial states go to memory, and the last block of the row merges them
// in a fixed order. One folding sweep, no element stores.
template <class K, int Threads, int U> D void split(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  __shared__ __align__(16) char scratch[2 * (Threads / 32) * K::AccBytes];
  int turn = 0;
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  // Parts are whole vectors, so that a vector never has two owners.
  const u32 parts = K::splits(a);
  const Ix vectors = (columns + (K::Windows ? 2 : 1) * (K::V - 1)) / K::V, part = (vectors + (Ix)parts - 1) / (Ix)parts * K::V;
  for (Ix r = blockIdx.x; r < rows; r += gridDim.x) {
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, r, t);
    K::row(a, t, K::V, row);
    Acc* states = (Acc*)K::states(a) + (u64)r * parts;
    for (u32 p = blockIdx.y; p < parts; p += gridDim.y) {
      const Ix begin = part * (Ix)p - K::skew(a, t), end = begin + part < columns ? begin + part : columns;
      Acc acc;
      acc.zero();
      each_vector<0, K, Threads, U>(a, t, begin, end, policy, row, [&](const typename K::At& at, int n, const typename K::template Raw<0>& raw) {
        K::fold(Int<0>(), a, at, n, raw, row, acc);
      });
      merge_lanes<Threads, Threads, K::AccBytes>(acc, scratch, turn);
      if (threadIdx.x == 0) acc.put(states + p);
    }
    if (!last_block(K::counters(a) + r, gridDim.y)) continue;
    Acc acc;
    acc.zero();
#pragma unroll 1
    for (u32 s = threadIdx.x; s < parts; s += Threads) {
      Acc one;
      one.fresh(states + s);
      acc.merge(one);
    }
    merge_lanes<Threads, Threads, K::AccBytes>(acc, scratch, turn);
    K::finish(Int<0>(), a, t, K::V, acc, row);
    if (threadIdx.x == 0) K::row_store(a, t, 1, row);
  }
}
