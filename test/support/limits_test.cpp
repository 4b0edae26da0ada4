// Each limit of lib/support/limits.h: what it allows is taken, one more is an error that names it, and docs/ir.md says so.

#include "lib/support/limits.h"

#include <gtest/gtest.h>

#include "fusec/graph.h"
#include "lib/import/onnx.h"
#include "lib/support/files.h"
#include "lib/support/text.h"
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
  EXPECT_SAYS(error_of(chain(kMaxNodes + 1)), "more than 1,000,000 nodes");
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
