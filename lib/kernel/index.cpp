// Linear forms and the alignment of reshapes.
//
//   align([2,3,4], [6,2,2])  =  {[2,3] ~ [6]}, {[4] ~ [2,2]}

#include "lib/kernel/index.h"

#include <algorithm>

namespace fusec::index {

Linear zero(size_t atoms, Dim offset) { return {std::vector<Dim>(atoms, Dim(0)), std::move(offset)}; }

Linear unit(size_t atoms, size_t atom) {
  Linear form = zero(atoms);
  form.factor[atom] = 1;
  return form;
}

Linear sum(const Linear& a, const Linear& b) {
  Linear out = a;
  for (size_t k = 0; k < out.factor.size(); k++)
    if (!b.factor[k].is(0)) out.factor[k] = out.factor[k] + b.factor[k];
  out.offset = out.offset + b.offset;
  return out;
}

Linear scaled(const Linear& a, const Dim& by) {
  if (by.is(1)) return a;
  Linear out = a;
  for (Dim& factor : out.factor)
    if (!factor.is(0)) factor = factor * by;
  out.offset = out.offset * by;
  return out;
}

bool equal(const Linear& a, const Linear& b) { return a.factor == b.factor && a.offset == b.offset; }

bool is_constant(const Linear& a) {
  return std::all_of(a.factor.begin(), a.factor.end(), [](const Dim& factor) { return factor.is(0); });
}

bool equal(const Coord& a, const Coord& b) { return a.extra == b.extra && equal(a.at, b.at); }

bool equal(const Coords& a, const Coords& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Coord& x, const Coord& y) { return equal(x, y); });
}

std::optional<std::vector<size_t>> whole(const Coord& coord, const Dim& extent, const std::vector<Dim>& atoms) {
  if (coord.extra != kNoVal || !coord.at.offset.is(0)) return std::nullopt;
  std::vector<size_t> used;
  for (size_t k = 0; k < atoms.size(); k++)
    if (!coord.at.factor[k].is(0)) used.push_back(k);
  // Innermost first: each factor is the product of the extents inside it.
  std::vector<size_t> inner_first;
  Dim product = 1;
  while (inner_first.size() < used.size()) {
    auto next = std::find_if(used.begin(), used.end(), [&](size_t k) {
      return coord.at.factor[k] == product && std::find(inner_first.begin(), inner_first.end(), k) == inner_first.end();
    });
    if (next == used.end()) return std::nullopt;
    inner_first.push_back(*next);
    product = product * atoms[*next];
  }
  if (!(product == extent)) return std::nullopt;
  return std::vector<size_t>(inner_first.rbegin(), inner_first.rend());
}

double guess(const Dim& dim) {
  if (dim.is_constant()) return double(dim.constant());
  Sizes sizes;
  for (const std::string& symbol : dim.symbols()) sizes[symbol] = 4096;
  return double(dim.value(sizes).value_or(INT64_MAX));
}

double guess(const Shape& shape) {
  double product = 1;
  for (const Dim& dim : shape) product *= guess(dim);
  return product;
}

std::vector<Run> align(const Shape& from, const Shape& to) {
  std::vector<Run> runs;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Run run{i, i, j, j};
    Dim a = 1, b = 1;
    if (i < from.size()) a = from[i++];
    if (j < to.size()) b = to[j++];
    while (!(a == b)) {
      const bool a_small = bool(exact_quotient(b, a)) && i < from.size();
      if (a_small || (!exact_quotient(a, b) && i < from.size()) || j >= to.size()) {
        if (i >= from.size()) break;
        a = a * from[i++];
      } else {
        b = b * to[j++];
      }
    }
    // Trailing ones of the last run belong to it.
    if (j == to.size())
      while (i < from.size() && from[i].is(1)) i++;
    if (i == from.size())
      while (j < to.size() && to[j].is(1)) j++;
    run.from_end = i;
    run.to_end = j;
    runs.push_back(run);
  }
  return runs;
}

}  // namespace fusec::index
