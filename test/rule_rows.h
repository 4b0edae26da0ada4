#pragma once
// Every rule row, held to what it says. A row's own pattern makes the graphs: for each element type the row allows, `find` and `put` are
// evaluated side by side by the reference: on all values where one 8- or 16-bit variable or two 8-bit ones allow, on special and drawn
// values otherwise. How many are drawn is the caller's to say (Effort).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "lib/ir/convert.h"
#include "lib/ir/formula.h"
#include "lib/passes/rules.h"
#include "lib/rewrite/match.h"
#include "lib/rewrite/rewriter.h"

namespace fusec {

/// How much is tried: seconds for all rows, or minutes.
struct Effort {
  size_t pairs, others; // tuples of values that are drawn where not all are tried, for each typing of a row: pairs of 16 bits, and others
  bool all;             // values of a variable beside several constants, and of an 8-bit constant; else special and drawn ones
};
inline constexpr Effort kSeconds{size_t{1} << 14, 1024, false}, kMinutes{size_t{1} << 22, size_t{1} << 16, true};

inline std::vector<const RewriteRule*> all_rules() {
  std::vector<const RewriteRule*> rules;
  for (const auto* table : rule_tables())
    for (const RewriteRule& rule : *table) rules.push_back(&rule);
  return rules;
}

// --- what a pattern uses ------------------------------------------------------------------------------------------------

struct Uses {
  std::set<int> values, constants, types;
  std::set<Op> ops;
};

inline void collect(const Pattern& p, Uses& uses) {
  if (p.kind == Pattern::value) uses.values.insert(p.index);
  if (p.kind == Pattern::constant) uses.constants.insert(p.index);
  if (p.kind == Pattern::node) {
    uses.ops.insert(p.op);
    if (p.index != kNoSlot) uses.types.insert(p.index);
  }
  for (const Pattern& arg : p.args) collect(arg, uses);
}

inline Uses uses_of(const RewriteRule& rule) {
  Uses uses;
  collect(rule.find, uses);
  collect(rule.put, uses);
  return uses;
}

// --- values -------------------------------------------------------------------------------------------------------------

inline void append(std::vector<std::byte>& out, uint64_t bits, size_t size) {
  for (size_t k = 0; k < size; k++) out.push_back(std::byte(bits >> (8 * k)));
}

/// Bit patterns worth trying in any type.
inline std::vector<uint64_t> special_bits(DType type) {
  std::vector<uint64_t> bits;
  if (type == DType::boolean) return {0, 1};
  const auto add = [&](double number) {
    if (const auto t = scalar_tensor(type, number)) {
      uint64_t b = 0;
      std::memcpy(&b, t->data.data(), t->data.size());
      bits.push_back(b);
    }
  };
  for (double n : {0.0, 1.0, -1.0, 2.0, 3.0, 4.0, 7.0, 100.0, -2.0, -128.0}) add(n);
  const uint64_t all = bytes(type) == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes(type))) - 1;
  if (!is_float(type)) {
    for (uint64_t b : {all, all >> 1, (all >> 1) + 1, (all >> 1) + 2, uint64_t(8 * bytes(type)), uint64_t(8 * bytes(type)) - 1})
      bits.push_back(b);
    return bits;
  }
  for (double n : {-0.0, 0.5, -0.25, 6.0, 1.0 / 3, 0x1p-20, 1024.0, 448.0, double(INFINITY), -double(INFINITY), double(NAN)}) add(n);
  bits.push_back(1);               // the least denormal
  bits.push_back((all >> 1) + 2);  // and its negative
  if (bytes(type) > 1) {           // the largest finite, the least normal
    add(type == DType::f64 ? 0x1.fffffffffffffp+1023 : type == DType::f16 ? 65504 : type == DType::f32 ? 0x1.fffffep+127 : 0x1.fep+127);
    add(type == DType::f64 ? 0x1p-1022 : type == DType::f16 ? 0x1p-14 : 0x1p-126);
  }
  return bits;
}

/// Numbers between 1/4 and 4: where approximate rows have to be close.
inline std::vector<uint64_t> tame_bits(DType type, std::mt19937_64& random, size_t count) {
  std::vector<uint64_t> bits;
  for (size_t k = 0; k < count; k++) {
    const auto t = scalar_tensor(type, 0.25 + 3.75 * double(random() % 4096) / 4096);
    uint64_t b = 0;
    std::memcpy(&b, t->data.data(), t->data.size());
    bits.push_back(b);
  }
  return bits;
}

/// Columns of input values, one a variable, all of one length: every tuple, if wanted, where there are at most 65536; else special ones and `drawn` more.
inline std::vector<Tensor> columns(const std::vector<DType>& types, bool every, bool tame, size_t drawn, std::mt19937_64& random) {
  const size_t variables = types.size();
  std::vector<std::vector<uint64_t>> rows(variables);
  size_t all = 1;
  for (DType t : types) all = std::min<size_t>(all * (t == DType::boolean ? 2 : bytes(t) <= 2 ? size_t{1} << (8 * bytes(t)) : 1 << 17), 1 << 17);
  if (every && all <= 1 << 16 && !tame) {
    for (size_t n = 0; n < all; n++) {
      size_t rest = n;
      for (size_t v = 0; v < variables; v++) {
        const size_t radix = types[v] == DType::boolean ? 2 : size_t{1} << (8 * bytes(types[v]));
        rows[v].push_back(rest % radix);
        rest /= radix;
      }
    }
  } else {
    std::vector<std::vector<uint64_t>> base;
    size_t grid = 1;
    for (DType t : types) {
      base.push_back(tame && is_float(t) ? tame_bits(t, random, 40) : special_bits(t));
      grid *= base.back().size();
    }
    for (size_t n = 0; n < std::min<size_t>(grid, 20000); n++) {
      size_t rest = grid > 20000 ? random() % grid : n;
      for (size_t v = 0; v < variables; v++) {
        rows[v].push_back(base[v][rest % base[v].size()]);
        rest /= base[v].size();
      }
    }
    for (size_t n = 0; n < drawn && !tame; n++)
      for (size_t v = 0; v < variables; v++) rows[v].push_back(types[v] == DType::boolean ? random() & 1 : random());
  }
  std::vector<Tensor> out;
  for (size_t v = 0; v < variables; v++) {
    Tensor t{types[v], {int64_t(rows[v].size())}, {}};
    for (uint64_t b : rows[v]) append(t.data.own(), b, bytes(types[v]));
    out.push_back(std::move(t));
  }
  return out;
}

// --- one instance of a row ------------------------------------------------------------------------------------------------

struct Types {
  std::vector<DType> values;                          // by order of use
  DType constants;
  std::array<std::optional<DType>, kPatternTypes> slots;
};

/// Every way to give the names of a row their element types that could be well typed.
inline std::vector<Types> typings(const Uses& uses) {
  std::vector<DType> all;
  for (int k = 0; k < kDTypes; k++) all.push_back(DType(k));
  std::vector<Types> out;
  for (DType x : all) {
    std::vector<std::vector<DType>> values = {{x}};
    for (size_t v = 1; v < uses.values.size(); v++) {
      const std::vector<DType> choices = x == DType::boolean ? all : std::vector<DType>{x};
      std::vector<std::vector<DType>> longer;
      for (const auto& prefix : values)
        for (DType t : choices) {
          if (v > 1 && t != prefix.back() && prefix.back() != DType::boolean) continue;  // z is like y
          longer.push_back(prefix);
          longer.back().push_back(t);
        }
      values = std::move(longer);
    }
    for (const auto& v : values) {
      std::vector<std::array<std::optional<DType>, kPatternTypes>> slots(1);
      for (int slot : uses.types) {
        std::vector<std::array<std::optional<DType>, kPatternTypes>> longer;
        for (const auto& prefix : slots)
          for (DType t : all) {
            longer.push_back(prefix);
            longer.back()[size_t(slot)] = t;
          }
        slots = std::move(longer);
      }
      for (const auto& s : slots) out.push_back({v, v.back(), s});
    }
  }
  return out;
}

/// `find` with the operands of its commutative ops in every order: the matcher takes them all.
inline std::vector<Pattern> spellings(const Pattern& p) {
  std::vector<std::vector<Pattern>> args = {{}};
  for (const Pattern& arg : p.args) {
    std::vector<std::vector<Pattern>> longer;
    for (const auto& prefix : args)
      for (const Pattern& spelling : spellings(arg)) {
        longer.push_back(prefix);
        longer.back().push_back(spelling);
      }
    args = std::move(longer);
  }
  std::vector<Pattern> out;
  for (const auto& a : args) {
    out.push_back(p);
    out.back().args = a;
    if (p.kind != Pattern::node || !commutes(p.op) || text(a[0]) == text(a[1])) continue;
    out.push_back(out.back());
    std::swap(out.back().args[0], out.back().args[1]);
  }
  return out;
}

struct Instance {
  GraphBuilder b{"row"};
  Value find, put;
};

inline Make plain(GraphBuilder& b) {
  return [&b](Op op, std::vector<Value> args, Attrs attrs) { return b.add(op, std::move(args), std::move(attrs)); };
}

/// `find` with these types and constants; found again by the matcher, and `put` beside it. Empty when ill-typed or not allowed.
inline std::unique_ptr<Instance> instantiate(const RewriteRule& rule, const Pattern& spelling, const Uses& uses, const Types& types, int64_t n,
                                      const std::vector<Tensor>& constants) {
  auto out = std::make_unique<Instance>();
  Match names;
  names.graph = &out->b;
  names.types = types.slots;
  size_t v = 0;
  for (int index : uses.values) {
    names.values[size_t(index)] = out->b.input("v" + std::to_string(index), {types.values[v], {Dim(n)}});
    v++;
  }
  size_t c = 0;
  for (int index : uses.constants) names.constants[size_t(index)] = out->b.constant(constants[c++]);
  std::set<DType> roots = {types.values[0], types.values.back(), DType::boolean};
  for (const auto& slot : types.slots)
    if (slot) roots.insert(*slot);
  for (DType root : roots) {
    const std::optional<Value> find = build(spelling, names, out->b, {root, {Dim(n)}}, plain(out->b));
    if (!find || out->b.error()) continue;
    const std::optional<Match> m = match(rule, out->b, *find, Numerics::fast);
    if (!m) continue;
    const std::optional<Value> put = build(rule.put, *m, out->b, out->b.type(*find), plain(out->b));
    if (!put || out->b.error()) continue;
    out->find = *find;
    out->put = *put;
    return out;
  }
  return nullptr;
}

// --- comparing -----------------------------------------------------------------------------------------------------------

inline bool is_nan_at(const Tensor& t, int64_t k) { return is_float(t.dtype) && std::isnan(element(t, k)); }

/// Index of the first element that differs by more than the row may, or -1.
inline int64_t first_difference(const Tensor& a, const Tensor& b, bool exact) {
  const size_t size = bytes(a.dtype);
  const double tolerance = size >= 4 ? 2e-4 : a.dtype == DType::f16 ? 2e-2 : 1e-1;
  for (int64_t k = 0; k < a.elements(); k++) {
    if (std::memcmp(a.data.data() + size_t(k) * size, b.data.data() + size_t(k) * size, size) == 0) continue;
    if (is_nan_at(a, k) && is_nan_at(b, k)) continue;
    if (!exact) {
      const double x = element(a, k), y = element(b, k);
      if (size == 1 || std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(x))) continue;
      if (!std::isfinite(x) || !std::isfinite(y)) continue;  // a constant beyond the narrow type's range
    }
    return k;
  }
  return -1;
}

inline bool formulas_ready(const Uses& uses, DType type) {
  for (Op op : uses.ops)
    if (info(op).form == Form::formula && !formula(op, type)) return false;
  return true;
}

/// Values for a row's constants, at most 400 of them: special ones, or, where a row has one and its type is narrow, all 256.
inline std::vector<std::vector<Tensor>> constant_choices(const RewriteRule& rule, size_t count, DType type, bool all, std::mt19937_64& random) {
  std::vector<Tensor> each;
  const bool tame = rule.holds == Holds::fast || rule.holds == Holds::fused;
  if (tame) {
    for (double n : {0.70710678118654752, 1.4142135623730951, 0.044715, 0.79788456080286536, 0.5, 3.0})
      if (auto t = scalar_tensor(type, n)) each.push_back(*t);
  } else {
    std::vector<uint64_t> values = special_bits(type);
    if (all && count == 1 && bytes(type) == 1 && type != DType::boolean)
      for (uint64_t b = 0; b < 256; b++) values.push_back(b);
    for (uint64_t bits : values) {
      each.push_back({type, {}, {}});
      append(each.back().data.own(), bits, bytes(type));
    }
  }
  std::vector<std::vector<Tensor>> out;
  size_t grid = 1;
  for (size_t k = 0; k < count; k++) grid *= each.size();
  const size_t tries = std::min<size_t>(grid, 400);
  for (size_t n = 0; n < tries && !each.empty(); n++) {
    size_t rest = grid > tries ? random() % grid : n;
    out.emplace_back();
    for (size_t k = 0; k < count; k++) {
      out.back().push_back(each[rest % each.size()]);
      rest /= each.size();
    }
  }
  return out;
}

enum class Verdict { equal, not_there, waiting };  // waiting: for a formula that is not written yet

/// One spelling of a row with one choice of types and constants, on `inputs` (made when first needed, `drawn` tuples).
inline Verdict compare_sides(const RewriteRule& rule, const Uses& uses, const Pattern& spelling, const Types& types,
                             const std::vector<Tensor>& constants, std::vector<Tensor>& inputs, const Effort& effort, size_t drawn,
                             std::mt19937_64& random) {
  if (!instantiate(rule, spelling, uses, types, 1, constants)) return Verdict::not_there;
  if (!formulas_ready(uses, types.values[0])) return Verdict::waiting;
  const bool exact = rule.holds != Holds::fast && rule.holds != Holds::fused;
  if (inputs.empty()) inputs = columns(types.values, uses.constants.size() <= 1 || effort.all, !exact, drawn, random);
  auto instance = instantiate(rule, spelling, uses, types, inputs[0].elements(), constants);
  const Result<Graph> graph = std::move(instance->b).finish({instance->find, instance->put}, {"find", "put"});
  EXPECT_TRUE(graph) << graph.error().text();
  const Result<std::vector<Tensor>> results = evaluate(*graph, inputs);
  EXPECT_TRUE(results) << results.error().text() << print(*graph);
  if (!results) return Verdict::equal;
  const Tensor &find = (*results)[0], &put = (*results)[1];
  const int64_t k = first_difference(find, put, exact);
  if (k < 0) return Verdict::equal;
  std::string at;
  for (const Tensor& t : inputs) at += " " + std::to_string(element(t, k));
  ADD_FAILURE() << rule.name << ": " << text(rule.find) << " -> " << text(rule.put) << "\nat" << at << ": " << element(find, k)
                << " and " << element(put, k) << "\n" << print(*graph);
  return Verdict::equal;
}

/// What was compared of one row.
struct Compared {
  size_t typings = 0, graphs = 0;  // of `find` that are well typed; with each spelling and constant
  double tuples = 0;               // of values, over all graphs
};

/// Both sides of a row, in every way that the row allows. Differences are failures of the test that calls.
inline Compared compare_row(const RewriteRule& rule, const Effort& effort) {
  const Uses uses = uses_of(rule);
  Compared out;
  EXPECT_TRUE(uses.values.contains(0)) << "x decides for which types a row holds";
  std::mt19937_64 random(7);
  for (const Types& types : typings(uses)) {
    std::vector<Tensor> inputs;
    const auto choices = constant_choices(rule, uses.constants.size(), types.constants, effort.all, random);
    const size_t before = out.graphs;
    for (const Pattern& spelling : spellings(rule.find))
      for (const std::vector<Tensor>& constants : choices) {
        const bool pairs = types.values.size() == 2 && bytes(types.values[0]) == 2 && bytes(types.values[1]) == 2;
        const size_t drawn = std::max<size_t>(1024, (pairs ? effort.pairs : effort.others) / choices.size());
        if (compare_sides(rule, uses, spelling, types, constants, inputs, effort, drawn, random) == Verdict::not_there) continue;
        out.graphs++;
        if (!inputs.empty()) out.tuples += double(inputs[0].elements());
        if (testing::Test::HasFailure()) return out;
      }
    out.typings += out.graphs > before;
  }
  return out;
}

}  // namespace fusec
