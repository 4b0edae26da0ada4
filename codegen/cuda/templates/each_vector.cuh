// One pass over a long row, U vectors a lane in flight: `f` takes each with its words. A lane's vectors are `step` elements apart: a block's
// width, or that of all blocks that share the row.
template <int S, class K, int Threads, int U, class F>
D void each_vector(const typename K::Args& a, typename K::At& t, typename K::Ix begin, typename K::Ix end, u64 policy,
                   const typename K::Row& row, F f, typename K::Ix step = (typename K::Ix)Threads * K::V) {
  typedef typename K::Ix Ix;
  Ix e = begin + (Ix)threadIdx.x * K::V;
#pragma unroll 1
  for (; e + (U - 1) * step + K::V <= end; e += U * step) {
    typename K::template Raw<S> raw[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      K::element_at(a, e + u * step, t);
      K::load(Int<S>(), a, t, K::V, policy, row, raw[u]);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      K::element_at(a, e + u * step, t);
      f(t, K::V, raw[u]);
    }
  }
#pragma unroll 1
  for (; e < end; e += step) {
    typename K::template Raw<S> raw;
    const int n = K::Full || end - e >= K::V ? (int)K::V : (int)(end - e);
    K::element_at(a, e, t);
    K::load(Int<S>(), a, t, n, policy, row, raw);
    f(t, n, raw);
  }
}
