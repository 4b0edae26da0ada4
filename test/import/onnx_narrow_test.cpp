// f8 fnuz, f8e8m0, 4 and 2 bits: every code decodes the same on the host, in a graph and by its definition; conversions
// round to the nearest of the numbers that there are; large weights stay packed.

#include <gtest/gtest.h>

#include <cmath>

#include "lib/import/onnx.h"
#include "lib/import/onnx_narrow.h"
#include "lib/ir/convert.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;

constexpr int kTypes[] = {18, 20, 21, 22, 23, 24, 25, 26};

/// By the formats' definitions (onnx docs, technical/float8.md and int4.md).
double definition(int type, int code) {
  const auto floating = [&](int exponent_bits, int mantissa_bits, int bias) {
    const int sign = code >> (exponent_bits + mantissa_bits), e = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    const double m = (code & ((1 << mantissa_bits) - 1)) / std::ldexp(1.0, mantissa_bits);
    const double v = e == 0 ? std::ldexp(m, 1 - bias) : std::ldexp(1 + m, e - bias);
    return sign ? -v : v;
  };
  switch (type) {
    case 18: return code == 128 ? NAN : floating(4, 3, 8);
    case 20: return code == 128 ? NAN : floating(5, 2, 16);
    case 23: return floating(2, 1, 1);
    case 24: return code == 255 ? NAN : std::ldexp(1.0, code - 127);
    case 22: return code < 8 ? code : code - 16;
    case 26: return code < 2 ? code : code - 4;
    default: return code;
  }
}

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

/// All codes of a type, packed.
Tensor packed_codes(const onnx::NarrowType& type) {
  const int64_t n = int64_t{1} << type.bits;
  Tensor out{DType::u8, {static_cast<int64_t>(onnx::packed_bytes(type, static_cast<uint64_t>(n)))}, {}};
  out.data.resize(static_cast<size_t>(out.extents[0]));
  for (int64_t code = 0; code < n; ++code)
    out.data[static_cast<size_t>(code * type.bits / 8)] |= std::byte(code << (code * type.bits % 8));
  return out;
}

TEST(OnnxNarrow, EveryCode) {
  for (int id : kTypes) {
    const onnx::NarrowType& type = *onnx::narrow_type(id);
    const int64_t n = int64_t{1} << type.bits;
    const Tensor packed = packed_codes(type);
    const Tensor host{type.held, {n}, onnx::widened(type, packed.data, static_cast<uint64_t>(n))};
    GraphBuilder b("codes");
    const Value y = onnx::unpacked(b, type, b.input("x", {DType::u8, {packed.extents[0]}}), {n});
    const Result<Graph> graph = std::move(b).finish({y});
    ASSERT_TRUE(graph) << graph.error().text();
    const Result<std::vector<Tensor>> got = evaluate(*graph, std::vector<Tensor>{packed});
    ASSERT_TRUE(got) << got.error().text();
    for (int64_t code = 0; code < n; ++code) {
      const double want = definition(id, static_cast<int>(code));
      EXPECT_TRUE(same(element(host, code), want)) << id << " code " << code << ": " << element(host, code) << ", not " << want;
      EXPECT_TRUE(same(element((*got)[0], code), want)) << id << " code " << code << ": " << element((*got)[0], code) << ", not " << want;
    }
  }
}

double converted(int id, double x, bool saturate, DType from) {
  GraphBuilder b("convert");
  const Value y = onnx::narrowed(b, *onnx::narrow_type(id), b.input("x", {from, {}}), saturate, "nearest");
  const Result<Graph> graph = std::move(b).finish({y});
  const Result<std::vector<Tensor>> got = evaluate(*graph, std::vector<Tensor>{*scalar_tensor(from, x)});
  return got ? element((*got)[0], 0) : -12345;
}

/// The nearest number of the type, ties to the even code.
double nearest(int id, double x) {
  const int half = 1 << (onnx::narrow_type(id)->bits - 1);
  int best = 0;
  for (int code = 0; code < half; ++code) {
    const double d = std::abs(definition(id, code) - std::abs(x)), least = std::abs(definition(id, best) - std::abs(x));
    if (d < least || (d == least && code % 2 == 0)) best = code;
  }
  return std::copysign(definition(id, best), x);
}

TEST(OnnxNarrow, FloatsRoundToTheNearest) {
  for (int id : {18, 20, 23}) {
    const int half = 1 << (onnx::narrow_type(id)->bits - 1);
    for (int code = 0; code + 1 < half; ++code) {
      const double low = definition(id, code), high = definition(id, code + 1), middle = (low + high) / 2;
      for (double x : {low, std::nextafter(float(middle), 0.0f) + 0.0, middle, std::nextafter(float(middle), 1e9f) + 0.0})
        for (double signed_x : {x, -x}) {
          const double want = nearest(id, signed_x), got = converted(id, signed_x, true, DType::f32);
          EXPECT_EQ(got, want) << id << " of " << signed_x;
          EXPECT_EQ(converted(id, signed_x, true, DType::f64), want);
          if (id != 23 && want == 0) { EXPECT_FALSE(std::signbit(got)) << "fnuz has no -0.0"; }
        }
    }
    const double top = onnx::narrow_type(id)->top;
    for (double x : {top * 1.01, 1e30, double(INFINITY)}) {
      EXPECT_EQ(converted(id, x, true, DType::f32), top);
      EXPECT_EQ(converted(id, -x, true, DType::f32), -top);
    }
    if (id == 23) continue;
    EXPECT_TRUE(std::isnan(converted(id, NAN, true, DType::f32)));
    EXPECT_TRUE(std::isnan(converted(id, top * 1.1, false, DType::f32)));
    EXPECT_TRUE(std::isnan(converted(id, INFINITY, false, DType::f32)));
    EXPECT_EQ(converted(id, top * 1.01, false, DType::f32), top);  // rounds to it
  }
}

TEST(OnnxNarrow, IntegersDropTheirUpperBits) {
  EXPECT_EQ(converted(22, -9, true, DType::f32), 7);
  EXPECT_EQ(converted(22, 8.9, true, DType::f32), -8);
  EXPECT_EQ(converted(21, -1, true, DType::i64), 15);
  EXPECT_EQ(converted(26, 3, true, DType::u8), -1);
}

TEST(OnnxNarrow, GoWhereTheyCanAndNowhereElse) {
  const auto w = raw("w", kInt4, {3}, "\x8f\x07");
  Model m{.opset = 21,
          .nodes = {node("Reshape", {"w", "s"}, {"r"}), node("DequantizeLinear", {"r", "k"}, {"y"})},
          .outputs = {value("y", kFloat, {3, 1})},
          .initializers = {w, longs("s", {3, 1}), floats("k", {}, {0.5})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << imported.error().text();
  const Result<std::vector<Tensor>> got = evaluate(imported->graph, {});
  ASSERT_TRUE(got);
  EXPECT_EQ(element((*got)[0], 0), -0.5);
  EXPECT_EQ(element((*got)[0], 1), -4);
  EXPECT_EQ(element((*got)[0], 2), 3.5);
  m.nodes = {node("Add", {"w", "w"}, {"y"})};
  const Result<Imported> refused = import_onnx_bytes(m.bytes());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("input 0 is INT4, which conversions and movement of data take"), std::string::npos) << refused.error().text();
}

TEST(OnnxNarrow, LargeWeightsStayPacked) {
  const Model m{.opset = 21,
                .nodes = {node("DequantizeLinear", {"w", "k"}, {"y"})},
                .outputs = {value("y", kFloat, {99, 3})},
                .initializers = {raw("w", kUint4, {99, 3}, std::string(149, '\x52')), floats("k", {}, {1})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes(), "", {.largest_constant = 16});
  ASSERT_TRUE(imported) << imported.error().text();
  ASSERT_EQ(imported->defaults.size(), 1u);
  EXPECT_EQ(imported->defaults[0]->dtype, DType::u8);
  EXPECT_EQ(imported->defaults[0]->extents, std::vector<int64_t>{149});
  const Result<std::vector<Tensor>> got = evaluate(imported->graph, std::vector<Tensor>{*imported->defaults[0]});
  ASSERT_TRUE(got) << got.error().text();
  for (int64_t k = 0; k < 297; ++k) ASSERT_EQ(element((*got)[0], k), k % 2 ? 5 : 2) << k;
}

}  // namespace
}  // namespace fusec
