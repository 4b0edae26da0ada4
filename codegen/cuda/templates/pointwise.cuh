// Pointwise: a lane owns vectors of V neighbours along the vector axis; a block owns tiles of Threads * U vectors, vector u of
// thread t at u * Threads + t, so that a warp reads and writes contiguous runs. The launch has one tile a block: a grid holds as many
// as 32-bit numbers count, and for 64-bit ones the grid-stride loop is the safety net. All loads of a full tile are issued before the
// first arithmetic.
@kernel
@let tile = $(Threads * V * U)
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
    const Ix first = base + (Ix)threadIdx.x * $V;
@if U > 1
@let vector = first + u * $(Threads * V)
@else
@let vector = first
@end
@if Exact || U > 1
    @block !Exact : if (base + $tile <= total)
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
        @body store
      }
    @end
@end
  }
