// Sizes of a graph's symbols from the extents of a call. A symbol that stands alone in a dim takes its extent; one inside a
// dim such as 2*N+1 is solved when it is the only unknown there; then everything is checked, also bounds of slices and the
// dims of nodes in between, which no input shows.

#include <algorithm>

#include "fusec/graph.h"
#include "lib/ir/bind.h"
#include "lib/support/caught.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

std::string where(const Graph& g, size_t input, size_t axis) {
  return "axis " + std::to_string(axis) + " of input " + quoted(g.inputs()[input].name);
}

/// The one symbol without a size in `dim`, when there is exactly one.
std::optional<std::string> unknown(const Dim& dim, const Sizes& sizes) {
  std::optional<std::string> found;
  for (std::string& s : dim.symbols()) {
    if (sizes.contains(s)) continue;
    if (found) return std::nullopt;
    found = std::move(s);
  }
  return found;
}

/// The size of `symbol` at which `dim`, linear in it, is `extent`.
std::optional<int64_t> solve(const Dim& dim, const std::string& symbol, int64_t extent, Sizes sizes) {
  sizes[symbol] = 0;
  const auto at0 = dim.value(sizes);
  sizes[symbol] = 1;
  const auto at1 = dim.value(sizes);
  int64_t slope, rise;
  if (!at0 || !at1 || __builtin_sub_overflow(*at1, *at0, &slope) || __builtin_sub_overflow(extent, *at0, &rise)) return std::nullopt;
  if (slope == 0 || (slope == -1 && rise == INT64_MIN) || rise % slope != 0) return std::nullopt;
  sizes[symbol] = rise / slope;
  return dim.value(sizes) == extent ? std::optional(rise / slope) : std::nullopt;  // no: N*N and the like
}

struct Binder {
  const Graph& graph;
  std::span<const std::vector<int64_t>> extents;
  Sizes sizes;
  std::map<std::string, std::string> origin;  // where a symbol got its size, for messages

  void set(const std::string& symbol, int64_t size, size_t input, size_t axis) {
    sizes[symbol] = size;
    origin[symbol] = where(graph, input, axis);
  }

  template <class F>
  void each_dim(F f) {
    for (size_t i = 0; i < extents.size(); ++i) {
      const Shape& shape = graph.node(graph.inputs()[i].node).type.shape;
      for (size_t k = 0; k < shape.size(); ++k) f(i, k, shape[k], extents[i][k]);
    }
  }

  Status ranks() const {
    if (extents.size() != graph.inputs().size())
      return input_error(std::to_string(extents.size()) + " inputs are given, graph " + quoted(graph.name()) + " has " +
                         std::to_string(graph.inputs().size()));
    for (size_t i = 0; i < extents.size(); ++i) {
      const Type& type = graph.node(graph.inputs()[i].node).type;
      if (extents[i].size() != type.shape.size())
        return input_error("input " + quoted(graph.inputs()[i].name) + " has rank " + std::to_string(extents[i].size()) + ", not " +
                           std::to_string(type.shape.size()) + " as in " + text(type));
      for (size_t k = 0; k < extents[i].size(); ++k)
        if (extents[i][k] < 0) return input_error(where(graph, i, k) + " is " + std::to_string(extents[i][k]) + ": an extent cannot be negative");
    }
    return Done{};
  }

  void take_symbols() {
    each_dim([&](size_t i, size_t k, const Dim& dim, int64_t extent) {
      if (dim.is_constant()) return;
      const auto symbols = dim.symbols();
      if (symbols.size() == 1 && dim == Dim::symbol(symbols[0]) && !sizes.contains(symbols[0])) set(symbols[0], extent, i, k);
    });
    for (size_t before = ~size_t{0}; before != sizes.size();) {
      before = sizes.size();
      each_dim([&](size_t i, size_t k, const Dim& dim, int64_t extent) {
        if (const auto solved = solve_dim(dim, extent, sizes)) set(solved->first, solved->second, i, k);
      });
    }
  }

  Status check_inputs() {
    Status status = Done{};
    each_dim([&](size_t i, size_t k, const Dim& dim, int64_t extent) {
      if (!status || dim.is(extent)) return;
      const std::string is = where(graph, i, k) + " is " + std::to_string(extent);
      if (dim.is_constant()) {
        status = input_error(is + ", not " + dim.text());
        return;
      }
      const auto value = dim.value(sizes);
      if (value == extent) return;
      std::string why;
      for (const std::string& s : dim.symbols()) {
        const auto found = sizes.find(s);
        why += (why.empty() ? "" : ", ") + s + (found == sizes.end() ? " is unknown" : " is " + std::to_string(found->second) + " from " + origin[s]);
      }
      const std::string gives = value && dim.symbols().size() >= 1 && dim != Dim::symbol(dim.symbols()[0])
                                    ? " = " + std::to_string(*value)
                                    : "";
      status = input_error(is + ", not " + dim.text() + gives + ": " + why);
    });
    if (!status) return status;
    for (const auto& [symbol, size] : sizes)
      if (size < 0) return input_error("the size " + symbol + " is " + std::to_string(size) + " from " + origin[symbol] + ": it cannot be negative");
    return Done{};
  }

  Status check_node(const Node& n) const {
    Type bound{n.type.dtype, {}};
    for (const Dim& d : n.type.shape) {
      const auto value = d.value(sizes);
      if (!value) return input_error("the dim " + d.text() + " of " + text(n.type) + " follows from no input, or leaves 64 bits");
      if (*value < 0) return input_error("the dim " + d.text() + " of " + text(n.type) + " is " + std::to_string(*value));
      bound.shape.push_back(*value);
    }
    if (auto fits = check_type(bound); !fits) return fits;
    if (n.op == Op::slice) return check_slice(n);
    if (n.op == Op::argmax || n.op == Op::argmin) return check_index(n);
    if (n.op == Op::size && !n.attrs->shape[0].value(sizes))
      return input_error("the size " + n.attrs->shape[0].text() + " follows from no input, or leaves 64 bits");
    if (n.op != Op::pad) return Done{};
    for (const auto* list : {&n.attrs->low, &n.attrs->high})
      for (const Dim& d : *list)
        if (d.value(sizes).value_or(-1) < 0) return input_error("a pad of " + d.text() + " elements is negative");
    return Done{};
  }

  /// Results of argmax over nothing have no value to give; no results at all are fine.
  Status check_index(const Node& n) const {
    const Shape& shape = graph.node(n.args[0]).type.shape;
    const std::vector<int64_t>& axes = n.attrs->axes;
    std::optional<size_t> empty;
    for (size_t k = 0; k < shape.size(); ++k) {
      if (shape[k].value(sizes) != 0) continue;
      if (std::find(axes.begin(), axes.end(), int64_t(k)) == axes.end()) return Done{};
      empty = k;
    }
    if (!empty) return Done{};
    return input_error("axis " + std::to_string(*empty) + " is empty in this call, so there is no index to give");
  }

  Status check_slice(const Node& n) const {
    const Shape& shape = graph.node(n.args[0]).type.shape;
    for (size_t k = 0; k < shape.size(); ++k) {
      const auto dim = shape[k].value(sizes), start = n.attrs->start[k].value(sizes), stop = n.attrs->stop[k].value(sizes);
      if (dim && start && stop && 0 <= *start && *start <= *stop && *stop <= *dim) continue;
      return input_error("axis " + std::to_string(k) + ": " + n.attrs->start[k].text() + " to " + n.attrs->stop[k].text() +
                         " is no part of " + shape[k].text() + " = " + std::to_string(dim.value_or(-1)));
    }
    return Done{};
  }
};

}  // namespace

std::optional<std::pair<std::string, int64_t>> solve_dim(const Dim& dim, int64_t extent, const Sizes& sizes) {
  const auto symbol = unknown(dim, sizes);
  const auto size = symbol ? solve(dim, *symbol, extent, sizes) : std::nullopt;
  return size ? std::optional(std::pair(*symbol, *size)) : std::nullopt;
}

namespace {

Result<Sizes> bound(const Graph& graph, std::span<const std::vector<int64_t>> extents) {
  Binder b{graph, extents, {}, {}};
  if (auto fits = b.ranks(); !fits) return fits.error();
  b.take_symbols();
  if (auto fits = b.check_inputs(); !fits) return fits.error();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (auto fits = b.check_node(n); !fits) {
      Error error = fits.error();
      error.message = std::string(name(n.op)) + ": " + error.message;
      return graph.label(id).empty() ? error : error.note("at %" + graph.label(id));
    }
  }
  return std::move(b.sizes);
}

}  // namespace

Result<Sizes> bind(const Graph& graph, std::span<const std::vector<int64_t>> extents) {
  return caught("binding sizes stopped", [&] { return bound(graph, extents); });
}

}  // namespace fusec
