// The same bits for the same call: again and again, whatever the number of threads, wherever its buffers lie, and for a row whatever
// comes with it. Every example and workload with fewer rows, and every reduction and composite over rows of many lengths.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/fuzz/random_graph.h"
#include "lib/ir/strided.h"
#ifdef FUSEC_HAS_CPU
#include "runtime/cpu/threads.h"
#endif

namespace fusec {
namespace {

bool is_here(const char* device) {
  return bool(compile(*parse("graph @g(%x: f32[1]) -> f32[1] { %y = neg %x\n return %y }"), {.device = device, .cache = false}));
}

/// How a call's buffers lie: elements before the first, and between the rows of the last axis.
struct Lie {
  int64_t offset = 0, gap = 0;
};

using Outputs = std::vector<std::vector<std::byte>>;

/// A call on the host: cpu and simt.
Outputs call(const Program& program, const std::vector<Tensor>& inputs, const Lie& lie = {}) {
  const Graph& graph = program.graph();
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<int64_t>> extents, strides;
  for (const Tensor& t : inputs) extents.push_back(t.extents);
  Result<std::vector<std::vector<int64_t>>> shapes = program.output_extents(extents);
  EXPECT_TRUE(shapes) << shapes.error().text();
  extents.insert(extents.end(), shapes->begin(), shapes->end());
  std::vector<Buffer> buffers;
  for (size_t k = 0; k < extents.size(); ++k) {
    const DType type = k < inputs.size() ? inputs[k].dtype : graph.node(graph.outputs()[k - inputs.size()].node).type.dtype;
    std::vector<int64_t> padded = extents[k];
    if (!padded.empty()) padded.back() += lie.gap;
    strides.push_back(dense_strides(padded));
    int64_t count = 1;
    for (int64_t e : padded) count *= e;
    memory.emplace_back(size_t(count + lie.offset + 64) * bytes(type));
  }
  for (size_t k = 0; k < extents.size(); ++k) {
    const size_t size = k < inputs.size() ? bytes(inputs[k].dtype) : bytes(graph.node(graph.outputs()[k - inputs.size()].node).type.dtype);
    auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory[k].data()) + 31) / 32 * 32);
    buffers.push_back({aligned + size_t(lie.offset) * size, extents[k], strides[k]});
    if (k < inputs.size() && inputs[k].elements())
      scatter(inputs[k].data.data(), static_cast<std::byte*>(buffers[k].data), size, {extents[k], strides[k], 0});
  }
  const std::span<const Buffer> all = buffers;
  const Status done = program.run(all.first(inputs.size()), all.subspan(inputs.size()));
  EXPECT_TRUE(done) << done.error().text();
  Outputs out;
  for (size_t k = inputs.size(); k < extents.size(); ++k) {
    const size_t size = bytes(graph.node(graph.outputs()[k - inputs.size()].node).type.dtype);
    int64_t count = 1;
    for (int64_t e : extents[k]) count *= e;
    out.emplace_back(size_t(count) * size);
    if (count) Reader(static_cast<const std::byte*>(buffers[k].data), size, {extents[k], strides[k], 0}).read(out.back().data(), size_t(count));
  }
  return out;
}

std::vector<Tensor> inputs_of(const Graph& graph, const Sizes& sizes) {
  std::vector<Tensor> out;
  for (const Port& port : graph.inputs()) {
    const Type& type = graph.node(port.node).type;
    std::vector<int64_t> extents;
    for (const Dim& dim : type.shape) extents.push_back(*dim.value(sizes));
    out.push_back(fuzz::random_tensor(type.dtype, extents, 11 + out.size(), 0));
  }
  return out;
}

/// The graphs of docs/examples and tools/bench/workloads, with rows as long as they are and few of them.
std::vector<std::pair<std::string, Graph>> known_graphs(bool long_rows) {
  // Longer texts first: a pair of numbers before one of them.
  static const std::pair<const char*, const char*> kFewer[] = {
      {"268435456", "100003"}, {"33554432", "10007"}, {"2097152", "9"}, {"65536,2048", "67,2048"},
      {"-> f32[65536]", "-> f32[67]"}, {"16384,8192", "7,8192"}, {"4096,65536", "3,65536"},
      {"8192,131072", "3,131072"}, {"3,131072]) -> f32[8192]", "3,131072]) -> f32[3]"}, {"1024,262144", "3,262144"},
      {"1024,4096", "7,4096"}, {"64,256,56,56", "3,5,28,28"}, {"1,256,1,1", "1,5,1,1"}, {"32,512,64,64", "2,64,5,5"},
      {"bf16[512]", "bf16[64]"}, {"16,32,4096,", "2,3,5,"}, {"bf16[4096,64]", "bf16[5,64]"},
      {"256,3,512,512", "2,3,16,16"}, {"16,224,224,3", "2,16,16,3"}, {"16,3,224,224", "2,3,16,16"},
      {"1024,1024", "9,1024"}, {"32768", "7"}, {"16384", "33"}};
  static const std::pair<const char*, const char*> kShorter[] = {
      {"262144", "2048"}, {"131072", "1024"}, {"65536", "512"}, {"8192", "256"}, {"100003", "1003"}, {"10007", "1007"}};
  std::vector<std::pair<std::string, Graph>> out;
  for (const char* folder : {"docs/examples", "docs/examples/any_batch", "tools/bench/workloads"})
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FUSEC_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".fus") continue;
      std::stringstream read;
      read << std::ifstream(entry.path()).rdbuf();
      std::string text = read.str();
      auto replace = [&](const std::pair<const char*, const char*>& pair) {
        for (size_t at = 0; (at = text.find(pair.first, at)) != text.npos; at += std::strlen(pair.second))
          text.replace(at, std::strlen(pair.first), pair.second);
      };
      if (std::string(folder) == "docs/examples") replace({"4096", "5"});  // rows there, columns elsewhere
      for (const auto& pair : kFewer) replace(pair);
      if (!long_rows)
        for (const auto& pair : kShorter) replace(pair);
      const Result<std::vector<Graph>> graphs = parse_all(text, entry.path().string());
      EXPECT_TRUE(graphs) << graphs.error().text();
      for (const Graph& graph : *graphs) out.emplace_back(entry.path().filename().string(), graph);
    }
  EXPECT_GE(out.size(), 35u);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

/// Then gaps between rows part axes that are one in a dense tensor, and the order of a sum is another.
bool reduces_several_axes(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.attrs->axes.size() > 1 || node.op == Op::group_norm; });
}

TEST(Determinism, ThreadsRunsAndPlacesOfTheCpu) {
#ifndef FUSEC_HAS_CPU
  GTEST_SKIP() << "wants the CPU back end";
#else
  for (const auto& [name, graph] : known_graphs(true)) {
    const Result<Program> program = compile(graph, {.device = "cpu", .cache = false});
    ASSERT_TRUE(program) << name << ": " << program.error().text();
    const std::vector<Tensor> inputs = inputs_of(graph, {{"N", 5}});
    cpu::set_threads(1);
    const Outputs first = call(*program, inputs);
    for (int run = 0; run < 50; ++run) {
      cpu::set_threads(1 + run % 7);
      ASSERT_EQ(call(*program, inputs), first) << name << ": run " << run << " with " << 1 + run % 7 << " threads";
    }
    cpu::set_threads(0);
    for (const Lie& lie : {Lie{1, 0}, Lie{3, 0}, Lie{0, 3}, Lie{1, 1}, Lie{0, 8}})
      if (lie.gap == 0 || !reduces_several_axes(graph)) {
        ASSERT_EQ(call(*program, inputs, lie), first) << name << ": " << lie.offset << " elements off, rows " << lie.gap << " apart";
      }
  }
#endif
}

TEST(Determinism, OrdersAndPlacesOfCudaText) {
  if (!is_here("simt")) GTEST_SKIP() << "wants libfusec_simt.so";
  for (const auto& [name, graph] : known_graphs(false)) {
    const std::vector<Tensor> inputs = inputs_of(graph, {{"N", 3}});
    const Result<Program> program = compile(graph, {.device = "simt", .cache = false});
    ASSERT_TRUE(program) << name << ": " << program.error().text();
    const Outputs first = call(*program, inputs);
    for (int run = 0; run < 3; ++run) ASSERT_EQ(call(*program, inputs), first) << name << ": run " << run;
    for (const Lie& lie : {Lie{1, 0}, Lie{0, 4}})
      if (lie.gap == 0 || !reduces_several_axes(graph)) {
        ASSERT_EQ(call(*program, inputs, lie), first) << name << ": " << lie.offset << " elements off, rows " << lie.gap << " apart";
      }
  }
}

TEST(Determinism, FiftyOrdersOfThreads) {
  if (!is_here("simt")) GTEST_SKIP() << "wants libfusec_simt.so";
  for (const char* text : {"graph @g(%x: f32[3,300]) -> f32[3,300] { %y = softmax %x {axes=[1]}\n return %y }",
                           "graph @g(%x: bf16[5,256]) -> bf16[256] { %y = sum %x {axes=[0]}\n return %y }",
                           "graph @g(%x: f32[2,64]) -> f32[2,64] { %y = layer_norm %x {axes=[1]}\n return %y }"}) {
    const Result<Graph> graph = parse(text);
    ASSERT_TRUE(graph) << graph.error().text();
    const Result<Program> program = compile(*graph, {.device = "simt", .cache = false});
    ASSERT_TRUE(program) << program.error().text();
    const std::vector<Tensor> inputs = inputs_of(*graph, {});
    const Outputs first = call(*program, inputs);
    for (int run = 0; run < 50; ++run) ASSERT_EQ(call(*program, inputs), first) << text << ": run " << run;
  }
}

/// Every reduction, scan and composite of rows, on every float: a graph over [N,C] with the row's results.
std::vector<Graph> row_graphs(std::initializer_list<DType> types) {
  std::vector<Graph> out;
  for (int k = 0; k < kOps; ++k) {
    const OpInfo& card = info(Op(k));
    const bool reduces = card.form == Form::reduce || card.form == Form::scan || (card.form == Form::composite && (card.rule == Rule::reduce || card.rule == Rule::keep));
    if (!reduces || Op(k) == Op::batch_norm || Op(k) == Op::group_norm) continue;
    for (DType type : types) {
      GraphBuilder b{std::string(card.name)};
      Attrs attrs;
      attrs.axes = {1};
      attrs.axis = 1;
      attrs.eps = 1e-5;
      attrs.to = DType::i64;
      Value x = b.input("x", {type, {Dim::symbol("N"), Dim::symbol("C")}});
      if (card.domain == Domain::boolean) x = b.add(Op::gt, {x, b.scalar(type, 0)});
      Result<Graph> graph = std::move(b).finish({b.add(Op(k), {x}, attrs)});
      EXPECT_TRUE(graph) << graph.error().text();
      out.push_back(std::move(*graph));
    }
  }
  EXPECT_GE(out.size(), 15u);
  return out;
}

Tensor rows_of(DType type, int64_t rows, int64_t columns, int64_t place, uint64_t seed) {
  Tensor out = fuzz::random_tensor(type, {rows, columns}, seed, 0);
  const Tensor row = fuzz::random_tensor(type, {columns}, 5, 0);
  std::copy(row.data.begin(), row.data.end(), out.data.begin() + place * int64_t(row.data.size()));
  return out;
}

void same_row_everywhere(const char* device, const Graph& graph, std::initializer_list<int64_t> lengths, std::initializer_list<int64_t> batches) {
  const Result<Program> program = compile(graph, {.device = device, .cache = false});
  ASSERT_TRUE(program) << program.error().text();
  const DType type = graph.node(graph.inputs()[0].node).type.dtype;
  for (int64_t columns : lengths) {
    std::vector<std::byte> alone;
    for (int64_t batch : batches)
      for (int64_t place : {int64_t(0), batch / 2, batch - 1}) {
        const Outputs out = call(*program, {rows_of(type, batch, columns, place, uint64_t(batch))});
        const size_t bytes = out[0].size() / size_t(batch);
        const std::vector<std::byte> mine(out[0].begin() + place * int64_t(bytes), out[0].begin() + (place + 1) * int64_t(bytes));
        if (alone.empty()) alone = mine;
        ASSERT_EQ(mine, alone) << device << ": row " << place << " of " << batch << ", " << columns << " elements\n" << print(graph);
      }
  }
}

TEST(Determinism, ARowDoesNotDependOnTheOthersCpu) {
  if (!is_here("cpu")) GTEST_SKIP() << "wants the CPU back end";
  for (const Graph& graph : row_graphs({DType::f32, DType::bf16, DType::f64}))
    same_row_everywhere("cpu", graph, {3, 17, 64, 257, 5000}, {1, 2, 5, 16, 33});
}

TEST(Determinism, ARowDoesNotDependOnTheOthersSimt) {
  if (!is_here("simt")) GTEST_SKIP() << "wants libfusec_simt.so";
  for (const Graph& graph : row_graphs({DType::f32})) same_row_everywhere("simt", graph, {8, 96}, {1, 3});  // odd rows: docs/numerics.md
}

}  // namespace
}  // namespace fusec
