// Every exact primitive and every formula on every element type, against the reference evaluator, bit for bit; every
// cast.

#include "lib/ir/formula.h"
#include "test/codegen/cpu/run.h"

namespace fusec::cpu {
namespace {

constexpr DType kTypes[] = {DType::boolean, DType::i8,  DType::i16, DType::i32,    DType::i64,
                            DType::u8,      DType::u16, DType::u32, DType::u64,    DType::f16,
                            DType::bf16,    DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2};

/// One graph with an output for each op of this form that accepts `type`.
void check(DType type, Form form, const Device& device) {
  std::vector<Op> ops;
  GraphBuilder b("ops");
  const Shape shape{Dim::symbol("N")};
  const Value x = b.input("x", {type, shape}), y = b.input("y", {type, shape}), z = b.input("z", {type, shape});
  const Value c = b.input("c", {DType::boolean, shape});
  std::vector<Value> outputs;
  for (int i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).form != form || !accepts(info(op).domain, type) || op == Op::cast || op == Op::bitcast) continue;
    if (form == Form::formula && !formula(op, compute_type(type))) continue;
    std::vector<Value> args = {x, y, z};
    args.resize(static_cast<size_t>(info(op).arity));
    if (op == Op::select) args = {c, x, y};
    Attrs attrs;
    attrs.alpha = 0.25;
    attrs.beta = 0.5;
    outputs.push_back(b.add(op, args, attrs));
    ops.push_back(op);
  }
  if (ops.empty()) return;
  Result<Graph> graph = std::move(b).finish(outputs);
  ASSERT_TRUE(graph) << graph.error().text();
  Runner runner(print(*graph));
  runner.device = device;
  for (int64_t n : {0, 5, 67, 1003}) {
    std::vector<Tensor> inputs = {sample(type, {n}, 1), sample(type, {n}, 2), sample(type, {n}, 3),
                                  sample(DType::boolean, {n}, 4)};
    const Result<std::vector<Tensor>> want = evaluate(*graph, inputs);
    ASSERT_TRUE(want) << want.error().text();
    const std::vector<Tensor> got = run(runner, inputs, {{"N", n}});
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string wrong = difference(got[i], (*want)[i]);
      EXPECT_EQ(wrong, "") << name(ops[i]) << " " << name(type) << ", " << n << " elements, " << device.cpu;
    }
  }
}

TEST(CpuOps, ExactPrimitives) {
  for (DType type : kTypes) check(type, Form::exact, host());
}

TEST(CpuOps, Formulas) {
  for (DType type : kTypes) check(type, Form::formula, host());
}

#if defined(__x86_64__)
/// Machines without AVX-512, and the first x86-64 of all: no masks, no fma, no f16; the same bits.
TEST(CpuOps, OlderMachines) {
  Device avx2 = host(), first = host();
  avx2.cpu = "x86-64-v3", avx2.features = "+avx2,+fma,+f16c", avx2.vector_bytes = 32;
  first.cpu = "x86-64", first.features = "", first.vector_bytes = 16;
  for (const Device& device : {avx2, first})
    for (DType type :
         {DType::boolean, DType::i8, DType::i64, DType::u32, DType::f16, DType::bf16, DType::f32, DType::f64})
      for (Form form : {Form::exact, Form::formula}) check(type, form, device);
}
#endif

TEST(CpuOps, Casts) {
  for (DType from : kTypes) {
    GraphBuilder b("casts");
    const Value x = b.input("x", {from, {Dim::symbol("N")}});
    std::vector<Value> outputs;

    for (DType to : kTypes) outputs.push_back(b.cast(x, to));
    Result<Graph> graph = std::move(b).finish(outputs);
    ASSERT_TRUE(graph) << graph.error().text();
    const Runner runner(print(*graph));
    const int64_t n = 4099;
    const std::vector<Tensor> inputs = {sample(from, {n}, 7)};
    const Result<std::vector<Tensor>> want = evaluate(*graph, inputs);
    ASSERT_TRUE(want) << want.error().text();
    const std::vector<Tensor> got = run(runner, inputs, {{"N", n}});
    for (size_t i = 0; i < std::size(kTypes); ++i)
      EXPECT_EQ(difference(got[i], (*want)[i]), "") << name(from) << " to " << name(kTypes[i]);
  }
}

}  // namespace
}  // namespace fusec::cpu
