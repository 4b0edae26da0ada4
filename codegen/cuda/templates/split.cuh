// Split: long rows, reduced once. A row is dealt to parts, a block's width to each in turn, so that what is read at a time lies together:
// parts that were slices of their own had 264 of them open all over the row. There are as many as its length asks for whatever the number
// of rows: it has the same bits in any company. gridDim.y blocks take the parts in turn, partial states go to memory, and the last block
// of the row merges them in a fixed order. One folding sweep, no element stores.
@kernel
  __shared__ __align__(16) char scratch[$(2 * (Threads / 32) * AccBytes)];
  int turn = 0;  // halves of scratch
@if Streamed
  const u64 policy = $policy;
@end
  const Ix rows = $rows, columns = $columns;
  const u32 parts = $splits;
  const Ix step = $(Threads * V) * (Ix)parts;
  for (Ix r = blockIdx.x; r < rows; r += gridDim.x) {
    At t{};
@if RowValues
    Row row;
@end
    @body row_at
    @body row
    @body skew
    AccOf<0>* const states = (AccOf<0>*)$states + (u64)r * parts;
@if Windows
@let begin = $(Threads * V) * (Ix)p - skew
@else
@let begin = $(Threads * V) * (Ix)p
@end
@let step = step
@let half = turn * $(Threads / 32 * AccBytes)
@let what = fold0
@each S 1
    for (u32 p = blockIdx.y; p < parts; p += gridDim.y) {
      AccOf<0> acc;
      acc.zero();
      @include each_vector.cuh
      @include lanes_meet.cuh
      turn ^= 1;
      if (threadIdx.x == 0) acc.put(states + p);
    }
    if (!last_block($counters + r, gridDim.y)) continue;
    AccOf<0> acc;
    acc.zero();
#pragma unroll 1
    for (u32 s = threadIdx.x; s < parts; s += $Threads) {
      AccOf<0> one;
      one.fresh(states + s);
      acc.merge(one);
    }
    @include lanes_meet.cuh
    turn ^= 1;
    @body finish0
@end
    if (threadIdx.x == 0) {
      @body row_store
    }
  }
