@// $what for each position of a column from $begin + y to $end, Y apart, U in flight.
@if U > 1
@let position = at + u * $Y
@else
@let position = at
@end
  // U positions of a column in flight, as many as there are, then one at a time.
  Ix at = $begin + y;
@if Shifted
  // Each load takes up to $(2 * V) elements of memory from where a lane's columns begin. The last positions do not have them.
  Ix safe = columns - 1 - ($(2 * V - 1) + rows) / rows;
  if ($end < safe) safe = $end;
@let safe = safe
@else
@let safe = $end
@end
#pragma unroll 1
  for (; at + $((U - 1) * Y) < $safe; at += $(U * Y)) {
    Raw$S raw$[=U];
    @unroll u U
@if Shifted
      const int n = $(2 * V);
@end
      const Ix e = $position;
      @body element_at
      @body load$S raw=raw$[u:U]
    @end
    @unroll u U
      const Ix e = $position;
      @body element_at
      @body $what raw=raw$[u:U]
    @end
  }
#pragma unroll 1
  for (; at < $end; at += $Y) {
    Raw$S raw;
    const Ix e = at;
    @body element_at
    {
      @body load$S
    }
    @body $what
  }
