#pragma once
// Result<T>: a value, or an Error that names whose fault it is, what is wrong and where.
//
//   Result<Graph> graph = parse(text);
//   if (!graph) return graph.error().note("while compiling g3");
//   use(*graph);

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fusec {

/// A position in a text: 1-based line and column, with the line itself for the caret. line 0 = no position.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  std::string text;
};

struct Error {
  enum Kind : uint8_t {
    input,        ///< the caller's graph, data or arguments (exit status 2)
    environment,  ///< driver, disk, toolchain (exit status 3)
    internal,     ///< ours (exit status 70)
  };

  Kind kind = input;
  std::string message;
  Location at{};
  std::vector<std::string> notes{};  // innermost first

  /// The same error with one more line of context.
  Error note(std::string line) const {
    Error copy = *this;
    copy.notes.push_back(std::move(line));
    return copy;
  }

  /// "file:7:12: message", the source line with a caret, then the notes, one a line; each cut where it is longer than a screen.
  std::string text() const;
};

inline Error input_error(std::string message) { return {Error::input, std::move(message)}; }
inline Error environment_error(std::string message) { return {Error::environment, std::move(message)}; }
inline Error internal_error(std::string message) { return {Error::internal, std::move(message)}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace fusec
