// Random graphs: every group that the planner makes of them is emitted, run on the host and compared with the reference evaluator.
// FUSEC_FUZZ_SEED and FUSEC_FUZZ_COUNT choose other graphs and more of them.

#include "test/codegen/cuda_run.h"

#include <map>

#include "lib/fusion/fuse.h"
#include "lib/fuzz/random_graph.h"
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

double difference(const Tensor& got, const Tensor& want) {
  double worst = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double a = element(got, i), b = element(want, i);
    if (std::isnan(b) || std::isinf(b) || std::isnan(a) || std::isinf(a)) {
      if (std::isnan(b) ? !std::isnan(a) : a != b) return INFINITY;
    } else {
      worst = std::max(worst, std::abs(a - b) / std::max(1.0, std::abs(b)));
    }
  }
  return worst;
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
      const std::vector<fuzz::Agreement> agree = fuzz::agreements(*graph);
      bool sums = false;
      for (fuzz::Agreement a : agree) sums |= a != fuzz::Agreement::exact;
      std::vector<Tensor> inputs;
      for (const Port& port : graph->inputs()) {
        std::vector<int64_t> extents;
        for (const Dim& d : graph->node(port.node).type.shape) extents.push_back(value_of(d, drawn.sizes));
        inputs.push_back(fusec::drawn(graph->node(port.node).type.dtype, extents, seed * 100 + inputs.size(), !sums));
      }
      auto want = evaluate(*graph, inputs);
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
        ASSERT_EQ(ran.outputs[k].extents, (*want)[k].extents);
        if (agree[k] == fuzz::Agreement::none) continue;
        // A product of many extremes overflows in one order and not in another.
        bool product = false;
        for (const Reduction& r : s.kernel.reductions) product |= r.op == Op::prod;
        if (product && agree[k] == fuzz::Agreement::close) continue;
        const double d = difference(ran.outputs[k], (*want)[k]);
        EXPECT_LE(d, agree[k] == fuzz::Agreement::exact ? 0 : 1e-2) << "output " << k << " of " << where;
      }
    }
  }
  printf("%d kernels\n", kernels);
}

}  // namespace
}  // namespace fusec
