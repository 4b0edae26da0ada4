@// From $begin to $end, into `acc`.
  // A lane's positions of the column.
@if Slides
@let place = slid
  const Ix skew = (Ix)((u32)($begin + y) * (u32)rows & $(V - 1)u);
  if (own - skew < rows && (x < $Own || skew > 0 || n)) {
    At slid{};
    const Ix r = own - skew;
    @body row_at t=slid
    @include each_position.cuh
  }
  place_columns<$X, $Y, $V>(acc, scratch, (int)skew);
@else
@let place = t
  if (n > 0) {
    @include each_position.cuh
  }
@end
