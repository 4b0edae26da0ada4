#include "tools/fusec/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "lib/fuzz/ranges.h"
#include "lib/ir/convert.h"
#include "lib/ir/decompose.h"
#include "lib/ir/literal.h"
#include "lib/support/text.h"
#include "tools/fusec/command.h"

namespace fusec::cli {
namespace {

/// Half a unit in the last place of 1.
double rounding(DType type) {
  switch (type) {
    case DType::f64: return 0x1p-53;
    case DType::f32: return 0x1p-24;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    case DType::f8e4m3: return 0x1p-4;
    case DType::f8e5m2: return 0x1p-3;
    default: return 0;
  }
}

/// Per node: elements of the longest chain of float sums it depends on (0 = none), and the coarsest rounding between those sums and
/// the node (without its own): a sum that is off by little may round to the other neighbour there.
struct Dependence {
  double length = 0;
  double coarsest = 0;
  double narrow = 0;   // roundings to narrow floats along the longest way, added up: what fused and fast may leave out
};

std::vector<Dependence> dependences(const Graph& graph, const Sizes& sizes) {
  std::vector<Dependence> out(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    Dependence& d = out[id];
    for (NodeId arg : node.args) {
      d.length = std::max(d.length, out[arg].length);
      d.narrow = std::max(d.narrow, out[arg].narrow);
      if (out[arg].length > 0) d.coarsest = std::max({d.coarsest, out[arg].coarsest, rounding(graph.node(arg).type.dtype)});
    }
    if (rounding(node.type.dtype) > 0x1p-24) d.narrow += rounding(node.type.dtype);
    if ((node.op == Op::sum || node.op == Op::prod) && is_float(node.type.dtype)) {
      const double from = double(elements(graph.node(node.args[0]).type.shape).value(sizes).value_or(1));
      const double to = double(elements(node.type.shape).value(sizes).value_or(1));
      d.length += std::max(1.0, from / std::max(1.0, to));
    }
    if ((node.op == Op::cumsum || node.op == Op::cumprod) && is_float(node.type.dtype))
      d.length += double(node.type.shape[size_t(node.attrs->axis)].value(sizes).value_or(1));
  }
  return out;
}

struct Difference {
  int64_t wrong = 0, differing = 0, at = -1;
  double most = 0;  // largest absolute difference
  int64_t ulps = 0;
};

int64_t ordered(DType type, const std::byte* element) {
  int64_t bits = 0;
  std::memcpy(&bits, element, bytes(type));
  const int width = int(bytes(type)) * 8;
  const int64_t sign = int64_t{1} << (width - 1);
  return width == 64 ? (bits < 0 ? INT64_MIN - bits : bits) : (bits & sign ? -(bits & (sign - 1)) : bits);
}

Difference compare(const Tensor& got, const Tensor& want, double bound) {
  Difference d;
  const size_t size = bytes(got.dtype);
  for (int64_t i = 0, n = got.elements(); i < n; ++i) {
    const std::byte *g = got.data.data() + i * size, *w = want.data.data() + i * size;
    if (std::memcmp(g, w, size) == 0) continue;
    const double a = element(got, i), b = element(want, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    ++d.differing;
    const double gap = std::abs(a - b);
    if (gap > d.most || std::isnan(gap)) d.most = gap;
    if (is_float(got.dtype) && !std::isnan(a) && !std::isnan(b)) {
      const int64_t u = std::abs(ordered(got.dtype, g) - ordered(want.dtype, w));
      d.ulps = std::max(d.ulps, u);
    }
    if (gap <= bound) continue;
    if (d.wrong++ == 0) d.at = i;
  }
  return d;
}

/// Largest finite magnitude: what the roundings of a sum are measured on.
double scale(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0, n = t.elements(); i < n; ++i)
    if (const double x = std::abs(element(t, i)); std::isfinite(x)) most = std::max(most, x);
  return most;
}

std::string short_number(double x);

/// How far that is: in units in the last place where every bit counts; else against the largest output, since next to a zero of a sum
/// units in the last place say nothing.
std::string far(const Tensor& want, const Difference& d, bool exact) {
  if (!is_float(want.dtype)) return "";
  if (exact) return " (" + std::to_string(d.ulps) + " ulp)";
  return " (" + short_number(d.most / std::max(scale(want), 1e-30)) + " of the largest)";
}

std::string short_number(double x) { return number_text(float(x)); }

/// Bounds of single elements take some thirty evaluations of what follows a sum.
bool small_enough(const Graph& graph, const Sizes& sizes) {
  double all = 0;
  for (const Node& node : graph.nodes()) all += double(elements(node.type.shape).value(sizes).value_or(0));
  return all < 1 << 24;
}

}  // namespace

Result<CheckReport> check(const Graph& graph, std::span<const Tensor> inputs, const std::vector<Tensor>& got, Numerics numerics) {
  Result<std::vector<Tensor>> want = evaluate(graph, inputs);
  if (!want) return want.error().note("while evaluating the reference");
  Result<Graph> primitives = decompose(graph);
  if (!primitives) return primitives.error();
  std::vector<std::vector<int64_t>> extents;
  for (const Tensor& t : inputs) extents.push_back(t.extents);
  Result<Sizes> sizes = fusec::bind(*primitives, extents);
  if (!sizes) return sizes.error();
  const std::vector<Dependence> known = dependences(*primitives, *sizes);

  std::optional<std::vector<fuzz::Ranges>> ranges;  // evaluated when the bound of a whole output is not met
  CheckReport report;
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensor& w = (*want)[i];
    const Dependence d = known[primitives->outputs()[i].node];
    const bool exact = d.length == 0 && numerics == Numerics::strict;
    double bound = 0;
    if (!exact && is_float(w.dtype)) {
      const double unit = w.dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
      double relative = unit * (16 + 4 * std::sqrt(d.length)) + 2 * rounding(w.dtype);
      // A narrow value on the way may round to the other neighbour; its consumers see that whole step.
      if (d.coarsest > 0x1p-24) relative += 4 * d.coarsest;
      if (numerics != Numerics::strict) relative += 32 * unit + 2 * d.narrow;
      if (numerics == Numerics::fast) relative += 8 * 0x1p-18;  // fewer terms, a few times in a row
      bound = relative * std::max(scale(w), 1e-30);
    } else if (!exact && is_integer(w.dtype)) {
      bound = 1;
    }
    Difference diff = compare(got[i], w, bound);
    if (diff.wrong && !exact && !ranges && small_enough(*primitives, *sizes))
      if (Result<std::vector<fuzz::Ranges>> all = fuzz::evaluate_ranges(graph, inputs, numerics)) ranges = std::move(*all);
    const bool by_addends = diff.wrong && ranges && !fuzz::outside((*ranges)[i], got[i]);
    if (by_addends) diff.wrong = 0;
    report.good &= diff.wrong == 0;
    report.text += std::string(diff.wrong ? "check FAILED: " : "check: ") + one_line(graph.outputs()[i].name) + ": ";
    if (diff.differing == 0) report.text += "every bit as the reference";
    else
      report.text += std::to_string(diff.differing) + " of " + std::to_string(w.elements()) + " elements differ, by at most " +
                     short_number(diff.most) + far(w, diff, exact);
    report.text += exact ? "; expected: every bit" : "; allowed: " + short_number(bound);
    if (by_addends) report.text += ", and more where addends cancel: each element is within its own bound";
    if (diff.wrong) {
      const size_t size = bytes(w.dtype);
      report.text += "; first at element " + std::to_string(diff.at) + ": " + element_text(w.dtype, got[i].data.data() + diff.at * size) +
                     " instead of " + element_text(w.dtype, w.data.data() + diff.at * size);
    }
    report.text += "\n";
  }
  return report;
}

}  // namespace fusec::cli
