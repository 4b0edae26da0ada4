#include "tools/fusec/trial.h"

#include <algorithm>

#include "lib/fuzz/random_input.h"
#include "lib/ir/literal.h"
#include "lib/ir/rebuild.h"
#include "runtime/program.h"
#include "tools/fusec/blocks.h"

namespace fusec::cli {
namespace {

std::vector<int64_t> extents_of(const Shape& shape, const Sizes& sizes) {
  std::vector<int64_t> out;
  for (const Dim& dim : shape) out.push_back(dim.value(sizes).value_or(0));
  return out;
}

Result<Graph> with_fault(const Graph& graph, Op from, Op to) {
  GraphBuilder b(graph.name());
  return rebuild(graph, b, [&](NodeId id, std::vector<Value> args) {
    const Node& node = graph.node(id);
    return b.add(node.op == from ? to : node.op, std::move(args), *node.attrs);
  });
}

/// For each output the input whose memory it takes, or -1: sometimes, where type and extents are equal. Not on simt: lanes of a block that
/// have no row read the last one again and drop what they read, which its race detector tells of.
std::vector<int> taken_over(const Graph& graph, const std::vector<fuzz::Placed>& inputs, const std::vector<fuzz::Placed>& outputs, uint64_t seed) {
  std::vector<int> out(outputs.size(), -1);
  fuzz::Random random(seed ^ 0xa11a5);
  if (!random.chance(4)) return out;
  for (size_t o = 0; o < outputs.size(); ++o)
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = inputs[i].tensor;
      const bool same = graph.node(graph.outputs()[o].node).type.dtype == tensor.dtype && outputs[o].tensor.extents == tensor.extents;
      if (same && may_hold_output(inputs[i]) && std::find(out.begin(), out.end(), int(i)) == out.end()) {
        out[o] = int(i);
        break;
      }
    }
  return out;
}

Result<std::string> run_on(const TrialOptions& options, const std::string& device_name, const Graph& graph, const Sizes& sizes, uint64_t seed,
                           const std::vector<fuzz::Placed>& inputs, const std::vector<fuzz::Ranges>& want, fuzz::Compared* compared) {
  Result<Graph> given = options.planted ? with_fault(graph, options.planted->first, options.planted->second) : Result<Graph>(graph);
  if (!given) return std::string();  // the planted op does not take these operands
  Result<Program> program = compile(*given, {.device = device_name, .numerics = options.numerics, .cache = false, .ahead = false});
  if (!program) return program.error();
  std::vector<fuzz::Placed> outputs;
  for (const Port& port : graph.outputs()) {
    const Type& type = graph.node(port.node).type;
    outputs.push_back(fuzz::output_block(port.name, type.dtype, extents_of(type.shape, sizes), seed));
  }
  std::vector<int> taken(outputs.size(), -1);
  if (device_name != "simt" && options.runs == 1) taken = taken_over(graph, inputs, outputs, seed);
  Blocks blocks(program->impl().backend(), inputs.size() + outputs.size());
  std::vector<Buffer> in, out;
  std::vector<size_t> block_of;
  for (const fuzz::Placed& p : inputs) {
    Result<Buffer> buffer = blocks.add(p);
    if (!buffer) return buffer.error();
    in.push_back(std::move(*buffer));
  }
  for (size_t o = 0, own = inputs.size(); o < outputs.size(); ++o) {
    if (taken[o] >= 0) {
      outputs[o].layout = inputs[size_t(taken[o])].layout;
      outputs[o].block = inputs[size_t(taken[o])].block;
      out.push_back(in[size_t(taken[o])]);
      block_of.push_back(size_t(taken[o]));
      continue;
    }
    Result<Buffer> buffer = blocks.add(outputs[o]);
    if (!buffer) return buffer.error();
    out.push_back(std::move(*buffer));
    block_of.push_back(own++);
  }
  if (Status s = program->run(in, out); !s) return s.error();
  if (Status s = blocks.wait(); !s) return s.error();
  std::vector<std::vector<std::byte>> first;
  for (size_t k = 0; k < outputs.size(); ++k) {
    Result<std::vector<std::byte>> block = blocks.read(block_of[k]);
    if (!block) return block.error();
    first.push_back(*block);
    std::string where = "output " + graph.outputs()[k].name;
    if (taken[k] >= 0) where += " in the memory of " + graph.inputs()[size_t(taken[k])].name;
    if (!read_output(*block, outputs[k])) return where + ": memory beside it was written to";
    const Tensor& got = outputs[k].tensor;
    if (const std::optional<int64_t> at = fuzz::outside(want[k], got, compared))
      return where + " element " + std::to_string(*at) + ": " + element_text(got.dtype, got.data.data() + size_t(*at) * bytes(got.dtype)) +
             " instead of " + fuzz::range_text(want[k], *at);
  }
  for (int run = 1; run < options.runs; ++run) {
    if (Status s = program->run(in, out); !s) return s.error();
    if (Status s = blocks.wait(); !s) return s.error();
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Result<std::vector<std::byte>> block = blocks.read(block_of[k]);
      if (!block) return block.error();
      if (*block != first[k]) return "output " + graph.outputs()[k].name + ": other bits in call " + std::to_string(run + 1);
    }
  }
  return std::string();
}

}  // namespace

std::string trial(const TrialOptions& options, const Graph& graph, const Sizes& sizes, uint64_t seed, fuzz::Compared* compared,
                  std::string* refused) {
  std::vector<fuzz::Placed> inputs;
  std::vector<Tensor> values;
  for (const Port& port : graph.inputs()) {
    const Type& type = graph.node(port.node).type;
    inputs.push_back(fuzz::random_input(port.name, type.dtype, extents_of(type.shape, sizes), seed));
    values.push_back(inputs.back().tensor);
  }
  const Result<std::vector<fuzz::Ranges>> want = fuzz::evaluate_ranges(graph, values, options.numerics);
  if (!want && want.error().kind != Error::input) return "reference: " + want.error().text();
  if (!want) {
    if (refused) *refused = want.error().text();
    return "";
  }
  for (const std::string& device : options.devices) {
    const Result<std::string> wrong = run_on(options, device, graph, sizes, seed, inputs, *want, compared);
    if (!wrong || !wrong->empty()) return device + ": " + (wrong ? *wrong : wrong.error().text());
  }
  return "";
}

}  // namespace fusec::cli
