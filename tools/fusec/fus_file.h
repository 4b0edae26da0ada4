#pragma once
// A .fus test file: graphs, each with what is expected of it, in comments.
//
//   ; What is feared, in words.
//   ; run: fusec opt --passes=simplify        holds for the graphs below, until the next one; without it a graph is printed as parsed
//   graph @f(%x: f32[3]) -> f32[3] { … }
//   ; expect:                                 the whole output of the command, each line behind ";   "
//   ;   graph @f(%x: f32[3]) -> f32[3] {
//   ; expect: unchanged                       the output is the graph, printed
//   ; expect-error: file.fus:7:12: message    parsing (or the command) fails with exactly this
//   ; eval: @f([1, -0.0, nan]) == [2, -0.0, nan]        bits, any NaN equals any; several results: == [1], [2]; may go on in the next lines
//   ; variants: N                             the evals below hold folded, strided, misaligned, and with N tiled to 67 and 4099 (variants.h);
//                                             without a symbol nothing is tiled; "; variants: none" ends it
//   ; eval: @f([1, 2, 3] * 2, 0.5) ~= 1e-5 [...]        |got - want| <= tolerance * max(1, |want|); a list may repeat: [0] * 64

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/graph.h"

namespace fusec::cli {

struct Case {
  enum Expect { nothing, text, unchanged, error };
  std::string graph;              // its text
  int line = 0;                   // of its first line, from 1
  std::vector<std::string> run;   // words of the command, without "fusec"; empty = print as parsed
  Expect expect = nothing;
  std::string expected;           // text or error
  int expect_line = 0;            // first line of the expectation, from 1, and how many lines it takes
  int expect_lines = 0;
};

struct Eval {
  int line = 0;
  std::string graph;              // name
  std::string arguments, results; // as written
  bool exact = true;
  double tolerance = 1e-5;
  std::optional<std::string> variants;  // the symbol of "; variants:", "" when there is none
};

struct FusFile {
  std::string name;               // without folders: what errors call it
  std::vector<std::string> lines;
  std::vector<Case> cases;
  std::vector<Eval> evals;
};

Result<FusFile> parse_fus(std::string_view text, std::string name);

/// The lines that state this expectation.
std::vector<std::string> expectation_lines(Case::Expect expect, std::string_view text);

/// Values such as "[[1, 2], [3, 4]] * 2, 0.5" as tensors of the ports' dtypes.
Result<std::vector<Tensor>> parse_values(std::string_view text, const std::vector<Type>& types);

/// "" when they agree, else a sentence.
std::string difference(const Tensor& got, const Tensor& want, bool exact, double tolerance);

}  // namespace fusec::cli
