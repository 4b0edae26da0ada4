#include "tools/fusec/trial.h"

#include <algorithm>

#include "lib/fuzz/random_input.h"
#include "lib/ir/literal.h"
#include "lib/ir/rebuild.h"
#include "runtime/program.h"

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

/// The memory of a call on a device, whose own allocations are aligned. On the host (null) it is ours, aligned as malloc likes.
struct Blocks {
  const Backend* device;
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::vector<std::byte>> host;

  Result<std::byte*> add(const std::vector<std::byte>& block) {
    if (!device) {
      host.push_back(block);
      return host.back().data();
    }
    Result<std::unique_ptr<Memory>> there = device->allocate(block.size());
    if (!there) return there.error();
    memory.push_back(std::move(*there));
    if (Status s = device->upload(memory.back()->data, block.data(), block.size()); !s) return s.error();
    return static_cast<std::byte*>(memory.back()->data);
  }
  Status read(size_t k, std::vector<std::byte>& block) const {
    if (device) return device->download(block.data(), memory[k]->data, block.size());
    block = host[k];
    return Done{};
  }
};

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
  Result<Program> program = compile(*given, {.device = device_name, .numerics = options.numerics, .cache = false});
  if (!program) return program.error();
  std::vector<fuzz::Placed> outputs;
  for (const Port& port : graph.outputs()) {
    const Type& type = graph.node(port.node).type;
    outputs.push_back(fuzz::output_block(port.name, type.dtype, extents_of(type.shape, sizes), seed));
  }
  std::vector<int> taken(outputs.size(), -1);
  if (device_name != "simt") taken = taken_over(graph, inputs, outputs, seed);
  Blocks blocks{program->impl().backend(), {}, {}};
  blocks.host.reserve(inputs.size() + outputs.size());
  std::vector<Buffer> in, out;
  std::vector<size_t> block_of;
  auto buffer = [](const fuzz::Placed& p, std::byte* base) {
    return Buffer{base + p.layout.offset * int64_t(bytes(p.tensor.dtype)), p.tensor.extents, p.layout.strides};
  };
  for (const fuzz::Placed& p : inputs) {
    Result<std::byte*> base = blocks.add(p.block);
    if (!base) return base.error();
    in.push_back(buffer(p, *base));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (taken[o] >= 0) {
      outputs[o].layout = inputs[size_t(taken[o])].layout;
      outputs[o].block = inputs[size_t(taken[o])].block;
      out.push_back(in[size_t(taken[o])]);
      block_of.push_back(size_t(taken[o]));
      continue;
    }
    Result<std::byte*> base = blocks.add(outputs[o].block);
    if (!base) return base.error();
    out.push_back(buffer(outputs[o], *base));
    block_of.push_back(inputs.size() + size_t(o - std::count_if(taken.begin(), taken.begin() + long(o), [](int t) { return t >= 0; })));
  }
  if (Status s = program->run(in, out); !s) return s.error();
  if (Status s = blocks.device ? blocks.device->wait(nullptr) : Status(Done{}); !s) return s.error();
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::vector<std::byte> block(outputs[k].block.size());
    if (Status s = blocks.read(block_of[k], block); !s) return s.error();
    std::string where = "output " + graph.outputs()[k].name;
    if (taken[k] >= 0) where += " in the memory of " + graph.inputs()[size_t(taken[k])].name;
    if (!read_output(block, outputs[k])) return where + ": memory beside it was written to";
    const Tensor& got = outputs[k].tensor;
    if (const std::optional<int64_t> at = fuzz::outside(want[k], got, compared))
      return where + " element " + std::to_string(*at) + ": " + element_text(got.dtype, got.data.data() + size_t(*at) * bytes(got.dtype)) +
             " instead of " + fuzz::range_text(want[k], *at);
  }
  return std::string();
}

}  // namespace

std::string trial(const TrialOptions& options, const Graph& graph, const Sizes& sizes, uint64_t seed, fuzz::Compared* compared) {
  std::vector<fuzz::Placed> inputs;
  std::vector<Tensor> values;
  for (const Port& port : graph.inputs()) {
    const Type& type = graph.node(port.node).type;
    inputs.push_back(fuzz::random_input(port.name, type.dtype, extents_of(type.shape, sizes), seed));
    values.push_back(inputs.back().tensor);
  }
  const Result<std::vector<fuzz::Ranges>> want = fuzz::evaluate_ranges(graph, values, options.numerics);
  if (!want) return want.error().kind == Error::input ? "" : "reference: " + want.error().text();
  for (const std::string& device : options.devices) {
    const Result<std::string> wrong = run_on(options, device, graph, sizes, seed, inputs, *want, compared);
    if (!wrong || !wrong->empty()) return device + ": " + (wrong ? *wrong : wrong.error().text());
  }
  return "";
}

}  // namespace fusec::cli
