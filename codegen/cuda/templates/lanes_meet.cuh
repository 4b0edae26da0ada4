@// `acc` of Together rows at once, then through the half of `scratch` that begins at $half, so that one barrier is enough. A state that
@// Meets has a way of its own for all lanes.
  // The lanes of the row meet.
@if Settles
  @unroll i Together
    acc$[i:Together].settle();
  @end
@end
@if Meets$S
@if WarpLanes > 1
  @unroll i Together
    acc$[i:Together].meet<$WarpLanes>();
  @end
@end
@elif WarpLanes > 1
#pragma unroll
@if Together > 1
  for (int m = 1; m < $WarpLanes; m *= 2)
#pragma unroll
    for (int i = 0; i < $Together; ++i) acc[i].merge(acc[i].peer(m));
@else
  for (int m = 1; m < $WarpLanes; m *= 2) acc.merge(acc.peer(m));
@end
@end
@if Lanes > 32
  AccOf<$S>* const warps = (AccOf<$S>*)(scratch + $half);
@if Together > 1
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int i = 0; i < $Together; ++i) acc[i].put(warps + (i * $(Threads / 32) + threadIdx.x / 32));
  }
@else
  if (threadIdx.x % 32 == 0) acc.put(warps + threadIdx.x / 32);
@end
  __syncthreads();
@if Lanes < Threads
@let first = threadIdx.x / $Lanes * $(Lanes / 32) + threadIdx.x % $(Lanes / 32)
@else
@let first = threadIdx.x % $(Lanes / 32)
@end
@if Together > 1
#pragma unroll
  for (int i = 0; i < $Together; ++i) acc[i].get(warps + (i * $(Threads / 32) + $first));
@else
  acc.get(warps + ($first));
@end
@if Meets$S
  @unroll i Together
    acc$[i:Together].meet<$(Lanes / 32)>();
  @end
@else
#pragma unroll
@if Together > 1
  for (int m = 1; m < $(Lanes / 32); m *= 2)
#pragma unroll
    for (int i = 0; i < $Together; ++i) acc[i].merge(acc[i].peer(m));
@else
  for (int m = 1; m < $(Lanes / 32); m *= 2) acc.merge(acc.peer(m));
@end
@end
@end
