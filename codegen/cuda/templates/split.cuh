// Split: long rows, reduced once. A row is dealt to parts, a block's width to each in turn, so that what is read at a time lies together:
// parts that were slices of their own had 264 of them open all over the row. There are as many as its length asks for whatever the number
// of rows: it has the same bits in any company. gridDim.y blocks take the parts in turn, partial states go to memory, and the last block
// of the row merges them in a fixed order. One folding sweep, no element stores.
template <class K, int Threads, int U> D void split(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  typedef typename K::template Acc<0> Acc;
  __shared__ __align__(16) char scratch[2 * (Threads / 32) * K::AccBytes];
  int turn = 0;
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const u32 parts = K::splits(a);
  const Ix width = (Ix)Threads * K::V;
  for (Ix r = blockIdx.x; r < rows; r += gridDim.x) {
    typename K::At t{};
    typename K::Row row;
    K::row_at(a, r, t);
    K::row(a, t, K::V, row);
    Acc* states = (Acc*)K::states(a) + (u64)r * parts;
    for (u32 p = blockIdx.y; p < parts; p += gridDim.y) {
      Acc acc;
      acc.zero();
      auto fold = [&](const typename K::At& at, int n, const typename K::template Raw<0>& raw) { K::fold(Int<0>(), a, at, n, raw, row, acc); };
      each_vector<0, K, Threads, U>(a, t, width * (Ix)p - K::skew(a, t), columns, policy, row, fold, width * (Ix)parts);
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
