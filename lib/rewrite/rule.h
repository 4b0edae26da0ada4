#pragma once
// Rules as plain data: what to find, what to put in its place, and for whom that holds. A pattern is written as an expression:
//
//   {"mul-one",    x * 1,         x,                 exact},
//   {"div-pow2",   x / c,         x * fold(1 / c),   exact,    has_exact_reciprocal},
//   {"add-const",  (x + c) + d,   x + fold(c + d),   integers},
//
// x, y, z match any value and the same name matches the same value; c, d, e, f match scalar constants; a number matches the
// constant of that very value (0 is no -0.0). Commutative ops match both ways round. Operands broadcast, and so does what is put.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "fusec/graph.h"

namespace fusec {

struct Match;

struct Pattern {
  enum Kind : uint8_t {
    value,     // index: x y z
    constant,  // index: c d e f, a scalar constant
    number,    // the constant of this value, in the type of its neighbours
    special,   // all_ones lowest highest, likewise
    node,      // op over args; cast and bitcast: their target is type slot `index`
    fold,      // put only: args[0] over constants, evaluated now
    derived,   // put only: a constant computed by `derive`
  };
  enum Special : uint8_t { all_ones, lowest, highest };

  Kind kind = value;
  Op op = Op::constant;
  uint8_t index = 0;
  Special which = all_ones;
  double literal = 0;
  std::optional<Tensor> (*derive)(const Match&) = nullptr;
  bool once = false;  // find only: nothing else reads this node
  std::vector<Pattern> args;

  Pattern() = default;
  Pattern(double n) : kind(number), literal(n) {}
  Pattern(int n) : Pattern(double(n)) {}
};

/// For which element types (of x, the first value of `find`) and modes a rule holds.
enum class Holds : uint8_t {
  exact,     ///< all, bit for bit: NaN, infinities, -0.0, denormals, overflow and wrap
  integers,  ///< integers and bool, bit for bit
  floats,    ///< floats, bit for bit
  fused,     ///< floats, under Numerics::fused and fast: the same function by other arithmetic
  fast,      ///< floats, under Numerics::fast only
};

inline constexpr size_t kPatternValues = 3, kPatternConstants = 4, kPatternTypes = 2;
inline constexpr uint8_t kNoSlot = 0xff;

/// What the names of a pattern stand for at one place of a graph.
struct Match {
  const GraphBuilder* graph = nullptr;
  std::array<Value, kPatternValues> values{};
  std::array<Value, kPatternConstants> constants{};
  std::array<std::optional<DType>, kPatternTypes> types{};
  uint8_t relax = 0xff;  // liberties that every matched node has

  const Type& x() const { return graph->type(values[0]); }
  const Type& y() const { return graph->type(values[1]); }
  const Tensor& c() const { return *graph->node(constants[0]).attrs->value; }
  const Tensor& d() const { return *graph->node(constants[1]).attrs->value; }
  const Tensor& e() const { return *graph->node(constants[2]).attrs->value; }
  const Tensor& f() const { return *graph->node(constants[3]).attrs->value; }
};

struct RewriteRule {
  std::string name;
  Pattern find, put;
  Holds holds = Holds::exact;
  bool (*when)(const Match&) = nullptr;
};

/// "x * 1" of a pattern, for `fusec rules`.
std::string text(const Pattern& pattern);
std::string_view name(Holds holds);

/// The vocabulary of rule files: using namespace fusec::patterns;
namespace patterns {

inline constexpr Holds exact = Holds::exact, integers = Holds::integers, floats = Holds::floats, fused = Holds::fused,
                       fast = Holds::fast;

inline Pattern leaf(Pattern::Kind kind, uint8_t index) {
  Pattern p;
  p.kind = kind;
  p.index = index;
  return p;
}
inline Pattern node(Op op, std::vector<Pattern> args, uint8_t type = kNoSlot) {
  Pattern p = leaf(Pattern::node, type);
  p.op = op;
  p.args = std::move(args);
  return p;
}
inline const Pattern x = leaf(Pattern::value, 0), y = leaf(Pattern::value, 1), z = leaf(Pattern::value, 2);
inline const Pattern c = leaf(Pattern::constant, 0), d = leaf(Pattern::constant, 1), e = leaf(Pattern::constant, 2),
                     f = leaf(Pattern::constant, 3);

inline Pattern special(Pattern::Special which) {
  Pattern p = leaf(Pattern::special, 0);
  p.which = which;
  return p;
}
inline const Pattern all_ones = special(Pattern::all_ones);  // every bit set; true
inline const Pattern lowest = special(Pattern::lowest);      // -inf, or the least integer, or false
inline const Pattern highest = special(Pattern::highest);    // inf, or the greatest integer, or true

inline Pattern fold(Pattern p) {
  Pattern f = leaf(Pattern::fold, 0);
  f.args = {std::move(p)};
  return f;
}
/// A constant that no expression over constants gives; nullopt: the rule does not fire.
inline Pattern derived(std::optional<Tensor> (*derive)(const Match&)) {
  Pattern p = leaf(Pattern::derived, 0);
  p.derive = derive;
  return p;
}
/// In `find`: only where nothing else reads the node, so that it goes away.
inline Pattern once(Pattern p) {
  p.once = true;
  return p;
}

inline Pattern operator+(Pattern a, Pattern b) { return node(Op::add, {std::move(a), std::move(b)}); }
inline Pattern operator-(Pattern a, Pattern b) { return node(Op::sub, {std::move(a), std::move(b)}); }
inline Pattern operator*(Pattern a, Pattern b) { return node(Op::mul, {std::move(a), std::move(b)}); }
inline Pattern operator/(Pattern a, Pattern b) { return node(Op::div, {std::move(a), std::move(b)}); }
inline Pattern operator&(Pattern a, Pattern b) { return node(Op::and_, {std::move(a), std::move(b)}); }
inline Pattern operator|(Pattern a, Pattern b) { return node(Op::or_, {std::move(a), std::move(b)}); }
inline Pattern operator^(Pattern a, Pattern b) { return node(Op::xor_, {std::move(a), std::move(b)}); }
inline Pattern operator<<(Pattern a, Pattern b) { return node(Op::shl, {std::move(a), std::move(b)}); }
inline Pattern operator>>(Pattern a, Pattern b) { return node(Op::shr, {std::move(a), std::move(b)}); }
inline Pattern operator==(Pattern a, Pattern b) { return node(Op::eq, {std::move(a), std::move(b)}); }
inline Pattern operator!=(Pattern a, Pattern b) { return node(Op::ne, {std::move(a), std::move(b)}); }
inline Pattern operator<(Pattern a, Pattern b) { return node(Op::lt, {std::move(a), std::move(b)}); }
inline Pattern operator<=(Pattern a, Pattern b) { return node(Op::le, {std::move(a), std::move(b)}); }
inline Pattern operator>(Pattern a, Pattern b) { return node(Op::gt, {std::move(a), std::move(b)}); }
inline Pattern operator>=(Pattern a, Pattern b) { return node(Op::ge, {std::move(a), std::move(b)}); }
inline Pattern operator-(Pattern a) { return node(Op::neg, {std::move(a)}); }
/// Every bit flipped; on bool the logical not, which is how it is built there.
inline Pattern operator~(Pattern a) { return node(Op::bitwise_not, {std::move(a)}); }

inline Pattern apply(Op op, Pattern a) { return node(op, {std::move(a)}); }
inline Pattern max(Pattern a, Pattern b) { return node(Op::max, {std::move(a), std::move(b)}); }
inline Pattern min(Pattern a, Pattern b) { return node(Op::min, {std::move(a), std::move(b)}); }
inline Pattern clamp(Pattern a, Pattern lo, Pattern hi) { return node(Op::clamp, {std::move(a), std::move(lo), std::move(hi)}); }
inline Pattern select(Pattern a, Pattern b, Pattern c) { return node(Op::select, {std::move(a), std::move(b), std::move(c)}); }
inline Pattern abs(Pattern a) { return apply(Op::abs, std::move(a)); }
inline Pattern relu(Pattern a) { return apply(Op::relu, std::move(a)); }

/// Targets of casts: slot 0 and 1. The same slot twice is the same type.
inline constexpr uint8_t A = 0, B = 1;
inline Pattern cast(Pattern a, uint8_t type) { return node(Op::cast, {std::move(a)}, type); }
inline Pattern bitcast(Pattern a, uint8_t type) { return node(Op::bitcast, {std::move(a)}, type); }

}  // namespace patterns
}  // namespace fusec
