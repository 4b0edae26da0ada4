// fusec split: a host that reads the manifest, runs the .fus files through the API and the operators by itself gets what
// fusec run gets. A failure leaves nothing behind.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fusec/fusec.h"
#include "test/folder.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Values = std::map<std::string, std::vector<float>>;

std::vector<float> numbers(size_t n, int seed) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(static_cast<int>(i * 7 + seed * 3) % 11 - 5) * 0.125f;
  return out;
}

struct Split : testing::Test {
  Split() {
    ::setenv("FUSEC_CACHE_DIR", (dir / "cache").c_str(), 1);
    Model m{.opset = 17};
    m.inputs = {value("x", kFloat, {"N", 6})};
    m.outputs = {value("y", kFloat, {})};
    m.initializers = {floats("w", {6, 6}, numbers(36, 1)), floats("s", {6}, numbers(6, 2)),
                      floats("t", {6}, numbers(6, 3)), longs("to", {-1, 2, 3}), longs("back", {-1, 6})};
    m.nodes = {node("LayerNormalization", {"x", "s", "t"}, {"n"}),
               node("Reshape", {"n", "to"}, {"r"}),
               node("Transpose", {"r"}, {"p"}, {integers("perm", {0, 2, 1})}),
               node("Reshape", {"p", "back"}, {"q"}),
               node("MatMul", {"q", "w"}, {"h"}),
               node("Relu", {"h"}, {"u"}),
               node("MatMul", {"u", "w"}, {"v"}),
               node("Add", {"v", "x"}, {"z"}),
               node("Softmax", {"z"}, {"y"})};
    std::ofstream(dir / "m.onnx", std::ios::binary) << m.bytes();
  }

  int fusec(const std::string& arguments) {
    return WEXITSTATUS(std::system(
        ("cd '" + dir.string() + "' && '" FUSEC_BINARY_DIR "/fusec' " + arguments + " >out 2>err </dev/null").c_str()));
  }
  std::string read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(dir / name, std::ios::binary).rdbuf();
    return text.str();
  }

  const Folder folder{"split"};
  const fs::path dir = folder.path;
};

/// The float tensors of a .safetensors file.
Values weights(const std::string& bytes) {
  Values out;
  uint64_t header;
  std::memcpy(&header, bytes.data(), 8);
  const nlohmann::json index = nlohmann::json::parse(bytes.substr(8, header));
  for (const auto& [name, entry] : index.items()) {
    if (name == "__metadata__" || entry["dtype"] != "F32") continue;
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    out[name].resize((end - begin) / 4);
    std::memcpy(out[name].data(), bytes.data() + 8 + header + begin, end - begin);
  }
  return out;
}

/// What the host knows: matrix products of a [rows, 6] by a [6, 6].
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(a.size());
  for (size_t i = 0; i < a.size() / 6; ++i)
    for (size_t j = 0; j < 6; ++j)
      for (size_t k = 0; k < 6; ++k) out[i * 6 + j] += a[i * 6 + k] * b[k * 6 + j];
  return out;
}

TEST_F(Split, AHostRunsThePieces) {
  ASSERT_EQ(fusec("split m.onnx -o pieces --dim N=4"), 0) << read("err");
  const nlohmann::json manifest = nlohmann::json::parse(read("pieces/manifest.json"));
  Values values = weights(read("pieces/weights.safetensors"));
  values["x"] = numbers(24, 4);
  const auto at = [&](const nlohmann::json& name) -> std::vector<float>& {
    for (const auto& tensor : manifest["tensors"])
      if (tensor["name"] == name && tensor.contains("view_of")) return values[tensor["view_of"]];
    return values[name];
  };
  size_t regions = 0;
  for (const auto& step : manifest["steps"]) {
    if (step.contains("operator")) {
      ASSERT_EQ(step["operator"], "MatMul");
      at(step["outputs"][0]) = product(at(step["inputs"][0]), at(step["inputs"][1]));
      continue;
    }
    ++regions;
    const Result<Graph> graph = parse(read("pieces/" + std::string(step["file"])));
    ASSERT_TRUE(graph) << graph.error().text();
    const Result<Program> program = compile(*graph, {.device = "reference"});
    ASSERT_TRUE(program) << program.error().text();
    std::vector<std::vector<int64_t>> extents;
    for (const Port& port : graph->inputs())
      for (const auto& tensor : manifest["tensors"])
        if (tensor["name"] == port.name) extents.push_back(tensor["shape"]);
    const auto shapes = program->output_extents(extents);
    ASSERT_TRUE(shapes) << shapes.error().text();
    std::vector<Buffer> inputs, outputs;
    for (size_t k = 0; k < extents.size(); ++k) inputs.push_back({at(step["inputs"][k]).data(), extents[k], {}});
    for (size_t k = 0; k < shapes->size(); ++k) {
      size_t n = 1;
      for (int64_t e : (*shapes)[k]) n *= static_cast<size_t>(e);
      at(step["outputs"][k]).resize(n);
      outputs.push_back({at(step["outputs"][k]).data(), (*shapes)[k], {}});
    }
    const Status done = program->run(inputs, outputs);
    ASSERT_TRUE(done) << done.error().text();
  }
  EXPECT_EQ(regions, 3u);
  const std::vector<float> y = at(manifest["outputs"][0]["tensor"]);
  ASSERT_EQ(y.size(), 24u);
  // The same from scratch: norm, transpose of each row as [2, 3], product, relu, product, residual, softmax.
  const std::vector<float> x = numbers(24, 4), w = numbers(36, 1), s = numbers(6, 2), t = numbers(6, 3);
  std::vector<float> q(24);
  for (size_t row = 0; row < 4; ++row) {
    double mean = 0, square = 0;
    for (size_t k = 0; k < 6; ++k) mean += x[row * 6 + k] / 6.0;
    for (size_t k = 0; k < 6; ++k) square += (x[row * 6 + k] - mean) * (x[row * 6 + k] - mean) / 6.0;
    for (size_t k = 0; k < 6; ++k)
      q[row * 6 + k % 3 * 2 + k / 3] =
          static_cast<float>((x[row * 6 + k] - mean) / std::sqrt(square + 1e-5) * s[k] + t[k]);
  }
  std::vector<float> h = product(q, w);
  for (float& e : h) e = std::max(e, 0.0f);
  std::vector<float> z = product(h, w);
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (size_t k = 0; k < 6; ++k) sum += std::exp(z[row * 6 + k] + x[row * 6 + k]);
    for (size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(y[row * 6 + k], std::exp(z[row * 6 + k] + x[row * 6 + k]) / sum, 1e-5) << row << " " << k;
  }
}

TEST_F(Split, DimsMayStayOpen) {
  ASSERT_EQ(fusec("split m.onnx -o pieces"), 0) << read("err");
  EXPECT_NE(read("pieces/manifest.json").find(R"("shape":["N",6])"), std::string::npos) << read("pieces/manifest.json");
}

TEST_F(Split, AFailureLeavesNothing) {
  fs::create_directory(dir / "full");
  std::ofstream(dir / "full/mine") << "here";
  EXPECT_EQ(fusec("split m.onnx -o full"), 2);
  EXPECT_EQ(fusec("split m.onnx -o none/deeper"), 3);
  EXPECT_EQ(fusec("split m.onnx -o pieces --dim M=4"), 2);
  EXPECT_NE(read("err").find("the model has no dim M, only N"), std::string::npos) << read("err");
  EXPECT_EQ(read("full/mine"), "here");
  for (const auto& entry : fs::directory_iterator(dir))
    EXPECT_FALSE(entry.path().filename().string().starts_with("pieces")) << entry.path();
}

#if FUSEC_HAS_CUDA
#define TARGET "sm_90"
#else
#define TARGET "cpu"
#endif

TEST_F(Split, ImportOfANetworkSaysWhereToGoOn) {
  EXPECT_EQ(fusec("import m.onnx"), 2);
  EXPECT_NE(read("err").find("node 4 (MatMul, operator set 17): not supported"), std::string::npos) << read("err");
  EXPECT_NE(read("err").find("`fusec split` writes that as .fus files"), std::string::npos) << read("err");
}

TEST_F(Split, ExplainCountsWhatIsFused) {
#if !FUSEC_HAS_CUDA && !FUSEC_HAS_CPU
  GTEST_SKIP() << "no target in this build";
#endif
  ASSERT_EQ(fusec("explain m.onnx --dim N=4096 --target " TARGET), 0) << read("err");
  const std::string text = read("out");
  EXPECT_NE(text.find("9 nodes of operator set 17, 2 left to others, 3 regions"), std::string::npos) << text;
  EXPECT_NE(text.find("boundaries: MatMul 2"), std::string::npos) << text;
  EXPECT_NE(text.find("total: "), std::string::npos) << text;
  ASSERT_EQ(fusec("explain m.onnx --dim N=4096 --target " TARGET " --json"), 0);
  const nlohmann::json report = nlohmann::json::parse(read("out"));
  EXPECT_EQ(report["regions"].size(), 3u);
  EXPECT_LT(report["after"]["bytes"], report["before"]["bytes"]);
  EXPECT_LT(report["after"]["kernels"], report["before"]["kernels"]);
  EXPECT_EQ(fusec("explain m.onnx --target " TARGET " --graph r1"), 0) << read("err");
  EXPECT_EQ(fusec("explain m.onnx --target " TARGET " --graph r9"), 2);
}

}  // namespace
}  // namespace fusec
