#pragma once

#include "lib/kernel/kernel.h"

namespace fusec {

/// The same kernel with fewer sweeps, for rows that do not stay on chip between them.
/// Takes    any kernel.
/// Returns  it with `max x; sum of exp(x - max)` as one Fold::online reduction and `sum x; sum of (x - mean)²` as one
///          Fold::welford, beside which a composite's sum of x - mean becomes 0. A sum or mean that anything but the deviations reads stays
///          a plain sum of the same sweep. Loads, stores and their order are unchanged, so accesses keep their indices.
/// Ensures  only pairs whose second sum carries kOnline merge: the builder grants it where the addend is f32 or wider and not
///          itself rounded or stored. Elementwise results keep their bits as functions of the reductions' results.
/// Source   Milakov & Gimelshein (2018) for max and sum; Chan, Golub & LeVeque (1979) for mean and squares.
Kernel merge_sweeps(const Kernel& kernel);

}  // namespace fusec
