// Integers of 4 bits, the low half of a byte first: odd counts, negative bytes, in raw_data and in int32_data.

#include <gtest/gtest.h>

#include "lib/import/onnx.h"
#include "lib/ir/convert.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;

/// An initialiser whose data stands in int32_data.
Bytes in_int32_data(const std::string& name, int data_type, const std::vector<int64_t>& dims, const std::vector<int32_t>& v) {
  Bytes out;
  protozero::pbf_writer w(out);
  for (int64_t d : dims) w.add_int64(1, d);
  w.add_enum(2, data_type);
  w.add_packed_int32(5, v.begin(), v.end());
  w.add_string(8, name);
  return out;
}

std::vector<double> decoded(const Bytes& tensor, int64_t count) {
  const Model m{.opset = 21,
                .nodes = {node("DequantizeLinear", {"w", "k"}, {"y"})},
                .outputs = {value("y", kFloat, {count})},
                .initializers = {tensor, floats("k", {}, {1})}};
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  EXPECT_TRUE(imported) << imported.error().text();
  if (!imported) return {};
  const Result<std::vector<Tensor>> got = evaluate(imported->graph, {});
  EXPECT_TRUE(got) << got.error().text();
  std::vector<double> out;
  for (int64_t k = 0; got && k < (*got)[0].elements(); ++k) out.push_back(element((*got)[0], k));
  return out;
}

TEST(Packed, IntegersOfFourBits) {
  EXPECT_EQ(decoded(raw("w", kInt4, {3}, "\x8f\x07"), 3), (std::vector<double>{-1, -8, 7}));
  EXPECT_EQ(decoded(raw("w", kUint4, {3}, "\x8f\x07"), 3), (std::vector<double>{15, 8, 7}));
  EXPECT_EQ(decoded(in_int32_data("w", kInt4, {2}, {-52}), 2), (std::vector<double>{-4, -4}));
  EXPECT_EQ(decoded(in_int32_data("w", kUint4, {3}, {0x8f, 7}), 3), (std::vector<double>{15, 8, 7}));
}

}  // namespace
}  // namespace fusec
