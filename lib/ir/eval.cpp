// The meaning of the IR: each node on whole tensors, in order; a value lives until its last reader.

#include "lib/ir/eval.h"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include "lib/ir/convert.h"
#include "lib/ir/decompose.h"
#include "lib/ir/eval_parts.h"
#include "lib/support/caught.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

/// A bound on what one value may ask for: a graph's header must not be able to take the machine down.
constexpr uint64_t kMaxBytes = uint64_t{1} << 33;

Result<Tensor> make_result(const Type& type, const Sizes& sizes) {
  Tensor t{type.dtype, {}, {}};
  uint64_t total = bytes(type.dtype);
  bool empty = false, large = false;
  for (const Dim& d : type.shape) {
    const auto extent = d.value(sizes);
    if (!extent || *extent < 0) return input_error("the dim " + d.text() + " of " + text(type) + " has no size");
    t.extents.push_back(*extent);
    empty |= *extent == 0;
    large |= *extent > 0 && (__builtin_mul_overflow(total, static_cast<uint64_t>(*extent), &total) || total > kMaxBytes);
  }
  if (!empty && large) return input_error(text(type) + " is larger than the reference evaluator's bound of 2^33 bytes");
  t.data.resize(empty ? 0 : total);
  return t;
}

void evaluate_iota(const Node& n, Tensor& result) {
  const auto axis = static_cast<size_t>(n.attrs->axis);
  const int64_t extent = result.extents[axis], step = dense_strides(result.extents)[axis], count = result.elements();
  std::vector<int64_t> row(static_cast<size_t>(std::min<int64_t>(count, 4096)));
  const size_t size = bytes(result.dtype);
  for (int64_t first = 0; first < count; first += static_cast<int64_t>(row.size())) {
    const auto run = static_cast<size_t>(std::min<int64_t>(count - first, static_cast<int64_t>(row.size())));
    for (size_t i = 0; i < run; ++i) row[i] = (first + static_cast<int64_t>(i)) / step % extent;
    convert(DType::i64, reinterpret_cast<const std::byte*>(row.data()), result.dtype, result.data.data() + static_cast<size_t>(first) * size, run);
  }
}

Status evaluate_into(const Node& n, std::span<const Tensor* const> args, const Sizes& sizes, Tensor& result) {
  switch (info(n.op).form) {
    case Form::exact:
    case Form::formula: return evaluate_elementwise(n, args, result);
    case Form::reduce: return evaluate_reduce(n, *args[0], result);
    case Form::scan: evaluate_scan(n, *args[0], result); return Done{};
    case Form::view: evaluate_view(n, args, sizes, result); return Done{};
    case Form::leaf: break;
    case Form::composite: return internal_error("a composite that was not decomposed");
    case Form::reserved: return input_error("not supported yet");
  }
  if (n.op == Op::iota) {
    evaluate_iota(n, result);
    return Done{};
  }
  if (n.op == Op::size) {
    const auto value = n.attrs->shape[0].value(sizes);
    if (!value) return input_error("the size " + n.attrs->shape[0].text() + " is unknown");
    convert(DType::i64, reinterpret_cast<const std::byte*>(&*value), result.dtype, result.data.data(), 1);
    return Done{};
  }
  if (n.op == Op::constant) {
    result.data = n.attrs->value->data;
    return Done{};
  }
  return internal_error("an input has no value of its own");
}

Error located(const Node& n, const Error& error) {
  Error e = error;
  e.message = std::string(name(n.op)) + ": " + e.message;
  return e;
}

bool has_composites(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) { return is_composite(n.op); });
}

Status check_inputs(const Graph& graph, std::span<const Tensor> inputs) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string input = "input " + quoted(graph.inputs()[i].name);
    const Type& type = graph.node(graph.inputs()[i].node).type;
    const Tensor& t = inputs[i];
    if (t.dtype != type.dtype) return input_error(input + " is " + std::string(name(t.dtype)) + ", not " + std::string(name(type.dtype)));
    uint64_t total = bytes(t.dtype);
    for (int64_t e : t.extents)
      if (__builtin_mul_overflow(total, static_cast<uint64_t>(e), &total)) total = t.data.size() + 1;
    if (t.elements() == 0) total = 0;
    if (total != t.data.size()) return input_error(input + " has " + std::to_string(t.data.size()) + " bytes, which its extents do not fill");
    if (t.dtype == DType::boolean && std::any_of(t.data.begin(), t.data.end(), [](std::byte b) { return b > std::byte{1}; }))
      return input_error(input + " is bool and has bytes other than 0 and 1");
  }
  return Done{};
}

Result<std::vector<Tensor>> run(const Graph& graph, std::span<const Tensor> inputs, const Sizes& sizes) {
  std::vector<std::optional<Tensor>> computed(graph.size());
  std::vector<const Tensor*> value(graph.size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) value[graph.inputs()[i].node] = &inputs[i];
  std::vector<uint32_t> uses = graph.use_counts();
  const std::vector<bool> wanted = reaching_elements(graph, sizes);
  std::vector<const Tensor*> args;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (n.op == Op::input) continue;
    if (n.op == Op::constant) {
      value[id] = n.attrs->value.get();
      continue;
    }
    if (!wanted[id]) continue;
    args.clear();
    for (NodeId a : n.args) args.push_back(value[a]);
    auto result = evaluate_node(n, args, sizes);
    if (!result) return graph.label(id).empty() ? result.error() : result.error().note("at %" + graph.label(id));
    computed[id] = std::move(*result);
    value[id] = &*computed[id];
    for (NodeId a : n.args)
      if (--uses[a] == 0) computed[a].reset();
  }
  std::vector<Tensor> outputs;
  for (const Port& p : graph.outputs()) {
    if (value[p.node]) {
      outputs.push_back(*value[p.node]);
      continue;
    }
    Result<Tensor> empty = make_result(graph.node(p.node).type, sizes);
    if (!empty) return empty.error();
    outputs.push_back(std::move(*empty));
  }
  return outputs;
}

bool is_empty(const Type& type, const Sizes& sizes) {
  return std::any_of(type.shape.begin(), type.shape.end(), [&](const Dim& d) { return d.value(sizes) == 0; });
}

}  // namespace

std::vector<bool> reaching_elements(const Graph& graph, const Sizes& sizes) {
  std::vector<bool> out(graph.size());
  for (const Port& p : graph.outputs()) out[p.node] = out[p.node] || !is_empty(graph.node(p.node).type, sizes);
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;)
    if (out[id])
      for (NodeId a : graph.node(id).args) out[a] = true;
  return out;
}

Result<Tensor> evaluate_node(const Node& node, std::span<const Tensor* const> args, const Sizes& sizes) {
  try {
    if (is_composite(node.op)) {
      // Its decomposition, as a graph of its own.
      GraphBuilder b("composite");
      std::vector<Value> values;
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < args.size(); ++i) {
        const Tensor& t = *args[i];
        values.push_back(b.input(std::to_string(i), {t.dtype, {t.extents.begin(), t.extents.end()}}));
        inputs.push_back(t);
      }
      const Value result = decompose(b, node.op, values, *node.attrs);
      auto graph = std::move(b).finish({result});
      if (!graph) return graph.error();
      auto outputs = run(*graph, inputs, sizes);
      if (!outputs) return outputs.error();
      return std::move((*outputs)[0]);
    }
    auto result = make_result(node.type, sizes);
    if (!result) return located(node, result.error());
    if (auto done = evaluate_into(node, args, sizes, *result); !done) return located(node, done.error());
    return result;
  } catch (const std::bad_alloc&) {
    return located(node, environment_error("not enough memory for " + text(node.type)));
  } catch (const std::length_error&) {
    return located(node, environment_error("not enough memory for " + text(node.type)));
  }
}

namespace {

Result<std::vector<Tensor>> evaluated(const Graph& graph, std::span<const Tensor> inputs) {
  std::vector<std::vector<int64_t>> extents;
  for (const Tensor& t : inputs) extents.push_back(t.extents);
  auto sizes = bind(graph, extents);
  if (!sizes) return sizes.error();
  if (auto fits = check_inputs(graph, inputs); !fits) return fits.error();
  if (!has_composites(graph)) return run(graph, inputs, *sizes);
  auto primitives = decompose(graph);
  if (!primitives) return primitives.error();
  return run(*primitives, inputs, *sizes);
}

}  // namespace

Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs) {
  return caught("the evaluation stopped", [&] { return evaluated(graph, inputs); });
}

}  // namespace fusec
