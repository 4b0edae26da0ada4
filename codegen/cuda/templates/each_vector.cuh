@// One pass over a long row: $what for each vector from $begin on, $step elements apart, U of a lane in flight.
@if U > 1
@let vector = at + u * $step
@else
@let vector = at
@end
  // U vectors of a lane in flight, as many as there are, then one at a time.
  Ix at = $begin + (Ix)threadIdx.x * $V;
#pragma unroll 1
  for (; at + $(U - 1) * $step + $V <= columns; at += $U * $step) {
    Raw$S raw$[=U];
@if !Full
    const int n = $V;
@end
    @unroll u U
      const Ix e = $vector;
      @body element_at
      @body load$S raw=raw$[u:U]
    @end
    @unroll u U
      const Ix e = $vector;
      @body element_at
      @body $what raw=raw$[u:U]
    @end
  }
#pragma unroll 1
  for (; at < columns; at += $step) {
    Raw$S raw;
    const Ix e = at, left = columns - at;
    @body length
    @body element_at
    {
      @body load$S
    }
    @body $what
  }
