#pragma once
// Every elementwise card that is exact or a formula, on every element type that it takes: the reference evaluator, the constant folder, the
// CPU and the CUDA text on the host must give the same bits (any NaN equals any). All cards of a type stand in a few graphs, so that each
// is a kernel that goes over many elements in vectors.

#include <map>

#include "fusec/fusec.h"
#include "lib/passes/pipeline.h"
#include "test/rule_rows.h"

namespace fusec {

struct CardGraph {
  Graph graph;                     // outputs are named after their cards
  std::vector<DType> inputs;
};

inline constexpr size_t kCardsInAGraph = 12;

/// The graphs of all cards of `arity` operands of which the first is of this type.
inline std::vector<CardGraph> card_graphs(DType type, int arity) {
  struct Card {
    Op op;
    Attrs attrs;
    std::string name;
  };
  std::vector<Card> cards;
  const Type vector{type, {Dim::symbol("N")}}, mask{DType::boolean, {Dim::symbol("N")}};
  for (int k = 0; k < kOps; ++k) {
    const Op op = Op(k);
    if (info(op).arity != arity || (info(op).form != Form::exact && info(op).form != Form::formula)) continue;
    std::vector<Attrs> all(1);
    all[0].alpha = 0.25, all[0].beta = 0.5;
    if (op == Op::cast || op == Op::bitcast) {
      all.assign(kDTypes, {});
      for (int t = 0; t < kDTypes; ++t) all[size_t(t)].to = DType(t);
    }
    for (Attrs& attrs : all) {
      std::vector<Type> args(size_t(arity), vector);
      if (op == Op::select) args[0] = mask;
      if (!infer(op, args, attrs)) continue;
      cards.push_back({op, attrs, std::string(name(op)) + (all.size() > 1 ? "_" + std::string(name(*attrs.to)) : "")});
    }
  }
  std::vector<CardGraph> out;
  for (size_t first = 0; first < cards.size(); first += kCardsInAGraph) {
    GraphBuilder b("cards");
    std::vector<Value> operands, outputs;
    std::vector<std::string> names;
    for (int k = 0; k < arity; ++k) operands.push_back(b.input("x" + std::to_string(k), vector));
    const Value m = arity == 3 ? b.input("m", mask) : Value{};
    for (size_t k = first; k < std::min(first + kCardsInAGraph, cards.size()); ++k) {
      std::vector<Value> args = operands;
      if (cards[k].op == Op::select) args[0] = m;
      outputs.push_back(b.add(cards[k].op, std::move(args), cards[k].attrs));
      names.push_back(cards[k].name);
    }
    Result<Graph> graph = std::move(b).finish(outputs, names);
    EXPECT_TRUE(graph) << (graph ? "" : graph.error().text());
    if (!graph) continue;
    std::vector<DType> inputs(size_t(arity), type);
    if (arity == 3) inputs.push_back(DType::boolean);
    out.push_back({*graph, inputs});
  }
  return out;
}

inline Tensor part(const Tensor& t, int64_t begin, int64_t count) {
  const size_t size = bytes(t.dtype);
  return {t.dtype, {count}, std::vector<std::byte>(t.data.begin() + size_t(begin) * size, t.data.begin() + size_t(begin + count) * size)};
}

inline Result<std::vector<Tensor>> run_on(const Program& program, const std::vector<Tensor>& inputs) {
  const Graph& graph = program.graph();
  const int64_t extents[] = {inputs[0].extents[0]};
  std::vector<Tensor> out;
  std::vector<Buffer> from, to;
  for (const Tensor& t : inputs) from.push_back({const_cast<std::byte*>(t.data.data()), extents});
  for (const Port& port : graph.outputs()) {
    const DType type = graph.node(port.node).type.dtype;
    out.push_back({type, {extents[0]}, std::vector<std::byte>(size_t(extents[0]) * bytes(type))});
  }
  for (Tensor& t : out) to.push_back({t.data.data(), extents});
  if (Status s = program.run(from, to); !s) return s.error();
  return out;
}

/// The graph's outputs with its inputs known, by the pass alone: nothing may be left to compute.
inline Result<std::vector<Tensor>> fold_on(const Graph& graph, const std::vector<Tensor>& inputs) {
  GraphBuilder b(graph.name());
  std::vector<Value> values(graph.size()), outputs;
  for (size_t k = 0; k < inputs.size(); ++k) values[graph.inputs()[k].node] = b.constant(inputs[k]);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == Op::input) continue;
    std::vector<Value> args;
    for (NodeId arg : node.args) args.push_back(values[arg]);
    values[id] = b.add(node.op, args, *node.attrs);
  }
  for (const Port& port : graph.outputs()) outputs.push_back(values[port.node]);
  Result<Graph> constants = std::move(b).finish(outputs);
  if (!constants) return constants.error();
  Trace trace;
  Result<Graph> folded = run_pipeline(*constants, {.passes = {"fold_constants"}}, trace);
  if (!folded) return folded.error();
  for (const Node& node : folded->nodes())
    if (!node.args.empty() && node.op != Op::broadcast) return input_error(std::string(name(node.op)) + " is not folded");
  return evaluate(*folded, {});
}

struct CardsCompared {
  size_t cards = 0;
  double tuples = 0;
};

/// Which NaN a narrow float is, is lost on its way through f32: bitcast shows a quiet one (docs/numerics.md). Such places are passed over.
inline void pass_over_nans(const std::string& card, const Tensor& operand, const Tensor& want, Tensor& got) {
  if (!card.starts_with("bitcast") || !is_float(operand.dtype) || bytes(operand.dtype) > 2) return;
  const size_t size = bytes(want.dtype);
  for (int64_t k = 0; k < want.elements(); ++k)
    if (is_nan_at(operand, k)) std::memcpy(got.data.data() + size_t(k) * size, want.data.data() + size_t(k) * size, size);
}

/// All cards of these operands, on these devices beside the reference and the folder. Differences are failures of the test that calls.
inline CardsCompared compare_cards(DType type, int arity, const std::vector<std::string>& devices, size_t drawn, bool fold_all) {
  constexpr int64_t kCall = 1 << 18, kFold = 4096;
  CardsCompared out;
  std::mt19937_64 random(uint64_t(type) * 4 + uint64_t(arity));
  for (const CardGraph& c : card_graphs(type, arity)) {
    const std::vector<Tensor> all = columns(c.inputs, true, false, drawn, random);
    const int64_t n = all[0].elements();
    std::map<std::string, Program> programs;
    for (const std::string& device : devices) {
      Result<Program> program = compile(c.graph, {.device = device});
      EXPECT_TRUE(program) << program.error().text();
      if (program) programs.emplace(device, *program);
    }
    const auto compare = [&](const std::vector<Tensor>& inputs, const std::vector<Tensor>& want, Result<std::vector<Tensor>> got,
                             const std::string& where) {
      ASSERT_TRUE(got) << where << ": " << got.error().text();
      for (size_t k = 0; k < want.size(); ++k) {
        pass_over_nans(c.graph.outputs()[k].name, inputs[0], want[k], (*got)[k]);
        const int64_t at = first_difference(want[k], (*got)[k], true);
        if (at < 0) continue;
        std::string operands;
        for (const Tensor& t : inputs) operands += " " + std::to_string(element(t, at));
        ADD_FAILURE() << c.graph.outputs()[k].name << " of " << name(type) << " on " << where << " at" << operands << ": "
                      << element((*got)[k], at) << ", the reference has " << element(want[k], at);
      }
    };
    for (int64_t begin = 0; begin < n; begin += kCall) {
      std::vector<Tensor> inputs;
      for (const Tensor& t : all) inputs.push_back(part(t, begin, std::min(kCall, n - begin)));
      const Result<std::vector<Tensor>> want = evaluate(c.graph, inputs);
      EXPECT_TRUE(want);
      for (const auto& [device, program] : programs) compare(inputs, *want, run_on(program, inputs), device);
      const int64_t count = inputs[0].elements();
      for (int64_t at = 0; at < (fold_all ? count : std::min(count, kFold)); at += kFold) {
        std::vector<Tensor> some, results;
        for (const Tensor& t : inputs) some.push_back(part(t, at, std::min(kFold, count - at)));
        for (const Tensor& t : *want) results.push_back(part(t, at, some[0].elements()));
        compare(some, results, fold_on(c.graph, some), "the folder");
      }
      if (testing::Test::HasFailure()) return out;
    }
    out.cards += c.graph.outputs().size();
    out.tuples += double(n) * double(c.graph.outputs().size());
  }
  return out;
}

/// Devices of this build besides the reference: "cpu", and "simt" where it is asked for.
inline std::vector<std::string> card_devices(bool simt) {
  std::vector<std::string> out;
  for (const char* device : {"cpu", "simt"}) {
    if (!simt && std::string(device) == "simt") continue;
    const Result<Graph> graph = parse("graph @g(%x: f32[1]) -> f32[1] { %y = neg %x return %y }");
    if (graph && compile(*graph, {.device = device})) out.push_back(device);
  }
  return out;
}

}  // namespace fusec
