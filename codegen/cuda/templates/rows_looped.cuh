// Rows of any length, a block a row: read again for every sweep.
@kernel
  __shared__ __align__(16) char scratch[$(2 * (Threads / 32) * AccBytes)];
  int turn = 0;  // halves of scratch
@if Streamed
  const u64 policy = $policy;
@end
  const Ix rows = $rows, columns = $columns;
  for (Ix r = blockIdx.x; r < rows; r += gridDim.x) {
    At t{};
@if RowValues
    Row row;
@end
    @body row_at
    @body row
    @body skew
@if Windows
@let begin = -skew
@else
@let begin = 0
@end
@let step = $(Threads * V)
@let half = turn * $(Threads / 32 * AccBytes)
@each S Folds + 1
@if S < Folds
@let what = fold$S
    {
      AccOf<$S> acc;
      acc.zero();
      @include each_vector.cuh
      @include lanes_meet.cuh
      turn ^= 1;
      @body finish$S
    }
@elif Stores
@let what = store
    @include each_vector.cuh
@end
@end
@if RowStores
    if (threadIdx.x == 0) {
      @body row_store
    }
@end
  }
