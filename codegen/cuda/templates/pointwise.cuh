// Pointwise: a lane owns vectors of V neighbours along the vector axis; a block owns tiles of Threads * U vectors, vector u of
// thread t at u * Threads + t, so that a warp reads and writes contiguous runs. The launch has one tile a block: a grid holds as many
// as 32-bit numbers count, and for 64-bit ones the grid-stride loop is the safety net. All loads of a full tile are issued before the
// first arithmetic.
@if RowsApart
//
// Here a lane's vectors are so many rows apart that they begin with the same column: what varies with the column alone is fetched once,
// however it lies. Groups of $U times $RowsApart rows; vector u of a lane is in the u-th part of its group.
@end
@kernel
@if RowsApart
@let tile = $(Threads * V)
@let whole = first + $apart * $(U - 1) + $V <= total
@let vector = first + u * $apart
@else
@let tile = $(Threads * V * U)
@let whole = base + $tile <= total
@let vector = first + u * $(Threads * V)
@end
@if Streamed
  const u64 policy = $policy;
@end
  const Ix total = $rows;
@if RowValues
  At origin{};
  Row row;
  @body row t=origin
@end
@if Wide
  for (Ix base = (Ix)blockIdx.x * $tile; base < total; base += (Ix)gridDim.x * $tile) {
@else
  const Ix base = (Ix)blockIdx.x * $tile;
  if (base < total) {
@end
@if RowsApart
    const Ix at = base + (Ix)threadIdx.x * $V;  // among the first vectors of all lanes
    const Ix first = at + $group * ($apart * $(U - 1));
@else
    const Ix first = base + (Ix)threadIdx.x * $V;
@end
@if U == 1
@let vector = first
@end
@if Exact || U > 1
    @block !Exact : if ($whole)
      At t$[=U];
      Raw0 raw$[=U];
      @if !Full
      const int n = $V;
      @end
      @unroll u U
        const Ix r = $vector;
        @body row_at t=t$[u:U]
        @body load0 t=t$[u:U] raw=raw$[u:U]
      @end
      @if RowsApart
      Beside beside;
      @body beside t=t$[0:U]
      @end
      @unroll u U
        @body store t=t$[u:U] raw=raw$[u:U]
      @end
    @end
@end
@if !Exact
    @block U > 1 : else
#pragma unroll 1
      for (int u = 0; u < $U; ++u) {
        const Ix r = $vector, left = total - r;
        if (left <= 0) break;
        const int n = left < $V ? (int)left : $V;
        At t;
        Raw0 raw;
        @body row_at
        {
          @body load0
        }
        @if RowsApart
        Beside beside;
        @body beside
        @end
        @body store
      }
    @end
@end
  }
