// Every type rule's refusals, word for word: the op, the types and the axis. And the normal forms that the rules give.

#include <gtest/gtest.h>

#include "fusec/graph.h"

namespace fusec {
namespace {

const char* kHeader = "graph @g(%x: f32[4,8], %b: f32[3], %p: bool[4,8], %i: i32[4,8], %s: f32[N], %n: f32[N,6], %h: f16[4,8], %z: f32[],"
                      " %e: f32[0,8], %m: f32[M], %c: f32[8]) -> f32[] {\n  %y = ";

/// The error of one node over the inputs above, or the type that it gets.
std::string outcome(const std::string& node) {
  auto g = parse(kHeader + node + "\n  return %y\n}\n");
  if (g) return "ok f32[]";
  const std::string& m = g.error().message;
  const std::string is = "%y is ";
  return m.starts_with(is) ? "ok " + m.substr(is.size(), m.find(", but") - is.size()) : m;
}

struct Case {
  const char *node, *outcome;
};

void expect_all(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(outcome(c.node), c.outcome) << c.node;
}

TEST(Infer, Elementwise) {
  expect_all({
      {"mul %x, %b", "mul: f32[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3 on the right"},
      {"fma %x, %c, %b", "fma: f32[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3 on the right"},
      {"add %s, %b", "add: f32[N] and f32[3] do not broadcast: axis 0 is N on the left and 3 on the right"},
      {"add %s, %m", "add: f32[N] and f32[M] do not broadcast: axis 0 is N on the left and M on the right"},
      {"add %s, %z", "ok f32[N]"},
      {"add %x, %c", "ok f32[4,8]"},
      {"add %c, %x", "ok f32[4,8]"},
      {"add %x, %h", "add: f32[4,8] and f16[4,8] differ in element type: cast one of them"},
      {"add %x, %i", "add: f32[4,8] and i32[4,8] differ in element type: cast one of them"},
      {"add %p, %p", "add: takes a number, not bool[4,8]: and, or, xor, not and select are the ops of bool"},
      {"sqrt %i", "sqrt: takes a float, not i32[4,8]"},
      {"exp %p", "exp: takes a float, not bool[4,8]: and, or, xor, not and select are the ops of bool"},
      {"shl %x, %x", "shl: takes an integer, not f32[4,8]"},
      {"and %x, %x", "and: takes a bool or an integer, not f32[4,8]"},
      {"not %i", "not: takes a bool, not i32[4,8]"},
      {"any %x", "any: takes a bool, not f32[4,8]"},
      {"eq %x, %x", "ok bool[4,8]"},
      {"is_nan %h", "ok bool[4,8]"},
      {"is_nan %i", "is_nan: takes a float, not i32[4,8]"},
      {"select %x, %x, %x", "select: the condition is f32[4,8], not bool"},
      {"select %p, %x, %h", "select: f32[4,8] and f16[4,8] differ in element type: cast one of them"},
      {"select %p, %x, %b", "select: bool[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3 on the right"},
      {"select %p, %z, %c", "ok f32[4,8]"},
      {"add %x", "add: takes 2 operands, not 1"},
      {"neg %x, %x", "neg: takes 1 operand, not 2"},
      {"layer_norm %x, %c, %c, %c", "layer_norm: takes 1 to 3 operands, not 4"},
      {"concat {axis=0}", "concat: takes at least one operand"},
      {"cast %x {to=i8}", "ok i8[4,8]"},
      {"bitcast %x {to=f16}", "bitcast: f32 has 32 bits and f16 has 16"},
      {"bitcast %p {to=u8}", "bitcast: a bool is no pattern of bits: cast it"},
      {"bitcast %x {to=u32}", "ok u32[4,8]"},
  });
}

TEST(Infer, Reductions) {
  expect_all({
      {"sum %x", "ok f32[]"},
      {"sum %x {axes=[-1]}", "ok f32[4]"},
      {"sum %x {axes=[0], keep=true}", "ok f32[1,8]"},
      {"sum %x {axes=[2]}", "sum: axis 2 is out of range: f32[4,8] has axes 0 to 1"},
      {"sum %x {axes=[-3]}", "sum: axis -3 is out of range: f32[4,8] has axes 0 to 1"},
      {"sum %b {axes=[1]}", "sum: axis 1 is out of range: f32[3] has only axis 0"},
      {"sum %z {axes=[0]}", "sum: axis 0 is out of range: f32[] has no axes"},
      {"sum %x {axes=[0,0]}", "sum: axis 0 of f32[4,8] is given twice"},
      {"sum %x {axes=[0,-2]}", "sum: axis 0 of f32[4,8] is given twice"},
      {"mean %z {axes=[0]}", "mean: axis 0 is out of range: f32[] has no axes"},
      {"mean %i", "mean: takes a float, not i32[4,8]"},
      {"sum %p", "sum: takes a number, not bool[4,8]"},
      {"var %x {ddof=-1}", "var: ddof is -1: it cannot be negative"},
      {"argmax %x {axes=[1]}", "ok i64[4]"},
      {"argmax %x {axes=[1], to=i32}", "ok i32[4]"},
      {"argmax %x {to=f64}", "argmax: an index of type f64: i32, i64, u32 and u64 hold one"},
      {"argmax %x {to=f32}", "argmax: an index of type f32: i32, i64, u32 and u64 hold one"},
      {"argmax %x {to=i8}", "argmax: an index of type i8: i32, i64, u32 and u64 hold one"},
      {"argmax %e {axes=[0]}", "argmax: axis 0 of f32[0,8] is empty, so there is no index to give"},
      {"argmin %e {axes=[1]}", "ok i64[0]"},
      {"softmax %x {axes=[5]}", "softmax: axis 5 is out of range: f32[4,8] has axes 0 to 1"},
      {"softmax %i", "softmax: takes a float, not i32[4,8]"},
      {"layer_norm %x, %b", "layer_norm: f32[3] does not broadcast to f32[4,8]"},
      {"layer_norm %x, %c {axes=[1]}", "ok f32[4,8]"},
      {"layer_norm %h, %c {axes=[1]}", "ok f16[4,8]"},
      {"layer_norm %x, %i {axes=[1]}", "layer_norm: takes floats, not i32[4,8]"},
      {"batch_norm %x, %c, %c, %c, %b {axis=1}",
       "batch_norm: f32[3] is not one number for each of the 8 channels of axis 1 of f32[4,8]"},
      {"batch_norm %x, %c, %c, %c, %c {axis=2}", "batch_norm: axis 2 is out of range: f32[4,8] has axes 0 to 1"},
      {"group_norm %x {groups=3}", "group_norm: axis 1 of f32[4,8] has no 3 equal groups"},
      {"group_norm %x {groups=0}", "group_norm: axis 1 of f32[4,8] has no 0 equal groups"},
      {"group_norm %c {groups=1}", "group_norm: f32[8] has no channels at axis 1"},
      {"norm_l1 %i", "ok i32[]"},
  });
}

TEST(Infer, Views) {
  expect_all({
      {"broadcast %c {shape=[4,8]}", "ok f32[4,8]"},
      {"broadcast %b {shape=[4,8]}", "broadcast: f32[3] does not broadcast to [4,8]: axis 1 is 3 and shall be 8"},
      {"broadcast %x {shape=[8]}", "broadcast: f32[4,8] has more axes than [8]"},
      {"broadcast %s {shape=[2,N]}", "ok f32[2,N]"},
      {"broadcast %s {shape=[2,M]}", "broadcast: f32[N] does not broadcast to [2,M]: axis 1 is N and shall be M"},
      {"broadcast %z {shape=[-2]}", "broadcast: f32[-2]: a dim cannot be negative"},
      {"reshape %x {shape=[2,-1]}", "ok f32[2,16]"},
      {"reshape %n {shape=[-1,3]}", "ok f32[2*N,3]"},
      {"reshape %n {shape=[N,-1,2]}", "ok f32[N,3,2]"},
      {"reshape %x {shape=[-1,-1]}", "reshape: [-1,-1] leaves more than one dim open"},
      {"reshape %x {shape=[3,-1]}", "reshape: f32[4,8] to [3,-1]: the dim -1 cannot be solved, 32 is no multiple of 3"},
      {"reshape %e {shape=[0,-1]}", "reshape: f32[0,8] to [0,-1]: the dim -1 cannot be solved, any number fits"},
      {"reshape %n {shape=[4,-1]}", "reshape: f32[N,6] to [4,-1]: the dim -1 cannot be solved, 6*N is no multiple of 4"},
      {"reshape %x {shape=[5,6]}", "reshape: f32[4,8] to [5,6]: 32 elements do not fill 30"},
      {"reshape %x {shape=[4294967296,4294967296]}", "reshape: a dim leaves 64 bits"},
      {"reshape %e {shape=[3,0]}", "ok f32[3,0]"},
      {"transpose %x", "ok f32[8,4]"},
      {"transpose %x {perm=[1]}", "transpose: perm has 1 entries for 2 axes"},
      {"transpose %x {perm=[1,1]}", "transpose: perm: axis 1 of f32[4,8] is given twice"},
      {"transpose %x {perm=[0,2]}", "transpose: axis 2 is out of range: f32[4,8] has axes 0 to 1"},
      {"slice %x {start=[-2,0], stop=[100,8], step=[1,3]}", "ok f32[2,3]"},
      {"slice %x {start=[3,0], stop=[1,8]}", "ok f32[0,8]"},
      {"slice %x {start=[0,0], stop=[4,8], step=[1,0]}", "slice: axis 1: step is 0: only positive steps are slices (see reverse)"},
      {"slice %x {start=[0]}", "slice: start has 1 entries for 2 axes"},
      {"slice %s {start=[2]}", "ok f32[N-2]"},
      {"slice %s {start=[-3]}", "ok f32[3]"},
      {"slice %s {stop=[9223372036854775807]}", "ok f32[N]"},
      {"slice %s {step=[2]}", "slice: axis 0: N elements in steps of 2 are no whole number of steps"},
      {"concat %x, %x {axis=-2}", "ok f32[8,8]"},
      {"concat %s, %m, %b {axis=0}", "ok f32[M+N+3]"},
      {"concat %x, %c {axis=0}", "concat: f32[4,8] and f32[8] differ in rank"},
      {"concat %x, %h {axis=0}", "concat: f32[4,8] and f16[4,8] differ in element type: cast one of them"},
      {"concat %x, %e {axis=1}", "concat: f32[4,8] and f32[0,8] differ at axis 0, along which they are not joined"},
      {"concat %z, %z {axis=0}", "concat: axis 0 is out of range: f32[] has no axes"},
      {"pad %x {low=[1,0], high=[0,2]}", "ok f32[5,10]"},
      {"pad %x {low=[-1,0]}", "pad: axis 0: -1 elements: a pad cannot be negative"},
      {"pad %x {low=[1]}", "pad: low has 1 entries for 2 axes"},
      {"reverse %x {axes=[2]}", "reverse: axis 2 is out of range: f32[4,8] has axes 0 to 1"},
      {"split %x {axis=1, parts=4, index=3}", "ok f32[4,2]"},
      {"split %x {axis=1, parts=3}", "split: axis 1 of f32[4,8] has no 3 equal parts"},
      {"split %x {axis=1, parts=2, index=2}", "split: part 2 of 2: parts count from 0"},
      {"split %x {axis=1, parts=0}", "split: into 0 parts"},
      {"split %n {axis=0, parts=2}", "split: axis 0 of f32[N,6] has no 2 equal parts"},
      {"iota {shape=[3], to=bool}", "iota: takes a number, not bool[3]"},
      {"iota {axis=0}", "iota: axis 0 is out of range: f32[] has no axes"},
      {"broadcast %z {shape=[1,1,1,1,1,1,1,1,1]}", "broadcast: 9 axes: the rank is at most 8"},
      {"gather %x, %i", "ok f32[4,8]"},
      {"cumsum %x {axis=-1, reverse=true}", "ok f32[4,8]"},
      {"cumsum %x {axis=2}", "cumsum: axis 2 is out of range: f32[4,8] has axes 0 to 1"},
      {"cumsum %z", "cumsum: axis 0 is out of range: f32[] has no axes"},
      {"rng_uniform %x", "rng_uniform: not supported yet"},
  });
}

TEST(Infer, NormalFormsAreOneNode) {
  auto g = parse(R"(graph @g(%x: f32[4,8]) -> (f32[], f32[2,8], f32[0,8], f32[4,8]) {
    %a = sum %x
    %b = sum %x {axes=[1,0]}
    %c = sum %x {axes=[-1,-2]}
    %d = slice %x {start=[2,0], stop=[4,8], step=[1,1]}
    %e = slice %x {start=[-2,0], stop=[99,8]}
    %f = slice %x {start=[4,0], stop=[2,8]}
    %r = reverse %x {axes=[-1]}
    %r2 = reverse %x {axes=[1]}
    %s = add %a, %b
    %t = add %s, %c
    %u = sub %r, %r2
    %v = sub %d, %e
    return %t, %v, %f, %u
  })");
  ASSERT_TRUE(g) << g.error().text();
  int sums = 0, slices = 0, reverses = 0;
  for (const Node& n : g->nodes()) sums += n.op == Op::sum, slices += n.op == Op::slice, reverses += n.op == Op::reverse;
  EXPECT_EQ(sums, 1);
  EXPECT_EQ(slices, 2);
  EXPECT_EQ(reverses, 1);
  EXPECT_TRUE(verify(*g));
}

TEST(Infer, UnlistedAttributesGoAway) {
  Attrs attrs;
  attrs.axes = {0};
  attrs.alpha = 3;
  attrs.eps = 1;
  const Type x{DType::f32, {4}};
  ASSERT_TRUE(infer(Op::exp, {&x, 1}, attrs));
  EXPECT_EQ(attrs, Attrs{});
}

TEST(Builder, BadUseIsAnErrorNotACrash) {
  const auto message = [](auto build) {
    GraphBuilder b("g");
    const Value x = b.input("x", {DType::f32, {4}});
    const Value y = build(b, x);
    auto g = std::move(b).finish({y});
    return g ? "no error" : g.error().message;
  };
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.add(Op::neg, {Value{7}}); }), "neg: an operand is no value of this graph");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.add(Op::neg, {Value{}}); }), "neg: an operand is no value of this graph");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.add(Op::input, {}); }), "input: use GraphBuilder::input");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.input("x", {DType::i8, {}}); }), "input \"x\" is declared twice");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.input("y", {DType::i8, {-1}}); }), "i8[-1]: a dim cannot be negative");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.scalar(DType::i8, 128); }), "128.0 is no value of i8");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.scalar(DType::u64, 0x1p64); }), "18446744073709551616.0 is no value of u64");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.scalar(DType::boolean, 2); }), "2.0 is no value of bool");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.constant({DType::f32, {3}, {}}); }), "constant: 0 bytes do not fill f32[3]");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.constant({DType::f32, {-3}, {}}); }), "constant: f32[-3]: a dim cannot be negative");
  EXPECT_EQ(message([](GraphBuilder& b, Value) { return b.constant({DType::boolean, {1}, std::vector{std::byte{7}}}); }), "constant: a bool is 0 or 1, not 7");
  EXPECT_EQ(message([](GraphBuilder&, Value) { return Value{9}; }), "output 0 is no value of this graph");
}

}  // namespace
}  // namespace fusec
