#pragma once
// Skeletons that are filled in: the statements of one kernel, with what belongs to it left open. A kernel of one function compiles in
// three quarters of the time of the same one as a template that calls a dozen functions, and is what a reader wants to see.
//
//   @if EXPR … @elif EXPR … @else … @end    lines that are there or not
//   @each S COUNT … @end                    lines once for each S below COUNT
//   @unroll i COUNT … @end                  a loop that is unrolled, or, of one turn, a block
//   @block EXPR : TEXT … @end               TEXT { lines }, or, where EXPR is 0, the lines, two columns further left
//   @let NAME = TEXT                        what $NAME stands for from here on; taken apart where it is used
//   @body NAME word=text …                  the emitter's statements of that name, with words replaced
//   @include FILE                           lines of another file
//   @// …                                   nothing
//   $NAME  $(EXPR)                          a number or a text; a number
//   $[i:EXPR]  $[=EXPR]                     "[i]" and "[number]", or nothing where EXPR is 1: arrays of one element are none
//
// EXPR is of integers that are known when the text is written: names of `numbers`, operators of C. Lines in front of "@kernel" stand
// at namespace scope.

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace fusec::cuda {

struct Parts {
  std::map<std::string, long> numbers;
  std::map<std::string, std::string> texts, bodies;  // bodies: lines with an indentation of 4
  std::function<std::string(const std::string&)> file;
};
struct Filled {
  std::string before, kernel;
};

/// Is it such a skeleton, rather than a template?
bool is_filled(std::string_view skeleton);
/// What a skeleton asks for and nobody has becomes an #error of the text.
Filled fill(std::string_view skeleton, Parts parts);

}  // namespace fusec::cuda
