#include "lib/import/onnx_quotients.h"

#include <charconv>

#include "lib/support/limits.h"

namespace fusec {
namespace onnx {
namespace {

/// "side" and 2 are "side/2", "side/2" and 3 are "side/6".
std::string quotient_name(const std::string& symbol, int64_t by) {
  const size_t slash = symbol.rfind('/');
  int64_t before = 1;
  if (slash != symbol.npos) {
    const auto [end, error] = std::from_chars(symbol.data() + slash + 1, symbol.data() + symbol.size(), before);
    if (error == std::errc() && end == symbol.data() + symbol.size() && !__builtin_mul_overflow(before, by, &by)) return symbol.substr(0, slash + 1) + std::to_string(by);
  }
  return symbol + "/" + std::to_string(by);
}

}  // namespace

void Quotients::begin(std::set<std::string> taken) {
  all_.clear();
  symbols_.clear();
  taken_ = std::move(taken);
}

std::optional<Dim> Quotients::divide(const Dim& of, int64_t by, const std::string& name) {
  if (of.is_constant()) return of.constant() / by;
  if (const std::optional<Dim> exact = exact_quotient(of, Dim(by))) return exact;
  for (const Quotient& known : all_)
    if (known.by == by && known.of == of) return Dim::symbol(known.symbol);
  if (all_.size() == kMost) return std::nullopt;
  const std::vector<std::string> symbols = of.symbols();
  const bool plain = symbols.size() == 1 && (of - Dim::symbol(symbols[0])).is_constant();
  std::string symbol = plain ? quotient_name(symbols[0], by) : name;
  if (symbol.size() > size_t{kMaxName} / 2) symbol.resize(size_t{kMaxName} / 2);
  while (!taken_.insert(symbol).second) symbol += "'";
  symbols_.insert(symbol);
  all_.push_back({symbol, of, by});
  return Dim::symbol(symbol);
}

}  // namespace onnx

void add_quotients(std::span<const Quotient> quotients, Sizes& sizes) {
  for (const Quotient& q : quotients)
    if (const std::optional<int64_t> of = q.of.value(sizes)) sizes.emplace(q.symbol, *of / q.by);
}

}  // namespace fusec
