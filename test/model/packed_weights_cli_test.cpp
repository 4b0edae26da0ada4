// Weights of 4 and 2 bits: one kernel reads them as they lie in the file, several a byte, whatever their shape, and every device
// computes the same from them.

#include <nlohmann/json.hpp>

#include "test/cli/cli.h"
#include "test/import/onnx_writer.h"

namespace {

using namespace fusec::test;

#if FUSEC_HAS_CUDA
constexpr const char* kDevices[] = {"cpu", "simt"};
#else
constexpr const char* kDevices[] = {"cpu"};
#endif

struct Packed {
  const char* name;
  int data_type, bits;
};
constexpr Packed kTypes[] = {{"u4", 21, 4}, {"i4", 22, 4}, {"f4", 23, 4}, {"u2", 25, 2}, {"i2", 26, 2}};

struct Case {
  const char* name;
  int64_t rows, columns, scales;  // elements of the scale, f32
  std::vector<Bytes> attributes;
};
const Case kCases[] = {
    {"one scale", 300, 301, 1, {}},  // the last dim is odd
    {"one scale", 299, 303, 1, {}},  // and so is the number of elements
    {"a scale a row", 299, 302, 299, {integer("axis", 0)}},
    {"a scale a column", 299, 303, 303, {integer("axis", 1)}},
    {"a scale a block of 16", 128, 1024, 128 * 64, {integer("axis", 1), integer("block_size", 16)}},
};

Model model_of(const Packed& type, const Case& c) {
  const int64_t n = c.rows * c.columns, bytes = (n * type.bits + 7) / 8;
  std::string data;
  for (int64_t k = 0; k < bytes; ++k) data += static_cast<char>(k * 73 + k / 256);
  std::vector<float> scales;
  for (int64_t k = 0; k < c.scales; ++k) scales.push_back(0.5f + static_cast<float>(k % 13));
  const std::vector<int64_t> dims = c.scales == 1 ? std::vector<int64_t>{} : c.scales > c.rows * 16 ? std::vector<int64_t>{c.rows, c.scales / c.rows} : std::vector<int64_t>{c.scales};
  return {.opset = 25,
          .ir = 11,
          .nodes = {node("DequantizeLinear", {"w", "s"}, {"y"}, c.attributes)},
          .outputs = {value("y", kFloat, {c.rows, c.columns})},
          .initializers = {raw("w", type.data_type, {c.rows, c.columns}, data), floats("s", dims, scales)}};
}

TEST_F(Cli, PackedWeightsAreReadPackedByOneKernel) {
  for (const Packed& type : kTypes)
    for (const Case& c : kCases) {
      const std::string what = std::string(type.name) + ", " + c.name;
      write("m.onnx", model_of(type, c).bytes());
      const Ran explained = run("explain m.onnx --target sm_90 --json");
      ASSERT_EQ(explained.status, 0) << what << "\n" << explained.err;
      const nlohmann::json report = nlohmann::json::parse(explained.out);
      ASSERT_EQ(report["kernels"].size(), 1u) << what;
      const int64_t n = c.rows * c.columns, scales = c.scales > 1 ? 4 * c.scales : 0;  // one is part of the kernel
      EXPECT_EQ(report["bytes"].get<int64_t>(), (n * type.bits + 7) / 8 + scales + 4 * n) << what;
      for (const char* device : kDevices) {
        const Ran checked = run("run m.onnx --check --device " + std::string(device));
        EXPECT_EQ(checked.status, 0) << what << " on " << device << "\n" << checked.err;
        EXPECT_NE(checked.out.find("every bit as the reference"), std::string::npos) << what << " on " << device << "\n" << checked.out;
      }
    }
}

}  // namespace
