// Transpose: some operands are contiguous along axis i, the others along the vector axis j. A block owns a T x T tile: it reads the
// staged operands in vectors along i, turns them through shared memory, and goes on as a pointwise kernel along j. All loads of a
// tile, staged or not, are issued before the first barrier.
//
// Shared memory is walked in units of 4 bytes (8 for f64): a unit holds G = 4 / size neighbours along j of one i, so a lane that
// has loaded G vectors of adjacent j turns G x VS elements in registers and writes VS units. Rows of units are odd in length,
// which spreads the banks both ways.
// Unit k of a turned block of elements of less than 4 bytes: element k of each of the G vectors.
template <int Size, int G> D u32 turned(const Words<16> (&w)[G], int k) {
  u32 out = 0;
#pragma unroll
  for (int g = 0; g < G; ++g) out |= (w[g].w[k * Size / 4] >> 8 * (k * Size % 4) & ((1u << 8 * (Size % 4)) - 1)) << 8 * Size * g;
  return out;
}
@kernel
@// Of staged operand P: Size of an element; VS elements of a vector, G vectors of a lane, Units of them; Across vectors along i, Total of a tile;
@// Pitch and Words of a row of units. Whole: both extents are multiples of T. Q vectors of a lane along j, TileAcross of a tile's row.
  __shared__ __align__(16) char tile[$TileBytes];
@if Streamed
  const u64 policy = $policy;
@end
  const Ix extent_i = $extent_i, extent_j = $extent_j;
  const Ix tiles_i = (extent_i + $(T - 1)) / $T, tiles_j = (extent_j + $(T - 1)) / $T;
@if Outer
  const Ix tiles = $outer * tiles_i * tiles_j;
@else
  const Ix tiles = tiles_i * tiles_j;
@end
@if RowValues
  At origin{};
  Row row;
  @body row t=origin
@end
  for (Ix number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Ix line = number / tiles_j, j0 = (number - line * tiles_j) * $T, outer = line / tiles_i, i0 = (line - outer * tiles_i) * $T;
    At t{};
@if Outer
    {
      Ix q = outer;
      @body outer_at
    }
@end
    // Everything that the tile needs is on its way before the first barrier.
@each P Staged
    Words<16> w$P$[=Units$P]$[=G$P];
    @unroll u Units$P
@if Units$P > 1
      const int unit = u * $Threads + threadIdx.x;
@else
      const int unit = threadIdx.x;
@end
      const Ix i = i0 + unit % $(Across$P) * $(VS$P), left = extent_i - i;
      @unroll g G$P
@if G$P > 1
        const Ix j = j0 + unit / $(Across$P) * $(G$P) + g;
@else
        const Ix j = j0 + unit / $(Across$P);
@end
@if Whole
@let there = unit < $(Total$P)
@elif Total$P % Threads == 0
@let there = left > 0 && j < extent_j
@else
@let there = left > 0 && j < extent_j && unit < $(Total$P)
@end
@if !Whole || Total$P % Threads != 0
        clear(w$P$[u:Units$P]$[g:G$P]);
@end
        @block !Whole || Total$P % Threads != 0 : if ($there)
          @body place
@if Whole
          const int n = $(VS$P);
@else
          const int n = left < $(VS$P) ? (int)left : $(VS$P);
@end
          @body stage$P w=w$P$[u:Units$P]$[g:G$P]
        @end
      @end
    @end
@end
    Raw0 raw$[=Q];
@if Q > 1
@let vector = q * $Threads + threadIdx.x
@else
@let vector = threadIdx.x
@end
@if Loads
    @unroll q Q
      const int at = $vector;
      const Ix i = i0 + at / $TileAcross, j = j0 + at % $TileAcross * $V, left = extent_j - j;
      @block !Whole : if (i < extent_i && left > 0)
        @body place
        @body length
        @body load0 raw=raw$[q:Q]
      @end
    @end
@end
    __syncthreads();  // the tile before this one has been read
@each P Staged
@if Words$P > 1
@let words =  * $(Words$P)
@else
@let words = 
@end
    @unroll u Units$P
@if Units$P > 1
      const int unit = u * $Threads + threadIdx.x;
@else
      const int unit = threadIdx.x;
@end
      u32* const at = (u32*)(tile + $(Offset$P)) + (unit % $(Across$P) * $(VS$P * Pitch$P) + unit / $(Across$P))$words;
      @block Total$P % Threads != 0 : if (unit < $(Total$P))
#pragma unroll
@if Size$P == 8
        for (int k = 0; k < $(VS$P); ++k) at[k * $(2 * Pitch$P)] = w$P$[u:Units$P].w[2 * k], at[k * $(2 * Pitch$P) + 1] = w$P$[u:Units$P].w[2 * k + 1];
@elif Size$P == 4
        for (int k = 0; k < $(VS$P); ++k) at[k * $(Pitch$P)] = w$P$[u:Units$P].w[k];
@else
        for (int k = 0; k < $(VS$P); ++k) at[k * $(Pitch$P)] = turned<$(Size$P)>(w$P$[u:Units$P], k);
@end
      @end
    @end
@end
    __syncthreads();
    @unroll q Q
      const int at = $vector;
      const Ix i = i0 + at / $TileAcross, j = j0 + at % $TileAcross * $V, left = extent_j - j;
      @block !Whole : if (i < extent_i && left > 0)
@each P Staged
        @body read$P raw=raw$[q:Q]
@end
        @body place
        @body length
        @body store raw=raw$[q:Q]
      @end
    @end
  }
