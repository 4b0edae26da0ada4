// Rows: Lanes lanes share a row, several rows a warp (Lanes < 32), a warp, or the warps of a block (Lanes = Threads), or those of all
// blocks of a cluster. The row stays in registers, Steps vectors a lane, as the packed words of the cut.

// A block that is alone has nobody to meet; of the blocks of a cluster: meeting.cuh.
template <int Cluster, int Bytes, bool Many> struct Meeting {
  enum { kBytes = 16 };
  __device__ __forceinline__ explicit Meeting(char*) {}
  __device__ __forceinline__ int rank() const { return 0; }
  __device__ __forceinline__ void enter() {}
  template <class A> __device__ __forceinline__ void merge(A&) {}
};

// `f` takes the elements that there are of the vector that begins at e. Nearly all vectors of an aligned window are whole: they take a path
// without a condition an element.
template <class K, class F> D void fold_part(typename K::Ix e, typename K::Ix columns, F f) {
  const typename K::Ix left = columns - e;
  if constexpr (K::Exact) f((int)K::V);
  else if (K::Windows && e >= 0 && left >= K::V) f((int)K::V);
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
          fold_part<K>(e, columns, [&](int n) {
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

// (What a kernel has none of is not called: every function less compiles faster.)
// R rows of a lane are loaded together: short rows alone would leave too few bytes in flight. Those of a whole warp or more are reduced
// together, too, with one barrier of the block for all; shorter ones one after the other, since many warps wait beside each other anyway.
template <class K, int Lanes, int Steps, int Threads, int R, int Cluster> D void rows_held(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  constexpr int kRows = Threads / Lanes, kTogether = Lanes >= 32 ? R : 1;
  __shared__ __align__(16) char scratch[Lanes > 32 ? 2 * kTogether * (Threads / 32) * K::AccBytes : 16];
  typedef Meeting<Cluster, K::AccBytes, (Cluster > 1)> Blocks;
  __shared__ __align__(16) char meet[Blocks::kBytes];
  Blocks blocks(meet);
  const u64 policy = K::policy(a);
  const Ix rows = K::rows(a), columns = K::columns(a);
  const Ix line = kRows > 1 ? (Ix)(threadIdx.x / Lanes) : 0;  // of the rows that the block takes together
  const int lane = (kRows > 1 ? threadIdx.x % Lanes : threadIdx.x) + blocks.rank() * Lanes;
  constexpr int kLate = K::Windows ? R : 1;  // parameters of the columns: a lane meets the same ones in each of its rows
  for (Ix base = (Ix)(blockIdx.x / Cluster) * (kRows * R); base < rows; base += (Ix)(gridDim.x / Cluster) * (kRows * R)) {
    int turn = 0;
    typename K::At t[R];
    typename K::Row row[R];
    typename K::template Raw<0> raw[R][Steps];
    typename K::Late late[kLate][Steps];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      // Lanes without a row of their own repeat the last one and store nothing: barriers and shuffles need everybody.
      const Ix own = base + r * kRows + line;
      t[r] = typename K::At{};
      K::row_at(a, kRows * R == 1 || own < rows ? own : rows - 1, t[r]);
      K::row(a, t[r], K::V, row[r]);
      Ix skew = 0;
      if constexpr (K::Windows) skew = K::skew(a, t[r]);
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        const Ix e = (Ix)(s * Lanes * Cluster + lane) * K::V - skew, left = columns - e;
        if (K::Exact || left > 0) {
          K::element_at(a, e, t[r]);
          K::load(Int<0>(), a, t[r], K::Full || left >= K::V ? (int)K::V : (int)left, policy, row[r], raw[r][s]);
          if constexpr (K::Early)
            if (r < kLate) K::early(a, t[r], K::Full || left >= K::V ? (int)K::V : (int)left, row[r], late[r][s]);
        }
      }
    }
    blocks.enter();
#pragma unroll
    for (int first = 0; first < R; first += kTogether) {
      typename K::Keep keep[kTogether][Steps];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int r = first + k;
        Ix skew = 0;
        if constexpr (K::Windows) skew = K::skew(a, t[r]);
#pragma unroll
        for (int s = 0; s < Steps; ++s) {
          const Ix e = (Ix)(s * Lanes * Cluster + lane) * K::V - skew, left = columns - e;
          if (K::Exact || left > 0) {
            K::element_at(a, e, t[r]);
            K::cut(a, t[r], raw[r][s], row[r], keep[k][s]);
          }
        }
      }
      Held<0, K, Lanes, Steps, Threads, kTogether, Cluster>::sweep(a, t + first, lane, columns, keep, row + first, scratch, turn, blocks);
      auto live = [&](int r) { return kRows * R == 1 || base + r * kRows + line < rows; };
      if constexpr (K::Stores) {
#pragma unroll
        for (int s = 0; s < Steps; ++s) {
#pragma unroll
          for (int k = 0; k < kTogether; ++k) {  // what the columns have for all rows is loaded once
            const int r = first + k;
            Ix skew = 0;
            if constexpr (K::Windows) skew = K::skew(a, t[r]);
            const Ix e = (Ix)(s * Lanes * Cluster + lane) * K::V - skew, left = columns - e;
            if ((K::Exact || left > 0) && live(r)) {
              K::element_at(a, e, t[r]);
              if constexpr (K::Folds > 0 && K::Hides) K::hide(a, keep[k][s]);
              K::store(a, t[r], K::Full || left >= K::V ? (int)K::V : (int)left, keep[k][s], late[r % kLate][s], row[r]);
            }
          }
        }
      }
      if constexpr (K::RowStores) {
#pragma unroll
        for (int k = 0; k < kTogether; ++k)
          if (live(first + k) && lane == 0) K::row_store(a, t[first + k], 1, row[first + k]);
      }
    }
    if constexpr (sizeof(Ix) == 4) break;  // a grid holds as many blocks as 32-bit numbers count rows; a loop takes registers
    if constexpr (Lanes > 32 && K::Folds % 2 == 1) __syncthreads();  // turns begin anew, with the half that was read last
  }
  blocks.enter();  // a cluster without a row
}
