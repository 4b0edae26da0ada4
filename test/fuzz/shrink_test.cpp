// A planted fault is found and shrunk to the op that has it.

#include "lib/fuzz/shrink.h"

#include <gtest/gtest.h>

#include "lib/fuzz/random_input.h"
#include "lib/fuzz/ranges.h"
#include "lib/ir/rebuild.h"

namespace fusec {
namespace {

/// What a broken rule makes of a graph.
using Fault = std::function<std::optional<Value>(GraphBuilder&, const Node&, const std::vector<Value>&)>;

/// Does the graph's meaning change?
bool wrong(const fuzz::Failing& f, uint64_t seed, const Fault& fault) {
  std::vector<Tensor> inputs;
  for (const Port& port : f.graph.inputs()) {
    const Type& type = f.graph.node(port.node).type;
    std::vector<int64_t> extents;
    for (const Dim& dim : type.shape) extents.push_back(*dim.value(f.sizes));
    inputs.push_back(fuzz::random_input(port.name, type.dtype, extents, seed).tensor);
  }
  GraphBuilder b("broken");
  const Result<Graph> broken = rebuild(f.graph, b, [&](NodeId id, std::vector<Value> args) {
    const Node& node = f.graph.node(id);
    const std::optional<Value> other = fault(b, node, args);
    return other ? *other : b.add(node.op, std::move(args), *node.attrs);
  });
  if (!broken) return false;
  const Result<std::vector<fuzz::Ranges>> want = fuzz::evaluate_ranges(f.graph, inputs);
  const Result<std::vector<Tensor>> got = evaluate(*broken, inputs);
  if (!want || !got) return false;
  for (size_t k = 0; k < got->size(); ++k)
    if (fuzz::outside((*want)[k], (*got)[k])) return true;
  return false;
}

struct Case {
  const char* name;
  Fault fault;
};

const Case kFaults[] = {
    {"x - y becomes y - x",
     [](GraphBuilder& b, const Node& node, const std::vector<Value>& args) -> std::optional<Value> {
       if (node.op != Op::sub) return std::nullopt;
       return b.add(Op::sub, {args[1], args[0]});
     }},
    {"relu becomes abs",
     [](GraphBuilder& b, const Node& node, const std::vector<Value>& args) -> std::optional<Value> {
       if (node.op != Op::relu) return std::nullopt;
       return b.add(Op::abs, {args[0]});
     }},
    {"a sum without its last element",
     [](GraphBuilder& b, const Node& node, const std::vector<Value>& args) -> std::optional<Value> {
       if (node.op != Op::sum) return std::nullopt;
       const Type type = b.type(args[0]);
       const size_t axis = type.shape.size() - 1;
       if (type.shape.empty() || !type.shape[axis].is_constant() || type.shape[axis].constant() < 2) return std::nullopt;
       if (node.attrs->axes.back() != int64_t(axis)) return std::nullopt;
       Attrs cut;
       cut.start.assign(axis + 1, Dim(0)), cut.stop = type.shape, cut.step.assign(axis + 1, 1);
       cut.stop[axis] = type.shape[axis].constant() - 1;
       return b.add(Op::sum, {b.add(Op::slice, {args[0]}, cut)}, *node.attrs);
     }},
};

TEST(Shrink, PlantedFaultsAreFoundAndShrunkToTheirOp) {
  for (const Case& c : kFaults) {
    int found = 0;
    for (uint64_t seed = 0; seed < 3000 && found < 5; ++seed) {
      fuzz::Drawn drawn = fuzz::random_graph(seed, {.max_nodes = 30, .max_elements = 1 << 9});
      const fuzz::Failing first{drawn.graph, drawn.sizes};
      if (!wrong(first, seed, c.fault)) continue;
      ++found;
      const auto fails = [&](const fuzz::Failing& f) { return wrong(f, seed, c.fault); };
      const fuzz::Failing small = fuzz::shrink(first, fails, 2000);
      EXPECT_TRUE(fails(small));
      EXPECT_LE(small.graph.size(), 3u) << c.name << ", seed " << seed << "\n" << print(small.graph);
      EXPECT_EQ(print(fuzz::shrink(first, fails, 2000).graph), print(small.graph)) << "the same again";
    }
    EXPECT_EQ(found, 5) << c.name;
  }
}

TEST(Shrink, NeverAsksMoreOftenThanItMay) {
  const fuzz::Drawn drawn = fuzz::random_graph(3, {.max_nodes = 40});
  int asked = 0;
  fuzz::shrink({drawn.graph, drawn.sizes}, [&](const fuzz::Failing&) { return ++asked, true; }, 7);
  EXPECT_LE(asked, 7);
}

}  // namespace
}  // namespace fusec
