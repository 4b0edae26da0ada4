// One pass over a long row, U vectors a lane in flight: `f` takes each with its words.
template <int S, class K, int Threads, int U, class F>
D void each_vector(const typename K::Args& a, typename K::At& t, typename K::Ix begin, typename K::Ix end, u64 policy,
                   const typename K::Row& row, F f) {
  typedef typename K::Ix Ix;
  constexpr Ix kStep = (Ix)Threads * K::V;
  Ix e = begin + (Ix)threadIdx.x * K::V;
#pragma unroll 1
  for (; e + (U - 1) * kStep + K::V <= end; e += U * kStep) {
    typename K::template Raw<S> raw[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      K::element_at(a, e + u * kStep, t);
      K::load(Int<S>(), a, t, K::V, policy, row, raw[u]);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      K::element_at(a, e + u * kStep, t);
      f(t, K::V, raw[u]);
    }
  }
#pragma unroll 1
  for (; e < end; e += kStep) {
    typename K::template Raw<S> raw;
    const int n = K::Full || end - e >= K::V ? (int)K::V : (int)(end - e);
    K::element_at(a, e, t);
    K::load(Int<S>(), a, t, n, policy, row, raw);
    f(t, n, raw);
  }
}
