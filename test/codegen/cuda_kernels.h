#pragma once
// Kernels for the tests of the CUDA back end: from graph text, the whole graph as one group.

#include <gtest/gtest.h>

#include "codegen/cuda/cuda.h"
#include "lib/ir/decompose.h"
#include "lib/ir/formula.h"
#include "lib/kernel/kernel.h"
#include "lib/kernel/merge_sweeps.h"

namespace fusec {

inline Group everything(const Graph& graph) {
  Group group;
  for (NodeId id = 0; id < graph.size(); id++) {
    const Node& node = graph.node(id);
    if (node.op == Op::input || (node.op == Op::constant && !node.type.shape.empty())) group.inputs.push_back(id);
    else if (!is_leaf(node.op)) group.nodes.push_back(id);
  }
  for (const Port& port : graph.outputs()) group.outputs.push_back(port.node);
  return group;
}

/// The kernel of a graph's text; a failure of the test, and an empty kernel, when there is none.
inline Kernel kernel_of(const std::string& text, const BuildOptions& options = {}) {
  Result<Graph> graph = parse(text, "test.fus");
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().text());
  if (!graph) return {};
  Result<Graph> primitive = decompose(*graph);
  EXPECT_TRUE(primitive) << (primitive ? "" : primitive.error().text());
  if (!primitive) return {};
  Result<Kernel> kernel = build(*primitive, everything(*primitive), options);
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().text());
  return kernel ? *kernel : Kernel{};
}

/// While formulas are still being written, some have no steps yet.
inline bool formulas_known(const Kernel& kernel) {
  for (const Inst& inst : kernel.values)
    if (inst.kind == Kind::compute && info(inst.op).form == Form::formula && !formula(inst.op, compute_type(inst.type))) return false;
  return true;
}

struct Named {
  const char* name;
  const char* text;
  Sizes sizes;
};

/// One graph for each skeleton and each way of using it.
inline const Named kGraphs[] = {
    {"bias_relu_cast", R"(graph @g(%x: f32[N,C], %b: f32[C]) -> f16[N,C] {
       %s = add %x, %b
       %r = relu %s
       %y = cast %r {to=f16}
       return %y })", {{"N", 32768}, {"C", 4096}}},
    {"odd_softmax", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 243902}, {"C", 1025}}},
    {"odd_layer_norm", R"(graph @g(%x: bf16[N,C], %g: bf16[C], %b: bf16[C]) -> bf16[N,C] {
       %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       return %y })", {{"N", 61035}, {"C", 4097}}},
    {"odd_column_sum", R"(graph @g(%u: u8[N,C]) -> f32[C] {
       %x = cast %u {to=f32}
       %y = sum %x {axes=[0]}
       return %y })", {{"N", 976562}, {"C", 1025}}},
    {"copy", "graph @g(%x: f32[N]) -> f32[N] { %y = abs %x\n return %y }", {{"N", 1 << 26}}},
    {"scale_bf16", R"(graph @g(%a: bf16[N], %b: bf16[N], %c: bf16[N]) -> bf16[N] {
       %p = mul %a, %b
       %y = add %p, %c
       return %y })", {{"N", 1 << 26}}},
    {"gelu_bf16", "graph @g(%x: bf16[N]) -> bf16[N] { %y = gelu %x\n return %y }", {{"N", 1 << 26}}},
    {"softmax_bf16", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 32768}, {"C", 1024}}},
    {"softmax_f32_4096", "graph @g(%x: f32[N,4096]) -> f32[N,4096] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 32768}}},
    {"softmax_65536", "graph @g(%x: bf16[N,65536]) -> bf16[N,65536] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 4096}}},
    {"softmax_long", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 1024}, {"C", 262144}}},
    {"softmax_64", "graph @g(%x: f16[N,C]) -> f16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 32768}, {"C", 64}}},
    {"softmax_1001", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 32768}, {"C", 1001}}},
    {"layer_norm", R"(graph @g(%x: f32[N,C], %g: f32[C], %b: f32[C]) -> f32[N,C] {
       %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       return %y })", {{"N", 32768}, {"C", 4096}}},
    {"add_layer_norm_bf16", R"(graph @g(%x: bf16[N,C], %r: bf16[N,C], %g: bf16[C], %b: bf16[C]) -> (bf16[N,C], bf16[N,C]) {
       %h = add %x, %r
       %y = layer_norm %h, %g, %b {axes=[1], eps=1e-5}
       return %y, %h })", {{"N", 8192}, {"C", 8192}}},
    {"layer_norm_8192", R"(graph @g(%x: f32[N,C], %g: f32[C], %b: f32[C]) -> f32[N,C] {
       %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       return %y })", {{"N", 16384}, {"C", 8192}}},
    {"softmax_odd_long", "graph @g(%x: bf16[N,C]) -> bf16[N,C] { %y = softmax %x {axes=[1]}\n return %y }", {{"N", 5341}, {"C", 50257}}},
    {"rms_norm_long", R"(graph @g(%x: bf16[N,C], %g: bf16[C]) -> bf16[N,C] {
       %y = rms_norm %x, %g {axes=[1], eps=1e-5}
       return %y })", {{"N", 1024}, {"C", 262144}}},
    {"layer_norm_long", R"(graph @g(%x: bf16[N,C], %g: bf16[C], %b: bf16[C]) -> bf16[N,C] {
       %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       return %y })", {{"N", 4096}, {"C", 65536}}},
    {"bytes_in_rows", R"(graph @g(%u: u8[N,C], %g: f32[C], %b: f32[C]) -> f32[N,C] {
       %x = cast %u {to=f32}
       %y = layer_norm %x, %g, %b {axes=[1], eps=1e-5}
       return %y })", {{"N", 16384}, {"C", 12288}}},
    {"column_sum", "graph @g(%x: f32[N,C]) -> f32[C] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 65536}, {"C", 2048}}},
    {"column_softmax", "graph @g(%x: f32[N,C]) -> f32[N,C] { %y = softmax %x {axes=[0]}\n return %y }", {{"N", 512}, {"C", 65536}}},
    {"full_sum", "graph @g(%x: f32[N]) -> f32[] { %y = sum %x {axes=[0]}\n return %y }", {{"N", 1 << 28}}},
    {"full_sum_bf16_odd", "graph @g(%x: bf16[N]) -> bf16[] { %y = sum %x {axes=[0]}\n return %y }", {{"N", (1 << 26) + 3}}},
    {"row_argmax", "graph @g(%x: f32[N,C]) -> i64[N] { %y = argmax %x {axes=[1], to=i64}\n return %y }", {{"N", 32768}, {"C", 1000}}},
    {"transpose_add", R"(graph @g(%a: f32[N,C], %b: f32[C,N]) -> f32[N,C] {
       %t = transpose %b {perm=[1,0]}
       %y = add %a, %t
       return %y })", {{"N", 8192}, {"C", 8192}}},
    {"pad", R"(graph @g(%x: f32[N,C]) -> f32[N+3,C+5] {
       %y = pad %x {low=[1,2], high=[2,3], value=1.5}
       return %y })", {{"N", 1000}, {"C", 1000}}},
    {"batch_stats", R"(graph @g(%x: f32[N,C,H]) -> f32[C] {
       %y = var %x {axes=[0,2], ddof=0}
       return %y })", {{"N", 64}, {"C", 256}, {"H", 3136}}},
    {"int8_chain", R"(graph @g(%x: i8[N], %y: i8[N]) -> i8[N] {
       %s = add %x, %y
       %f = cast %s {to=f32}
       %q = mul %f, %f
       %z = cast %q {to=i8}
       return %z })", {{"N", 1 << 26}}},
    {"f8_chain", R"(graph @g(%x: f8e4m3[N], %y: f8e5m2[N]) -> f8e4m3[N] {
       %s = cast %y {to=f8e4m3}
       %z = add %x, %s
       return %z })", {{"N", 1 << 26}}},
    {"bool_any", "graph @g(%x: f32[N,C]) -> bool[N] { %b = is_nan %x\n %y = any %b {axes=[1]}\n return %y }", {{"N", 1000}, {"C", 640}}},
};

}  // namespace fusec
