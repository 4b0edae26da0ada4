// What rows_tiled.cuh does with a row in registers: the sweeps of rows_held.cuh as a template.
template <int Cluster, int Bytes, bool Many> struct Meeting {  // a block that is alone has nobody to meet
  __device__ __forceinline__ explicit Meeting(char*) {}
  template <class A> __device__ __forceinline__ void merge(A&) {}
};

// Step s of lanes that take Span elements together: is it whole, whichever lane and wherever a window begins? Numbers in the text say it.
template <class K, int Span> D bool is_inside(int s, typename K::Ix columns) {
  return K::Windows && s * Span >= (int)K::Window && (s + 1) * Span <= columns;
}

// `f` takes the elements that there are of the vector that begins at e. Nearly all vectors of an aligned window are whole: they take a path
// without a condition an element.
template <class K, class F> D void fold_part(typename K::Ix e, typename K::Ix columns, bool inside, F f) {
  const typename K::Ix left = columns - e;
  if constexpr (K::Exact) f((int)K::V);
  else if (inside || (K::Windows && e >= 0 && left >= K::V)) f((int)K::V);
  else if (left > 0) f(K::Full || left >= K::V ? (int)K::V : (int)left);
}

// Sweeps S and later over R held rows: fold every step of each, merge the lanes of all rows at once, finish their values.
template <int S, class K, int Lanes, int Steps, int Threads, int R, int Cluster> struct Held {
  typedef typename K::Ix Ix;
  typedef Meeting<Cluster, K::AccBytes, (Cluster > 1)> Blocks;
  static __device__ __forceinline__ void sweep(const typename K::Args& a, typename K::At* t, int lane, Ix columns,
                                               typename K::Keep (*keep)[Steps], typename K::Row* row, char* scratch, int& turn, Blocks& blocks) {
    if constexpr (S < K::Folds) {
      typename K::template Acc<S> acc[R];
#pragma unroll
      for (int r = 0; r < R; ++r) {
        Ix skew = 0;
        if constexpr (K::Windows) skew = K::skew(a, t[r]);
        acc[r].zero();
#pragma unroll
        for (int s = 0; s < Steps; ++s) {
          const Ix e = (Ix)(s * Lanes * Cluster + lane) * K::V - skew;
          fold_part<K>(e, columns, is_inside<K, Lanes * Cluster * K::V>(s, columns), [&](int n) {
            K::element_at(a, e, t[r]);
            if constexpr (S > 0 && K::Hides) K::hide(a, keep[r][s]);
            K::fold(Int<S>(), a, t[r], n, keep[r][s], row[r], acc[r]);
          });
        }
      }
      merge_lanes<Lanes, Threads, K::AccBytes>(acc, scratch, turn);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        blocks.merge(acc[r]);
        K::finish(Int<S>(), a, t[r], K::V, acc[r], row[r]);
      }
      Held<S + 1, K, Lanes, Steps, Threads, R, Cluster>::sweep(a, t, lane, columns, keep, row, scratch, turn, blocks);
    }
  }
};
