#pragma once
// Coordinates while a kernel is built: linear forms over the domain's atoms (the finest axes), each with an optional value that
// stands for what is not linear.

#include <optional>
#include <vector>

#include "lib/kernel/kernel.h"

namespace fusec::index {

Linear zero(size_t atoms, Dim offset = 0);
Linear unit(size_t atoms, size_t atom);
Linear sum(const Linear& a, const Linear& b);
Linear scaled(const Linear& a, const Dim& by);
bool equal(const Linear& a, const Linear& b);
bool is_constant(const Linear& a);

/// One coordinate of a node: at + value(extra).
struct Coord {
  Linear at;
  Val extra = kNoVal;
};
using Coords = std::vector<Coord>;
bool equal(const Coord& a, const Coord& b);
bool equal(const Coords& a, const Coords& b);

/// The atoms of a coordinate that runs over a whole dim, outermost first: at is their mixed-radix number, offset 0, and their
/// extents multiply to `extent`. nullopt when the coordinate is anything else.
std::optional<std::vector<size_t>> whole(const Coord& coord, const Dim& extent, const std::vector<Dim>& atoms);

/// A number to compare symbolic extents by: every symbol counts as 4096.
double guess(const Dim& dim);
double guess(const Shape& shape);

/// Dims of two shapes of one element count, cut into the shortest runs that hold the same number of elements.
struct Run {
  size_t from_begin, from_end, to_begin, to_end;
};
std::vector<Run> align(const Shape& from, const Shape& to);

}  // namespace fusec::index
