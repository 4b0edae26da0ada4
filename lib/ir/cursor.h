#pragma once
// A place in a text: tokens are taken one after another, errors know line and column.

#include <string>
#include <string_view>

#include "fusec/result.h"
#include "fusec/type.h"
#include "lib/support/limits.h"

namespace fusec {

class Cursor {
 public:
  explicit Cursor(std::string_view text, std::string_view file = "") : text_(text), file_(file) { skip(); }

  /// Byte position; spaces and comments (from ';' to the end of the line) are always behind.
  size_t here() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }

  /// Takes `symbol` when the text goes on with it.
  bool take(std::string_view symbol);
  /// Takes a whole word.
  bool take_word(std::string_view word);
  Status expect(std::string_view symbol, std::string_view where);
  /// Letters, digits, '_' and '.'; may be empty.
  std::string_view word();
  /// A number, inf, nan, nan(0x…), true, false; empty when there is none.
  std::string_view literal();
  bool at_literal() const;
  /// A plain name or a quoted one.
  Result<std::string> name(std::string_view what);
  /// Dims in brackets: [N,4].
  Result<Shape> shape();
  Result<DType> dtype();
  /// f32[N,4]; rank and sizes checked.
  Result<Type> type();
  /// Counts bytes that the text asks for without holding them; false beyond the limit.
  bool unfold(size_t bytes) { return bytes <= size_t{kMaxSplatBytes} - unfolded_ && (unfolded_ += bytes, true); }

  Location locate(size_t position) const;
  Error error_at(size_t position, std::string message) const;
  Error error(std::string message) const { return error_at(at_, std::move(message)); }
  /// The next few characters, for "expected …, not …".
  std::string found() const;

 private:
  void skip();

  std::string_view text_, file_;
  size_t at_ = 0, unfolded_ = 0;
};

}  // namespace fusec
