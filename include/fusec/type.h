#pragma once
// What a value is: element type and dims. Strides, alignment and aliasing belong to a call, never to a type.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

enum class DType : uint8_t { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2 };
inline constexpr int kDTypes = 15;

/// Bytes of one element in memory: bool is one byte, 0 or 1.
size_t bytes(DType type);
/// "bool", "f32", "f8e4m3" … and back.
std::string_view name(DType type);
std::optional<DType> dtype(std::string_view name);
bool is_float(DType type);
bool is_integer(DType type);  // not bool
bool is_signed(DType type);   // signed integers and floats
/// The type an op on `type` computes in: bool, i64/u64-wide wrapping integers keep their type; f8, f16, bf16 → f32.
DType compute_type(DType type);

/// What fusing may change (docs/numerics.md): nothing; where narrow floats round; approximations and reordering too.
enum class Numerics : uint8_t { strict, fused, fast };

/// Values of the named dims of one call.
using Sizes = std::map<std::string, int64_t, std::less<>>;

struct DimParts;

/// One extent: a number, a named symbol, or a sum of products of them ("2*N*M+3"). An immutable value, cheap to copy;
/// equal exactly when the polynomials are. Arithmetic that leaves int64 throws std::overflow_error: parse and verify
/// turn it into an input error.
class Dim {
 public:
  Dim(int64_t n = 0) : constant_(n) {}
  static Dim symbol(std::string_view name);

  bool is_constant() const { return !terms_; }
  /// Only when is_constant().
  int64_t constant() const { return constant_; }
  bool is(int64_t n) const { return !terms_ && constant_ == n; }
  /// Value with every symbol taken from `sizes`; nullopt when one is missing or the value leaves int64.
  std::optional<int64_t> value(const Sizes& sizes) const;
  /// Symbols in it, sorted, without duplicates.
  std::vector<std::string> symbols() const;
  std::string text() const;
  uint64_t hash() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);

  /// a / b where that is exact for every value of the symbols; nullopt otherwise.
  friend std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
  /// The Dim of a text such as "2*N+3"; nullopt when malformed.
  static std::optional<Dim> parse(std::string_view text);

  struct Term {
    int64_t factor;
    std::vector<std::string> symbols;  // sorted, with repeats: N*N has two
    bool operator==(const Term&) const = default;
  };

 private:
  friend struct DimParts;  // type.cpp
  int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  // null = a number; sorted by symbols
};

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;
inline constexpr size_t kMaxRank = 8;

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const Type&) const = default;
};

/// "f32[N,4]"; rank 0 is "f32[]".
std::string text(const Type& type);
std::string text(const Shape& shape);
Dim elements(const Shape& shape);
/// Row-major strides in elements.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& extents);

/// The broadcast of two shapes, aligned right: equal dims, or a constant 1 on one side. A named symbol never broadcasts.
/// nullopt with `axis` (counted in the result) set to the first that does not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b, size_t* axis = nullptr);

}  // namespace fusec
