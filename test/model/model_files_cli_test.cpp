// Weights in files: they stay there. A network with more than 2 GB of them is read, explained, imported and run in little memory.

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/import/model.h"
#include "lib/import/onnx.h"
#include "test/folder.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

using namespace test;
namespace fs = std::filesystem;

constexpr int64_t kRows = 700'000, kColumns = 1024;  // of f32: 2.9 GB
constexpr size_t kViewed = 64 * 1024;                // bytes from which on data is not copied

struct ModelFiles : testing::Test {
  void write(const std::string& name, const std::string& bytes) { std::ofstream(dir / name, std::ios::binary) << bytes; }
  std::string text_of(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(dir / name, std::ios::binary).rdbuf();
    return text.str();
  }
  /// w * 2, w given.
  std::string doubled(const Bytes& w) {
    return Model{.nodes = {node("Add", {"w", "w"}, {"y"})}, .outputs = {value("y", kFloat, {})}, .initializers = {w}}.bytes();
  }
  std::shared_ptr<const Tensor> weight_of(const std::string& model) {
    write("m.onnx", model);
    const Result<Imported> imported = import_onnx((dir / "m.onnx").string());
    EXPECT_TRUE(imported) << imported.error().text();
    return imported && imported->defaults.size() == 1 ? imported->defaults[0] : nullptr;
  }
  /// A file of zeros that takes no room on the disk.
  void sparse(const std::string& name, uint64_t size) {
    write(name, "");
    fs::resize_file(dir / name, size);
  }
  void write_at(const std::string& name, uint64_t at, const std::string& bytes) {
    std::fstream file(dir / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }

  /// Runs the program in the folder: its peak of resident memory in bytes; output and errors in files.
  int64_t peak(std::vector<std::string> words) {
    words.insert(words.begin(), FUSEC_BINARY_DIR "/fusec");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (chdir(dir.c_str()) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(99);
      execv(arguments[0], arguments.data());
      _exit(98);
    }
    int status = 0;
    rusage usage{};
    EXPECT_EQ(wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << words[1] << ": " << text_of("err");
    return int64_t{usage.ru_maxrss} * 1024;
  }

  const Folder folder{"models"};
  const fs::path dir = folder.path;
};

float first(const Tensor& t) {
  float out;
  std::memcpy(&out, t.data.data(), 4);
  return out;
}

TEST_F(ModelFiles, DataIsAViewOfItsFile) {
  sparse("w.bin", 3 * kViewed);
  write_at("w.bin", kViewed, bytes_of(std::vector<float>{2}));
  const int64_t n = kViewed / 4;
  const std::shared_ptr<const Tensor> aligned = weight_of(doubled(external("w", kFloat, {n + 1}, "w.bin", std::to_string(kViewed))));
  ASSERT_TRUE(aligned);
  EXPECT_TRUE(aligned->data.is_view());
  EXPECT_EQ(first(*aligned), 2);
  fs::remove(dir / "w.bin");  // the mapping keeps it
  EXPECT_EQ(first(*aligned), 2);
  const Tensor copy = *aligned;
  EXPECT_EQ(std::as_const(copy.data).data(), std::as_const(aligned->data).data());
}

TEST_F(ModelFiles, WhatIsNotAlignedForItsTypeIsCopied) {
  sparse("w.bin", 3 * kViewed);
  write_at("w.bin", 1, bytes_of(std::vector<float>{3}));
  const std::shared_ptr<const Tensor> w = weight_of(doubled(external("w", kFloat, {int64_t{kViewed} / 4 + 1}, "w.bin", "1")));
  ASSERT_TRUE(w);
  EXPECT_EQ(first(*w), 3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(std::as_const(w->data).data()) % 4, 0u);
  // raw_data in the model: at every offset of its elements once.
  size_t views = 0;
  for (int pad = 0; pad < 4; ++pad) {
    std::vector<float> numbers(kViewed / 4 + 1, 7);
    const std::string model = Model{.nodes = {node("Add", {"w", "w"}, {"y"}, {}, std::string(size_t(pad) + 1, 'n'))},
                                    .outputs = {value("y", kFloat, {})},
                                    .initializers = {floats("w", {int64_t(numbers.size())}, numbers)}}.bytes();
    const std::shared_ptr<const Tensor> raw = weight_of(model);
    ASSERT_TRUE(raw);
    EXPECT_EQ(first(*raw), 7);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(std::as_const(raw->data).data()) % 4, 0u);
    views += raw->data.is_view();
  }
  EXPECT_EQ(views, 4u);  // in the file, or in the one copy that all copies of the tensor share
}

TEST_F(ModelFiles, OneMappingAFile) {
  sparse("w.bin", 4 * kViewed);
  fs::create_symlink("w.bin", dir / "same.bin");
  const int64_t n = kViewed / 4;
  Model m{.nodes = {node("Add", {"a", "b"}, {"s"}), node("Add", {"s", "c"}, {"y"})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {external("a", kFloat, {2 * n}, "w.bin", "0"), external("b", kFloat, {2 * n}, "w.bin", std::to_string(kViewed)),
                    external("c", kFloat, {2 * n}, "same.bin", "0")};
  write("m.onnx", m.bytes());
  const Result<Imported> imported = import_onnx((dir / "m.onnx").string());
  ASSERT_TRUE(imported) << imported.error().text();
  ASSERT_EQ(imported->defaults.size(), 3u);
  const auto at = [&](size_t k) { return std::as_const(imported->defaults[k]->data).data(); };
  EXPECT_EQ(at(0) + kViewed, at(1));
  EXPECT_EQ(at(0), at(2));
}

TEST_F(ModelFiles, SmallDataIsCopiedAndAViewThatIsWrittenTo) {
  sparse("w.bin", 3 * kViewed);
  Model m{.nodes = {node("Add", {"w", "w"}, {"y"})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {external("w", kFloat, {16}, "w.bin")};
  write("m.onnx", m.bytes());
  const Result<Imported> small = import_onnx((dir / "m.onnx").string());
  ASSERT_TRUE(small);
  EXPECT_TRUE(small->defaults.empty());  // a constant, of its own
  const std::shared_ptr<const Tensor> large = weight_of(doubled(external("w", kFloat, {int64_t{kViewed} / 4 + 1}, "w.bin")));
  ASSERT_TRUE(large);
  Tensor written = *large;
  written.data[0] = std::byte{1};
  EXPECT_FALSE(written.data.is_view());
  EXPECT_EQ(std::as_const(large->data)[0], std::byte{0});
  EXPECT_FALSE(written == *large);
}

TEST_F(ModelFiles, BoolsThatAreNeitherZeroNorOneAreCopied) {
  sparse("w.bin", 3 * kViewed);
  Model m{.nodes = {node("Not", {"w"}, {"y"})}, .outputs = {value("y", kBool, {})}};
  m.initializers = {external("w", kBool, {int64_t{kViewed} + 1}, "w.bin")};
  EXPECT_TRUE(weight_of(m.bytes())->data.is_view());
  write_at("w.bin", 5, "\7");
  const std::shared_ptr<const Tensor> w = weight_of(m.bytes());
  EXPECT_FALSE(w->data.is_view());
  EXPECT_EQ(std::as_const(w->data)[5], std::byte{1});
}

/// Control flow, operators of others and those that nobody knows: each once, with its count, and the rest is fused all the same.
TEST_F(ModelFiles, ExplainNamesWhatIsLeftOutAndGoesOn) {
  Model m{.opset = 17, .inputs = {value("x", kFloat, {2, 4}), value("c", kBool, {})}, .outputs = {value("y", kFloat, {2, 4}), value("z", kFloat, {})}};
  m.initializers = {floats("w", {4, 4}, std::vector<float>(16, 1))};
  m.nodes = {node("Exp", {"x"}, {"e"}), node("Neg", {"e"}, {"n"}), node("If", {"c"}, {"i"}), node("Loop", {"", "c", "n"}, {"l"}), node("Scan", {"n"}, {"s"}),
             node("MatMul", {"n", "w"}, {"p"}), node("MatMul", {"p", "w"}, {"q"}), node("Odd", {"q"}, {"o"}, {}, "", "some.where"),
             node("Odd", {"q"}, {"o2"}, {}, "", "some.where"), node("Relu", {"l"}, {"y"}), node("Tanh", {"q"}, {"z"})};
  write("m.onnx", m.bytes());
  peak({"explain", "m.onnx", "--target", "h200"});
  const std::string text = text_of("out");
  for (const char* part : {"11 nodes of operator set 17, 8 left to others, 2 regions", "fuses     exp neg", "reads     %x f32[2,4]", "1 kernel of 2",
                           "boundaries: MatMul 2, If 1, Loop 1, Scan 1", "left out: Relu 1: an operand's shape is not known",
                           "not known: Odd of \"some.where\" 2", "total: 2 kernels of 3, "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

/// A strided convolution over a side of unknown length: what it computes has a length of its own, a quotient.
TEST_F(ModelFiles, ExplainFusesBehindStridedConvolutions) {
  Model m{.opset = 17, .inputs = {value("x", kFloat, {1, 1, "wide", 8})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {floats("w", {2, 1, 3, 3}, std::vector<float>(18, 1))};
  m.nodes = {node("Conv", {"x", "w"}, {"c"}, {integers("strides", {2, 2})}), node("Relu", {"c"}, {"r"}), node("Exp", {"r"}, {"y"})};
  write("m.onnx", m.bytes());
  peak({"explain", "m.onnx", "--target", "h200"});
  std::string text = text_of("out");
  for (const char* part : {"assumed: wide = 1024\n", "rounded:  \"wide/2\" = (wide-1)/2\n", "reads     %c f32[1,2,\"wide/2\",3]", "total: 1 kernel of 2, 24.5 kB of "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;  // 511 · 2 · 3 numbers of 4 bytes, read and written
  peak({"split", "m.onnx", "-o", "d"});
  EXPECT_NE(text_of("d/manifest.json").find("{\"by\":2,\"of\":\"wide-1\",\"symbol\":\"\\\"wide/2\\\"\"}"), std::string::npos) << text_of("d/manifest.json");
  peak({"run", "d/r0.fus", "--dim", "wide/2=5", "--device", "cpu"});
  EXPECT_NE(text_of("out").find("y: f32[1,2,5,3]"), std::string::npos) << text_of("out");
  peak({"run", "m.onnx", "--dim", "wide=12", "--device", "cpu"});
  EXPECT_NE(text_of("out").find("y: f32[1,2,5,3]"), std::string::npos) << text_of("out");
}

/// The upper half of a feature pyramid: twice half a side is the side for even ones only.
TEST_F(ModelFiles, ExplainSaysWhichSizesAreMissing) {
  Model m{.opset = 17, .inputs = {value("x", kFloat, {1, 1, "wide", 8})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {floats("w", {2, 1, 3, 3}, std::vector<float>(18, 1))};
  m.nodes = {node("Conv", {"x", "w"}, {"c"}, {integers("strides", {2, 2}), integers("pads", {1, 1, 1, 1})}), node("Resize", {"c", "", "twice"}, {"d"}),
             node("Add", {"d", "x"}, {"y"})};
  m.initializers.push_back(floats("twice", {4}, {1, 1, 2, 2}));
  write("m.onnx", m.bytes());
  peak({"explain", "m.onnx", "--target", "h200"});
  EXPECT_NE(text_of("out").find("no shape known: 1 tensor, %y; sizes may give some: --dim wide=8\n"), std::string::npos) << text_of("out");
  peak({"explain", "m.onnx", "--target", "h200", "--dim", "wide=10"});
  EXPECT_NE(text_of("out").find("total: 1 kernel of 1"), std::string::npos) << text_of("out");
}

/// A table of 2.9 GB, one row of it beyond the first 2 GiB not zero; a file that takes no room.
struct LargeModel : ModelFiles {
  void SetUp() override {
    const uint64_t size = uint64_t{kRows} * kColumns * 4;
    sparse("table.bin", size);
    write_at("table.bin", uint64_t{699'999} * kColumns * 4, bytes_of(std::vector<float>(kColumns, 1.5f)));
    Model m{.opset = 17, .inputs = {value("k", kInt64, {"n"})}, .outputs = {value("y", kFloat, {"n", kColumns})}};
    m.initializers = {external("table", kFloat, {kRows, kColumns}, "table.bin", "0", std::to_string(size))};
    m.nodes = {node("Gather", {"table", "k"}, {"rows"}), node("Tanh", {"rows"}, {"t"}), node("Mul", {"t", "t"}, {"y"})};
    write("m.onnx", m.bytes());
    write("k.npy", npy({699'999, 5}));
  }
  static std::string npy(const std::vector<int64_t>& numbers) {
    std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (" + std::to_string(numbers.size()) + ",), }";
    header += std::string(117 - header.size(), ' ') + "\n";
    return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + bytes_of(numbers);
  }
  static constexpr int64_t kLittle = 200 << 20;  // bytes; the program alone has some 80 MB of libraries
};

TEST_F(LargeModel, IsReadAndCut) {
  const Result<WholeModel> model = read_model_file((dir / "m.onnx").string());
  ASSERT_TRUE(model) << model.error().text();
  for (const ModelTensor& t : model->tensors)
    if (t.name == "table") {
      ASSERT_TRUE(t.data);
      EXPECT_TRUE(t.data->data.is_view());
      EXPECT_EQ(t.data->data.size(), size_t{kRows} * kColumns * 4);
    }
}

TEST_F(LargeModel, IsExplainedImportedAndRunInLittleMemory) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_LT(peak({"explain", "m.onnx", "--target", "h200"}), kLittle);
  EXPECT_NE(text_of("out").find("tanh mul"), std::string::npos) << text_of("out");
  EXPECT_LT(peak({"run", "m.onnx", "-i", "k=k.npy", "--device", "cpu"}), kLittle);
  EXPECT_NE(text_of("out").find("0.81"), std::string::npos) << text_of("out");  // tanh(1.5)^2 = 0.8193
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

/// Four tables of 1 GB: two of them in one file, one beyond the fourth GB of a file in a folder below. Only what is looked up is ever in memory.
TEST_F(LargeModel, ManyTablesInSeveralFiles) {
  constexpr int64_t rows = 250'000, size = rows * kColumns * 4, page = 4096;
  struct Table {
    const char *name, *file;
    int64_t offset;
  };
  const Table tables[] = {{"a", "one.bin", 0}, {"b", "two.bin", 0}, {"c", "two.bin", size + page}, {"d", "below/three.bin", 5 * size}};
  fs::create_directory(dir / "below");
  for (const char* file : {"one.bin", "two.bin", "below/three.bin"}) sparse(file, 6 * size);
  Model m{.opset = 17, .inputs = {value("k", kInt64, {"n"})}, .outputs = {value("y", kFloat, {"n", kColumns})}};
  std::string sum;
  for (int t = 0; t < 4; ++t) {
    const auto& [name, file, offset] = tables[t];
    write_at(file, uint64_t(offset + (rows - 1) * kColumns * 4), bytes_of(std::vector<float>(kColumns, float(1 << 2 * t))));
    m.initializers.push_back(external(name, kFloat, {rows, kColumns}, file, std::to_string(offset), std::to_string(size)));
    m.nodes.push_back(node("Gather", {name, "k"}, {std::string(name) + "rows"}));
    if (t > 0) m.nodes.push_back(node("Add", {sum, std::string(name) + "rows"}, {t == 3 ? "y" : "sum" + std::to_string(t)}));
    sum = t == 0 ? "arows" : "sum" + std::to_string(t);
  }
  write("m.onnx", m.bytes());
  write("k.npy", npy({rows - 1, 0}));
  for (const char* command : {"explain", "import"}) EXPECT_LT(peak({command, "m.onnx", "--dim", "n=2"}), kLittle) << command;
  EXPECT_LT(peak({"run", "m.onnx", "-i", "k=k.npy", "--device", "cpu"}), kLittle);
  EXPECT_NE(text_of("out").find("y: f32[2,1024] [85.0, 85.0,"), std::string::npos) << text_of("out");  // 1 + 4 + 16 + 64
}

/// A host's weights are written from where they lie, without a copy.
TEST_F(LargeModel, IsSplitWithoutACopy) {
  constexpr int64_t rows = 80'000, size = rows * kColumns * 4;  // 328 MB, which the test really writes
  Model m{.opset = 17, .inputs = {value("k", kInt64, {"n"})}, .outputs = {value("y", kFloat, {"n", kColumns})}};
  m.initializers = {external("table", kFloat, {rows, kColumns}, "table.bin", "0", std::to_string(size))};
  m.nodes = {node("Gather", {"table", "k"}, {"rows"}), node("Tanh", {"rows"}, {"y"})};
  write("m.onnx", m.bytes());
  EXPECT_LT(peak({"split", "m.onnx", "-o", "split", "--dim", "n=2"}), size + kLittle) << "the file's own pages, which the system takes back when it likes";
  EXPECT_GT(fs::file_size(dir / "split/weights.safetensors"), uint64_t{size});
}

/// The same with nothing left to others: the table is an operand of a kernel.
TEST_F(LargeModel, IsOneGraph) {
  Model m{.opset = 17, .inputs = {value("x", kFloat, {1})}, .outputs = {value("y", kFloat, {})}};
  m.initializers = {external("table", kFloat, {kRows, kColumns}, "table.bin"), longs("from", {699'998}), longs("to", {kRows}), longs("axis", {0})};
  m.nodes = {node("Slice", {"table", "from", "to", "axis"}, {"rows"}), node("Mul", {"rows", "x"}, {"y"})};
  write("m.onnx", m.bytes());
  EXPECT_LT(peak({"import", "m.onnx"}), kLittle);
  EXPECT_NE(text_of("out").find("slice"), std::string::npos) << text_of("out");
  EXPECT_NE(text_of("err").find("weight %table (2.87 GB) is an input"), std::string::npos) << text_of("err");
  EXPECT_LT(peak({"run", "m.onnx", "--device", "cpu", "-q"}), kLittle);
}

}  // namespace
}  // namespace fusec
