// What random graphs found, each for its whole kind.

#include <fusec/fusec.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lib/fuzz/random_graph.h"
#include "lib/ir/convert.h"

namespace fusec {
namespace {

bool is_here(const char* device) {
  return bool(compile(*parse("graph @g(%x: f32[1]) -> f32[1] { %y = neg %x\n return %y }"), {.device = device, .cache = false}));
}

/// The outputs of a call of one f32 input, the first output in the input's memory if asked for.
std::vector<std::vector<float>> outputs(const Program& program, std::vector<float> x, std::vector<int64_t> extents, bool in_place) {
  const std::vector<std::vector<int64_t>> all = {extents};
  const Result<std::vector<std::vector<int64_t>>> shapes = program.output_extents(all);
  EXPECT_TRUE(shapes);
  std::vector<std::vector<float>> out;
  std::vector<Buffer> buffers;
  for (const std::vector<int64_t>& shape : *shapes) {
    size_t count = 1;
    for (int64_t e : shape) count *= size_t(e);
    out.emplace_back(count);
  }
  for (std::vector<float>& o : out) buffers.push_back({o.data()});
  if (in_place) buffers[0].data = x.data();
  const Status done = program.run(std::vector<Buffer>{{x.data(), extents}}, buffers);
  EXPECT_TRUE(done) << done.error().text();
  if (in_place) out[0] = x;
  return out;
}

TEST(Found, AnElementStoredInTheInputsMemoryIsNotReadAgain) {
  const Op kReductions[] = {Op::logsumexp, Op::var, Op::softmax, Op::layer_norm, Op::sum, Op::norm_l2};
  const Op kElementwise[] = {Op::neg, Op::sqrt, Op::floor};
  // The table is the kernel's, whatever the device. Not on simt: lanes of a block that have no row read the last one again and drop it,
  // which its race detector tells of.
  if (!is_here("cpu")) GTEST_SKIP() << "wants the CPU back end";
  for (Op reduction : kReductions)
    for (Op elementwise : kElementwise)
      for (std::vector<int64_t> extents : {std::vector<int64_t>{3, 2}, {4, 37}, {2, 300}, {70, 5}}) {
        const int64_t axis = elementwise == Op::floor ? 0 : 1;
        GraphBuilder b("g");
        const Value in = b.input("x", {DType::f32, {extents[0], extents[1]}});
        Attrs attrs;
        attrs.axes = {axis};
        attrs.eps = 1e-3;
        const Value first = b.add(elementwise, {in}), second = b.add(reduction, {in}, attrs);
        const Result<Graph> given = std::move(b).finish({first, second});
        ASSERT_TRUE(given) << given.error().text();
        const Result<Program> program = compile(*given, {.device = "cpu", .cache = false});
        ASSERT_TRUE(program) << program.error().text();
        std::vector<float> x(size_t(extents[0] * extents[1]));
        fuzz::Random random(7);
        for (float& v : x) v = float(random.unit() * 5 + 1);
        EXPECT_EQ(outputs(*program, x, extents, true), outputs(*program, x, extents, false)) << print(*given);
      }
}

TEST(Found, NamesOfGeneratedTextHideNoType) {
  // Registers were called u<number> and states i<number>: u8, i32 and i64 are types of the text.
  if (!is_here("simt")) GTEST_SKIP() << "wants libfusec_simt.so";
  for (const char* reduction : {"sum", "argmax"}) {
    const bool sum = std::string(reduction) == "sum";
    std::string text = "graph @many(%x: f32[2,8]) -> " + std::string(sum ? "f32" : "i64") + "[2] {\n";
    for (int k = 0; k < 66; ++k) {
      const std::string n = std::to_string(k);
      text += "  %m" + n + " = mul %x, " + n + ".5\n  %s" + n + " = " + reduction + " %m" + n + " {axes=[1]}\n";
      text += k ? "  %t" + n + " = add %t" + std::to_string(k - 1) + ", %s" + n + "\n" : "  %t0 = neg %s0\n";
    }
    const Result<Graph> graph = parse(text + "  return %t65\n}\n");
    ASSERT_TRUE(graph) << graph.error().text();
    const Result<Program> program = compile(*graph, {.device = "simt", .cache = false});
    ASSERT_TRUE(program) << program.error().text();
    std::vector<float> x(16, 1.0f);
    std::vector<int64_t> y(2), in = {2, 8}, out = {2};
    const Status done = program->run({{x.data(), in}}, {{y.data(), out}});
    EXPECT_TRUE(done) << done.error().text();
  }
  // Every number that names a type, as a register of a wide kernel's scalar.
  std::string text = "graph @wide(%x: f32[1], %z: f32[1]) -> u8[4] {\n  %v0 = add %z, %x\n";
  for (int k = 1; k < 66; ++k) text += "  %v" + std::to_string(k) + " = add %v" + std::to_string(k - 1) + ", %x\n";
  const Result<Graph> graph = parse(text + R"(  %p = pad %x {low=[2], high=[1], value=2.0}
  %a = cast %p {to=u8}
  %b = cast %v65 {to=u8}
  %y = and %a, %b
  return %y
})");
  ASSERT_TRUE(graph) << graph.error().text();
  const Result<Program> program = compile(*graph, {.device = "simt", .cache = false});
  ASSERT_TRUE(program) << program.error().text();
  float x = 1, z = 2;
  std::vector<uint8_t> y(4);
  const std::vector<int64_t> one = {1}, four = {4};
  const Status done = program->run({{&x, one}, {&z, one}}, {{y.data(), four}});
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(y, (std::vector<uint8_t>{2 & 68, 2 & 68, 1 & 68, 2 & 68}));
}

TEST(Found, SweepsWithStatesOfSeveralSizesShareScratch) {
  // The halves of the scratch lay apart by the size of the state at hand: a small one's second half began within a large one's first.
  if (!is_here("simt")) GTEST_SKIP() << "wants libfusec_simt.so";
  for (const char* text : {R"(graph @g(%x: f64[511]) -> bool[] {
      %0: f64[511] = layer_norm %x, %x {axes=[0]}
      %1: f64[] = prod %x {axes=[0]}
      %2: f64[] = prod %0 {axes=[0]}
      %3: bool[] = ne %2, %1
      return %3
    })", R"(graph @g(%x: f32[3,1024]) -> f32[3,1024] {
      %0: f32[3,1024] = layer_norm %x {axes=[1]}
      %1: f32[3,1] = sum %0 {axes=[1], keep=true}
      %2: f32[3,1] = prod %x {axes=[1], keep=true}
      %3: f32[3,1] = reduce_max %0 {axes=[1], keep=true}
      %4: f32[3,1] = add %1, %2
      %5: f32[3,1] = mul %3, %4
      %6: f32[3,1024] = mul %0, %5
      return %6
    })"}) {
    const Result<Graph> graph = parse(text);
    ASSERT_TRUE(graph) << graph.error().text();
    const Result<Program> program = compile(*graph, {.device = "simt", .cache = false});
    ASSERT_TRUE(program) << program.error().text();
    const Type& type = graph->node(graph->inputs()[0].node).type;
    std::vector<int64_t> extents;
    for (const Dim& dim : type.shape) extents.push_back(dim.constant());
    const Tensor x = fuzz::random_tensor(type.dtype, extents, 3, 0);
    std::vector<double> y(3 * 1024);
    for (int run = 0; run < 5; ++run) {
      const Status done = program->run({{const_cast<std::byte*>(x.data.data()), x.extents}}, {{y.data()}});
      ASSERT_TRUE(done) << done.error().text();
    }
  }
}

TEST(Found, ColumnsOfATransposedInputThatBeginAnywhere) {
  // A load an element was taken for one of shifted vectors: the text had a brace too few.
  if (!is_here("simt")) GTEST_SKIP() << "wants libfusec_simt.so";
  const Result<Graph> graph = parse(R"(graph @g(%x: bf16[33,33], %r: i16[33,33]) -> i16[33,33] {
    %0: bf16[33] = sum %x {axes=[1]}
    %1: i16[33] = cast %0 {to=i16}
    %y: i16[33,33] = or %r, %1
    return %y
  })");
  ASSERT_TRUE(graph) << graph.error().text();
  const Result<Program> program = compile(*graph, {.device = "simt", .cache = false});
  ASSERT_TRUE(program) << program.error().text();
  const Tensor x = fuzz::random_tensor(DType::bf16, {33, 33}, 1, 0), r = fuzz::random_tensor(DType::i16, {33, 33}, 2, 0);
  const std::vector<int64_t> extents = {33, 33}, turned = {1, 33}, dense = {33, 1};
  alignas(32) std::byte xs[33 * 33 * 2], rs[33 * 33 * 2];
  std::copy(x.data.begin(), x.data.end(), xs), std::copy(r.data.begin(), r.data.end(), rs);
  for (const std::vector<int64_t>& of_x : {turned, dense})
    for (const std::vector<int64_t>& of_r : {turned, dense}) {
      std::vector<int16_t> y(33 * 33);
      const Status done = program->run({{xs, extents, of_x}, {rs, extents, of_r}}, {{y.data(), extents}});
      EXPECT_TRUE(done) << done.error().text();
    }
}

TEST(Found, NarrowFormsOverflowInFusedModesToo) {
  // The form that ends in f16 or bf16 gave a large number for an infinity where fused mode left the rounding out.
  if (!is_here("cpu")) GTEST_SKIP() << "wants the CPU back end";
  for (int k = 0; k < kOps; ++k)
    for (DType type : {DType::f16, DType::bf16, DType::f8e5m2}) {
      if (info(Op(k)).form != Form::formula || info(Op(k)).arity != 1) continue;
      std::vector<float> values = {INFINITY, -INFINITY, NAN, 60000, -60000, 3e38f, -3e38f, 0, -0.0f, 20, -20, 90, -90};
      const int64_t count = int64_t(values.size());
      Tensor x{type, {count}, std::vector<std::byte>(values.size() * bytes(type))};
      convert(DType::f32, reinterpret_cast<const std::byte*>(values.data()), type, x.data.data(), values.size());
      GraphBuilder b("g");
      const Value in = b.input("x", {type, {count}});
      Attrs attrs;
      attrs.alpha = 0.5;
      const Result<Graph> graph = std::move(b).finish({b.add(Op::mul, {b.add(Op(k), {in}, attrs), b.scalar(type, 0.5)})});
      ASSERT_TRUE(graph) << graph.error().text();
      const Tensor want = (*evaluate(*graph, std::vector{x}))[0];
      const Result<Program> program = compile(*graph, {.device = "cpu", .numerics = Numerics::fused, .cache = false});
      ASSERT_TRUE(program) << program.error().text();
      Tensor got = want;
      const Status done = program->run({{x.data.data(), x.extents}}, {{got.data.data(), got.extents}});
      ASSERT_TRUE(done) << done.error().text();
      for (int64_t i = 0; i < count; ++i)
        EXPECT_EQ(std::isinf(element(got, i)), std::isinf(element(want, i))) << name(Op(k)) << " of " << name(type) << " " << values[size_t(i)];
    }
}

TEST(Found, ASoftmaxOfEqualElementsWithoutAnInput) {
  if (!is_here("cpu")) GTEST_SKIP() << "wants the CPU back end";
  const Result<Graph> graph = parse(R"(graph @g() -> bf16[2,1] {
    %i: bf16[2,1] = iota {shape=[2,1], to=bf16, axis=1}
    %y: bf16[2,1] = softmax %i {axes=[0]}
    return %y
  })");
  ASSERT_TRUE(graph) << graph.error().text();
  const Result<Program> program = compile(*graph, {.device = "cpu", .cache = false});
  ASSERT_TRUE(program) << program.error().text();
  uint16_t y[2] = {};
  const Status done = program->run({}, {{y}});
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(y[0], 0x3f00);
  EXPECT_EQ(y[1], 0x3f00);
}

}  // namespace
}  // namespace fusec
