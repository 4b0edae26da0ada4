#pragma once
// Sizes of symbols from extents, a dim at a time; bind (fusec/graph.h) does it for all inputs of a graph.

#include <optional>
#include <string>
#include <utility>

#include "fusec/type.h"

namespace fusec {

/// The one symbol of `dim` without a size, and the size at which the dim is `extent`; nullopt when there is no such one, or no such size.
std::optional<std::pair<std::string, int64_t>> solve_dim(const Dim& dim, int64_t extent, const Sizes& sizes);

}  // namespace fusec
