#pragma once
// The numerics mode is spent here, once a kernel, for every back end (docs/numerics.md).

#include "lib/kernel/kernel.h"

namespace fusec {

/// `fused` and `fast`: a narrow float result need not be rounded unless a compare, a cast or an output sees it.
void relax_rounding(Kernel& kernel);

/// `fused`: every float value may be contracted. `fast`: besides, a division may be a product with a reciprocal, and exp, sigmoid, silu
/// and reciprocals in f32 may have fewer terms. What composites grant of themselves stays.
void grant(Kernel& kernel, Numerics numerics);

/// Makes one fma of a product and the sum or difference that alone reads it, where both grant it: x * y + z, z + x * y, z - x * y, and
/// x * y - z where z is known before the product. Neither is moved to where it would be computed more often.
/// Takes    a kernel whose `varies` are known.
/// Ensures  the order of values; values that nobody reads any more are gone.
void contract(Kernel& kernel);

}  // namespace fusec
