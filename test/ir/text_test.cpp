// The text form: any dump reads back as the same graph, and errors name their place.

#include <gtest/gtest.h>

#include "fusec/graph.h"
#include "lib/ir/literal.h"

namespace fusec {
namespace {

Graph must_parse(std::string_view text) {
  auto g = parse(text, "t.fus");
  EXPECT_TRUE(g) << (g ? "" : g.error().text());
  return g ? std::move(*g) : *std::move(GraphBuilder("empty")).finish({});
}

void expect_round_trip(const Graph& g) {
  const std::string dump = print(g);
  auto again = parse(dump);
  ASSERT_TRUE(again) << again.error().text() << "\n" << dump;
  EXPECT_EQ(again->hash(), g.hash()) << dump;
  EXPECT_EQ(print(*again), dump);
  EXPECT_EQ(again->size(), g.size());
  EXPECT_TRUE(verify(*again));
}

std::string error_of(std::string_view text) {
  auto g = parse(text, "t.fus");
  if (g) return "no error";
  EXPECT_EQ(g.error().kind, Error::input);
  return g.error().text();
}

std::string body_error(const std::string& node) {
  auto g = parse("graph @g(%x: f32[4,8], %b: f32[3], %p: bool[4,8], %i: i32[4,8], %s: f32[N], %h: f16[4,8], %z: f32[]) -> f32[] {\n  %y = " +
                 node + "\n  return %y\n}\n");
  return g ? "no error" : g.error().message;
}

TEST(Text, PrintsWhatTheAuthorWrote) {
  const std::string text = R"(graph @name(%x: f32[N,4], %"odd name.weight": f32[4]) -> (f32[N,4], f32[N,1]) {
  %y: f32[N,4] = add %x, %"odd name.weight"
  %z: f32[N,4] = mul %y, 0.5
  %s: f32[N,1] = sum %z {axes=[1], keep=true}
  return %z, %s
}
)";
  const Graph g = must_parse(text);
  EXPECT_EQ(print(g), text);
  expect_round_trip(g);
}

TEST(Text, EveryAttributeComesBack) {
  expect_round_trip(must_parse(R"(
; comments everywhere ; even here
graph @"a\"b\\\n\xff\x00"(%x: f32[N,4], %1: f32[4], %i: i64[4,6], %h: f16[2*N+1, "odd sym"]) -> () {
  return
}
)"));
  expect_round_trip(must_parse(R"(
graph @g(%x: f32[N,4], %1: f32[4], %i: i64[4,6], %h: f16[2*N+1, "odd sym"], %q: u8[8,6,2]) ->
   (f32[4,N], i64[8,3], i64[5,9], i64[4,6], i32[4], f32[N,1], f16[2*N+1,"odd sym"], f32[N,4], u8[8,3,2], f32[2,3], f32[4], i64[4,6], u8[8,6,2]) {
  %t = transpose %x {perm=[1,0]}
  %c = constant {value=i64[4,6] 7}
  %k = concat %i, %c {axis=0}
  %l = slice %k {start=[0,1], stop=[8,6], step=[1,2]}
  %p = pad %i {low=[1,0], high=[0,3], value=-9}
  %r = reverse %i {axes=[1]}
  %a = argmax %x {axes=[1], to=i32, last=true}
  %a2 = slice %a {stop=[4]}
  %v = var %x {axes=[1], keep=true, ddof=1, relax=[contract,online]}
  %n = layer_norm %h {axes=[1], eps=1e-05}
  %e = elu %x {alpha=1.5}
  %g = group_norm %h {groups=1}
  %sp = split %q {axis=1, parts=2, index=1}
  %d = constant {value=f32[2,3] [[1.0, nan, -0.0], [nan(0x7fc00001), -inf, 0x1.8p-3]]}
  %w = clamp %1, -inf, 3.4028235e+38
  %m = max %i, -9223372036854775808
  %o = iota {shape=[8,6,2], to=u8, axis=1}
  return %t, %l, %p, first=%r, %a2, "second port"=%v, %n, %e, %sp, %d, %w, %m, %o
}
)"));
}

TEST(Text, LiteralsKeepTheirBits) {
  const auto one = [](DType type, uint64_t bits) {
    Tensor t{type, {}, std::vector<std::byte>(bytes(type))};
    for (size_t i = 0; i < bytes(type); ++i) t.data[i] = static_cast<std::byte>(bits >> (8 * i));
    const std::string text = element_text(type, t.data.data());
    Tensor again = t;
    again.data.own().assign(bytes(type), std::byte{0x55});
    const auto done = parse_element(type, text, again.data.data());
    ASSERT_TRUE(done) << name(type) << " " << text;
    ASSERT_EQ(again, t) << name(type) << " " << text << " bits " << bits;
  };
  for (int d = 1; d < kDTypes; ++d) {
    const auto type = static_cast<DType>(d);
    if (bytes(type) <= 2) {
      for (uint64_t bits = 0; bits < uint64_t{1} << (8 * bytes(type)); ++bits) one(type, bits);
      continue;
    }
    for (uint64_t bits : {0ull, 1ull, ~0ull, 0x80000000ull, 0x7f800000ull, 0xff800000ull, 0x7fc00001ull, 0x7f800001ull, 0x3f800000ull,
                          0x00800000ull, 0x7f7fffffull, 0x8000000000000000ull, 0x7ff0000000000000ull, 0x7ff8000000000000ull,
                          0x7fefffffffffffffull, 0x000fffffffffffffull})
      one(type, bits);
    uint64_t state = 12345;
    for (int i = 0; i < 20000; ++i) one(type, state = (state * 6364136223846793005ull + 1442695040888963407ull) ^ (state >> 29));
  }
}

TEST(Text, HexFloatsAndBytes) {
  const Graph g = must_parse(R"(graph @g(%x: f32[]) -> f32[] {
  %c = constant {value=u8[3] 0x0a0Bff}
  %d = cast %c {to=f32}
  %s = sum %d {axes=[0]}
  %e = mul %s, 0x1.921fb6p+1
  %f = add %e, %x
  return %f
})");
  EXPECT_NE(print(g).find("[10, 11, 255]"), std::string::npos);
  EXPECT_NE(print(g).find("3.1415927"), std::string::npos);
  std::vector<std::byte> data(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  const Tensor big{DType::u8, {50, 100}, data};
  auto again = parse_tensor(text(big));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, big);
  for (const Tensor& t : {Tensor{DType::f32, {2, 0}, {}}, Tensor{DType::i8, {}, std::vector{std::byte{0x80}}}, Tensor{DType::boolean, {2, 1, 2}, std::vector{std::byte{1}, std::byte{0}, std::byte{1}, std::byte{1}}}}) {
    auto copy = parse_tensor(text(t));
    ASSERT_TRUE(copy) << text(t) << copy.error().text();
    EXPECT_EQ(*copy, t);
  }
}

TEST(Text, LiteralsAreWeak) {
  const Graph g = must_parse(R"(graph @g(%x: f16[2], %p: bool[2], %i: u8[2]) -> (f16[2], f16[2], bool[2], u8[2]) {
  %a = fma 2, %x, 1e-3
  %b = select %p, inf, %x
  %c = and %p, true
  %d = add 255, %i
  return %a, %b, %c, %d
})");
  expect_round_trip(g);
  EXPECT_EQ(body_error("add 1, 2"), "add: the type of the literal 1 cannot be told: write %c = constant {value=f32[] …}");
  EXPECT_EQ(body_error("mul %i, 0.5"), "mul: 0.5 is no value of i32");
  EXPECT_EQ(body_error("mul %i, 2147483648"), "mul: 2147483648 is out of range for i32");
  EXPECT_EQ(body_error("mul %x, 1e39"), "mul: 1e39 is beyond the values of f32");
  EXPECT_EQ(body_error("mul %x, true"), "mul: true is no value of f32");
  EXPECT_EQ(body_error("select %p, 1.0, 2.0"), "select: the type of the literal 1.0 cannot be told: write %c = constant {value=f32[] …}");
}

TEST(Text, ConstantsThatNoNeighbourTypesAreWrittenOut) {
  GraphBuilder b("g");
  const Value x = b.input("x", {DType::f32, {3}});
  const Value c = b.scalar(DType::f32, 2), d = b.scalar(DType::f64, 0.1);
  const Value y = b.add(Op::add, {x, c}), e = b.add(Op::exp, {c}), f = b.add(Op::mul, {d, b.scalar(DType::f64, 3)});
  auto g = std::move(b).finish({y, e, f, d});
  ASSERT_TRUE(g);
  expect_round_trip(*g);
}

TEST(Text, NamesAreDataAndAnyBytes) {
  GraphBuilder b("asm");
  std::vector<Value> values;
  for (std::string name : {std::string("layer1.weight"), std::string("1234"), std::string("a/b:0"), std::string(" "), std::string(""),
                           std::string("\"quoted\""), std::string("*/"), std::string("a\nb"), std::string("α"), std::string("e\xcc\x81"),
                           std::string("\xff\xfe"), std::string("nul\0in", 6), std::string(5000, 'x'), std::string("a.b"), std::string("a_b"),
                           std::string("return"), std::string("inf")})
    values.push_back(b.input(name, {DType::f32, {2}}));
  Value sum = values[0];
  for (Value v : values) {
    sum = b.add(Op::sub, {sum, v});
    b.label(sum, "1234");  // every node alike
  }
  auto g = std::move(b).finish({sum, values[1], values[4]}, {"\xc3", "", "out"});
  ASSERT_TRUE(g) << g.error().text();
  expect_round_trip(*g);
}

TEST(Text, ErrorsShowThePlace) {
  EXPECT_EQ(error_of("graph @g(%x: f32[4,8], %y: f32[3]) -> f32[4,8] {\n  %z: f32[4,8] = mul %x, %y\n  return %z\n}\n"),
            "t.fus:2:18: mul: f32[4,8] and f32[3] do not broadcast: axis 1 is 8 on the left and 3 on the right\n"
            "    %z: f32[4,8] = mul %x, %y\n"
            "                   ^");
  EXPECT_EQ(error_of("graph @g(%x: f32[2], %x: f32[2]) -> f32[2] {\n  return %x\n}"),
            "t.fus:1:22: input \"x\" is declared twice\n  graph @g(%x: f32[2], %x: f32[2]) -> f32[2] {\n                       ^");
  const struct {
    const char *text, *message;
  } cases[] = {
      {"", "expected 'graph @name(…)', not the end of the text"},
      {"graph g", "expected '@' before the graph's name, not \"g\""},
      {"graph @g(%x: f33[2]) -> f32[2] {", "expected an element type such as f32, not \"f33[2])\""},
      {"graph @g(%x: f32[2]) {", "expected '->' before the result types, not \"{\""},
      {"graph @g(%x: f32[-2]) -> f32[2] {", "f32[-2]: a dim cannot be negative"},
      {"graph @g(%x: f32[1,1,1,1,1,1,1,1,1]) -> f32[2] {", "9 axes: the rank is at most 8"},
      {"graph @g(%x: f32[4611686018427387904,4]) -> f32[2] {", "f32[4611686018427387904,4] has 2^63 elements or more"},
      {"graph @g(%x: f32[9223372036854775808]) -> f32[2] {", "expected a dim such as 4, N or 2*N+1, not \"9223372036854775808]\""},
      {"graph @g(%x: f32[2]) -> f32[2] {", "expected a node or 'return', not the end of the text"},
      {"graph @g(%x: f32[2]) -> f32[2] { %y = frob %x", "no op is called \"frob\""},
      {"graph @g(%x: f32[2]) -> f32[2] { %y = input", "no op is called \"input\""},
      {"graph @g(%x: f32[2]) -> f32[2] { %y = exp %z", "%z is not defined before this"},
      {"graph @g(%x: f32[2]) -> f32[2] { %x = exp %x", "%x is defined twice"},
      {"graph @g(%x: f32[2]) -> f32[2] { %y: f32[3] = exp %x", "the type is given as f32[3], but exp gives f32[2]"},
      {"graph @g(%x: f32[2]) -> f32[2] { %y = exp %x {axes=[0]}", "exp: no attribute \"axes\"; it takes none"},
      {"graph @g(%x: f32[2]) -> f32[2] { %y = sum %x {keep=true, keep=true}", "sum: keep is given twice"},
      {"graph @g(%x: f32[2]) -> f32[2] { %y = sum %x {keep=1}", "expected true or false, not \"1}\""},
      {"graph @g(%x: f32[2]) -> f32[3] { return %x }", "%x is f32[2], but result 0 is declared as f32[3]"},
      {"graph @g(%x: f32[2]) -> f32[2] { return %x, %x }", "2 values are returned, 1 are declared"},
      {"graph @g(%x: f32[2]) -> (f32[2], f32[2]) { return a=%x, a=%x }", "output \"a\" is named twice"},
      {"graph @g(%x: f32[2]) -> f32[2] { return %x } graph", "expected one graph, not \"graph\""},
      {"graph @g(%\"x: f32[2]) -> f32[2] { return %x }", "a quoted name must end on its line and may escape \\\" \\\\ \\n \\xNN"},
      {"graph @g(%2x: f32[2]) -> f32[2] { return %x }", "the name \"2x\" needs quotes: it begins with a digit"},
      {"graph @g() -> f32[2] { %c = constant {value=f32[2] [1.0]}", "1 elements for f32[2]"},
      {"graph @g() -> f32[2] { %c = constant {value=f32[2] [1.0,2,3]}", "more elements than the 2 of f32[2]"},
      {"graph @g() -> f32[2] { %c = constant {value=f32[2] [[1.0],[2]]}", "the list is nested deeper than the rank"},
      {"graph @g() -> f32[2] { %c = constant {value=f32[N] 1.0}", "a constant's dims are numbers, not N"},
      {"graph @g() -> f32[2] { %c = constant {value=f32[1000000000000] 1.0}", "a constant of 4000000000000 bytes: at most 2^28 in a text; use broadcast"},
      {"graph @g() -> f32[2] { %c = constant {value=bool[2] 0x0002}", "a bool is 00 or 01"},
      {"graph @g() -> f32[2] { %c = constant {value=u8[2] 0x000}", "3 hex digits for 2 bytes"},
      {"graph @g() -> f32[2] { %c = constant", "constant: has no value"},
  };
  for (const auto& c : cases) {
    auto g = parse(c.text);
    ASSERT_FALSE(g) << c.text;
    EXPECT_EQ(g.error().message, c.message) << c.text;
    EXPECT_GT(g.error().at.line, 0) << c.text;
  }
  const std::string long_name = "graph @" + std::string(70000, 'x') + "() -> () { return }";
  EXPECT_EQ(parse(long_name).error().message, "the name " + std::string(80, 'x') + "… has 70000 bytes: at most 65536");
}

TEST(Text, SeveralGraphs) {
  auto graphs = parse_all("graph @a(%x: f32[]) -> f32[] { return %x }\n; between\ngraph @b(%x: f32[]) -> f32[] { return %x }");
  ASSERT_TRUE(graphs);
  ASSERT_EQ(graphs->size(), 2u);
  EXPECT_EQ((*graphs)[1].name(), "b");
  EXPECT_EQ(parse_all("; nothing\n")->size(), 0u);
}

TEST(Text, CutAnywhereItFailsCleanly) {
  const std::string text = R"(graph @"n"(%x: f32[N,4], %"o d": i8[4]) -> (f32[N,1], i8[4]) {
  %c: i8[4] = constant {value=i8[4] [1, -2, 3, 0x7f]}
  %s: f32[N,1] = sum %x {axes=[1], keep=true}
  %d = add %c, %"o d"
  return first=%s, %d
}
)";
  ASSERT_TRUE(parse(text));
  for (size_t n = 0; n + 2 < text.size(); ++n) EXPECT_FALSE(parse(text.substr(0, n))) << n;
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = text;
    for (int k = 0; k < 3; ++k) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      bad[(state >> 33) % bad.size()] = static_cast<char>(state >> 24);
    }
    if (auto g = parse(bad)) expect_round_trip(*g);
  }
}

}  // namespace
}  // namespace fusec
