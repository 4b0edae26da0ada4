#pragma once
// The last steps of build(): which values are needed, the order of the axes, what varies along what, and the sweeps.

#include "lib/kernel/kernel.h"

namespace fusec {

/// Removes values that no store needs; the order stays.
void drop_unused(Kernel& kernel);
/// Drops axes of extent 1 (one stays; one reduced one stays where there are reductions), orders the others by the strides of the
/// costliest operand, and makes one of neighbours that every access walks alike.
void arrange_axes(Kernel& kernel);
void find_varying_axes(Kernel& kernel);
/// Sweeps, row stores, and which input may share memory with which output.
void plan_sweeps(Kernel& kernel);
void find_in_place(Kernel& kernel);

}  // namespace fusec
