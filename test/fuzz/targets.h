#pragma once
// Everything that reads what others wrote, as functions of bytes that anything may be: the same functions run under libFuzzer
// (fuzzer.cpp, -DFUSEC_FUZZERS=ON) and, over the corpora that it left, in the test suite (corpus_test.cpp).
//
//   corpus/TARGET/NAME   one input a file, minimised; docs/debugging.md says how they are made

#include <span>
#include <string>
#include <string_view>

namespace fusec {
class Graph;
}

namespace fusec::fuzz {

struct Target {
  const char* name;  // of the folder of its corpus, too
  const char* what;
  /// "" or what is wrong. A reader may refuse any input; what it takes has to hold together and to survive being written and read again.
  std::string (*run)(std::string_view bytes);
};

std::span<const Target> targets();

// text_targets.cpp
std::string read_graph(std::string_view text);
std::string read_test_file(std::string_view text);
std::string read_tuning(std::string_view text);
std::string read_schedule(std::string_view text);
// file_targets.cpp
std::string read_onnx(std::string_view bytes);
std::string read_onnx_file(std::string_view bytes);
std::string read_npy(std::string_view bytes);
std::string read_npz(std::string_view bytes);
std::string read_safetensors(std::string_view bytes);
std::string read_artifact(std::string_view bytes);

/// A graph that a reader accepted: it verifies, and its text is the text of the graph that is read from it.
std::string hold_together(const Graph& graph);

}  // namespace fusec::fuzz
