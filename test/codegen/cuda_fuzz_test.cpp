// Random graphs: every group that the planner makes of them is emitted, run on the host and compared with the reference evaluator.
// FUSEC_FUZZ_SEED and FUSEC_FUZZ_COUNT choose other graphs and more of them.

#include "test/codegen/cuda_run.h"

#include <map>

#include "lib/fusion/fuse.h"
#include "lib/fuzz/random_graph.h"
#include "lib/fuzz/ranges.h"
#include "lib/ir/convert.h"

namespace fusec {
namespace {

/// One group as a graph of its own: its inputs become graph inputs.
Result<Graph> graph_of(const Graph& from, const Group& group) {
  GraphBuilder b("group");
  std::map<NodeId, Value> made;
  for (NodeId id : group.inputs) {
    const Node& node = from.node(id);
    made[id] = b.input("x" + std::to_string(id), node.type);
  }
  std::vector<char> wanted(from.size(), 0);
  for (NodeId id : group.nodes) wanted[id] = 1;
  for (NodeId id = 0; id < from.size(); ++id) {
    const Node& node = from.node(id);
    if (made.count(id)) continue;
    if (is_leaf(node.op) && node.op != Op::input) {
      made[id] = node.op == Op::constant ? b.constant(*node.attrs->value) : b.add(node.op, {}, *node.attrs);
    } else if (wanted[id]) {
      std::vector<Value> args;
      for (NodeId a : node.args) args.push_back(made[a]);
      made[id] = b.add(node.op, args, *node.attrs);
    }
  }
  std::vector<Value> outputs;
  for (NodeId id : group.outputs) outputs.push_back(made[id]);
  return std::move(b).finish(outputs);
}

TEST(CudaFuzz, GroupsOfRandomGraphs) {
  if (!simt::Library::open().ok()) GTEST_SKIP() << simt::Library::open().error();
  const uint64_t first = getenv("FUSEC_FUZZ_SEED") ? strtoull(getenv("FUSEC_FUZZ_SEED"), nullptr, 10) : 1, count = getenv("FUSEC_FUZZ_COUNT") ? strtoull(getenv("FUSEC_FUZZ_COUNT"), nullptr, 10) : 24;
  int kernels = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    fuzz::GraphOptions options;
    options.max_elements = 1 << 11;
    const fuzz::Drawn drawn = fuzz::random_graph(seed, options);
    Result<Graph> primitive = decompose(drawn.graph);
    ASSERT_TRUE(primitive) << primitive.error().text();
    Result<GroupPlan> plan = fuse(*primitive);
    ASSERT_TRUE(plan) << plan.error().text();
    for (const Group& group : plan->groups) {
      Result<Graph> graph = graph_of(*primitive, group);
      ASSERT_TRUE(graph) << graph.error().text();
      Subject s{*graph, *graph, everything(*graph), {}};
      Result<Kernel> kernel = build(*graph, s.group);
      if (!kernel) continue;  // the planner's own affair
      s.kernel = *kernel;
      if (!formulas_known(*kernel)) continue;
      std::vector<Tensor> inputs;
      for (const Port& port : graph->inputs()) {
        std::vector<int64_t> extents;
        for (const Dim& d : graph->node(port.node).type.shape) extents.push_back(value_of(d, drawn.sizes));
        inputs.push_back(fuzz::random_tensor(graph->node(port.node).type.dtype, extents, seed * 100 + inputs.size(), seed % 2 ? 8 : 0));
      }
      const auto want = fuzz::evaluate_ranges(*graph, inputs);
      if (!want) continue;  // argmax of nothing
      How how;
      how.seed = seed;
      how.offset = int64_t(seed % 3);
      how.device.multiprocessors = 4;
      const Ran ran = run(s, drawn.sizes, inputs, how);
      const std::string where = "seed " + std::to_string(seed) + "\n" + print(*graph) + print(s.kernel) + print(ran.schedule) + "\n";
      ASSERT_EQ(ran.trouble, "") << where;
      ++kernels;
      for (size_t k = 0; k < want->size(); ++k) {
        ASSERT_EQ(ran.outputs[k].extents, (*want)[k].value.extents);
        const std::optional<int64_t> at = fuzz::outside((*want)[k], ran.outputs[k]);
        EXPECT_FALSE(at) << "output " << k << " at " << *at << ": " << element(ran.outputs[k], *at) << " instead of " << fuzz::range_text((*want)[k], *at) << ", " << where;
      }
    }
  }
  printf("%d kernels\n", kernels);
}

}  // namespace
}  // namespace fusec
