// No byte of a name reaches generated code, the name of a file or the key of the cache; what people read stays in its line. A graph
// with the worst names that there are is the same program as one with plain names, through .fus and through ONNX.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "fusec/graph.h"
#include "lib/support/files.h"
#include "test/folder.h"
#include "test/import/onnx_writer.h"

namespace fusec {
namespace {

namespace fs = std::filesystem;
using namespace test;

/// Ends strings, comments, lines and directives of C++, LLVM, .fus, shells and terminals; leaves folders; is no UTF-8.
std::string worst(const std::string& suffix) {
  using namespace std::string_literals;
  return "\"'`\n#error out\n#include \"/etc/passwd\"\n*/ // ?""?/\\\n)\"; R\"(x)\" %s%n $(touch pwned) ; touch pwned\n../../../tmp/pwned\0\r\x1b[31m\x7f\xff\xe2\x80\xa8"s
         "\xe2\x80\xae}{return%x\n; run: fusec opt\n!0 = !{}\ndefine void @g0() { ret void }\n__device__ asm(\"trap;\");" +
         suffix;
}
std::string plain(const std::string& suffix) { return "name_" + suffix; }

using Name = std::string (*)(const std::string&);

/// A softmax of a sum: several kernels' worth of names, inputs, outputs, inner values, and sizes where asked for.
std::string fus(Name name, bool symbols) {
  GraphBuilder b(name("graph"));
  const Dim rows = symbols ? Dim::symbol(name("N")) : Dim(6), columns = symbols ? Dim::symbol(name("M")) * 2 + 1 : Dim(17);
  const Value x = b.input(name("x"), {DType::f32, {rows, columns}}), y = b.input(name("y"), {DType::f32, {columns}});
  const auto labelled = [&](Op op, std::vector<Value> args, Attrs attrs, const char* label) {
    const Value v = b.add(op, std::move(args), std::move(attrs));
    b.label(v, name(label));
    return v;
  };
  const Value sum = labelled(Op::add, {x, y}, {}, "sum");
  Attrs axes;
  axes.axes = {1};
  const Value soft = labelled(Op::softmax, {sum}, axes, "soft");
  axes.axes = {0};
  const Value most = labelled(Op::reduce_max, {soft}, axes, "most");
  auto graph = std::move(b).finish({soft, most}, {name("out"), name("out2")});
  EXPECT_TRUE(graph);
  return graph ? print(*graph) : "";
}

std::string onnx(Name name, bool symbols) {
  Extent rows = 6, columns = 17;
  if (symbols) rows.v = name("N"), columns.v = name("M");
  return Model{.opset = 13,
               .nodes = {node("Add", {name("x"), name("y")}, {name("sum")}, {}, name("add")),
                         node("Softmax", {name("sum")}, {name("out")}, {integer("axis", 1)}, name("softmax")),
                         node("Mul", {name("out"), name("w")}, {name("out2")}, {}, name("mul"))},
               .inputs = {value(name("x"), kFloat, {rows, columns}), value(name("y"), kFloat, {columns})},
               .outputs = {value(name("out"), kFloat, {rows, columns}), value(name("out2"), kFloat, {rows, columns})},
               .initializers = {floats(name("w"), {1}, {2})}}
      .bytes();
}

struct Names : testing::Test {
  Names() {
    for (const char* side : {"plain", "worst"}) fs::create_directories(dir / side);
    ::setenv("FUSEC_CACHE_DIR", (dir / "cache").c_str(), 1);
    ::setenv("TMPDIR", dir.c_str(), 1);
  }

  /// Standard output and error of `fusec ARGUMENTS` in a folder of its own.
  std::string run(const char* side, const std::string& arguments, const std::string& environment = "") {
    const fs::path out = dir / "out";
    const std::string command = "cd '" + (dir / side).string() + "' && " + environment + " '" FUSEC_BINARY_DIR "/fusec' " + arguments + " >'" +
                                out.string() + "' 2>&1 </dev/null";
    const int status = std::system(command.c_str());
    const auto text = read_file(out.string());
    EXPECT_EQ(status, 0) << arguments << "\n" << (text ? *text : "");
    return text ? *text : "";
  }
  static std::set<std::string> files(const fs::path& folder) {
    std::set<std::string> out;
    if (fs::exists(folder))
      for (const auto& entry : fs::recursive_directory_iterator(folder)) out.insert(fs::relative(entry.path(), folder).string());
    return out;
  }
  void write(const std::string& ending, std::string (*make)(Name, bool), bool symbols) {
    std::ofstream(dir / "plain" / ("f" + ending), std::ios::binary) << make(plain, symbols);
    std::ofstream(dir / "worst" / ("f" + ending), std::ios::binary) << make(worst, symbols);
  }
  void expect_same(const std::string& arguments) { EXPECT_EQ(run("plain", arguments), run("worst", arguments)) << arguments; }

  /// What is printed for people about both: the same lines, none more, and nothing in them that a terminal obeys.
  void expect_lines(const std::string& arguments) {
    const std::string a = run("plain", arguments), b = run("worst", arguments);
    EXPECT_EQ(std::count(a.begin(), a.end(), '\n'), std::count(b.begin(), b.end(), '\n')) << arguments << "\n" << a << b;
    for (const char c : b) ASSERT_TRUE(uint8_t(c) >= 0x20 || c == '\n') << arguments << ": byte " << int(c);
  }

  const Folder folder{"names"};
  const fs::path dir = folder.path;
};

struct Form {
  const char* ending;
  std::string (*make)(Name, bool);
};
const Form kForms[] = {{".fus", fus}, {".onnx", onnx}};

TEST_F(Names, CodeAndPlansAreTheSame) {
  for (const Form& form : kForms)
    for (const bool symbols : {false, true}) {
      write(form.ending, form.make, symbols);
      const std::string file = std::string("f") + form.ending;
#if FUSEC_HAS_CUDA
      expect_same("emit " + file + " --target sm_90 --as cuda");
#endif
#if FUSEC_HAS_CPU
      expect_same("emit " + file + " --target cpu --as llvm");
      if (!symbols) expect_same("emit " + file + " --target cpu --as plan");
#endif
    }
}

#if FUSEC_HAS_CPU
TEST_F(Names, FilesAndKeysAreTheSame) {
  for (const Form& form : kForms) {
    write(form.ending, form.make, false);
    for (const char* side : {"plain", "worst"}) {
      const std::string folder = (dir / side).string();
      run(side, std::string("run f") + form.ending + " -q --device cpu", "FUSEC_CACHE_DIR='" + folder + "/cache' FUSEC_OPTIONS='--dump-dir=" + folder + "/dump'");
    }
    const std::set<std::string> all = files(dir / "plain");
    EXPECT_GT(all.size(), 8u);
    EXPECT_EQ(all, files(dir / "worst")) << form.ending;
    for (const std::string& file : files(dir / "plain" / "dump"))
      if (!file.ends_with(".fus")) {
        const auto a = read_file((dir / "plain/dump" / file).string()), b = read_file((dir / "worst/dump" / file).string());
        EXPECT_TRUE(a && b && *a == *b) << file;
      }
  }
  for (const auto& entry : fs::recursive_directory_iterator(dir)) EXPECT_EQ(entry.path().filename().string().find("pwned"), std::string::npos);
}

TEST_F(Names, WhatPeopleReadStaysInItsLine) {
  for (const Form& form : kForms)
    for (const bool symbols : {false, true}) {
      write(form.ending, form.make, symbols);
      const std::string file = std::string("f") + form.ending;
      expect_lines("explain " + file);
      expect_lines("schedules " + file);
      expect_lines("emit " + file + " --as plan");
      if (form.ending == std::string(".onnx")) expect_lines("import " + file);
      else expect_lines("opt " + file);
      if (!symbols) expect_lines("run " + file + " --check --device cpu -q");
    }
}
#endif

}  // namespace
}  // namespace fusec
