// The pipeline as a whole: what it computes is what was written, whatever the graph; it is deep, linear, bisectable and tells what it did.

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lib/fuzz/random_graph.h"
#include "lib/fuzz/ranges.h"
#include "lib/ir/convert.h"
#include "lib/passes/pipeline.h"
#include "lib/passes/rules.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

Graph parsed(const std::string& text) {
  Result<Graph> g = parse(text);
  EXPECT_TRUE(g) << g.error().text();
  return *g;
}

Graph after(const Graph& graph, PassOptions options = {}) {
  Trace trace;
  options.verify_each = true;
  Result<Graph> out = run_pipeline(graph, options, trace);
  EXPECT_TRUE(out) << out.error().text() << print(graph);
  return out ? *out : graph;
}

size_t count(const Graph& g, Op op) {
  return size_t(std::count_if(g.nodes().begin(), g.nodes().end(), [&](const Node& n) { return n.op == op; }));
}

// --- random graphs ---------------------------------------------------------------------------------------------------------

/// "" when every output is what it may be.
std::string disagreement(const Graph& before, const Graph& now, const std::vector<Tensor>& inputs) {
  const Result<std::vector<fuzz::Ranges>> want = fuzz::evaluate_ranges(before, inputs);
  if (!want) return "";  // for example an argmax of nothing
  const Result<std::vector<Tensor>> got = evaluate(now, inputs);
  if (!got) return "evaluates no more: " + got.error().text();
  for (size_t k = 0; k < want->size(); k++) {
    const Tensor &a = (*want)[k].value, &b = (*got)[k];
    if (a.dtype != b.dtype || a.extents != b.extents) return "output " + std::to_string(k) + " changed its type";
    if (const std::optional<int64_t> at = fuzz::outside((*want)[k], b))
      return "output " + std::to_string(k) + " at " + std::to_string(*at) + ": " + fuzz::range_text((*want)[k], *at) + " became " + std::to_string(element(b, *at));
  }
  return "";
}

std::vector<Tensor> inputs_of(const fuzz::Drawn& drawn, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Port& port : drawn.graph.inputs()) {
    const Type& type = drawn.graph.node(port.node).type;
    std::vector<int64_t> extents;
    for (const Dim& d : type.shape) extents.push_back(*d.value(drawn.sizes));
    inputs.push_back(fuzz::random_tensor(type.dtype, std::move(extents), seed++));
  }
  return inputs;
}

TEST(Pipeline, StrictKeepsTheBitsOfRandomGraphs) {
  for (uint64_t seed = 1; seed <= 600; seed++) {
    const fuzz::Drawn drawn = fuzz::random_graph(seed, {.max_nodes = 16, .max_inputs = 3, .max_elements = 1 << 9});
    const Graph now = after(drawn.graph);
    const std::string fault = disagreement(drawn.graph, now, inputs_of(drawn, seed * 977));
    ASSERT_EQ(fault, "") << "seed " << seed << "\n" << print(drawn.graph) << print(now);
  }
}

TEST(Pipeline, EachPassAloneKeepsTheBits) {
  for (uint64_t seed = 1; seed <= 150; seed++) {
    const fuzz::Drawn drawn = fuzz::random_graph(seed + 100000, {.max_nodes = 12, .max_inputs = 3, .max_elements = 1 << 8});
    const std::vector<Tensor> inputs = inputs_of(drawn, seed);
    for (const Pass& pass : pipeline()) {
      const Graph now = after(drawn.graph, {.passes = {std::string(pass.name)}});
      const std::string fault = disagreement(drawn.graph, now, inputs);
      ASSERT_EQ(fault, "") << pass.name << ", seed " << seed + 100000 << "\n" << print(drawn.graph) << print(now);
    }
  }
}

TEST(Pipeline, RunningItTwiceChangesNothingMore) {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    const fuzz::Drawn drawn = fuzz::random_graph(seed + 5000, {.max_nodes = 16, .max_inputs = 3, .far = false});
    const Graph once = after(drawn.graph), twice = after(once);
    ASSERT_EQ(print(once), print(twice)) << "seed " << seed + 5000;
  }
}

TEST(Pipeline, AllModesVerifyOnRandomGraphs) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const fuzz::Drawn drawn = fuzz::random_graph(seed + 7000, {.max_nodes = 20, .max_inputs = 3});
    for (Numerics numerics : {Numerics::fused, Numerics::fast}) after(drawn.graph, {.numerics = numerics});
  }
}

// --- depth and size (R-24) -----------------------------------------------------------------------------------------------------

/// Runs `body` on a thread whose stack has 512 KB.
void on_small_stack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  pthread_t thread;
  const auto enter = [](void* f) -> void* {
    (*static_cast<const std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, enter, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

Graph chain(int depth, const std::function<Value(GraphBuilder&, Value)>& link, DType type = DType::f32) {
  GraphBuilder b("chain");
  Value v = b.input("x", {type, {Dim(8), Dim(4)}});
  for (int k = 0; k < depth; k++) v = link(b, v);
  return *std::move(b).finish({v});
}

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Pipeline, DeepGraphsNeedNoStack) {
  on_small_stack([] {
    // Floats: nothing merges. Integers: 20000 constants become one. Negations and transposes cancel. Views compose.
    EXPECT_EQ(after(chain(20000, [](GraphBuilder& b, Value v) { return b.add(Op::add, {v, b.scalar(DType::f32, 1)}); })).size(), 20002u);
    const auto add_one = [](GraphBuilder& b, Value v) { return b.add(Op::add, {b.scalar(DType::i32, 1), v}); };
    const Graph sum = after(chain(20000, add_one, DType::i32));
    EXPECT_EQ(sum.size(), 3u) << print(sum).substr(0, 400);
    EXPECT_EQ(after(chain(20000, [](GraphBuilder& b, Value v) { return b.add(Op::neg, {v}); })).size(), 1u);
    EXPECT_EQ(after(chain(20000, [](GraphBuilder& b, Value v) { return b.add(Op::relu, {b.add(Op::transpose, {v})}); })).size(), 2u);
    EXPECT_EQ(after(chain(20000, [](GraphBuilder& b, Value v) {
      Attrs a;
      a.shape = b.type(v).shape.size() == 2 ? Shape{Dim(32)} : Shape{Dim(8), Dim(4)};
      return b.add(Op::abs, {b.add(Op::reshape, {v}, a)});
    })).size(), 2u);
  });
}

TEST(Pipeline, TimeIsNearLinear) {
  const auto link = [](GraphBuilder& b, Value v) {  // half of it goes away
    return b.add(Op::exp, {b.add(Op::sub, {b.add(Op::mul, {v, b.scalar(DType::f32, 1)}), b.scalar(DType::f32, 3)})});
  };
  const Graph small = chain(2000, link), large = chain(16000, link);
  after(small);
  const double one = seconds([&] { after(small); }), eight = seconds([&] { after(large); });
  EXPECT_LT(eight, 8 * 4 * std::max(one, 0.005)) << one << " s and " << eight << " s";
}

TEST(Pipeline, SharedValuesStayShared) {  // A-093: 64 times a = sin(a) + cos(a)
  const Graph g = after(chain(64, [](GraphBuilder& b, Value v) { return b.add(Op::add, {b.add(Op::sin, {v}), b.add(Op::cos, {v})}); }));
  EXPECT_EQ(g.size(), 1u + 3 * 64);
}

// --- control and tracing --------------------------------------------------------------------------------------------------------

const char* const kThree = R"(graph @f(%x: i32[4]) -> i32[4] {
  %a: i32[4] = mul %x, 1
  %b: i32[4] = neg %a
  %c: i32[4] = neg %b
  %d: i32[4] = add %c, 0
  return %d
})";

TEST(Pipeline, StopsAfterTheNthRule) {
  const Graph g = parsed(kThree);
  EXPECT_EQ(after(g, {.passes = {"simplify"}, .stop_after_rule = 0}).hash(), g.hash());
  EXPECT_EQ(count(after(g, {.passes = {"simplify"}, .stop_after_rule = 1}), Op::mul), 0u);
  EXPECT_EQ(after(g, {.passes = {"simplify"}, .stop_after_rule = 2}).size(), 3u);
  EXPECT_EQ(after(g, {.passes = {"simplify"}, .stop_after_rule = 3}).size(), 1u);
}

TEST(Pipeline, RulesAndPassesCanBeDisabled) {
  const Graph g = parsed(kThree);
  EXPECT_EQ(count(after(g, {.disable = {"mul-one", "neg-mul-const"}}), Op::mul), 1u);
  EXPECT_EQ(count(after(g, {.disable = {"neg-twice", "add-zero"}}), Op::neg), 2u);
  EXPECT_EQ(after(g, {.disable = {"simplify"}}).size(), 7u);
}

TEST(Pipeline, UnknownNamesAreTheCallersFault) {
  Trace trace;
  for (const PassOptions& options : {PassOptions{.passes = {"simplfy"}}, PassOptions{.print_after = {"al"}}, PassOptions{.disable = {"mul-on"}}}) {
    const Result<Graph> out = run_pipeline(parsed(kThree), options, trace);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().kind, Error::input);
  }
}

TEST(Pipeline, DumpsCountersAndPrints) {
  const fs::path dir = fs::path(testing::TempDir()) / "fusec_pipeline_test_dumps";
  fs::remove_all(dir);
  Trace trace(dir.string());
  std::string said;
  trace.sink = [&](std::string_view text) { said += text; };
  ASSERT_TRUE(run_pipeline(parsed(kThree), {.passes = {"canonicalise", "simplify"}, .print_after = {"simplify"}}, trace));
  EXPECT_EQ(said, "; after simplify\ngraph @f(%x: i32[4]) -> i32[4] {\n  return d=%x\n}\n");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(dir)) files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{"00-input.fus", "01-canonicalise.fus", "02-simplify.fus"}));
  std::ifstream dump(dir / "02-simplify.fus");
  const std::string text{std::istreambuf_iterator<char>(dump), {}};
  EXPECT_TRUE(parse(text)) << text;
  EXPECT_EQ(trace.counters().at("rule mul-one"), 1);
  EXPECT_EQ(trace.counters().at("rule neg-twice"), 1);
  ASSERT_EQ(trace.times().size(), 2u);
  EXPECT_EQ(trace.times()[1].first, "simplify");
  fs::remove_all(dir);
}

TEST(Pipeline, ReproducersAreFusFilesThatStartWithTheCommand) {
  const fs::path dir = fs::path(testing::TempDir()) / "fusec_pipeline_test_reproducer";
  const Result<std::string> path = write_reproducer(dir.string(), "fusec opt --passes=views", print(parsed(kThree)));
  ASSERT_TRUE(path);
  std::ifstream file(*path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text.substr(0, text.find('\n')), "; fusec opt --passes=views");
  EXPECT_TRUE(parse(text));
  fs::remove_all(dir);
  EXPECT_FALSE(write_reproducer("/proc/nowhere", "x", "y"));
}

}  // namespace
}  // namespace fusec
