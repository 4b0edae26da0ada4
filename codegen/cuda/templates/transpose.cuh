// Transpose: some operands are contiguous along axis i, the others along the vector axis j. A block owns a T x T tile: it reads the
// staged operands in vectors along i, turns them through shared memory, and goes on as a pointwise kernel along j. All loads of a
// tile, staged or not, are issued before the first barrier.
//
// Shared memory is walked in units of 4 bytes (8 for f64): a unit holds G = 4 / size neighbours along j of one i, so a lane that
// has loaded G vectors of adjacent j turns G x VS elements in registers and writes VS units. Rows of units are odd in length,
// which spreads the banks both ways.
template <int Size> struct Turn {
  static constexpr int G = Size < 4 ? 4 / Size : 1, VS = 16 / Size, UnitWords = Size == 8 ? 2 : 1;
  // Unit k of the turned block: element k of each of the G vectors.
  static __device__ __forceinline__ u32 word(const Words<16> (&w)[G], int k, int half) {
    if constexpr (Size == 8) return w[0].w[2 * k + half];
    else if constexpr (Size == 4) return w[0].w[k];
    u32 out = 0;
#pragma unroll
    for (int g = 0; g < G; ++g) out |= (w[g].w[k * Size / 4] >> 8 * (k * Size % 4) & ((1u << 8 * (Size % 4)) - 1)) << 8 * Size * g;
    return out;
  }
};

template <int P, class K, int Threads, int T, bool End = P == (int)K::Staged> struct Stages {
  typedef typename K::Ix Ix;
  __device__ __forceinline__ void load(const typename K::Args&, typename K::At&, Ix, Ix, u64) {}
  __device__ __forceinline__ void write(char*) {}
  static __device__ __forceinline__ void read(const char*, int, int, typename K::template Raw<0>&) {}
};

// Staged operand P and those after it: loads into registers, then to shared memory, then back as words along j.
template <int P, class K, int Threads, int T> struct Stages<P, K, Threads, T, false> {
  typedef typename K::Ix Ix;
  static constexpr int Size = K::template Stage<P>::Size;
  typedef Turn<Size> Tn;
  static constexpr int Across = T / Tn::VS, Total = (T / Tn::G) * Across, Units = (Total + Threads - 1) / Threads, Pitch = T / Tn::G + 1;
  Words<16> w[Units][Tn::G];
  Stages<P + 1, K, Threads, T> next;

  __device__ __forceinline__ void load(const typename K::Args& a, typename K::At& t, Ix i0, Ix j0, u64 policy) {
#pragma unroll
    for (int u = 0; u < Units; ++u) {
      const int unit = u * Threads + threadIdx.x;
      const Ix i = i0 + unit % Across * Tn::VS, left = K::extent_i(a) - i;
#pragma unroll
      for (int g = 0; g < Tn::G; ++g) {
        const Ix j = j0 + unit / Across * Tn::G + g;
        clear(w[u][g]);
        if (left > 0 && j < K::extent_j(a) && (Total % Threads == 0 || unit < Total)) {
          K::place(t, i, j);
          K::stage(Int<P>(), a, t, left < Tn::VS ? (int)left : Tn::VS, policy, w[u][g]);
        }
      }
    }
    next.load(a, t, i0, j0, policy);
  }
  __device__ __forceinline__ void write(char* tile) {
    u32* at = (u32*)(tile + K::template Stage<P>::Offset);
#pragma unroll
    for (int u = 0; u < Units; ++u) {
      const int unit = u * Threads + threadIdx.x;
      if (Total % Threads && unit >= Total) break;
#pragma unroll
      for (int k = 0; k < Tn::VS; ++k)
#pragma unroll
        for (int h = 0; h < Tn::UnitWords; ++h)
          at[((unit % Across * Tn::VS + k) * Pitch + unit / Across) * Tn::UnitWords + h] = Tn::word(w[u], k, h);
    }
    next.write(tile);
  }
  static __device__ __forceinline__ void read(const char* tile, int i, int j, typename K::template Raw<0>& raw) {
    const u32* at = (const u32*)(tile + K::template Stage<P>::Offset);
    constexpr int kBytes = Size * K::V;
    Words<kBytes>& words = K::staged(Int<P>(), raw);
    if constexpr (kBytes % 4 == 0 && K::V % Tn::G == 0) {
#pragma unroll
      for (int k = 0; k < kBytes / 4; ++k) words.w[k] = at[(i * Pitch + j / Tn::G) * Tn::UnitWords + k];
    } else {
      // A vector narrower than a unit.
      words.w[0] = at[i * Pitch + j / Tn::G] >> 8 * Size * (j % Tn::G);
    }
    Stages<P + 1, K, Threads, T>::read(tile, i, j, raw);
  }
};
template <class K, int Threads, int T> D void transpose(const typename K::Args& a) {
  typedef typename K::Ix Ix;
  constexpr int kAcross = T / K::V, Q = T * kAcross / Threads;
  __shared__ __align__(16) char tile[K::TileBytes];
  const u64 policy = K::policy(a);
  const Ix tiles_i = (K::extent_i(a) + T - 1) / T, tiles_j = (K::extent_j(a) + T - 1) / T, tiles = K::outer(a) * tiles_i * tiles_j;
  typename K::At origin{};
  typename K::Row row;
  K::row(a, origin, K::V, row);
  for (Ix n = blockIdx.x; n < tiles; n += gridDim.x) {
    const Ix line = n / tiles_j, j0 = (n - line * tiles_j) * T, outer = line / tiles_i, i0 = (line - outer * tiles_i) * T;
    typename K::At t{};
    K::outer_at(a, outer, t);
    Stages<0, K, Threads, T> stages;
    typename K::template Raw<0> raw[Q];
    stages.load(a, t, i0, j0, policy);
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      const int at = q * Threads + threadIdx.x;
      const Ix i = i0 + at / kAcross, j = j0 + at % kAcross * K::V, left = K::extent_j(a) - j;
      if (i < K::extent_i(a) && left > 0) {
        K::place(t, i, j);
        K::load(Int<0>(), a, t, left < K::V ? (int)left : (int)K::V, policy, row, raw[q]);
      }
    }
    __syncthreads();  // the tile before this one has been read
    stages.write(tile);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      const int at = q * Threads + threadIdx.x;
      const Ix i = i0 + at / kAcross, j = j0 + at % kAcross * K::V, left = K::extent_j(a) - j;
      if (i < K::extent_i(a) && left > 0) {
        Stages<0, K, Threads, T>::read(tile, at / kAcross, at % kAcross * K::V, raw[q]);
        K::place(t, i, j);
        K::store(a, t, left < K::V ? (int)left : (int)K::V, raw[q], row);
      }
    }
  }
}
