// The reference evaluator against numbers worked out by hand: the meaning of every exact op, cast, reduction and view.

#include <gtest/gtest.h>

#include <cmath>

#include "fusec/graph.h"
#include "lib/ir/convert.h"
#include "lib/ir/literal.h"

namespace fusec {
namespace {

std::vector<Tensor> run(const std::string& text, std::vector<std::string> inputs) {
  auto g = parse(text);
  EXPECT_TRUE(g) << (g ? "" : g.error().text());
  if (!g) return {};
  std::vector<Tensor> tensors;
  for (const std::string& in : inputs) {
    auto t = parse_tensor(in);
    EXPECT_TRUE(t) << in << ": " << (t ? "" : t.error().text());
    if (t) tensors.push_back(std::move(*t));
  }
  auto out = evaluate(*g, tensors);
  EXPECT_TRUE(out) << (out ? "" : out.error().text()) << "\n" << text;
  return out ? std::move(*out) : std::vector<Tensor>{};
}

/// One node on one or more inputs x, y, z; compared as text, so that NaN, -0.0 and every bit count.
std::string node(const std::string& call, std::vector<std::string> inputs, const std::string& result_type) {
  std::string header;
  for (size_t i = 0; i < inputs.size(); ++i)
    header += (i ? ", %" : "%") + std::string(1, static_cast<char>('x' + i)) + ": " + inputs[i].substr(0, inputs[i].find(' '));
  const auto out = run("graph @t(" + header + ") -> " + result_type + " { %r = " + call + " return %r }", inputs);
  return out.empty() ? "failed" : text(out[0]);
}

TEST(Eval, R01_NaNPropagates) {
  EXPECT_EQ(node("max %x, %y", {"f32[4] [nan,1,-3,nan]", "f32[4] [2,nan,0,nan]"}, "f32[4]"), "f32[4] [nan, nan, 0.0, nan]");
  EXPECT_EQ(node("min %x, %y", {"f16[4] [nan,1,-3,nan]", "f16[4] [2,nan,0,nan]"}, "f16[4]"), "f16[4] [nan, nan, -3.0, nan]");
  EXPECT_EQ(node("clamp %x, 0.5, inf", {"f32[4] [nan,1,-3,nan]"}, "f32[4]"), "f32[4] [nan, 1.0, 0.5, nan]");
  EXPECT_EQ(node("relu %x", {"f32[4] [nan,1,-3,nan]"}, "f32[4]"), "f32[4] [nan, 1.0, 0.0, nan]");
  EXPECT_EQ(node("sign %x", {"f32[6] [nan,2.5,-0.0,-7,inf,-inf]"}, "f32[6]"), "f32[6] [nan, 1.0, 0.0, -1.0, 1.0, -1.0]");
  EXPECT_EQ(node("clamp %x, 0.0, nan", {"f32[4] [0.5,-3,4.5,nan]"}, "f32[4]"), "f32[4] nan");
  EXPECT_EQ(node("min %x, %y", {"f32[3,1] [[nan],[4],[20]]", "f32[1] [10]"}, "f32[3,1]"), "f32[3,1] [[nan], [4.0], [10.0]]");
  EXPECT_EQ(node("max %y, %x", {"f32[3,1] [[nan],[4],[20]]", "f32[1] [10]"}, "f32[3,1]"), "f32[3,1] [[nan], [10.0], [20.0]]");
  for (int k = 1; k <= 17; ++k) {
    const auto repeat = [&](const char* what) {
      std::string s;
      for (int i = 0; i < k; ++i) s += std::string(what) + ",";
      return s;
    };
    const std::string n1 = "[" + std::to_string(k + 1) + "]", n2 = "[" + std::to_string(2 * k + 1) + "]";
    for (const char* op : {"reduce_max", "reduce_min"}) {
      EXPECT_EQ(node(std::string(op) + " %x", {"f32" + n1 + " [" + repeat("nan") + "42]"}, "f32[]"), "f32[] nan");
      EXPECT_EQ(node(std::string(op) + " %x", {"f32" + n1 + " [42," + repeat("nan").substr(0, 4 * static_cast<size_t>(k) - 1) + "]"}, "f32[]"), "f32[] nan");
      EXPECT_EQ(node(std::string(op) + " %x", {"f32" + n2 + " [" + repeat("1") + "nan," + repeat("1").substr(0, 2 * static_cast<size_t>(k) - 1) + "]"}, "f32[]"), "f32[] nan");
    }
  }
}

TEST(Eval, R02_SignedZero) {
  EXPECT_EQ(node("reciprocal %x", {"f32[2] [-0.0,0.0]"}, "f32[2]"), "f32[2] [-inf, inf]");
  EXPECT_EQ(node("abs %x", {"f32[] -0.0"}, "f32[]"), "f32[] 0.0");
  EXPECT_EQ(node("neg %x", {"f32[2] [0.0,nan]"}, "f32[2]"), "f32[2] [-0.0, nan(0xffc00000)]");
  EXPECT_EQ(node("copysign %x, %y", {"f32[2] [3,-3]", "f32[2] [-0.0,0.0]"}, "f32[2]"), "f32[2] [-3.0, 3.0]");
  EXPECT_EQ(node("add %x, 0.0", {"f32[] -0.0"}, "f32[]"), "f32[] 0.0");
  for (int n : {1, 31, 33, 1025, 8193}) {
    const auto out = run("graph @t(%x: f32[N]) -> f32[] { %r = reduce_max %x return %r }", {"f32[" + std::to_string(n) + "] " + (n > 1 ? "-0.0" : "[-0.0]")});
    EXPECT_EQ(element(out[0], 0), 0);
  }
}

TEST(Eval, R03_IntegerDivision) {
  EXPECT_EQ(node("floor_div %x, %y", {"i32[3] [-2147483648,-7,7]", "i32[3] [-1,2,-2]"}, "i32[3]"), "i32[3] [-2147483648, -4, -4]");
  EXPECT_EQ(node("floor_mod %x, %y", {"i32[3] [-2147483648,-7,7]", "i32[3] [-1,2,-2]"}, "i32[3]"), "i32[3] [0, 1, -1]");
  EXPECT_EQ(node("floor_div %x, %y", {"i8[] -128", "i8[] -1"}, "i8[]"), "i8[] -128");
  EXPECT_EQ(node("trunc_div %x, -1", {"i64[1] [-9223372036854775808]"}, "i64[1]"), "i64[1] [-9223372036854775808]");
  EXPECT_EQ(node("div %x, %y", {"i32[4] [7,-7,0,5]", "i32[4] [0,0,0,2]"}, "i32[4]"), "i32[4] [0, 0, 0, 2]");
  EXPECT_EQ(node("trunc_mod %x, %y", {"i32[4] [7,-7,0,5]", "i32[4] [0,0,0,2]"}, "i32[4]"), "i32[4] [0, 0, 0, 1]");
  EXPECT_EQ(node("floor_mod %x, 0", {"i64[6] [-3,-2,-1,0,1,2]"}, "i64[6]"), "i64[6] 0");
  EXPECT_EQ(node("floor_div %x, %y", {"i64[6] [-7,-6,-1,0,5,9]", "i64[] 3"}, "i64[6]"), "i64[6] [-3, -2, -1, 0, 1, 3]");
  EXPECT_EQ(node("floor_div %x, %y", {"i32[4] [110,385,2147483647,33554435]", "i32[4] [55,55,7,5]"}, "i32[4]"), "i32[4] [2, 7, 306783378, 6710887]");
  EXPECT_EQ(node("floor_div %x, 4", {"i32[5] [-15,-11,-7,-3,1]"}, "i32[5]"), "i32[5] [-4, -3, -2, -1, 0]");
  EXPECT_EQ(node("trunc_div %x, 4", {"i32[5] [-15,-11,-7,-3,1]"}, "i32[5]"), "i32[5] [-3, -2, -1, 0, 0]");
}

TEST(Eval, R03_IntegerPowerWraps) {
  EXPECT_EQ(node("pow %x, %y", {"i64[5] [10000,3,2,-2,-3]", "i64[5] [10000,40,63,63,41]"}, "i64[5]"),
            "i64[5] [0, -6289078614652622815, -9223372036854775808, -9223372036854775808, 420491770248316829]");
  EXPECT_EQ(node("pow %x, %y", {"i32[6] [1,-1,-1,2,0,0]", "i32[6] [-3,-3,-2,-1,-1,0]"}, "i32[6]"), "i32[6] [1, -1, 1, 0, 0, 1]");
  EXPECT_EQ(node("pow %x, 3", {"u8[2] [7,3]"}, "u8[2]"), "u8[2] [87, 27]");
}

TEST(Eval, R04_FloatFloorDivision) {
  EXPECT_EQ(node("floor_div %x, %y", {"f32[5] [1,0.5,6,1,-1]", "f32[5] [0.1,0.1,0.2,0.33333334,0.1]"}, "f32[5]"), "f32[5] [9.0, 4.0, 29.0, 2.0, -10.0]");
  EXPECT_EQ(node("floor_div %x, %y", {"f64[5] [1,0.5,6,1,-1]", "f64[5] [0.1,0.1,0.2,0.3333333333333333,0.1]"}, "f64[5]"), "f64[5] [9.0, 4.0, 29.0, 3.0, -10.0]");
  EXPECT_EQ(node("trunc_div %x, %y", {"f32[7] [1,-1,6,inf,1,0,-1]", "f32[7] [0.1,0.1,0.2,2,0,0,inf]"}, "f32[7]"), "f32[7] [9.0, -9.0, 29.0, inf, inf, nan(0xffc00000), -0.0]");
  EXPECT_EQ(node("floor_mod %x, %y", {"f32[2] [-0.8,5.3]", "f32[2] [-1.5,-2]"}, "f32[2]"), "f32[2] [-0.8, -0.6999998]");
  EXPECT_EQ(node("floor_mod %x, %y", {"f32[2] [1e9,2749682432]", "f32[2] [3.14159274,36]"}, "f32[2]"), "f32[2] [1.024195, 20.0]");
  EXPECT_EQ(node("floor_mod %x, %y", {"f32[5] [-4.5,4.5,-0.0,5,5]", "f32[5] [2,-2,3,inf,-inf]"}, "f32[5]"), "f32[5] [1.5, -1.5, 0.0, 5.0, -inf]");
  EXPECT_EQ(node("trunc_mod %x, %y", {"f32[3] [-4.5,4.5,-0.0]", "f32[3] [2,-2,3]"}, "f32[3]"), "f32[3] [-0.5, 0.5, -0.0]");
}

TEST(Eval, R05_Shifts) {
  EXPECT_EQ(node("shr %x, %y", {"i64[3] [1000,-1000,5]", "i64[3] [64,64,63]"}, "i64[3]"), "i64[3] [0, -1, 0]");
  EXPECT_EQ(node("shr %x, %y", {"i16[2] [-32768,32767]", "i16[2] [16,15]"}, "i16[2]"), "i16[2] [-1, 0]");
  EXPECT_EQ(node("shr %x, 8", {"u8[1] [200]"}, "u8[1]"), "u8[1] [0]");
  EXPECT_EQ(node("shl %x, %y", {"u8[3] [3,3,255]", "u8[3] [7,8,1]"}, "u8[3]"), "u8[3] [128, 0, 254]");
  EXPECT_EQ(node("shl %x, -1", {"i32[2] [1,-1]"}, "i32[2]"), "i32[2] 0");
  EXPECT_EQ(node("shr %x, -1", {"i32[2] [1,-1]"}, "i32[2]"), "i32[2] [0, -1]");
}

TEST(Eval, R06_FloatToInteger) {
  const std::string x = "f32[5] [nan,inf,-inf,3e9,-3e9]";
  EXPECT_EQ(node("cast %x {to=i32}", {x}, "i32[5]"), "i32[5] [0, 2147483647, -2147483648, 2147483647, -2147483648]");
  EXPECT_EQ(node("cast %x {to=i64}", {x}, "i64[5]"), "i64[5] [0, 9223372036854775807, -9223372036854775808, 3000000000, -3000000000]");
  EXPECT_EQ(node("cast %x {to=u8}", {"f32[6] [-1.5,-0.9,255.9,256,300,nan]"}, "u8[6]"), "u8[6] [0, 0, 255, 255, 255, 0]");
  EXPECT_EQ(node("cast %x {to=u64}", {"f64[4] [1.8446744073709552e19,-1,1e30,4.5]"}, "u64[4]"), "u64[4] [18446744073709551615, 0, 18446744073709551615, 4]");
  EXPECT_EQ(node("cast %x {to=bool}", {"f32[4] [0,-0.0,nan,0.25]"}, "bool[4]"), "bool[4] [false, false, true, true]");
  EXPECT_EQ(node("cast %x {to=i8}", {"i32[3] [300,-129,128]"}, "i8[3]"), "i8[3] [44, 127, -128]");
}

TEST(Eval, R07_Bool) {
  EXPECT_EQ(node("argmax %x", {"bool[8] [false,false,false,false,true,true,true,true]"}, "i64[]"), "i64[] 4");
  for (int n = 1; n <= 9; ++n) {
    std::string rows;
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < 32; ++k) rows += std::string(rows.empty() ? "" : ",") + (j != n / 2 ? "true" : "false");
    EXPECT_EQ(node("argmin %x {axes=[0]}", {"bool[" + std::to_string(n) + ",32] [" + rows + "]"}, "i64[32]"),
              "i64[32] " + std::to_string(n > 1 ? n / 2 : 0));
  }
  const std::vector<std::string> pq = {"bool[3] [true,false,true]", "bool[3] [false,true,false]"};
  EXPECT_EQ(node("max %x, %y", pq, "bool[3]"), "bool[3] true");
  EXPECT_EQ(node("min %x, %y", pq, "bool[3]"), "bool[3] false");
  EXPECT_EQ(node("eq %x, %y", pq, "bool[3]"), "bool[3] false");
  EXPECT_EQ(node("xor %x, %y", pq, "bool[3]"), "bool[3] true");
  EXPECT_EQ(node("not %x", {pq[0]}, "bool[3]"), "bool[3] [false, true, false]");
  EXPECT_EQ(node("bitwise_not %x", {pq[0]}, "bool[3]"), "bool[3] [false, true, false]");
  EXPECT_EQ(node("reduce_max %x", {pq[0]}, "bool[]"), "bool[] true");
  EXPECT_EQ(node("all %x {axes=[0]}", {"bool[2,0] []"}, "bool[0]"), "bool[0] []");
  EXPECT_EQ(node("all %x {axes=[1]}", {"bool[2,0] []"}, "bool[2]"), "bool[2] true");
  EXPECT_EQ(node("any %x {axes=[1]}", {"bool[2,0] []"}, "bool[2]"), "bool[2] false");
}

TEST(Eval, R08_NarrowIntegersWrap) {
  const auto out = run(R"(graph @t(%a: i8[1], %b: i8[1]) -> (i8[1], i32[1], bool[1], i8[1]) {
    %t = add %a, %b
    %u = cast %t {to=i32}
    %v = gt %t, 0
    %w = trunc_div %t, 2
    return %t, %u, %v, %w })", {"i8[1] [100]", "i8[1] [50]"});
  EXPECT_EQ(text(out[0]) + text(out[1]) + text(out[2]) + text(out[3]), "i8[1] [-106]i32[1] [-106]bool[1] [false]i8[1] [-53]");
  EXPECT_EQ(node("gt %x, 100", {"u8[3] [200,127,255]"}, "bool[3]"), "bool[3] true");
  EXPECT_EQ(node("max %x, 100", {"u8[3] [200,127,255]"}, "u8[3]"), "u8[3] [200, 127, 255]");
  EXPECT_EQ(node("mul %x, %y", {"u16[1] [65535]", "u16[1] [65535]"}, "u16[1]"), "u16[1] [1]");
  EXPECT_EQ(node("reduce_min %x", {"i16[3] [4,-1,-32768]"}, "i16[]"), "i16[] -32768");
  EXPECT_EQ(node("sum %x", {"i8[3] [100,100,100]"}, "i8[]"), "i8[] 44");
  EXPECT_EQ(node("prod %x", {"i64[3] [4294967296,4294967296,3]"}, "i64[]"), "i64[] 0");
  EXPECT_EQ(node("abs %x", {"i8[1] [-128]"}, "i8[1]"), "i8[1] [-128]");
  EXPECT_EQ(node("neg %x", {"i32[1] [-2147483648]"}, "i32[1]"), "i32[1] [-2147483648]");
}

TEST(Eval, R09_R10_TypesAndLiterals) {
  EXPECT_EQ(node("mul %x, 2.0", {"f32[2] [1,2]"}, "f32[2]"), "f32[2] [2.0, 4.0]");
  EXPECT_EQ(node("div 42, %x", {"f32[3] [5,-4,0.5]"}, "f32[3]"), "f32[3] [8.4, -10.5, 84.0]");
  EXPECT_EQ(node("select %x, inf, %y", {"bool[3,1] [true,false,true]", "f32[3,2] 0"}, "f32[3,2]"), "f32[3,2] [[inf, inf], [0.0, 0.0], [inf, inf]]");
  EXPECT_EQ(node("add %x, 2e50", {"f64[2] [1,3]"}, "f64[2]"), "f64[2] 2e+50");
  EXPECT_EQ(node("mul %x, 0.2", {"f64[1] [3]"}, "f64[1]"), "f64[1] [0.6000000000000001]");
  EXPECT_EQ(node("reduce_max %x", {"i64[77] -9223372036854775807"}, "i64[]"), "i64[] -9223372036854775807");
  EXPECT_EQ(node("add %x, -9223372036854775808", {"i64[1] [5]"}, "i64[1]"), "i64[1] [-9223372036854775803]");
  EXPECT_EQ(node("mul %x, 1.17549435e-38", {"f32[] 1"}, "f32[]"), "f32[] 1.1754944e-38");
  EXPECT_EQ(node("is_nan %x", {"f64[3] nan"}, "bool[3]"), "bool[3] true");
  EXPECT_EQ(node("is_inf %x", {"f16[3] [inf,-inf,65504]"}, "bool[3]"), "bool[3] [true, true, false]");
  EXPECT_EQ(node("is_finite %x", {"bf16[3] [inf,nan,1]"}, "bool[3]"), "bool[3] [false, false, true]");
}

TEST(Eval, R12_Denormals) {
  EXPECT_EQ(node("mul %x, 2", {"f32[2] [1e-40,1.4e-45]"}, "f32[2]"), "f32[2] [1.99999e-40, 3e-45]");
  EXPECT_EQ(node("eq %x, 0", {"f32[2] [1e-40,1.4e-45]"}, "bool[2]"), "bool[2] false");
  EXPECT_EQ(node("sqrt %x", {"f32[2] [1e-40,1.4e-45]"}, "f32[2]"), "f32[2] [9.999973e-21, 3.743392e-23]");
  EXPECT_EQ(node("add %x, %x", {"f16[1] 0x0100"}, "f16[1]"), "f16[1] [1.1920929e-07]");
  EXPECT_EQ(node("cast %x {to=f32}", {"f16[1] 0x0100"}, "f32[1]"), "f32[1] [5.9604645e-08]");
}

TEST(Eval, FormulasSeeDenormalsAndScalars) {
  const auto near = [](const std::string& got, double a, double b) {
    auto t = parse_tensor(got);
    ASSERT_TRUE(t) << got;
    EXPECT_NEAR(element(*t, 0), a, std::abs(a) * 1e-6) << got;
    EXPECT_NEAR(element(*t, 1), b, std::abs(b) * 1e-6) << got;
  };
  near(node("log %x", {"f32[2] [1e-40,1.4e-45]"}, "f32[2]"), -92.1034037, -103.278929);
  near(node("log2 %x", {"f32[2] [1e-40,1.4e-45]"}, "f32[2]"), -132.877124, -149);
  near(node("leaky_relu %x {alpha=0.25}", {"f32[2] [-4,3]"}, "f32[2]"), -1, 3);
  near(node("hardsigmoid %x {alpha=0.2, beta=0.5}", {"f32[2] [0,-1]"}, "f32[2]"), 0.5, 0.3);
  near(node("elu %x {alpha=2}", {"f64[2] [-1,5]"}, "f64[2]"), -1.2642411176571153, 5);
  EXPECT_EQ(node("hardsigmoid %x {alpha=0.2, beta=0.5}", {"f32[3] [nan,10,-10]"}, "f32[3]"), "f32[3] [nan, 1.0, 0.0]");
  EXPECT_EQ(node("exp %x", {"bf16[4] [nan,inf,-inf,0]"}, "bf16[4]"), "bf16[4] [nan, inf, 0.0, 1.0]");
  EXPECT_EQ(node("pow %x, 0", {"f32[4] [0,inf,nan,2]"}, "f32[4]"), "f32[4] 1.0");
}

TEST(Eval, R13_HalfRounding) {
  EXPECT_EQ(node("cast %x {to=f16}", {"f32[5] [0.14285715,2049,65520,1e-8,-65519]"}, "f16[5]"), "f16[5] [0.14282227, 2048.0, inf, 0.0, -65504.0]");
  EXPECT_EQ(node("cast %x {to=bf16}", {"f32[5] [0.14285715,2049,65520,257,1.00390625]"}, "bf16[5]"), "bf16[5] [0.14257812, 2048.0, 65536.0, 256.0, 1.0]");
  const auto out = run(R"(graph @t(%a: f16[], %b: f16[]) -> (bool[], bool[]) {
    %t = add %a, %b
    %e = eq %t, %a
    %g = gt %t, %a
    return %e, %g })", {"f16[] 2048", "f16[] 1"});
  EXPECT_EQ(text(out[0]) + text(out[1]), "bool[] truebool[] false");
  // f64 to f16 rounds once: by way of f32 this would round up to a tie and then to even.
  EXPECT_EQ(node("cast %x {to=f16}", {"f64[] 1.0004882812500003"}, "f16[]"), "f16[] 1.0009766");
  // A sum of f16 accumulates wider.
  EXPECT_EQ(node("sum %x", {"f16[4096] 1"}, "f16[]"), "f16[] 4096.0");
  // i64 to bf16 rounds once too: 2^62 + 2^54 is a tie, one more is above it.
  EXPECT_EQ(node("cast %x {to=bf16}", {"i64[2] [4629700416936869888,4629700416936869889]"}, "bf16[2]"), "bf16[2] [4.611686e+18, 4.647715e+18]");
}

TEST(Eval, R16_Argmax) {
  for (const auto& [x, index] : {std::pair{"f32[4] [3,nan,1,5]", "1"}, {"f32[3] [1,2,nan]", "2"}, {"f32[100] nan", "0"}}) {
    EXPECT_EQ(node("argmax %x", {x}, "i64[]"), "i64[] " + std::string(index));
    EXPECT_EQ(node("argmin %x {last=true}", {x}, "i64[]"), "i64[] " + std::string(index));
  }
  EXPECT_EQ(node("argmax %x", {"f32[4] [1,5,5,3]"}, "i64[]"), "i64[] 1");
  EXPECT_EQ(node("argmax %x {last=true, to=i32}", {"f32[4] [1,5,5,3]"}, "i32[]"), "i32[] 2");
  EXPECT_EQ(node("argmin %x", {"i32[4097] 7"}, "i64[]"), "i64[] 0");
  EXPECT_EQ(node("argmax %x {axes=[0,2]}", {"i32[2,2,2] [1,2,3,9,5,6,7,8]"}, "i64[2]"), "i64[2] [3, 1]");
  EXPECT_EQ(node("argmax %x {axes=[0], keep=true}", {"f32[3,2] [1,9,7,8,7,9]"}, "i64[1,2]"), "i64[1,2] [[1, 0]]");
}

TEST(Eval, R17_Empty) {
  EXPECT_EQ(node("sum %x {axes=[1]}", {"f32[3,4,0,5] []"}, "f32[3,0,5]"), "f32[3,0,5] []");
  EXPECT_EQ(node("sum %x {axes=[2]}", {"f32[3,4,0,5] []"}, "f32[3,4,5]"), "f32[3,4,5] 0.0");
  EXPECT_EQ(node("sum %x {axes=[1]}", {"f32[1,0] []"}, "f32[1]"), "f32[1] [0.0]");
  EXPECT_EQ(node("sum %x {axes=[0], keep=true}", {"f32[0,0] []"}, "f32[1,0]"), "f32[1,0] []");
  EXPECT_EQ(node("prod %x {axes=[1]}", {"i8[2,0,3] []"}, "i8[2,3]"), "i8[2,3] 1");
  EXPECT_EQ(node("reduce_max %x", {"f32[0] []"}, "f32[]"), "f32[] -inf");
  EXPECT_EQ(node("reduce_min %x", {"i16[0] []"}, "i16[]"), "i16[] 32767");
  EXPECT_EQ(node("add %x, %y", {"f32[0,7] []", "f32[1,7] 1"}, "f32[0,7]"), "f32[0,7] []");
  EXPECT_EQ(node("relu %x", {"f32[0] []"}, "f32[0]"), "f32[0] []");
  // What only leads to nothing is not computed: the row maxima would be 2^40 elements.
  EXPECT_EQ(node("log_softmax %x {axes=[3]}", {"f32[1048576,1024,1024,0] []"}, "f32[1048576,1024,1024,0]"), "f32[1048576,1024,1024,0] []");
  auto g = parse("graph @t(%x: f32[N]) -> i64[] { %r = argmax %x return %r }");
  ASSERT_TRUE(g);
  auto out = evaluate(*g, std::vector<Tensor>{{DType::f32, {0}, {}}});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "argmax: axis 0 is empty in this call, so there is no index to give");
}

TEST(Eval, R18_Axes) {
  EXPECT_EQ(node("sum %x", {"f32[] 3.5"}, "f32[]"), "f32[] 3.5");
  EXPECT_EQ(node("reduce_max %x {keep=true}", {"f32[] 3.5"}, "f32[]"), "f32[] 3.5");
  EXPECT_EQ(node("argmax %x", {"f32[] 3.5"}, "i64[]"), "i64[] 0");
  const std::string x = "f32[2,3,4] [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23]";
  EXPECT_EQ(node("sum %x {axes=[0,2]}", {x}, "f32[3]"), "f32[3] [60.0, 92.0, 124.0]");
  EXPECT_EQ(node("sum %x {axes=[-3,-1]}", {x}, "f32[3]"), "f32[3] [60.0, 92.0, 124.0]");
  EXPECT_EQ(node("reduce_max %x {axes=[1], keep=true}", {x}, "f32[2,1,4]"), "f32[2,1,4] [[[8.0, 9.0, 10.0, 11.0]], [[20.0, 21.0, 22.0, 23.0]]]");
}

TEST(Eval, Views) {
  const std::string x = "i32[2,3] [0,1,2,3,4,5]";
  EXPECT_EQ(node("transpose %x", {x}, "i32[3,2]"), "i32[3,2] [[0, 3], [1, 4], [2, 5]]");
  EXPECT_EQ(node("reshape %x {shape=[3,-1]}", {x}, "i32[3,2]"), "i32[3,2] [[0, 1], [2, 3], [4, 5]]");
  EXPECT_EQ(node("reverse %x {axes=[1]}", {x}, "i32[2,3]"), "i32[2,3] [[2, 1, 0], [5, 4, 3]]");
  EXPECT_EQ(node("slice %x {start=[-1,0], stop=[99,3], step=[1,2]}", {x}, "i32[1,2]"), "i32[1,2] [[3, 5]]");
  EXPECT_EQ(node("slice %x {start=[0,2], stop=[2,1]}", {x}, "i32[2,0]"), "i32[2,0] []");
  EXPECT_EQ(node("broadcast %y {shape=[2,2,3]}", {x, "i32[2,1] [7,8]"}, "i32[2,2,3]"), "i32[2,2,3] [[[7, 7, 7], [8, 8, 8]], [[7, 7, 7], [8, 8, 8]]]");
  EXPECT_EQ(node("concat %x, %y, %x {axis=1}", {x, "i32[2,1] [7,8]"}, "i32[2,7]"), "i32[2,7] [[0, 1, 2, 7, 0, 1, 2], [3, 4, 5, 8, 3, 4, 5]]");
  EXPECT_EQ(node("pad %x {low=[1,0], high=[0,2], value=-1}", {x}, "i32[3,5]"), "i32[3,5] [[-1, -1, -1, -1, -1], [0, 1, 2, -1, -1], [3, 4, 5, -1, -1]]");
  EXPECT_EQ(node("iota {shape=[2,3], axis=1, to=f16}", {}, "f16[2,3]"), "f16[2,3] [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]");
  EXPECT_EQ(node("bitcast %x {to=u32}", {"f32[2] [1.0,-0.0]"}, "u32[2]"), "u32[2] [1065353216, 2147483648]");
  EXPECT_EQ(node("add %x, %y", {"i32[2,1,3] [0,1,2,3,4,5]", "i32[2,1] [10,20]"}, "i32[2,2,3]"), "i32[2,2,3] [[[10, 11, 12], [20, 21, 22]], [[13, 14, 15], [23, 24, 25]]]");
}

TEST(Eval, F8FollowsTheCastTable) {
  // ONNX's table without saturation; 464 is a tie between 448 and what would be 480, and goes to the even one.
  EXPECT_EQ(node("cast %x {to=f8e4m3}", {"f32[8] [448,464,465,1000,inf,nan,-1000,0.001953125]"}, "f8e4m3[8]"),
            "f8e4m3[8] [448.0, 448.0, nan, nan, nan, nan, nan(0xff), 0.001953125]");
  EXPECT_EQ(node("cast %x {to=f8e5m2}", {"f32[6] [57344,61439,61440,inf,nan,1.52587890625e-05]"}, "f8e5m2[6]"),
            "f8e5m2[6] [57344.0, 57344.0, inf, inf, nan, 1.5258789e-05]");
  EXPECT_EQ(node("mul %x, %x", {"f8e4m3[2] [20,1.125]"}, "f8e4m3[2]"), "f8e4m3[2] [384.0, 1.25]");
}

TEST(Convert, EveryNarrowFloatRoundsToNearestEven) {
  const DType types[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
  for (DType type : types) {
    // Between neighbours: the value itself, the tie, and the doubles beside the tie, both signs.
    const uint32_t count = bytes(type) == 2 ? 0x8000 : 0x80;
    const auto value = [&](uint32_t bits) {
      double v;
      convert(type, reinterpret_cast<const std::byte*>(&bits), DType::f64, reinterpret_cast<std::byte*>(&v), 1);
      return v;
    };
    const auto back = [&](double v) {
      uint32_t bits = 0;
      convert(DType::f64, reinterpret_cast<const std::byte*>(&v), type, reinterpret_cast<std::byte*>(&bits), 1);
      return bits;
    };
    for (uint32_t bits = 0; bits < count; ++bits) {
      const double low = value(bits), high = value(bits + 1);
      if (std::isnan(low)) continue;
      ASSERT_EQ(back(low), bits);
      ASSERT_EQ(back(-low), bits | count);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double tie = low + (high - low) / 2;
      ASSERT_EQ(back(tie), bits + (bits & 1));
      ASSERT_EQ(back(std::nextafter(tie, 0)), tie == 0 ? 0 : bits);
      ASSERT_EQ(back(std::nextafter(tie, INFINITY)), bits + 1);
    }
  }
}

TEST(Convert, EveryPairOfTypesAgreesWithF64) {
  // All small whole numbers that both types have: a cast changes no value.
  for (int a = 0; a < kDTypes; ++a)
    for (int b = 0; b < kDTypes; ++b)
      for (int v : {0, 1, 2, 7, 16, 100, -1, -16, -100}) {
        const auto from = static_cast<DType>(a), to = static_cast<DType>(b);
        const auto x = scalar_tensor(from, v), y = scalar_tensor(to, v);
        if (!x || !y || element(*x, 0) != v) continue;
        Tensor z = *y;
        convert(from, x->data.data(), to, z.data.data(), 1);
        EXPECT_EQ(z, *y) << name(from) << " to " << name(to) << " of " << v;
      }
}

TEST(Eval, EveryElementwiseOpRunsOnEveryTypeOfItsDomain) {
  // Chunks make no difference: 1300 elements (two chunks and a tail) repeat what 13 give.
  int ran = 0;
  for (int i = 0; i < kOps; ++i) {
    const auto op = static_cast<Op>(i);
    if (!is_elementwise(op)) continue;
    for (int d = 0; d < kDTypes; ++d) {
      const auto type = static_cast<DType>(d);
      const auto run_on = [&](int64_t n) -> std::optional<Tensor> {
        GraphBuilder b("g");
        std::vector<Value> args;
        std::vector<Tensor> inputs;
        for (int k = 0; k < info(op).arity; ++k) {
          const DType t = op == Op::select && k == 0 ? DType::boolean : type;
          args.push_back(b.input(std::to_string(k), {t, {n}}));
          Tensor x{t, {n}, std::vector<std::byte>(static_cast<size_t>(n) * bytes(t))};
          std::vector<double> values;
          for (int64_t j = 0; j < n; ++j) values.push_back(static_cast<double>((j % 13 * (k + 3)) % 13) - 6);
          convert(DType::f64, reinterpret_cast<const std::byte*>(values.data()), t, x.data.data(), values.size());
          inputs.push_back(std::move(x));
        }
        Attrs attrs;
        attrs.to = type;
        const Value y = b.add(op, args, attrs);
        if (!y.valid()) return std::nullopt;  // not in the op's domain
        auto g = std::move(b).finish({y});
        auto out = evaluate(*g, inputs);
        EXPECT_TRUE(out) << (out ? "" : out.error().text());
        return out ? std::optional((*out)[0]) : std::nullopt;
      };
      const auto few = run_on(13), many = run_on(1300);
      if (!few) continue;
      ++ran;
      ASSERT_TRUE(many);
      for (size_t at = 0; at < many->data.size(); at += few->data.size())
        ASSERT_TRUE(std::equal(few->data.begin(), few->data.end(), many->data.begin() + static_cast<std::ptrdiff_t>(at))) << name(op) << " " << name(type);
    }
  }
  EXPECT_GT(ran, 400);
}

TEST(Eval, InputsAreChecked) {
  auto g = parse("graph @t(%x: f32[N,2], %y: f32[N], %p: bool[1]) -> f32[N,2] { return %x }");
  ASSERT_TRUE(g);
  const auto message = [&](std::vector<Tensor> in) {
    auto out = evaluate(*g, in);
    return out ? "no error" : out.error().message;
  };
  const auto floats = [](std::vector<int64_t> extents) {
    Tensor t{DType::f32, std::move(extents), {}};
    t.data.resize(static_cast<size_t>(t.elements()) * 4);
    return t;
  };
  const Tensor p{DType::boolean, {1}, std::vector{std::byte{1}}};
  EXPECT_EQ(message({floats({3, 2}), floats({3}), p}), "no error");
  EXPECT_EQ(message({floats({3, 2}), floats({4}), p}), "axis 0 of input \"y\" is 4, not N: N is 3 from axis 0 of input \"x\"");
  EXPECT_EQ(message({floats({3, 3}), floats({3}), p}), "axis 1 of input \"x\" is 3, not 2");
  EXPECT_EQ(message({floats({3}), floats({3}), p}), "input \"x\" has rank 1, not 2 as in f32[N,2]");
  EXPECT_EQ(message({floats({3, 2})}), "1 inputs are given, graph \"t\" has 3");
  EXPECT_EQ(message({p, floats({3}), p}), "input \"x\" has rank 1, not 2 as in f32[N,2]");
  Tensor wrong = floats({3});
  wrong.dtype = DType::i32;
  EXPECT_EQ(message({floats({3, 2}), wrong, p}), "input \"y\" is i32, not f32");
  Tensor cut = floats({3});
  cut.data.own().pop_back();
  EXPECT_EQ(message({floats({3, 2}), cut, p}), "input \"y\" has 11 bytes, which its extents do not fill");
  EXPECT_EQ(message({floats({3, 2}), floats({3}), Tensor{DType::boolean, {1}, std::vector{std::byte{2}}}}), "input \"p\" is bool and has bytes other than 0 and 1");
}

TEST(Eval, SymbolsAreSolvedAndChecked) {
  const auto message = [](const char* text, std::vector<std::vector<int64_t>> extents) {
    auto g = parse(text);
    EXPECT_TRUE(g) << (g ? "" : g.error().text());
    auto sizes = fusec::bind(*g, extents);
    if (!sizes) return sizes.error().message;
    std::string out;
    for (const auto& [name, size] : *sizes) out += name + "=" + std::to_string(size) + " ";
    return out;
  };
  EXPECT_EQ(message("graph @t(%x: f32[2*N+1]) -> f32[2*N+1] { return %x }", {{7}}), "N=3 ");
  EXPECT_EQ(message("graph @t(%x: f32[2*N+1]) -> f32[2*N+1] { return %x }", {{8}}), "axis 0 of input \"x\" is 8, not 2*N+1: N is unknown");
  EXPECT_EQ(message("graph @t(%x: f32[N*M,N]) -> f32[N*M,N] { return %x }", {{12, 3}}), "M=4 N=3 ");
  EXPECT_EQ(message("graph @t(%x: f32[N*M,N]) -> f32[N*M,N] { return %x }", {{13, 3}}), "axis 0 of input \"x\" is 13, not M*N: M is unknown, N is 3 from axis 1 of input \"x\"");
  EXPECT_EQ(message("graph @t(%x: f32[N]) -> f32[5] { %y = slice %x {start=[0], stop=[5]} return %y }", {{6}}), "N=6 ");
  EXPECT_EQ(message("graph @t(%x: f32[N]) -> f32[5] { %y = slice %x {start=[0], stop=[5]} return %y }", {{4}}), "slice: axis 0: 0 to 5 is no part of N = 4");
  EXPECT_EQ(message("graph @t(%x: f32[N]) -> f32[N] { %y = iota {shape=[M]} %z = sum %y %w = mul %x, %z return %w }", {{4}}), "iota: the dim M of f32[M] follows from no input, or leaves 64 bits");
  const char* argmax = "graph @t(%x: f32[N,M]) -> i64[M] { %y = argmax %x {axes=[0]} return %y }";
  EXPECT_EQ(message(argmax, {{0, 3}}), "argmax: axis 0 is empty in this call, so there is no index to give");
  EXPECT_EQ(message(argmax, {{0, 0}}), "M=0 N=0 ");
  EXPECT_EQ(message("graph @t(%x: f32[N-5]) -> f32[N-5] { return %x }", {{4}}), "N=9 ");
  EXPECT_EQ(message("graph @t(%x: f32[N+5]) -> f32[N+5] { return %x }", {{4}}), "the size N is -1 from axis 0 of input \"x\": it cannot be negative");
  EXPECT_EQ(message("graph @t(%x: f32[N,1], %y: f32[1,M]) -> f32[N,M] { %y2 = add %x, %y return %y2 }", {{int64_t{1} << 40, 1}, {1, int64_t{1} << 40}}), "add: f32[1099511627776,1099511627776] has 2^63 elements or more");
}

TEST(Eval, HostileSizesAreRefused) {
  auto g = parse("graph @t() -> f32[] { %x = iota {shape=[4611686018427387904], axis=0} %y = sum %x return %y }");
  ASSERT_TRUE(g);
  auto out = evaluate(*g, {});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "iota: f32[4611686018427387904] is larger than the reference evaluator's bound of 2^33 bytes");
}

}  // namespace
}  // namespace fusec
