// ONNX's own node tests: Debian's libonnx-testdata, and those that tools/onnx_nodes installs. Each model imported,
// evaluated by the reference, compared with the outputs that come with it. Every test that does not pass has to be named
// here, by operator or by name, with the reason.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "lib/import/onnx.h"
#include "lib/import/onnx_model.h"
#include "lib/import/onnx_tensor.h"
#include "lib/ir/convert.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;

// Operators that fusec does not take. Their tests are left out.
const char* const kForeignOperators[] = {
    // matrix products, convolutions, pooling, recurrence: no memory-bound fusion
    "MatMul", "MatMulInteger", "QLinearMatMul", "Gemm", "Conv", "ConvInteger", "ConvTranspose", "QLinearConv",
    "DeformConv", "Einsum", "Det", "AveragePool", "MaxPool", "MaxUnpool", "LpPool", "MaxRoiPool", "RoiAlign", "GRU",
    "LSTM", "RNN", "Attention", "LinearAttention", "FlexAttention", "CausalConvWithState", "Col2Im",
    // results whose shape depends on data, sorting, scatter, data-dependent indices
    "NonZero", "Unique", "TopK", "Compress", "NonMaxSuppression", "GatherND", "Scatter", "ScatterElements",
    "ScatterND", "TensorScatter",
    // images, signals, resampling
    "Resize", "Upsample", "GridSample", "AffineGrid", "CenterCropPad", "ImageDecoder", "STFT", "DFT",
    "MelWeightMatrix", "RotaryEmbedding",
    // randomness
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial",
    // training steps
    "Adagrad", "Adam", "Momentum", "Gradient",
    // control flow, sequences, strings, optional values
    "If", "Loop", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
    "SequenceLength", "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement",
    "OptionalHasElement", "StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer",
    "LabelEncoder", "ArrayFeatureExtractor", "Binarizer", "TreeEnsemble",
};

// Element types that fusec does not have.
const char* const kForeignTypes[] = {"STRING", "COMPLEX64", "COMPLEX128"};

constexpr int kPassing12 = 702, kPassing14 = 855, kPassing22 = 1185;

struct Exception {
  const char* test;  // a prefix of its name
  const char* reason;
};
const Exception kExceptions[] = {
    {"test_cast_FLOAT_to_STRING", "strings"},
    {"test_cast_STRING_to_FLOAT", "strings"},
    {"test_castlike_FLOAT_to_STRING", "strings"},
    {"test_castlike_STRING_to_FLOAT", "strings"},
    {"test_equal_string", "strings"},
    {"test_training_dropout", "random numbers"},
    {"test_castlike_FLOAT_to_BFLOAT16", "its data file for `like` has other dims than the model says"},
    {"test_castlike_BFLOAT16_to_FLOAT", "the same"},
    {"test_identity_opt", "optional values"},
    {"test_identity_sequence", "sequences"},
};

std::vector<std::string> node_tests() {
  if (const char* folder = std::getenv("FUSEC_ONNX_NODE_TESTS")) return {folder};
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const std::string installed = (cache ? std::string(cache) : std::string(home ? home : "") + "/.cache") + "/fusec/onnx-1.22.0/node";
  std::vector<std::string> out;
  for (const std::string& folder : {std::string("/usr/share/libonnx-testdata/data/node"), installed})
    if (fs::is_directory(folder)) out.push_back(folder);
  return out;
}

const char* exception(const std::string& test) {
  for (const Exception& e : kExceptions)
    if (test.starts_with(e.test)) return e.reason;
  return nullptr;
}

/// Does the message name an operator or a type that is left out?
bool is_foreign(const std::string& message) {
  for (const char* type : kForeignTypes)
    if (message.find(std::string(type) + " is not supported") != std::string::npos) return true;
  const size_t at = message.find("not supported: \"");
  if (at == std::string::npos) return false;
  const std::string op = message.substr(at + 16, message.find('"', at + 16) - at - 16);
  return std::find(std::begin(kForeignOperators), std::end(kForeignOperators), op) != std::end(kForeignOperators);
}

/// Expected outputs that are themselves rough: the windows of ONNX 1.12 were made with 3.1415 for pi.
const char* const kRough[] = {"test_blackmanwindow", "test_hammingwindow", "test_hannwindow"};

double relative_tolerance(DType dtype, const std::string& test) {
  for (const char* prefix : kRough)
    if (test.starts_with(prefix)) return 1e-3;
  switch (dtype) {
    case DType::f64: return 1e-6;
    case DType::f32: return 2e-5;
    case DType::f16: return 2e-3;
    case DType::bf16: return 1e-2;
    default: return 0;
  }
}

/// "" when equal within a few roundings of the type; ONNX's own runner allows 1e-3.
std::string difference(const Tensor& got, const Tensor& want, const std::string& test) {
  if (got.dtype != want.dtype)
    return "type " + std::string(name(got.dtype)) + ", expected " + std::string(name(want.dtype));
  if (got.extents != want.extents) return "dims differ";
  const double relative = relative_tolerance(got.dtype, test);
  const double absolute = is_float(got.dtype) ? 2e-6 : 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double a = element(got, i), b = element(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= absolute + relative * std::abs(b)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return "";
}

std::vector<std::shared_ptr<const Tensor>> read_all(const fs::path& folder, const std::string& prefix) {
  std::vector<std::shared_ptr<const Tensor>> out;
  for (int k = 0;; ++k) {
    const fs::path path = folder / (prefix + std::to_string(k) + ".pb");
    if (!fs::exists(path)) return out;
    Result<onnx::NamedTensor> t = onnx::read_tensor_file(path);
    out.push_back(t ? std::make_shared<const Tensor>(std::move(t->tensor)) : nullptr);
  }
}

/// The node tests of ONNX 1.12 keep bf16 data as u16: what the model says counts.
void mend_bfloat16(std::shared_ptr<const Tensor>& t, const onnx::ValueInfo& info) {
  if (!t || t->dtype != DType::u16 || info.data_type != onnx::data_type_of(DType::bf16)) return;
  Tensor mended = *t;
  mended.dtype = DType::bf16;
  t = std::make_shared<const Tensor>(std::move(mended));
}

struct Outcome {
  enum { passed, foreign, failed } kind;
  std::string message;
};

Outcome run_set(const fs::path& test, const fs::path& set) {
  auto inputs = read_all(set, "input_"), outputs = read_all(set, "output_");
  Result<std::string> bytes = onnx::read_file(test / "model.onnx");
  if (!bytes) return {Outcome::failed, bytes.error().text()};
  Result<onnx::ModelMessage> model = onnx::read_model(*bytes);
  if (!model) return {Outcome::failed, model.error().text()};
  ImportOptions options;
  for (size_t k = 0; k < inputs.size() && k < model->inputs.size(); ++k) {
    mend_bfloat16(inputs[k], model->inputs[k]);
    if (inputs[k]) options.values[std::string(model->inputs[k].name)] = inputs[k];
  }
  for (size_t k = 0; k < outputs.size() && k < model->outputs.size(); ++k) mend_bfloat16(outputs[k], model->outputs[k]);
  Result<Imported> imported = import_onnx((test / "model.onnx").string(), options);
  if (!imported)
    return {is_foreign(imported.error().message) ? Outcome::foreign : Outcome::failed, imported.error().text()};
  std::vector<Tensor> operands;
  for (size_t k = 0; k < imported->graph.inputs().size(); ++k) {
    const auto given = options.values.find(imported->graph.inputs()[k].name);
    if (given != options.values.end()) operands.push_back(*given->second);
    else if (imported->defaults[k]) operands.push_back(*imported->defaults[k]);
    else return {Outcome::failed, "no data for input " + imported->graph.inputs()[k].name};
  }
  Result<std::vector<Tensor>> results = evaluate(imported->graph, operands);
  if (!results) return {Outcome::failed, results.error().text()};
  if (results->size() != outputs.size()) return {Outcome::failed, "another number of outputs"};
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k]) return {Outcome::failed, "expected output cannot be read"};
    const std::string d = difference((*results)[k], *outputs[k], test.filename());
    if (!d.empty()) return {Outcome::failed, "output " + std::to_string(k) + ": " + d};
  }
  return {Outcome::passed, ""};
}

/// How many have to pass, by the number of tests: ONNX 1.12 (Debian 12), 1.14 (Ubuntu 24.04), 1.22 (tools/onnx_nodes). A
/// folder of somebody's own may be smaller.
int least(size_t tests) { return tests >= 1765 ? kPassing22 : tests >= 1168 ? kPassing14 : tests >= 932 ? kPassing12 : 1; }

void run_folder(const std::string& folder) {
  std::vector<fs::path> tests;
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "model.onnx")) tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  ASSERT_FALSE(tests.empty());
  int passed = 0, foreign = 0, excepted = 0;
  for (const fs::path& test : tests) {
    const std::string name = test.filename();
    bool all = true;
    for (int k = 0; fs::exists(test / ("test_data_set_" + std::to_string(k))); ++k) {
      const Outcome outcome = run_set(test, test / ("test_data_set_" + std::to_string(k)));
      if (outcome.kind == Outcome::passed) continue;
      all = false;
      if (outcome.kind == Outcome::foreign) ++foreign;
      else if (exception(name)) ++excepted;
      else ADD_FAILURE() << name << ": " << outcome.message;
      break;
    }
    passed += all;
  }
  std::printf("%s: %d passed, %d left out for operators or types, %d for other reasons, of %zu\n", folder.c_str(), passed,
              foreign, excepted, tests.size());
  EXPECT_GE(passed, least(tests.size()));
}

TEST(OnnxNodes, AllThatIsInScopePasses) {
  const std::vector<std::string> folders = node_tests();
  if (folders.empty())
    GTEST_SKIP() << "no ONNX node tests on this machine: install libonnx-testdata, run tools/onnx_nodes, or set FUSEC_ONNX_NODE_TESTS";
  for (const std::string& folder : folders) run_folder(folder);
}

}  // namespace
}  // namespace fusec
