@// $what for each position of a column from $begin + y to $end, Y apart, U in flight.
@if U > 1
@let position = at + u * $Y
@else
@let position = at
@end
@if Slides
@let valid = $V
@else
@let valid = $(2 * V)
@end
  // U positions of a column in flight, as many as there are.
  Ix at = $begin + y;
@if Halo && Split
  // The last positions do not have all of the memory that pieces take.
  Ix safe = columns - ($(V - 2) + rows) / rows;
  if ($end < safe) safe = $end;
@let safe = safe
@elif Halo
  // The last positions do not have all of the memory that pieces take.
  const Ix safe = columns - ($(V - 2) + rows) / rows;
@let safe = safe
@elif Shifted
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
@if Shifted || Slides
      const int n = $valid;
@end
      const Ix e = $position;
      @body element_at t=$place
      @body load$S t=$place raw=raw$[u:U]
    @end
@if Bytes
    @body folds$S
@else
    @unroll u U
      const Ix e = $position;
      @body element_at t=$place
      @body $what t=$place raw=raw$[u:U]
    @end
@end
  }
@if Batch
  // Those that are left, at once: one after the other each would be a trip to memory.
  if (at < $safe) {
@if Bytes
    Raw$S raw$[=U] = {};
@else
    Raw$S raw$[=U];
@end
    @unroll u U
      const Ix e = $position;
      if (e < $safe) {
@if Shifted || Slides
        const int n = $valid;
@end
        @body element_at t=$place
        @body load$S t=$place raw=raw$[u:U]
      }
    @end
@if Bytes
    @body folds$S
@else
    @unroll u U
      const Ix e = $position;
      if (e < $safe) {
        @body element_at t=$place
        @body $what t=$place raw=raw$[u:U]
      }
    @end
@end
    at += ($safe - at + $(Y - 1)) / $Y * $Y;
  }
@end
@if !Batch || Shifted || Halo
#pragma unroll 1
  for (; at < $end; at += $Y) {
    Raw$S raw;
@if Slides
    const int n = 0;
@end
    const Ix e = at;
@if U > 1
    const int u = 0;
@end
    @body element_at t=$place
    {
      @body load$S t=$place
    }
    @body $what t=$place
  }
@end
