#include "tools/fusec/variants.h"

#include <algorithm>
#include <cstring>

#include "lib/ir/rebuild.h"
#include "lib/passes/pipeline.h"
#include "runtime/program.h"
#include "tools/fusec/blocks.h"
#include "tools/fusec/execute.h"

namespace fusec::cli {
namespace {

struct Variant {
  const char* name;
  int64_t size;    // of the tiled symbol; 0: its own
  int64_t stride;  // of the last axis
  int64_t offset;  // elements
};
const Variant kVariants[] = {
    {"dense", 0, 1, 0},
    {"at stride 2", 0, 2, 0},
    {"one element off", 0, 1, 1},
    {"67", 67, 1, 0},
    {"67 at stride 2", 67, 2, 0},
    {"67, one element off", 67, 1, 1},
    {"4099", 4099, 1, 0},
    {"4099 at stride 2", 4099, 2, 0},
    {"4099, one element off", 4099, 1, 1},
};

/// `t` repeated along the axes of its type that are the symbol, until they have `size` elements.
Tensor repeated(const Tensor& t, const Shape& shape, const std::string& symbol, int64_t size) {
  Tensor out{t.dtype, t.extents, {}};
  for (size_t k = 0; k < shape.size(); ++k)
    if (shape[k] == Dim::symbol(symbol)) out.extents[k] = size;
  const std::vector<int64_t> from = dense_strides(t.extents);
  const size_t bytes_each = bytes(t.dtype);
  out.data.resize(size_t(out.elements()) * bytes_each);
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t rest = i, source = 0;
    for (size_t k = out.extents.size(); k-- > 0; rest /= out.extents[k]) source += rest % out.extents[k] % t.extents[k] * from[k];
    std::memcpy(out.data.data() + size_t(i) * bytes_each, t.data.data() + size_t(source) * bytes_each, bytes_each);
  }
  return out;
}

/// Elements `stride` apart along the last axis, `offset` elements into their block.
fuzz::Layout layout_of(const Tensor& t, const Variant& v) {
  fuzz::Layout out{dense_strides(t.extents), v.offset, t.elements() * v.stride + v.offset};
  for (int64_t& s : out.strides) s *= v.stride;
  return out;
}

Status run_as(const Program& program, std::span<const Tensor> inputs, const std::vector<Tensor>& results, const Variant& variant, const Wanted& wanted) {
  Blocks blocks(program.impl().backend(), inputs.size() + results.size());
  std::vector<fuzz::Placed> outputs;
  std::vector<Buffer> in, out;
  for (const Tensor& t : inputs) {
    Result<Buffer> buffer = blocks.add(fuzz::placed(t, layout_of(t, variant), true));
    if (!buffer) return buffer.error();
    in.push_back(std::move(*buffer));
  }
  for (const Tensor& t : results) {
    outputs.push_back(fuzz::placed({t.dtype, t.extents, {}}, layout_of(t, variant), false));
    Result<Buffer> buffer = blocks.add(outputs.back());
    if (!buffer) return buffer.error();
    out.push_back(std::move(*buffer));
  }
  if (Status s = program.run(in, out); !s) return s;
  if (Status s = blocks.wait(); !s) return s;
  for (size_t k = 0; k < results.size(); ++k) {
    const Result<std::vector<std::byte>> block = blocks.read(inputs.size() + k);
    if (!block) return block.error();
    const bool alone = read_output(*block, outputs[k]);
    const std::string name = "output " + program.graph().outputs()[k].name;
    if (std::string d = wanted.meets(outputs[k].tensor, results[k], wanted.exact, wanted.tolerance); !d.empty()) return input_error(name + " " + d);
    if (!alone) return input_error(name + " writes between its elements");
  }
  return Done{};
}

/// The graph with its inputs known, and every symbol a number.
Result<Graph> known(const Graph& graph, std::span<const Tensor> inputs, const Sizes& sizes) {
  GraphBuilder b(graph.name());
  std::vector<Value> values(graph.size()), outputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].node] = b.constant(inputs[i]);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == Op::input) continue;
    Attrs attrs = *node.attrs;
    for (std::vector<Dim>* dims : {&attrs.shape, &attrs.start, &attrs.stop, &attrs.low, &attrs.high})
      for (Dim& d : *dims) d = Dim(d.value(sizes).value_or(0));
    std::vector<Value> args;
    for (NodeId arg : node.args) args.push_back(values[arg]);
    values[id] = b.add(node.op, std::move(args), std::move(attrs));
  }
  for (const Port& port : graph.outputs()) outputs.push_back(values[port.node]), names.push_back(port.name);
  return std::move(b).finish(outputs, names);
}

Status run_folded(const Graph& graph, const std::string& device, std::span<const Tensor> inputs, const Sizes& sizes, const Wanted& wanted) {
  Result<Graph> constants = known(graph, inputs, sizes);
  if (!constants) return constants.error();
  Trace trace;
  Result<Graph> folded = run_pipeline(*constants, {.verify_each = true}, trace);
  if (!folded) return folded.error();
  // What is known to the last node needs no device.
  const bool all = std::all_of(folded->nodes().begin(), folded->nodes().end(), [](const Node& n) { return n.args.empty() || n.op == Op::broadcast; });
  Result<std::vector<Tensor>> got = all ? evaluate(*folded, {}) : execute({.device = device}, *folded, {});
  if (!got) return got.error();
  for (size_t k = 0; k < got->size(); ++k)
    if (std::string d = wanted.meets((*got)[k], wanted.results[k], wanted.exact, wanted.tolerance); !d.empty())
      return input_error("output " + graph.outputs()[k].name + " " + d);
  return Done{};
}

}  // namespace

Status check_variants(const Program& program, std::span<const Tensor> inputs, const std::string& tiled, const Wanted& wanted) {
  const Graph& graph = program.graph();
  std::vector<std::vector<int64_t>> extents;
  for (const Tensor& t : inputs) extents.push_back(t.extents);
  Result<Sizes> sizes = fusec::bind(graph, extents);
  if (!sizes) return sizes.error();
  if (Status s = run_folded(graph, program.device(), inputs, *sizes, wanted); !s) return Error(s.error()).note("with its inputs folded");
  const auto own = sizes->find(tiled);
  const bool tiles = own != sizes->end() && own->second > 0;
  for (const Variant& v : kVariants) {
    if (v.size && !tiles) continue;
    std::vector<Tensor> in(inputs.begin(), inputs.end()), out(wanted.results.begin(), wanted.results.end());
    for (size_t k = 0; v.size && k < in.size(); ++k) in[k] = repeated(in[k], graph.node(graph.inputs()[k].node).type.shape, tiled, v.size);
    for (size_t k = 0; v.size && k < out.size(); ++k) out[k] = repeated(out[k], graph.node(graph.outputs()[k].node).type.shape, tiled, v.size);
    if (Status s = run_as(program, in, out, v, wanted); !s) return Error(s.error()).note(std::string("variant: ") + v.name);
  }
  return Done{};
}

}  // namespace fusec::cli
