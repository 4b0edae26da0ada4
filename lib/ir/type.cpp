// Element types and dims. A Dim is a polynomial with integer factors over named sizes, in one canonical form:
//   3 + 2*N*M  →  constant 3, terms {2, [M, N]}; terms are sorted by their symbols, no factor is 0.

#include "fusec/type.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "lib/support/hash.h"
#include "lib/support/limits.h"
#include "lib/support/text.h"

namespace fusec {
namespace {

struct DTypeRow {
  std::string_view name;
  size_t bytes;
  bool is_float, is_integer, is_signed;
  DType compute;
};

constexpr DTypeRow kDTypeRows[kDTypes] = {
    // name     bytes  float  int    signed compute
    {"bool",    1,     false, false, false, DType::boolean},
    {"i8",      1,     false, true,  true,  DType::i8},
    {"i16",     2,     false, true,  true,  DType::i16},
    {"i32",     4,     false, true,  true,  DType::i32},
    {"i64",     8,     false, true,  true,  DType::i64},
    {"u8",      1,     false, true,  false, DType::u8},
    {"u16",     2,     false, true,  false, DType::u16},
    {"u32",     4,     false, true,  false, DType::u32},
    {"u64",     8,     false, true,  false, DType::u64},
    {"f16",     2,     true,  false, true,  DType::f32},
    {"bf16",    2,     true,  false, true,  DType::f32},
    {"f32",     4,     true,  false, true,  DType::f32},
    {"f64",     8,     true,  false, true,  DType::f64},
    {"f8e4m3",  1,     true,  false, true,  DType::f32},
    {"f8e5m2",  1,     true,  false, true,  DType::f32},
};

const DTypeRow& row(DType type) { return kDTypeRows[static_cast<size_t>(type)]; }

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("a dim leaves 64 bits");
  return r;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("a dim leaves 64 bits");
  return r;
}

using Term = Dim::Term;

/// Degree first, then earlier symbols first: an order that multiplication keeps, as polynomial division needs.
bool leads(const Term& a, const Term& b) {
  if (a.symbols.size() != b.symbols.size()) return a.symbols.size() > b.symbols.size();
  return a.symbols < b.symbols;
}

}  // namespace

size_t bytes(DType type) { return row(type).bytes; }
std::string_view name(DType type) { return row(type).name; }
bool is_float(DType type) { return row(type).is_float; }
bool is_integer(DType type) { return row(type).is_integer; }
bool is_signed(DType type) { return row(type).is_signed; }
DType compute_type(DType type) { return row(type).compute; }

std::optional<DType> dtype(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i)
    if (kDTypeRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

/// Terms of a polynomial under construction, its constant among them as the term without symbols.
struct DimParts {
  std::vector<Term> terms;

  explicit DimParts(const Dim& dim) {
    if (dim.terms_) terms = *dim.terms_;
    if (dim.constant_ != 0) terms.push_back({dim.constant_, {}});
  }
  DimParts() = default;

  Dim dim() && {
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.symbols < b.symbols; });
    std::vector<Term> merged;
    for (Term& t : terms) {
      if (!merged.empty() && merged.back().symbols == t.symbols)
        merged.back().factor = checked_add(merged.back().factor, t.factor);
      else
        merged.push_back(std::move(t));
    }
    Dim result;
    std::erase_if(merged, [&](const Term& t) {
      if (t.symbols.empty()) result.constant_ = t.factor;
      return t.symbols.empty() || t.factor == 0;
    });
    if (merged.size() > size_t{kMaxDimTerms}) throw std::overflow_error("a dim has too many terms");
    if (!merged.empty()) result.terms_ = std::make_shared<const std::vector<Term>>(std::move(merged));
    return result;
  }
};

namespace {

Term product(const Term& a, const Term& b) {
  Term t{checked_mul(a.factor, b.factor), {}};
  if (a.symbols.size() + b.symbols.size() > size_t{kMaxDimDegree}) throw std::overflow_error("a dim has too high a degree");
  std::merge(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(), std::back_inserter(t.symbols));
  return t;
}

/// a / b for single terms, when exact.
std::optional<Term> quotient(const Term& a, const Term& b) {
  if (b.factor == 0 || (b.factor == -1 && a.factor == INT64_MIN) || a.factor % b.factor != 0) return std::nullopt;
  if (!std::includes(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end())) return std::nullopt;
  Term t{a.factor / b.factor, {}};
  std::set_difference(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(), std::back_inserter(t.symbols));
  return t;
}

}  // namespace

Dim Dim::symbol(std::string_view name) {
  Dim dim;
  dim.terms_ = std::make_shared<const std::vector<Term>>(1, Term{1, {std::string(name)}});
  return dim;
}

std::optional<int64_t> Dim::value(const Sizes& sizes) const {
  int64_t sum = constant_;
  if (!terms_) return sum;
  for (const Term& t : *terms_) {
    int64_t product = t.factor;
    for (const std::string& s : t.symbols) {
      const auto found = sizes.find(s);
      if (found == sizes.end() || __builtin_mul_overflow(product, found->second, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::vector<std::string> Dim::symbols() const {
  std::vector<std::string> all;
  if (terms_)
    for (const Term& t : *terms_) all.insert(all.end(), t.symbols.begin(), t.symbols.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string Dim::text() const {
  if (!terms_) return std::to_string(constant_);
  std::string out;
  for (const Term& t : *terms_) {
    std::string factor = std::to_string(t.factor);
    if (!out.empty() && t.factor > 0) out += '+';
    if (t.factor == -1) out += '-';
    if (t.factor != 1 && t.factor != -1) out += factor + '*';
    for (size_t i = 0; i < t.symbols.size(); ++i) {
      if (i > 0) out += '*';
      out += is_plain_symbol(t.symbols[i]) ? t.symbols[i] : quoted(t.symbols[i]);
    }
  }
  if (constant_ > 0) out += '+';
  if (constant_ != 0) out += std::to_string(constant_);
  return out;
}

uint64_t Dim::hash() const {
  Hasher h;
  h.add(static_cast<uint64_t>(constant_));
  if (!terms_) return h.value();
  for (const Term& t : *terms_) {
    h.add(static_cast<uint64_t>(t.factor)).add(t.symbols.size());
    for (const std::string& s : t.symbols) h.add(s);
  }
  return h.value();
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.constant(), b.constant());
  DimParts sum(a), other(b);
  sum.terms.insert(sum.terms.end(), other.terms.begin(), other.terms.end());
  return std::move(sum).dim();
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    int64_t r;
    if (__builtin_sub_overflow(a.constant(), b.constant(), &r)) throw std::overflow_error("a dim leaves 64 bits");
    return r;
  }
  return a + b * Dim(-1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.constant(), b.constant());
  const DimParts x(a), y(b);
  DimParts result;
  for (const Term& s : x.terms)
    for (const Term& t : y.terms) result.terms.push_back(product(s, t));
  return std::move(result).dim();
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_ || !a.terms_ != !b.terms_) return false;
  return !a.terms_ || a.terms_ == b.terms_ || *a.terms_ == *b.terms_;
}

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is(1)) return a;
  // Long division by leading terms; each round removes the remainder's leading term, and there are few of them.
  try {
    const DimParts divisor(b);
    const Term& lead = *std::min_element(divisor.terms.begin(), divisor.terms.end(), leads);
    Dim rest = a, result;
    for (size_t rounds = 0; !rest.is(0); ++rounds) {
      const DimParts parts(rest);
      const auto t = quotient(*std::min_element(parts.terms.begin(), parts.terms.end(), leads), lead);
      if (!t || rounds > size_t{kMaxDimTerms}) return std::nullopt;
      DimParts one;
      one.terms.push_back(*t);
      const Dim step = std::move(one).dim();
      result = result + step;
      rest = rest - step * b;
    }
    return result;
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

std::optional<Dim> Dim::parse(std::string_view text) {
  const auto skip = [&] {
    while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
  };
  const auto take = [&](char c) {
    skip();
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  /// One number or symbol of a product, multiplied into `t`.
  const auto factor = [&](Term& t) {
    skip();
    if (text.empty()) return false;
    if (text[0] >= '0' && text[0] <= '9') {
      // As a negative number, so that INT64_MIN can be read: its sign is applied first.
      uint64_t n;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (error != std::errc() || n > (uint64_t{1} << 63)) return false;
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      const bool min = n == uint64_t{1} << 63;
      if (min && t.factor != -1) return false;
      t.factor = min ? INT64_MIN : checked_mul(t.factor, static_cast<int64_t>(n));
      return true;
    }
    std::string symbol;
    if (text[0] == '"') {
      auto name = take_quoted(text);
      if (!name || name->size() > size_t{kMaxName}) return false;
      symbol = std::move(*name);
    } else {
      const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
      const size_t n = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), in_name) - text.begin());
      if (n > size_t{kMaxName} || !is_plain_symbol(text.substr(0, n))) return false;
      symbol = text.substr(0, n);
      text.remove_prefix(n);
    }
    t = product(t, {1, {std::move(symbol)}});
    return true;
  };
  try {
    Dim sum;
    for (bool first = true;; first = false) {
      Term t{1, {}};
      if (take('-'))
        t.factor = -1;
      else if (!first && !take('+'))
        return std::nullopt;
      if (!factor(t)) return std::nullopt;
      while (take('*'))
        if (!factor(t)) return std::nullopt;
      DimParts one;
      one.terms.push_back(std::move(t));
      sum = sum + std::move(one).dim();
      skip();
      if (text.empty()) return sum;
    }
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

std::string text(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ',';
    out += shape[i].text();
  }
  return out + "]";
}

std::string text(const Type& type) { return std::string(name(type.dtype)) + text(type.shape); }

Dim elements(const Shape& shape) {
  Dim count = 1;
  // A zero makes the whole product zero, whatever overflows before it.
  for (const Dim& d : shape)
    if (d.is(0)) return 0;
  for (const Dim& d : shape) count = count * d;
  return count;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size());
  // Unsigned: a product that a size of 0 makes harmless may wrap. A size of 0 counts as 1, as numpy does.
  uint64_t step = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(extents[i], 1));
  }
  return strides;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b, size_t* axis) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() >= rank ? a[i + a.size() - rank] : Dim(1);
    const Dim y = i + b.size() >= rank ? b[i + b.size() - rank] : Dim(1);
    if (x == y || y.is(1)) {
      result[i] = x;
    } else if (x.is(1)) {
      result[i] = y;
    } else {
      if (axis) *axis = i;
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace fusec
