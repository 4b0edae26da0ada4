// Every rule row, held to what it says. A row's own pattern makes the graphs: for each element type the row allows, `find` and `put` are
// evaluated side by side by the reference, on all values where one 8- or 16-bit variable or two 8-bit ones allow, on special and
// random values otherwise. A row fails when an exact one differs in a bit (any NaN equals any NaN), when it does not lower the
// measure that ends rewriting, or when nothing can make it fire.

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
namespace {

std::vector<const RewriteRule*> all_rules() {
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

void collect(const Pattern& p, Uses& uses) {
  if (p.kind == Pattern::value) uses.values.insert(p.index);
  if (p.kind == Pattern::constant) uses.constants.insert(p.index);
  if (p.kind == Pattern::node) {
    uses.ops.insert(p.op);
    if (p.index != kNoSlot) uses.types.insert(p.index);
  }
  for (const Pattern& arg : p.args) collect(arg, uses);
}

Uses uses_of(const RewriteRule& rule) {
  Uses uses;
  collect(rule.find, uses);
  collect(rule.put, uses);
  return uses;
}

// --- values -------------------------------------------------------------------------------------------------------------

void append(std::vector<std::byte>& out, uint64_t bits, size_t size) {
  for (size_t k = 0; k < size; k++) out.push_back(std::byte(bits >> (8 * k)));
}

/// Bit patterns worth trying in any type.
std::vector<uint64_t> special_bits(DType type) {
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
std::vector<uint64_t> tame_bits(DType type, std::mt19937_64& random, size_t count) {
  std::vector<uint64_t> bits;
  for (size_t k = 0; k < count; k++) {
    const auto t = scalar_tensor(type, 0.25 + 3.75 * double(random() % 4096) / 4096);
    uint64_t b = 0;
    std::memcpy(&b, t->data.data(), t->data.size());
    bits.push_back(b);
  }
  return bits;
}

/// Columns of input values, one a variable, all of one length.
std::vector<Tensor> columns(const std::vector<DType>& types, bool exhaustive, bool tame, std::mt19937_64& random) {
  const size_t variables = types.size();
  std::vector<std::vector<uint64_t>> rows(variables);
  const auto fits = [&](size_t limit) {
    size_t total = 1;
    for (DType t : types) total *= t == DType::boolean ? 2 : bytes(t) <= 2 ? size_t{1} << (8 * bytes(t)) : limit + 1;
    return total <= limit ? total : 0;
  };
  const size_t all = exhaustive && !tame ? fits(1 << 16) : 0;
  if (all) {
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
    for (size_t n = 0; n < 1024 && !tame; n++)
      for (size_t v = 0; v < variables; v++) rows[v].push_back(types[v] == DType::boolean ? random() & 1 : random());
  }
  std::vector<Tensor> out;
  for (size_t v = 0; v < variables; v++) {
    Tensor t{types[v], {int64_t(rows[v].size())}, {}};
    for (uint64_t b : rows[v]) append(t.data, b, bytes(types[v]));
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
std::vector<Types> typings(const Uses& uses) {
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
std::vector<Pattern> spellings(const Pattern& p) {
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

Make plain(GraphBuilder& b) {
  return [&b](Op op, std::vector<Value> args, Attrs attrs) { return b.add(op, std::move(args), std::move(attrs)); };
}

/// `find` with these types and constants; found again by the matcher, and `put` beside it. Empty when ill-typed or not allowed.
std::unique_ptr<Instance> instantiate(const RewriteRule& rule, const Pattern& spelling, const Uses& uses, const Types& types, int64_t n,
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

bool is_nan_at(const Tensor& t, int64_t k) { return is_float(t.dtype) && std::isnan(element(t, k)); }

/// Index of the first element that differs by more than the row may, or -1.
int64_t first_difference(const Tensor& a, const Tensor& b, bool exact) {
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

bool formulas_ready(const Uses& uses, DType type) {
  for (Op op : uses.ops)
    if (info(op).form == Form::formula && !formula(op, type)) return false;
  return true;
}

class RuleRow : public testing::TestWithParam<const RewriteRule*> {};

std::vector<std::vector<Tensor>> constant_choices(const RewriteRule& rule, size_t count, DType type, std::mt19937_64& random) {
  std::vector<Tensor> each;
  const bool tame = rule.holds == Holds::fast || rule.holds == Holds::fused;
  if (tame) {
    for (double n : {0.70710678118654752, 1.4142135623730951, 0.044715, 0.79788456080286536, 0.5, 3.0})
      if (auto t = scalar_tensor(type, n)) each.push_back(*t);
  } else {
    for (uint64_t bits : special_bits(type)) {
      each.push_back({type, {}, {}});
      append(each.back().data, bits, bytes(type));
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

/// One spelling of a row with one choice of types and constants, on `inputs` (made when first needed).
Verdict compare_sides(const RewriteRule& rule, const Uses& uses, const Pattern& spelling, const Types& types,
                      const std::vector<Tensor>& constants, std::vector<Tensor>& inputs, std::mt19937_64& random) {
  if (!instantiate(rule, spelling, uses, types, 1, constants)) return Verdict::not_there;
  if (!formulas_ready(uses, types.values[0])) return Verdict::waiting;
  const bool exact = rule.holds != Holds::fast && rule.holds != Holds::fused;
  if (inputs.empty()) inputs = columns(types.values, uses.constants.size() <= 1, !exact, random);
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

TEST_P(RuleRow, BothSidesAreEqual) {
  const RewriteRule& rule = *GetParam();
  const Uses uses = uses_of(rule);
  ASSERT_TRUE(uses.values.contains(0)) << "x decides for which types a row holds";
  std::mt19937_64 random(7);
  int there = 0;
  for (const Types& types : typings(uses)) {
    std::vector<Tensor> inputs;
    const auto choices = constant_choices(rule, uses.constants.size(), types.constants, random);
    for (const Pattern& spelling : spellings(rule.find))
      for (const std::vector<Tensor>& constants : choices) {
        there += compare_sides(rule, uses, spelling, types, constants, inputs, random) != Verdict::not_there;
        if (HasFailure()) return;
      }
  }
  EXPECT_GT(there, 0) << rule.name << " can never fire";
}

/// Rules before it in the list must not always be faster: some graph is rewritten by this very row.
TEST_P(RuleRow, FiresInItsPass) {
  const RewriteRule& rule = *GetParam();
  const Uses uses = uses_of(rule);
  std::mt19937_64 random(11);
  const bool activation = rule.holds == Holds::fused;
  static const RuleSet simplify_rules(simplify_tables()), activation_rules({&activations()});
  for (const Types& types : typings(uses))
    for (const std::vector<Tensor>& constants : constant_choices(rule, uses.constants.size(), types.constants, random)) {
      auto instance = instantiate(rule, rule.find, uses, types, 1, constants);
      if (!instance) continue;
      const Result<Graph> graph = std::move(instance->b).finish({instance->find});
      ASSERT_TRUE(graph);
      RuleControl control;
      const Result<Graph> result = rewrite(*graph, activation ? activation_rules : simplify_rules, Numerics::fast, control);
      ASSERT_TRUE(result) << result.error().text();
      if (control.firings.contains(rule.name)) return;
    }
  FAIL() << rule.name << " never fires in its pass: others take its place";
}

// --- termination ---------------------------------------------------------------------------------------------------------

struct Measure {
  int base = 0;
  std::array<int, kPatternValues> of{};  // how often each variable counts
};

Measure measure(const Pattern& p) {
  Measure m;
  if (p.kind == Pattern::value) {
    m.of[p.index] = 1;
    return m;
  }
  if (p.kind != Pattern::node) {  // a constant
    m.base = 1;
    return m;
  }
  const Weight w = weight(p.op);
  m.base = w.base;
  for (const Pattern& arg : p.args) {
    const Measure inner = measure(arg);
    m.base += w.factor * inner.base;
    for (size_t k = 0; k < m.of.size(); k++) m.of[k] += w.factor * inner.of[k];
  }
  return m;
}

TEST_P(RuleRow, LowersTheMeasure) {
  const RewriteRule& rule = *GetParam();
  const Measure find = measure(rule.find), put = measure(rule.put);
  int gain = find.base - put.base;
  bool may_broadcast = false;
  for (size_t k = 0; k < kPatternValues; k++) {
    EXPECT_LE(put.of[k], find.of[k]) << "a variable must not count more often in put";
    gain += find.of[k] - put.of[k];  // a variable weighs at least 1
    may_broadcast |= find.of[k] > 0 && put.of[k] == 0;
  }
  EXPECT_GT(gain, may_broadcast ? weight(Op::broadcast).base : 0) << text(rule.find) << " -> " << text(rule.put);
}

INSTANTIATE_TEST_SUITE_P(Tables, RuleRow, testing::ValuesIn(all_rules()), [](const auto& param) {
  std::string name = param.param->name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(Tables, NamesAreUnique) {
  std::set<std::string> names;
  for (const RewriteRule* rule : all_rules()) EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
  EXPECT_GE(names.size(), 60u);
}

}  // namespace
}  // namespace fusec
