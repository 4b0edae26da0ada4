@// Rows in registers. Lanes: of a row; Steps: vectors of a lane; R: rows of a lane; Group: rows that a block takes at a time; Cluster: blocks of a row.
@// Apart or Together is R, the other 1: rows of part of a warp are reduced one after the other, since many warps wait beside each other anyway.
// Lanes share a row, several rows a warp, a warp, the warps of a block, or those of all blocks of a cluster. The row stays in registers,
// as the packed words of the cut; rows of a lane are loaded together, since short ones alone would leave too few bytes in flight.
@kernel
@if Lanes > 32
  __shared__ __align__(16) char scratch[$(2 * Together * (Threads / 32) * AccBytes)];
@end
@if Cluster > 1
  typedef Meeting<$Cluster, $AccBytes> Blocks;
  __shared__ __align__(16) char meet[Blocks::kBytes];
  Blocks blocks(meet);
@end
@if Streamed
  const u64 policy = $policy;
@end
  const Ix rows = $rows, columns = $columns;
@if Cluster > 1
  const int lane = threadIdx.x + blocks.rank() * $Lanes;
@elif Lanes == Threads
  const int lane = threadIdx.x;
@else
  const int lane = threadIdx.x % $Lanes;
  const Ix line = threadIdx.x / $Lanes;  // of the rows that the block takes together
@end
@if Cluster > 1
@let block = (Ix)(blockIdx.x / $Cluster)
@let blocks = (Ix)(gridDim.x / $Cluster)
@else
@let block = (Ix)blockIdx.x
@let blocks = (Ix)gridDim.x
@end
@if Windows
@let skewed =  - skew
@else
@let skewed = 
@end
@// (A sum of what is constant and what is not: its constant becomes part of an instruction.)
@if Words && Steps > 1
@let element = (Ix)lane * $V - skew + s * $(Lanes * Cluster * V)
@elif Steps > 1
@let element = (Ix)lane * $V + s * $(Lanes * Cluster * V)$skewed
@else
@let element = (Ix)lane * $V$skewed
@end
@// Is there something of a vector, and all of it? By words the numbers in the text say it of all but the first step and the last ones.
@if Words
@let there = $inside || (left > 0 && e + $V > 0)
@let all_there = $inside || (e >= 0 && left >= $V)
@else
@let there = left > 0
@let all_there = e >= 0 && left >= $V
@end
@if R > 1 && Group > 1
@let own = base + i * $Group + line
@elif R > 1
@let own = base + i
@else
@let own = base + line
@end
@if Group * R == 1
@let store_when = $there
@let row_store_when = lane == 0
@elif Exact
@let store_when = $own < rows
@let row_store_when = $own < rows && lane == 0
@else
@let store_when = ($there) && $own < rows
@let row_store_when = $own < rows && lane == 0
@end
@if Wide
  for (Ix base = $block * $(Group * R); base < rows; base += $blocks * $(Group * R)) {
@else
  const Ix base = $block * $(Group * R);
  if (base < rows) {  // a grid holds as many blocks as 32-bit numbers count rows; a loop takes registers
@end
    At t$[=R];
@if RowValues
    Row row$[=R];
@end
    Raw0 raw$[=R]$[=Steps];
@if Early
    Late late$[=Lates]$[=Steps];
@end
    @unroll i R
@if Group * R > 1
      // Lanes without a row of their own repeat the last one and store nothing: barriers and shuffles need everybody.
      const Ix own = $own, r = own < rows ? own : rows - 1;
@else
      const Ix r = base;
@end
      @body row_at t=t$[i:R]
@if RowBefore
      @body row t=t$[i:R] row=row$[i:R]
@end
      @body skew t=t$[i:R]
      @unroll s Steps
        const Ix e = $element;
@if !Exact
        const Ix left = columns - e;
@end
        @block !Exact : if ($there)
          @body length
          @body element_at t=t$[i:R]
          @body load0 t=t$[i:R] row=row$[i:R] raw=raw$[i:R]$[s:Steps]
@if Early
          @block Lates < R : if (i == 0)
            @body early t=t$[i:R] row=row$[i:R] late=late$[i:Lates]$[s:Steps]
          @end
@end
        @end
      @end
    @end
@if Warm
    // Registers are taken: the parameters of the columns come into the L1 meanwhile, for all blocks of the multiprocessor.
    __shared__ u32 nobody[$Threads];
@if Turns > 1
@let sector = threadIdx.x + k * $Threads
@else
@let sector = threadIdx.x
@end
    @unroll k Turns
      const Ix e = ($sector) * $Warm;
      @block Rest : if (e < columns)
        @body element_at t=t$[0:R]
        @body warm t=t$[0:R]
      @end
    @end
    if (never()) return;
@end
@if Cluster > 1
    blocks.enter();
@end
    @unroll i Apart
@if Cuts
      Keep keep$[=Together]$[=Steps];
@let keep = keep$[i:Together]$[s:Steps]
      @unroll i Together
        @body skew t=t$[i:R]
        @unroll s Steps
          const Ix e = $element;
@if !Exact
          const Ix left = columns - e;
@end
          @block !Exact : if ($there)
            @body element_at t=t$[i:R]
            @body cut t=t$[i:R] row=row$[i:R] raw=raw$[i:R]$[s:Steps] keep=$keep
          @end
        @end
      @end
@else
@let keep = raw$[i:R]$[s:Steps]
@end
@each S Folds
      {
        AccOf<$S> acc$[=Together];
        @unroll i Together
          @body skew t=t$[i:R]
          acc$[i:Together].zero();
          @unroll s Steps
            const Ix e = $element;
@if Exact
            @body element_at t=t$[i:R]
            @body fold$S t=t$[i:R] row=row$[i:R] keep=$keep acc=acc$[i:Together]
@else
            const Ix left = columns - e;
@if Windows
            // Nearly all vectors of an aligned window are whole: they take a path without a condition an element.
            if ($all_there) {
              const int n = $V;
              @body element_at t=t$[i:R]
              @body fold$S t=t$[i:R] row=row$[i:R] keep=$keep acc=acc$[i:Together]
            } else if ($there) {
@else
            if (left > 0) {
@end
              @body length
              @body element_at t=t$[i:R]
              @body fold$S t=t$[i:R] row=row$[i:R] keep=$keep acc=acc$[i:Together]
            }
@end
          @end
        @end
@let half = $(S % 2 * Together * (Threads / 32) * AccBytes)
        @include lanes_meet.cuh
        @unroll i Together
@if Cluster > 1
          blocks.merge(acc$[i:Together]);
@end
          @body finish$S t=t$[i:R] row=row$[i:R] acc=acc$[i:Together]
        @end
      }
@end
@if Stores
      @unroll s Steps
        @unroll i Together
          @body skew t=t$[i:R]
          const Ix e = $element;
@if !Exact
          const Ix left = columns - e;
@end
          @block !(Exact && Group * R == 1) : if ($store_when)
            @body length
            @body element_at t=t$[i:R]
            @body store t=t$[i:R] row=row$[i:R] keep=$keep late=late$[i:Lates]$[s:Steps]
          @end
        @end
      @end
@end
@if RowStores
      @unroll i Together
        if ($row_store_when) {
          @body row_store t=t$[i:R] row=row$[i:R]
        }
      @end
@end
    @end
@if Wide && Lanes > 32 && Folds % 2 == 1
    __syncthreads();  // halves begin anew, with the one that was read last
@end
  }
@if Warm
  warmed();
@end
@if Cluster > 1
  blocks.enter();  // a cluster without a row
@end
