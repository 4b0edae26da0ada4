// The walk: values, and views of them. Elementwise ops are in range_elementwise.cpp, sums in range_reduce.cpp.

#include "lib/fuzz/ranges.h"

#include <algorithm>

#include "lib/fuzz/range_parts.h"
#include "lib/ir/decompose.h"
#include "lib/ir/eval.h"
#include "lib/ir/literal.h"

namespace fusec::fuzz {
namespace {

/// A view of a value, and the same of its ranges' ends: what it does not know (constants of a pad) is exact in both.
Status view_ranges(const Node& node, std::span<const Ranges* const> args, const Sizes& sizes, Ranges& out) {
  if (std::all_of(args.begin(), args.end(), [](const Ranges* r) { return r->exact(); })) return Done{};
  for (bool high : {false, true}) {
    std::vector<const Tensor*> ends;
    for (const Ranges* r : args) ends.push_back(r->exact() ? &r->value : high ? &r->high : &r->low);
    Result<Tensor> end = evaluate_node(node, ends, sizes);
    if (!end) return end.error();
    (high ? out.high : out.low) = std::move(*end);
  }
  return Done{};
}

}  // namespace

Result<std::vector<Ranges>> evaluate_ranges(const Graph& graph, std::span<const Tensor> inputs, Numerics numerics) {
  const Result<Graph> primitives = decompose(graph);
  if (!primitives) return primitives.error();
  std::vector<std::vector<int64_t>> extents;
  for (const Tensor& t : inputs) extents.push_back(t.extents);
  const Result<Sizes> sizes = bind(*primitives, extents);
  if (!sizes) return sizes.error();
  const std::vector<bool> wanted = reaching_elements(*primitives, *sizes);
  std::vector<Ranges> all(primitives->size());
  for (size_t k = 0; k < inputs.size(); ++k) all[primitives->inputs()[k].node].value = inputs[k];
  for (NodeId id = 0; id < primitives->size(); ++id) {
    const Node& node = primitives->node(id);
    if (node.op == Op::input || !wanted[id]) continue;
    std::vector<const Tensor*> values;
    std::vector<const Ranges*> args;
    for (NodeId arg : node.args) args.push_back(&all[arg]), values.push_back(&all[arg].value);
    Result<Tensor> value = evaluate_node(node, values, *sizes);
    if (!value) return value.error();
    all[id].value = std::move(*value);
    Status done = Done{};
    if (is_view(node.op)) done = view_ranges(node, args, *sizes, all[id]);
    else if (is_reduce(node.op)) done = reduce_ranges(*primitives, node, all, *sizes, numerics, all[id]);
    else if (is_scan(node.op)) done = scan_ranges(node, *args[0], numerics, all[id]);
    else if (is_elementwise(node.op)) done = elementwise_ranges(node, args, *sizes, numerics, all[id]);
    if (!done) return done.error();
  }
  std::vector<Ranges> out;
  for (const Port& port : primitives->outputs()) {
    out.push_back(all[port.node]);
    if (wanted[port.node]) continue;
    const Type& type = primitives->node(port.node).type;
    out.back().value = {type.dtype, {}, {}};
    for (const Dim& dim : type.shape) out.back().value.extents.push_back(dim.value(*sizes).value_or(0));
  }
  return out;
}

std::optional<int64_t> outside(const Ranges& want, const Tensor& got, Compared* compared) {
  const Order order(got.dtype);
  const size_t size = bytes(got.dtype);
  for (int64_t k = 0; k < got.elements(); ++k) {
    const Keys keys = keys_at(want, order, k);
    const std::byte* at = got.data.data() + size_t(k) * size;
    if (compared) ++(keys.anything() ? compared->free : keys.exact() ? compared->exact : compared->within);
    if (keys.anything()) continue;
    const bool nan = order.is_nan(at);
    if (nan || keys.nan ? nan && keys.nan : order.key(at) >= keys.low && order.key(at) <= keys.high) continue;
    return k;
  }
  return std::nullopt;
}

std::string range_text(const Ranges& want, int64_t at) {
  const Order order(want.value.dtype);
  const Keys keys = keys_at(want, order, at);
  if (keys.anything()) return "anything";
  auto text = [&](const Tensor& t) { return element_text(t.dtype, t.data.data() + size_t(at) * bytes(t.dtype)); };
  return keys.exact() ? text(want.value) : text(want.low) + " to " + text(want.high);
}

}  // namespace fusec::fuzz
