#pragma once
// What of the prelude a kernel's text needs: declarations that nothing reaches by name only cost the compiler time.
//
//   static const Library library("D f32 twice(f32 x) { return x + x; }\nD f32 unused(f32 x) { return x; }\n");
//   library.reached_from("… twice(y) …")   // the first line

#include <string>
#include <string_view>
#include <vector>

namespace fusec::cuda {

/// Text that is declarations at namespace scope, one after another, each ending with the line that closes it; comments in front of one
/// belong to it. Macros may make names by pasting: what is not understood stays.
class Library {
 public:
  explicit Library(std::string_view text);
  /// The declarations, in their order, that `user` reaches by names, through others or not; and all that stand for themselves.
  std::string reached_from(std::string_view user) const;

 private:
  struct Piece {
    std::string text;
    std::vector<std::string> names;     // what it declares; none: it stays
    bool wide = false;                  // a declaration of f64: it is for texts that compute in f64
    std::vector<std::string> words;     // what it uses
    std::vector<std::string> beginnings;  // of names that are pasted together
  };
  std::vector<Piece> pieces_;
};

}  // namespace fusec::cuda
