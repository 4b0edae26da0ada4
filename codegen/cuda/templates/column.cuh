// Column: the kept axis is the contiguous one. X lanes lie along it, each with V columns and V running states; Y threads of a
// column walk the reduced positions, U rows in flight; the Y states meet in shared memory in a fixed order. With Split the positions
// are cut into parts that gridDim.y blocks take in turn: partial states go to memory and the last block of a column merges them in order.
@if Halo
// Positions that begin between pieces of 16 bytes: those of a thread, a multiple of V apart, all begin alike, so it folds pieces as they lie, and
// its states are put into place at the end. The last lane takes what the others' pieces leave: it is the next block's first, or, of the last column.
@end
// How a state lies in shared memory: an odd number of 16-byte pieces apart, so that neighbours are in different banks.
template <class A> struct Spread : A {
@if Gap
  u32 gap[$(Gap / 4)];
@end
};
@if Slides
template <int X, int Y, int V, class A> D void place_columns(A& acc, char* scratch, int skew) {
  const int x = threadIdx.x % X, y = threadIdx.x / X;
  Spread<A>* const at = (Spread<A>*)scratch + y % (Y / 2) * X;
  acc.settle();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    __syncthreads();
    if (y / (Y / 2) == half) acc.place(at, x * V - skew, X * V);
    __syncthreads();
    if (y / (Y / 2) == half) acc.get(at + x);
  }
}
@end
template <int X, int Y, class A> D void merge_column(A& acc, char* scratch) {
  // Neighbours first, upper into lower, so that each merge is (lower, upper). All threads leave with the result.
  Spread<A>* const at = (Spread<A>*)scratch;
  acc.settle();
#pragma unroll
  for (int w = 1; w < Y; w *= 2) {
    const int x = threadIdx.x % X, y = threadIdx.x / X;
    __syncthreads();
    if (y % (2 * w) == w) acc.put(at + (y / (2 * w) * X + x));
    __syncthreads();
    if (y % (2 * w) == 0) {
      A upper;
      upper.get(at + (y / (2 * w) * X + x));
      acc.merge(upper);
    }
  }
  if constexpr (Y > 1) {
    const int x = threadIdx.x % X, y = threadIdx.x / X;
    __syncthreads();
    if (y == 0) acc.put(at + x);
    __syncthreads();
    acc.get(at + x);
  }
}
@if Split
// States in memory, of a part's X lanes: piece by piece, so that a warp's loads are whole lines.
template <class A> union WordsOf {
  A state;
  Words<sizeof(A)> all;
};
template <int X, class A> D void put_state(char* part, int x, const A& acc) {
  constexpr int P = sizeof(A) % 16 ? 8 : 16;
  WordsOf<A> words;
  words.state = acc;
#pragma unroll
  for (int k = 0; k < (int)sizeof(A) / P; ++k) {
    Words<P> piece;
#pragma unroll
    for (int i = 0; i < P / 4; ++i) piece.w[i] = words.all.w[k * (P / 4) + i];
    put<P>(part + (k * X + x) * P, piece);
  }
}
template <int X, class A> D void get_state(A& acc, const char* part, int x) {
  constexpr int P = sizeof(A) % 16 ? 8 : 16;
  WordsOf<A> words;
#pragma unroll
  for (int k = 0; k < (int)sizeof(A) / P; ++k) {
    Words<P> piece;
    const char* const from = part + (k * X + x) * P;
    if constexpr (P == 16) { FETCH_PAST(piece, 0, from); }
    else piece.w[0] = ((const volatile u32*)from)[0], piece.w[1] = ((const volatile u32*)from)[1];
#pragma unroll
    for (int i = 0; i < P / 4; ++i) words.all.w[k * (P / 4) + i] = piece.w[i];
  }
  acc = words.state;
}
@end
@kernel
@if Y > 1
  __shared__ __align__(16) char scratch[$(X * (Y / 2) * (AccBytes + Gap))];
@else
  char* const scratch = nullptr;
@end
@if Streamed
  const u64 policy = $policy;
@end
  const Ix rows = $rows, columns = $columns;
  const int x = threadIdx.x % $X, y = threadIdx.x / $X;
@if Halo
  for (Ix base = (Ix)blockIdx.x * $(Own * V); base == 0 || base + 1 < rows; base += (Ix)gridDim.x * $(Own * V)) {
    const Ix own = base + x * $V, left = rows - own;
    const int n = x == $Own ? left == 1 : left >= $V ? $V : left > 0 ? (int)left : 0;  // 0: a lane without columns
@else
  for (Ix base = (Ix)blockIdx.x * $(X * V); base < rows; base += (Ix)gridDim.x * $(X * V)) {
    const Ix own = base + x * $V, left = rows - own;
    const int n = left >= $V ? $V : left > 0 ? (int)left : 0;  // 0: a lane without columns
@end
    const Ix r = n ? own : 0;
    At t{};
@if RowValues
    Row row;
@end
    @body row_at
    @body row
@each S Folds + 1
@if S < Folds
@let what = fold$S
    {
      AccOf<$S> acc;
@if Split
      // states[column block][part][piece][x]
      const Ix block = base / $(Own * V), parts = (Ix)$splits;
      const Ix part = ((columns + parts - 1) / parts + $(U * Y - 1)) / $(U * Y) * $(U * Y);  // of all but the last one whole turns of the threads
      constexpr u32 size = $X * sizeof(AccOf<$S>);
      char* const states = (char*)$states + (u64)block * parts * size;
      for (Ix p = blockIdx.y; p < parts; p += gridDim.y) {
        const Ix end = part * (p + 1) < columns ? part * (p + 1) : columns;
@let begin = part * p
@let end = end
        acc.zero();
        @include column_part.cuh
        merge_column<$X, $Y>(acc, scratch);
        if (y == 0) put_state<$X>(states + (u64)p * size, x, acc);
      }
      if (!last_block($counters + block, gridDim.y)) continue;
      acc.zero();
      // Several states on their way at once: each is a trip to the L2, and nobody else works any more.
#pragma unroll 1
      for (Ix p = y; p < parts; p += $(Ahead * Y)) {
        AccOf<$S> some$[=Ahead];
@if Ahead > 1
        // Those that are not there change nothing. (Without a value they would take registers from the kernel's beginning on.)
#pragma unroll
        for (int k = 0; k < $Ahead; ++k) {
          some[k].zero();
          if (p + k * $Y < parts) get_state<$X>(some[k], states + (u64)(p + k * $Y) * size, x);
        }
#pragma unroll
        for (int k = 0; k < $Ahead; ++k) acc.merge(some[k]);
@else
        get_state<$X>(some, states + (u64)p * size, x);
        acc.merge(some);
@end
      }
      merge_column<$X, $Y>(acc, scratch);
@else
@let begin = 0
@let end = columns
      acc.zero();
      @include column_part.cuh
      merge_column<$X, $Y>(acc, scratch);
@end
      @body finish$S
    }
@elif Stores
@let what = store
@let begin = 0
@let end = columns
@let place = t
    if (n > 0) {
      @include each_position.cuh
    }
@end
@end
@if RowStores
    if (y == 0 && n > 0) {
      @body row_store
    }
@end
  }
