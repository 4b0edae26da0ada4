// Files that want to do harm: cut, cyclic, huge, lying, reaching outside. Each gives an error, quickly, and nothing
// else.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/import/model.h"
#include "lib/import/onnx.h"
#include "lib/import/onnx_tensor.h"
#include "lib/ir/convert.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;
using namespace test;

std::string error_of(const Bytes& bytes, const std::string& folder = "") {
  const Result<Imported> r = import_onnx_bytes(bytes, folder);
  EXPECT_FALSE(r) << "expected an error";
  if (r) return "no error";
  EXPECT_EQ(r.error().kind, Error::input);
  EXPECT_LT(r.error().text().size(), 20000u);
  return r.error().text();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

Model rich() {
  return {.opset = 13,
          .nodes = {node("Shape", {"x"}, {"s"}), node("Reshape", {"x", "to"}, {"r"}),
                    node("Softmax", {"r"}, {"p"}, {integer("axis", -1)}, "soft"),
                    node("Slice", {"p", "zero", "one"}, {"c"}), node("Clip", {"c", "", "hi"}, {"k"}),
                    node("Pad", {"k", "pads"}, {"q"}), node("Expand", {"q", "s"}, {"y"}),
                    node("Constant", {}, {"z"}, {tensor_attribute("value", floats("", {2}, {1, 2}))})},
          .inputs = {value("x", kFloat, {2, 2})},
          .outputs = {value("y", kFloat, {2, "M"}), value("z", kFloat, {2})},
          .initializers = {longs("to", {1, 4}), longs("zero", {0, 0}), longs("one", {1, 2}), floats("hi", {}, {0.5}),
                           longs("pads", {0, 0, 0, 0})}};
}

Model weights() {
  return {.opset = 17,
          .nodes = {node("LayerNormalization", {"x", "scale", "bias"}, {"n"}, {integer("axis", -1), real("epsilon", 1e-5f)}, "norm"),
                    node("Gelu", {"n"}, {"y"}, {text("approximate", "tanh")}, "act")},
          .inputs = {value("x", kBfloat16, {"B", 4})},
          .outputs = {value("y", kBfloat16, {"B", 4})},
          .initializers = {raw("scale", kBfloat16, {4}, std::string(8, '\x3f')), raw("bias", kBfloat16, {4}, std::string(8, '\0'))}};
}

Model integers_only() {
  return {.opset = 13,
          .nodes = {node("Split", {"x", "parts"}, {"a", "b"}, {integer("axis", 0)}), node("Concat", {"b", "a"}, {"c"}, {integer("axis", 0)}),
                    node("Cast", {"c"}, {"f"}, {integer("to", kFloat)}), node("ReduceSum", {"f", "axes"}, {"s"}, {integer("keepdims", 0)}),
                    node("Transpose", {"f"}, {"y"}, {integers("perm", {1, 0})})},
          .inputs = {value("x", kInt8, {5, 3})},
          .outputs = {value("y", kFloat, {3, 5}), value("s", kFloat, {3})},
          .initializers = {longs("parts", {2, 3}), longs("axes", {0})}};
}

TEST(OnnxHostile, EveryTruncationIsHandled) {
  Model late = weights();
  late.opset = 20;  // Gelu's first
  for (const Model& model : {rich(), late, integers_only()}) {
    const Bytes whole = model.bytes();
    ASSERT_TRUE(import_onnx_bytes(whole)) << import_onnx_bytes(whole).error().text();
    for (size_t n = 0; n < whole.size(); ++n) {
      const Result<Imported> r = import_onnx_bytes(std::string_view(whole).substr(0, n));
      // The operator sets come last here, so no shorter file is a model.
      ASSERT_FALSE(r) << n;
      EXPECT_EQ(r.error().kind, Error::input);
      const std::string& text = r.error().message;
      EXPECT_TRUE(text.find("at byte ") != text.npos || text.find("no graph in it") != text.npos || text.find("no operator set") != text.npos) << text;
    }
  }
}

/// A cut file's error names the byte, and the part of the graph that it lies in.
TEST(OnnxHostile, DamageIsLocated) {
  const Bytes whole = rich().bytes();
  const size_t at = whole.find("soft");
  EXPECT_SAYS(error_of(whole.substr(0, at)), "damaged or truncated ONNX file at byte ");
  Model m = rich();
  m.nodes[2].resize(m.nodes[2].size() - 3);
  EXPECT_SAYS(error_of(m.bytes()), ", in or behind node 2: ");
  m = rich();
  m.initializers[1].resize(m.initializers[1].size() - 3);
  EXPECT_SAYS(error_of(m.bytes()), "initialiser 1");
}

/// The same where the cut message is inside another one that is whole: its length lies, too.
TEST(OnnxHostile, EveryTruncatedPartIsHandled) {
  for (const Model& model : {rich(), integers_only()}) {
    for (size_t k = 0; k < model.nodes.size(); ++k)
      for (size_t n = 0; n < model.nodes[k].size(); ++n) {
        Model cut = model;
        cut.nodes[k].resize(n);
        const Result<Imported> r = import_onnx_bytes(cut.bytes());
        if (!r) EXPECT_EQ(r.error().kind, Error::input);
        else EXPECT_TRUE(verify(r->graph));
      }
    for (size_t k = 0; k < model.initializers.size(); ++k)
      for (size_t n = 0; n < model.initializers[k].size(); ++n) {
        Model cut = model;
        cut.initializers[k].resize(n);
        const Result<Imported> r = import_onnx_bytes(cut.bytes());
        if (!r) EXPECT_EQ(r.error().kind, Error::input);
        else EXPECT_TRUE(verify(r->graph));
      }
  }
}

/// Hostile sizes and names by what they are called in an error: the node or the field, and what is wrong with it.
TEST(OnnxHostile, ErrorsNameThePlace) {
  const auto of = [](std::vector<Bytes> nodes, std::vector<Bytes> inputs, std::vector<Bytes> initializers = {}) {
    return error_of(Model{.opset = 13, .nodes = std::move(nodes), .inputs = std::move(inputs), .outputs = {value("y", kFloat, {})},
                          .initializers = std::move(initializers)}.bytes());
  };
  const int64_t huge = int64_t{1} << 62;
  EXPECT_SAYS(of({node("Concat", {"x", "x", "x"}, {"y"}, {integer("axis", 0)}, "join")}, {value("x", kFloat, {huge})}), "node 0 \"join\" (Concat");
  EXPECT_SAYS(of({node("Expand", {"x", "s"}, {"y"}, {}, "grow")}, {value("x", kFloat, {1})}, {longs("s", {huge, 4})}), "node 0 \"grow\" (Expand");
  EXPECT_SAYS(of({node("Neg", {"x"}, {"h"}), node("Reshape", {"h", "s"}, {"y"}, {}, "fold")}, {value("x", kFloat, {4})}, {longs("s", {huge, huge, 0})}),
              "node 1 \"fold\" (Reshape");
  EXPECT_SAYS(of({node("Reshape", {"x", "s"}, {"y"})}, {value("x", kFloat, {4})}, {longs("s", {-1, -1})}), "node 0 (Reshape");
  EXPECT_SAYS(of({node("Reshape", {"x", "s"}, {"y"})}, {value("x", kFloat, {4})}, {longs("s", {-7})}), "node 0 (Reshape");
  EXPECT_SAYS(of({node("Unsqueeze", {"x", "s"}, {"y"})}, {value("x", kFloat, {4})}, {longs("s", {INT64_MIN})}), "node 0 (Unsqueeze");
  EXPECT_SAYS(of({node("Transpose", {"x"}, {"y"}, {integers("perm", {0, 0})})}, {value("x", kFloat, {2, 2})}), "node 0 (Transpose");
  EXPECT_SAYS(of({node("Cast", {"x"}, {"y"}, {integer("to", 77)}, "odd")}, {value("x", kFloat, {2})}), "node 0 \"odd\" (Cast");
  EXPECT_SAYS(of({node("Cast", {"x"}, {"y"}, {integer("to", kString)})}, {value("x", kFloat, {2})}), "STRING");
  EXPECT_SAYS(of({node("Neg", {"x"}, {"y"}), node("Neg", {"x"}, {"y"}, {}, "again")}, {value("x", kFloat, {2})}), "node 1 \"again\" (Neg");
  EXPECT_SAYS(of({node("Neg", {"x"}, {"y"}, {integer("axis", 1)})}, {value("x", kFloat, {2})}), "attribute \"axis\"");
  // A long cycle.
  std::vector<Bytes> ring;
  for (int k = 0; k < 20000; ++k) ring.push_back(node("Neg", {"v" + std::to_string((k + 1) % 20000)}, {"v" + std::to_string(k)}));
  ring.push_back(node("Neg", {"v0"}, {"y"}));
  EXPECT_SAYS(of(ring, {}), "node 0 (Neg, operator set 13): input \"v1\" is computed by a later node");
}

/// Deterministic damage; import has to return, and what it accepts has to be a graph that verifies.
TEST(OnnxHostile, DamagedBytesNeverCrash) {
  const Bytes whole = rich().bytes();
  uint64_t state = 1;
  const auto random = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  int accepted = 0;
  for (int k = 0; k < 20000; ++k) {
    Bytes bytes = whole;
    for (uint64_t edits = 1 + random(4); edits > 0; --edits) {
      const size_t at = random(bytes.size());
      switch (random(4)) {
        case 0: bytes[at] = static_cast<char>(random(256)); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random(8))); break;
        case 2: bytes.erase(at, 1 + random(8)); break;
        default: bytes.insert(at, bytes.substr(random(bytes.size()), 1 + random(16)));
      }
      if (bytes.empty()) bytes = whole;
    }
    const Result<Imported> r = import_onnx_bytes(bytes);
    if (!r) continue;
    ++accepted;
    EXPECT_TRUE(verify(r->graph));
  }
  EXPECT_GT(accepted, 0);
}

TEST(OnnxHostile, NoModelAtAll) {
  EXPECT_SAYS(error_of(""), "no graph");
  EXPECT_SAYS(error_of(std::string(1000, '\0')), "");
  EXPECT_SAYS(error_of(std::string(1000, '\xff')), "damaged");
  EXPECT_SAYS(error_of("graph @f(%x: f32[2]) -> f32[2] { return %x }"), "");
}

TEST(OnnxHostile, CyclesAndOrder) {
  Model m{.nodes = {node("Add", {"x", "b"}, {"a"}), node("Neg", {"a"}, {"b"})},
          .inputs = {value("x", kFloat, {1})},
          .outputs = {value("a", kFloat, {1})}};
  EXPECT_SAYS(error_of(m.bytes()), "node 0 (Add, operator set 17): input \"b\" is computed by a later node");
  m.nodes = {node("Neg", {"a"}, {"a"})};
  EXPECT_SAYS(error_of(m.bytes()), "later node");
  m.outputs = {value("q", kFloat, {1})};
  m.nodes = {};
  EXPECT_SAYS(error_of(m.bytes()), "output \"q\" is computed by no node");
}

TEST(OnnxHostile, NamesTwice) {
  const Model good{.nodes = {node("Neg", {"x"}, {"y"})},
                   .inputs = {value("x", kFloat, {1})},
                   .outputs = {value("y", kFloat, {1})},
                   .initializers = {floats("w", {1}, {1})}};
  Model m = good;
  m.nodes.push_back(node("Abs", {"x"}, {"y"}));
  EXPECT_SAYS(error_of(m.bytes()), "node 1 (Abs");
  m = good;
  m.nodes.push_back(node("Abs", {"x"}, {"x"}));
  EXPECT_SAYS(error_of(m.bytes()), "one source");
  m = good;
  m.nodes.push_back(node("Abs", {"x"}, {"w"}));
  EXPECT_SAYS(error_of(m.bytes()), "one source");
  m = good;
  m.inputs.push_back(m.inputs[0]);
  EXPECT_SAYS(error_of(m.bytes()), "input \"x\" is there twice");
  m = good;
  m.initializers.push_back(m.initializers[0]);
  EXPECT_SAYS(error_of(m.bytes()), "initialiser \"w\" is there twice");
  m = good;
  m.outputs.push_back(m.outputs[0]);
  EXPECT_SAYS(error_of(m.bytes()), "output \"y\" is there twice");
}

TEST(OnnxHostile, DimsAndSizes) {
  const auto with = [](const Bytes& input) {
    return Model{.nodes = {node("Neg", {"x"}, {"y"})}, .inputs = {input}, .outputs = {value("y", kFloat, {})}}.bytes();
  };
  EXPECT_SAYS(error_of(with(value("x", kFloat, {2, -1}))), "axis 1 is -1");
  EXPECT_SAYS(error_of(with(value("x", kFloat, {int64_t{1} << 40, int64_t{1} << 40}))), "input \"x\"");
  EXPECT_SAYS(error_of(with(value("x", kFloat, std::vector<Extent>(9, Extent(1))))), "input \"x\"");
  EXPECT_SAYS(error_of(with(value("x", 77, {1}))), "data type 77");
  const auto weight = [](const Bytes& t) {
    return Model{.nodes = {node("Neg", {"w"}, {"y"})}, .outputs = {value("y", kFloat, {})}, .initializers = {t}}
        .bytes();
  };
  EXPECT_SAYS(error_of(weight(raw("w", kFloat, {-2}, ""))), "initialiser \"w\": a negative dim");
  EXPECT_SAYS(error_of(weight(raw("w", kFloat, {int64_t{1} << 62}, ""))), "2^60 elements");
  EXPECT_SAYS(error_of(weight(raw("w", kFloat, {int64_t{1} << 40}, "1234"))), "raw_data of 4 bytes");
  EXPECT_SAYS(error_of(weight(raw("w", kFloat, {2}, "1234567"))), "raw_data of 7 bytes");
  EXPECT_SAYS(error_of(weight(raw("w", 0, {1}, "1234"))), "undefined is not supported");
  EXPECT_SAYS(error_of(weight(raw("w", 99, {1}, "1234"))), "data type 99");
  Bytes none;
  pbf_writer w(none);
  w.add_int64(1, int64_t{1} << 50);
  w.add_enum(2, kFloat);
  w.add_string(8, "w");
  EXPECT_SAYS(error_of(weight(none)), "0 elements of data");
  // Shapes that only nodes make.
  Model m{.opset = 13,
          .nodes = {node("ConstantOfShape", {"s"}, {"y"})},
          .outputs = {value("y", kFloat, {})},
          .initializers = {longs("s", {int64_t{1} << 40, int64_t{1} << 40})}};
  EXPECT_SAYS(error_of(m.bytes()), "node 0 (ConstantOfShape");
  m.initializers = {longs("s", {-5})};
  EXPECT_SAYS(error_of(m.bytes()), "negative dim");
  m = {.opset = 13,
       .nodes = {node("Tile", {"x", "r"}, {"y"})},
       .inputs = {value("x", kFloat, {8, 8})},
       .outputs = {value("y", kFloat, {})},
       .initializers = {longs("r", {INT64_MAX, INT64_MAX})}};
  EXPECT_SAYS(error_of(m.bytes()), "node 0 (Tile");
  m = {.opset = 13,
       .nodes = {node("Pad", {"x", "p"}, {"y"})},
       .inputs = {value("x", kFloat, {8})},
       .outputs = {value("y", kFloat, {})},
       .initializers = {longs("p", {INT64_MAX, INT64_MAX})}};
  EXPECT_SAYS(error_of(m.bytes()), "node 0 (Pad");
  m.initializers = {longs("p", {INT64_MIN, INT64_MIN})};
  (void)import_onnx_bytes(m.bytes());
  m = {.opset = 13,
       .nodes = {node("Range", {"a", "b", "c"}, {"y"})},
       .outputs = {value("y", kInt64, {})},
       .initializers = {raw("a", kInt64, {}, bytes_of(std::vector<int64_t>{INT64_MIN})),
                        raw("b", kInt64, {}, bytes_of(std::vector<int64_t>{INT64_MAX})),
                        raw("c", kInt64, {}, bytes_of(std::vector<int64_t>{1}))}};
  EXPECT_SAYS(error_of(m.bytes()), "too many elements");
  m = {.opset = 13,
       .nodes = {node("Slice", {"x", "s", "e", "a", "p"}, {"y"})},
       .inputs = {value("x", kFloat, {8})},
       .outputs = {value("y", kFloat, {})},
       .initializers = {longs("s", {INT64_MIN}), longs("e", {INT64_MAX}), longs("a", {0}), longs("p", {INT64_MIN})}};
  (void)import_onnx_bytes(m.bytes());
}

TEST(OnnxHostile, ManyNodes) {
  Model m{.inputs = {value("x", kFloat, {1})},
          .outputs = {value("v100000", kFloat, {1})},
          .initializers = {floats("one", {1}, {1})}};
  for (int k = 0; k < 100000; ++k)
    m.nodes.push_back(node("Add", {k == 0 ? "x" : "v" + std::to_string(k), "one"}, {"v" + std::to_string(k + 1)}));
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << imported.error().text();
  EXPECT_GE(imported->graph.size(), 100000u);
  m.nodes.push_back(node("Add", {"v5", "late"}, {"z"}, {}, "last"));
  EXPECT_SAYS(error_of(m.bytes()), "node 100000 \"last\" (Add, operator set 17)");
  // As many unknown operators: the list is cut.
  m.nodes.clear();
  for (int k = 0; k < 100000; ++k) m.nodes.push_back(node("Op" + std::to_string(k), {"x"}, {"v" + std::to_string(k)}));
  EXPECT_SAYS(error_of(m.bytes()), "also not supported: \"Op1\"");
  // Left to others they are a model, if its result has a source.
  m.outputs = {value("v99999", kFloat, {1})};
  const Result<WholeModel> whole = read_model_bytes(m.bytes());
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(whole->boundaries.size(), 100000u);
  // Regions between them: every second node is left out.
  m.nodes.clear();
  for (int k = 0; k < 20000; ++k) {
    const std::string from = k == 0 ? "x" : "v" + std::to_string(k);
    m.nodes.push_back(node("Neg", {from}, {"n" + std::to_string(k)}));
    m.nodes.push_back(node("MatMul", {"n" + std::to_string(k), "n" + std::to_string(k)}, {"v" + std::to_string(k + 1)}));
  }
  m.inputs = {value("x", kFloat, {2, 2})};
  m.outputs = {value("v20000", kFloat, {2, 2})};
  const Result<WholeModel> cut = read_model_bytes(m.bytes());
  ASSERT_TRUE(cut) << cut.error().text();
  EXPECT_EQ(cut->regions.size(), 20000u);
}

/// A few bytes of file that each ask for 32 KB, and for 256 nodes.
TEST(OnnxHostile, Amplification) {
  Model m{.opset = 13, .outputs = {value("v0", kInt64, {4096})}, .initializers = {longs("s", {4096})}};
  const Bytes one = tensor_attribute("value", longs("", {1}));
  for (int k = 0; k < 20000; ++k) m.nodes.push_back(node("ConstantOfShape", {"s"}, {"v" + std::to_string(k)}, {one}));
  const Result<Imported> imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << imported.error().text();
  // A hundred ops an operator.
  m = {.opset = 13, .inputs = {value("v0", kFloat, {1, 100})}, .outputs = {value("v1", kFloat, {1, 100})}};
  for (int k = 0; k < 20000; ++k)
    m.nodes.push_back(node("LRN", {"v" + std::to_string(k)}, {"v" + std::to_string(k + 1)}, {integer("size", 63)}));
  EXPECT_SAYS(error_of(m.bytes()), "more than 1000000 nodes");
}

TEST(OnnxHostile, TooManyItems) {
  const Bytes many(2 * 3'000'000, '\x0a');  // pairs of tag and … a length of 10: nested garbage
  Bytes graph, model;
  pbf_writer g(graph), m(model);
  for (int k = 0; k < 2'100'000; ++k) g.add_message(1, Bytes());
  m.add_message(7, graph);
  EXPECT_SAYS(error_of(model), "more than 2000000");
  (void)import_onnx_bytes(many);
}

// --- external data
// ----------------------------------------------------------------------------------------------------------

class OnnxExternal : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/fusec_onnx_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    folder_ = root_ / "model";
    fs::create_directories(folder_ / "sub");
    write(folder_ / "w.bin", bytes_of(std::vector<float>{1, 2, 3, 4}));
    write(folder_ / "sub" / "v.bin", bytes_of(std::vector<float>{5, 6, 7, 8}));
    write(root_ / "secret", bytes_of(std::vector<float>{9, 9, 9, 9}));
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& data) { std::ofstream(path, std::ios::binary) << data; }
  Bytes model(const Bytes& t) const {
    return Model{.nodes = {node("Neg", {"w"}, {"y"})}, .outputs = {value("y", kFloat, {})}, .initializers = {t}}
        .bytes();
  }
  std::string error(const std::string& location, const std::string& offset = "", const std::string& length = "") const {
    return error_of(model(external("w", kFloat, {4}, location, offset, length)), folder_);
  }
  std::vector<double> load(const Bytes& t) const {
    const Result<Imported> r = import_onnx_bytes(model(t), folder_);
    EXPECT_TRUE(r) << (r ? "" : r.error().text());
    if (!r) return {};
    const auto out = evaluate(r->graph, {});
    EXPECT_TRUE(out);
    std::vector<double> v;
    for (int64_t k = 0; out && k < out->at(0).elements(); ++k) v.push_back(-element(out->at(0), k));
    return v;
  }

  fs::path root_, folder_;
};

TEST_F(OnnxExternal, InsideTheFolder) {
  EXPECT_EQ(load(external("w", kFloat, {4}, "w.bin")), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(load(external("w", kFloat, {2}, "w.bin", "4", "8")), (std::vector<double>{2, 3}));
  EXPECT_EQ(load(external("w", kFloat, {4}, "sub/v.bin", "0", "16")), (std::vector<double>{5, 6, 7, 8}));
  fs::create_symlink("sub/v.bin", folder_ / "inner");
  EXPECT_EQ(load(external("w", kFloat, {4}, "inner")), (std::vector<double>{5, 6, 7, 8}));
  EXPECT_EQ(load(external("w", kFloat, {4}, "./w.bin")), (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(OnnxExternal, BeyondFourGigabytes) {
  const fs::path path = folder_ / "big.bin";
  write(path, "");
  fs::resize_file(path, 5000000016);  // sparse
  {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(5000000000);
    f << bytes_of(std::vector<float>{1, 2, 3, 4});
  }
  EXPECT_EQ(load(external("w", kFloat, {4}, "big.bin", "5000000000", "16")), (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(OnnxExternal, OutsideTheFolder) {
  EXPECT_SAYS(error("../secret"), "outside the model's folder");
  EXPECT_SAYS(error("sub/../../secret"), "outside the model's folder");
  EXPECT_SAYS(error((root_ / "secret").string()), "absolute");
  EXPECT_SAYS(error("/etc/passwd"), "absolute");
  EXPECT_SAYS(error(std::string("w.bin\0x", 7)), "NUL");
  EXPECT_SAYS(error(""), "without a location");
  fs::create_symlink("../secret", folder_ / "link");
  EXPECT_SAYS(error("link"), "leads outside");
  fs::create_directory_symlink("..", folder_ / "up");
  EXPECT_SAYS(error("up/secret"), "leads outside");
  EXPECT_SAYS(error("missing.bin"), "external data");
  EXPECT_SAYS(error("sub"), "not a regular file");
  EXPECT_SAYS(error("."), "external data");
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_SAYS(error("fifo"), "not a regular file");
  EXPECT_SAYS(error_of(model(external("w", kFloat, {4}, "w.bin"))), "no folder to look in");
}

TEST_F(OnnxExternal, Ranges) {
  EXPECT_SAYS(error("w.bin", "18446744073709551608", "16"), "offset");
  EXPECT_SAYS(error("w.bin", "9223372036854775807", "16"), "of a file of 16");
  EXPECT_SAYS(error("w.bin", "4", "16"), "of a file of 16");
  EXPECT_SAYS(error("w.bin", "0", "12"), "length 12");
  EXPECT_SAYS(error("w.bin", "0", "20"), "length 20");
  EXPECT_SAYS(error("w.bin", "-4", ""), "offset");
  EXPECT_SAYS(error("w.bin", "0x4", ""), "offset");
  EXPECT_SAYS(error("w.bin", "4", ""), "of a file of 16");
  EXPECT_SAYS(error("w.bin", "0", "99999999999999999999"), "length");
  EXPECT_SAYS(error_of(model(external("w", kFloat, {int64_t{1} << 50}, "w.bin")), folder_), "of a file of 16");
}

TEST_F(OnnxExternal, FilesThatAreNoModels) {
  EXPECT_FALSE(import_onnx((folder_ / "missing.onnx").string()));
  EXPECT_FALSE(import_onnx(folder_.string()));
  write(folder_ / "empty.onnx", "");
  EXPECT_FALSE(import_onnx((folder_ / "empty.onnx").string()));
  write(folder_ / "m.onnx", model(external("w", kFloat, {4}, "w.bin")));
  EXPECT_TRUE(import_onnx((folder_ / "m.onnx").string()));
  EXPECT_FALSE(onnx::read_tensor_file((folder_ / "w.bin").string()));
}

TEST(OnnxTensors, WrittenTensorsReadBack) {
  const Tensor t{DType::i32, {2, 1}, std::vector<std::byte>{std::byte{1}, {}, {}, {}, std::byte{2}, {}, {}, {}}};
  onnx::TensorSource nowhere{nullptr, onnx::DataFiles("")};
  const Result<Tensor> back = onnx::read_tensor(onnx::write_tensor("t", t), nowhere);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, t);
}

/// All of the above together: what a file asks for stays in proportion to its size.
class Bounds : public ::testing::Environment {
  void TearDown() override {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
#if !defined(__SANITIZE_ADDRESS__)
    EXPECT_LT(usage.ru_maxrss, 2 << 20) << "KB at most: 100,000 nodes and 2 million items take some";
#endif
    EXPECT_LT(usage.ru_utime.tv_sec, 300);
  }
};
const auto* const kBounds = ::testing::AddGlobalTestEnvironment(new Bounds);

}  // namespace
}  // namespace fusec
