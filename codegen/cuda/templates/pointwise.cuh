// Pointwise: a lane owns vectors of V neighbours along the vector axis; a block owns tiles of Threads * U vectors, vector u of
// thread t at u * Threads + t, so that a warp reads and writes contiguous runs. The launch has one tile a block: a grid holds as many
// as 32-bit numbers count, and for 64-bit ones the grid-stride loop is the safety net. All loads of a full tile are issued before the
// first arithmetic.
template <class K, int Threads, int U> D void pointwise(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  constexpr Ix kStep = (Ix)Threads * K::V, kTile = kStep * U;
  const u64 policy = K::policy(a);
  const Ix total = K::rows(a);
  typename K::At origin{};
  typename K::Row row;
  K::row(a, origin, K::V, row);
  for (Ix base = (Ix)blockIdx.x * kTile; base < total; base += (Ix)gridDim.x * kTile) {
    const Ix first = base + (Ix)threadIdx.x * K::V;
    if (K::Exact || (U > 1 && base + kTile <= total)) {
      typename K::At t[U];
      typename K::template Raw<0> raw[U];
#pragma unroll
      for (int u = 0; u < U; ++u) {
        K::row_at(a, first + u * kStep, t[u]);
        K::load(Int<0>(), a, t[u], K::V, policy, row, raw[u]);
      }
#pragma unroll
      for (int u = 0; u < U; ++u) K::store(a, t[u], K::V, raw[u], row);
    } else if constexpr (!K::Exact) {  // not there where sizes in the text say that all tiles are whole: it compiles a fifth faster
#pragma unroll 1
      for (int u = 0; u < U; ++u) {
        const Ix at = first + u * kStep, left = total - at;
        if (left <= 0) break;
        typename K::At t;
        typename K::template Raw<0> raw;
        const int n = left < K::V ? (int)left : (int)K::V;
        K::row_at(a, at, t);
        K::load(Int<0>(), a, t, n, policy, row, raw);
        K::store(a, t, n, raw, row);
      }
    }
    if constexpr (sizeof(Ix) == 4) break;
  }
}
