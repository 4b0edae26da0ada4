// Each limit of lib/support/limits.h: what it allows is taken, one more is an error that names it, and docs/ir.md says so. Streams: files_test.

#include "lib/support/limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fusec/graph.h"
#include "lib/import/onnx.h"
#include "lib/support/files.h"
#include "lib/support/text.h"
#include "runtime/cache.h"
#include "test/folder.h"
#include "test/import/onnx_writer.h"
#include "tools/fusec/fus_file.h"
#include "tools/fusec/tensor_file.h"

namespace fusec {
namespace {

std::string repeated(size_t n, const std::string& what, const std::string& between) {
  std::string out = what;
  for (size_t i = 1; i < n; ++i) out += between + what;
  return out;
}

std::string error_of(const std::string& text) {
  const auto graph = parse(text);
  if (graph) return "";
  EXPECT_EQ(graph.error().kind, Error::input);
  EXPECT_GT(graph.error().at.line, 0) << "not located: " << graph.error().text();
  EXPECT_LT(graph.error().text().size(), 3000u) << "a message is for people";
  return graph.error().text();
}

std::string identity(const std::string& name, const std::string& type, const std::string& value = "x", const std::string& port = "") {
  return "graph @" + name + "(%" + value + ": " + type + ") -> " + type + " {\n  return " + port + "%" + value + "\n}\n";
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

TEST(Limits, StandInTheDocs) {
  const auto docs = read_file(FUSEC_SOURCE_DIR "/docs/ir.md");
  ASSERT_TRUE(docs);
  for (const Limit& limit : kLimits) {
    std::string digits = std::to_string(limit.most);
    for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    EXPECT_NE(docs->find("| " + digits + " | " + limit.what + " |\n"), std::string::npos) << "| " << digits << " | " << limit.what << " |";
  }
}

TEST(Limits, Nodes) {
  const auto chain = [](size_t nodes) {  // one of them is the input
    std::string text = "graph @g(%v0: i8[]) -> i8[] {\n";
    for (size_t i = 1; i < nodes; ++i) text += "%v" + std::to_string(i) + "=neg %v" + std::to_string(i - 1) + "\n";
    return text + "return %v" + std::to_string(nodes - 1) + "}";
  };
  EXPECT_EQ(error_of(chain(kMaxNodes)), "");
  EXPECT_SAYS(error_of(chain(kMaxNodes + 1)), "more than 1,000,000 nodes");
}

TEST(Limits, ItemsOfModels) {
  using namespace test;
  const auto graph_of = [](size_t nodes) {  // two bytes each
    Bytes graph, model;
    protozero::pbf_writer g(graph), m(model);
    for (size_t k = 0; k < nodes; ++k) g.add_message(1, Bytes());
    m.add_message(7, graph);
    const auto imported = import_onnx_bytes(model);
    return imported ? "" : imported.error().text();
  };
  const std::string says = "more than 2000000 nodes, names and attributes";
  EXPECT_SAYS(graph_of(kMaxModelItems + 1), says);
  EXPECT_EQ(graph_of(kMaxModelItems).find(says), std::string::npos) << "a fault, but another one";
}

/// Files of holes: their size alone is looked at before anything is reserved.
TEST(Limits, FilesOfModelsAndOfTheCache) {
  const Folder folder("limits");
  const std::string model = folder.path / "m.onnx";
  std::ofstream(model, std::ios::binary).put('\0');
  ASSERT_EQ(::truncate(model.c_str(), kMaxModelBytes + 1), 0);
  const auto imported = import_onnx(model);
  ASSERT_FALSE(imported);
  EXPECT_SAYS(imported.error().text(), "larger than 2 GiB");

  auto dir = CacheDir::open(folder.path / "cache", 64 << 20);
  ASSERT_TRUE(dir) << dir.error().text();
  const Digest key = cache_key({"limits"});
  Artifact artifact;
  artifact.entry = "g";
  ASSERT_TRUE(dir->write(key, artifact));
  ASSERT_TRUE(dir->read(key));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path / "cache")) ASSERT_EQ(::truncate(entry.path().c_str(), kMaxArtifactBytes + 1), 0);
  EXPECT_FALSE(dir->read(key));
  EXPECT_TRUE(dir->list().empty()) << "and it is gone";
}

/// Constants of nodes: what is beyond stays a node of the graph, and none is lost.
TEST(Limits, FoldsOfModels) {
  using namespace test;
  Model m{.opset = 13, .initializers = {longs("s", {4096})}};
  const Bytes one = tensor_attribute("value", longs("", {1}));  // 32 KiB a node
  const size_t folds = kMaxModelFolds / (4096 * 8), nodes = folds + 100;
  for (size_t k = 0; k < nodes; ++k) {
    m.nodes.push_back(node("ConstantOfShape", {"s"}, {"v" + std::to_string(k)}, {one}));
    m.outputs.push_back(value("v" + std::to_string(k), kInt64, {4096}));
  }
  const auto imported = import_onnx_bytes(m.bytes());
  ASSERT_TRUE(imported) << imported.error().text();
  ASSERT_EQ(imported->graph.outputs().size(), nodes);
  size_t known = 0;
  for (const Port& port : imported->graph.outputs()) known += imported->graph.node(port.node).op == Op::constant;
  EXPECT_EQ(known, folds + 1) << "up to the one that goes beyond";
}

TEST(Limits, Axes) {
  const auto ones = [](size_t rank) { return "f32[" + repeated(rank, "1", ",") + "]"; };
  EXPECT_EQ(error_of(identity("g", ones(8))), "");
  EXPECT_SAYS(error_of(identity("g", ones(9))), "8");
  EXPECT_SAYS(error_of(identity("g", ones(100'000))), "more than 8 axes");
  const auto list = [](size_t depth) {
    return "graph @g() -> f32[1,1] {\n  %c = constant {value=f32[1,1] " + std::string(depth, '[') + "1.0" + std::string(depth, ']') + "}\n  return %c\n}\n";
  };
  EXPECT_EQ(error_of(list(2)), "");
  EXPECT_SAYS(error_of(list(3)), "nested deeper than the rank");
  EXPECT_SAYS(error_of(list(1'000'000)), "nested deeper than the rank");
}

TEST(Limits, Elements) {
  EXPECT_EQ(error_of(identity("g", "bool[9223372036854775807]")), "");
  EXPECT_EQ(error_of(identity("g", "f64[4611686018427387904]")), "") << "a graph of 2^62 elements is only a graph";
  EXPECT_SAYS(error_of(identity("g", "bool[9223372036854775808]")), "expected a dim");
  EXPECT_SAYS(error_of(identity("g", "bool[4611686018427387904,2]")), "2^63 elements or more");
  EXPECT_SAYS(error_of(identity("g", "bool[-1]")), "negative");
}

TEST(Limits, Names) {
  const std::string most(kMaxName, 'n'), more(kMaxName + 1, 'n'), says = "has 65537 bytes: at most 65536";
  EXPECT_EQ(error_of(identity(most, "f32[" + most + "]", most, most + "=")), "");
  EXPECT_SAYS(error_of(identity(more, "f32[]")), says);
  EXPECT_SAYS(error_of(identity("g", "f32[]", more)), says);
  EXPECT_SAYS(error_of(identity("g", "f32[]", "\"" + more + "\"")), says);
  EXPECT_SAYS(error_of(identity("g", "f32[]", "x", more + "=")), says);
  EXPECT_SAYS(error_of(identity("g", "f32[" + more + "]")), "expected a dim");
  // The same where no text is read.
  EXPECT_SAYS(GraphBuilder(more).error()->message, says);
  GraphBuilder b("g");
  EXPECT_FALSE(b.input(more, {}).valid());
  GraphBuilder c("g");
  c.label(c.input("x", {}), more);
  EXPECT_SAYS(c.error()->message, says);
  GraphBuilder d("g");
  EXPECT_FALSE(std::move(d).finish({d.input("x", {})}, {more}));
  // And where names are made of names: what is printed is read again.
  GraphBuilder e("g");
  const Value x = e.input(most, {DType::f32, {}}), y = e.add(Op::neg, {x}), z = e.add(Op::abs, {x});
  e.label(y, most), e.label(z, most);
  const auto graph = std::move(e).finish({y, z}, {most, "z"});
  ASSERT_TRUE(graph);
  const auto back = parse(print(*graph));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(print(*back), print(*graph));
}

TEST(Limits, OfNamesInModels) {
  using namespace test;
  const std::string more(kMaxName + 1, 'n');
  const auto model = [](const std::string& in, const std::string& size, const std::string& node_output) {
    return Model{.nodes = {node("Neg", {in}, {"y"}), node("Abs", {"y"}, {node_output})},
                 .inputs = {value(in, kFloat, {size.c_str()})}, .outputs = {value(node_output, kFloat, {})}}.bytes();
  };
  EXPECT_TRUE(import_onnx_bytes(model("x", "N", "z")));
  for (const Bytes& bytes : {model(more, "N", "z"), model("x", more, "z"), model("x", "N", more)}) {
    const auto imported = import_onnx_bytes(bytes);
    ASSERT_FALSE(imported);
    EXPECT_SAYS(imported.error().text(), "has 65537 bytes: at most 65536");
    EXPECT_LT(imported.error().text().size(), 3000u);
  }
}

TEST(Limits, Dims) {
  const auto terms = [](int n) {
    std::string out = "N0";
    for (int i = 1; i < n; ++i) out += "+N" + std::to_string(i);
    return "f32[" + out + "]";
  };
  EXPECT_EQ(error_of(identity("g", terms(kMaxDimTerms))), "");
  EXPECT_SAYS(error_of(identity("g", terms(kMaxDimTerms + 1))), "expected a dim");
  EXPECT_EQ(error_of(identity("g", "f32[" + repeated(kMaxDimDegree, "N", "*") + "]")), "");
  EXPECT_SAYS(error_of(identity("g", "f32[" + repeated(kMaxDimDegree + 1, "N", "*") + "]")), "expected a dim");
}

TEST(Limits, RepeatedElements) {
  const auto constants = [](int count, const std::string& type) {
    std::string text = "graph @g() -> u8[] {\n";
    for (int i = 0; i < count; ++i) text += "  %c" + std::to_string(i) + " = constant {value=" + type + " " + std::to_string(i) + "}\n";
    return text + "  %r = constant {value=u8[] 1}\n  return %r\n}\n";
  };
  EXPECT_EQ(error_of(constants(2, "u8[16777216]")), "");
  EXPECT_SAYS(error_of(constants(17, "u8[16777216]")), "at most 2^28 in a text") << "not each alone: all of a text";
  EXPECT_SAYS(error_of(constants(1, "u8[268435457]")), "at most 2^28");
  EXPECT_SAYS(error_of(constants(1, "u8[9223372036854775807]")), "at most 2^28");
  // Lists of a test file.
  const std::vector<Type> type = {{DType::f32, {Dim::symbol("N"), Dim::symbol("M")}}};
  EXPECT_TRUE(cli::parse_values("[[1] * 1000] * 1000", type));
  for (const char* text : {"[[1] * 16777216] * 5", "[[[1] * 16777216] * 16777216] * 16777216"}) {
    const auto values = cli::parse_values(text, type);
    ASSERT_FALSE(values);
    EXPECT_SAYS(values.error().message, "more than 2^28 bytes");
  }
}

/// What an archive or a header promises beyond its own bytes.
TEST(Limits, BytesThatAHeaderPromises) {
  const auto npy = [](const std::string& shape, size_t bytes) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(118 - header.size(), ' ');
    return std::string("\x93NUMPY\1\0", 8) + char(header.size()) + '\0' + header + std::string(bytes, '\0');
  };
  const auto npy_error = [&](const std::string& shape) {
    const auto tensor = cli::parse_npy(npy(shape, 8), {});
    return tensor ? "" : tensor.error().message;
  };
  EXPECT_EQ(npy_error("2,"), "");
  EXPECT_SAYS(npy_error("3,"), "the shape asks for 12 bytes, the file holds 8");
  EXPECT_SAYS(npy_error("4611686018427387904,"), "beyond all memory");
  EXPECT_SAYS(npy_error("1099511627776,"), "the file holds 8");
  EXPECT_SAYS(npy_error("-1,"), "a bad shape");
  EXPECT_SAYS(npy_error("1,1,1,1,1,1,1,1,2"), "axes");

  const auto safetensors_error = [](const std::string& json) {
    std::string file;
    for (int i = 0; i < 8; ++i) file.push_back(char(uint64_t(json.size()) >> (8 * i)));
    const auto tensors = cli::parse_safetensors(file + json + std::string(8, '\0'));
    return tensors ? "" : tensors.error().message;
  };
  const auto row = [](const std::string& name, const std::string& shape, int first, int last) {
    return "\"" + name + "\": {\"dtype\": \"F32\", \"shape\": [" + shape + "], \"data_offsets\": [" + std::to_string(first) + ", " + std::to_string(last) + "]}";
  };
  EXPECT_EQ(safetensors_error("{" + row("a", "1", 0, 4) + ", " + row("b", "1", 4, 8) + "}"), "");
  EXPECT_SAYS(safetensors_error("{" + row("a", "2", 0, 8) + ", " + row("b", "1", 4, 8) + "}"), "b: it overlaps another tensor");
  EXPECT_SAYS(safetensors_error("{" + row("a", "1", 0, 4) + ", " + row("a", "1", 4, 8) + "}"), "the header has 'a' twice");
  EXPECT_SAYS(safetensors_error(R"({"__metadata__": {"b": {}, "b": {}}})"), "the header has 'b' twice");
  EXPECT_SAYS(safetensors_error("{" + row("a", "4611686018427387904", 0, 8) + "}"), "beyond all memory");
  EXPECT_SAYS(safetensors_error("{" + row("a", "1,1,1,1,1,1,1,1,2", 0, 8) + "}"), "axes");
  EXPECT_SAYS(safetensors_error("{\"a\": " + std::string(1'000'000, '[') + "}"), "no JSON object");
  EXPECT_SAYS(safetensors_error("{\"a\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}"), "are expected");

  // Two entries of a directory that name the same bytes.
  const std::string archive = cli::npz_bytes({{"a", {DType::f32, {1000}, std::vector<std::byte>(4000)}}});
  const size_t directory = archive.find("PK\1\2"), end64 = archive.find("PK\6\6");
  std::string twice = archive.substr(0, end64);
  for (int i = 0; i < 3; ++i) twice += archive.substr(directory, end64 - directory);
  std::string tail = archive.substr(end64);
  tail[32] = 4;  // entries
  EXPECT_TRUE(cli::parse_npz(archive, {}));
  const auto tensors = cli::parse_npz(twice + tail, {});
  ASSERT_FALSE(tensors);
  EXPECT_SAYS(tensors.error().message, "overlaps another entry");
}

}  // namespace
}  // namespace fusec
