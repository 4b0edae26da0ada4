#include "fusec/op.h"

#include <map>

namespace fusec {
namespace {

/// A name that C++ reserves carries an underscore at its end in the table: and_ is `and`.
constexpr std::string_view public_name(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

constexpr OpInfo kInfo[] = {
#define OP(name, form, arity, optional, rule, domain, traits, cost, attributes, summary, ...)                             \
  {public_name(#name), Form::form, arity, optional, Rule::rule, Domain::domain, static_cast<uint16_t>(traits), cost, \
   attributes, summary},
#include "fusec/ops.def"
#undef OP
};

}  // namespace

const OpInfo& info(Op op) { return kInfo[static_cast<size_t>(op)]; }

std::optional<Op> op(std::string_view name) {
  static const std::map<std::string_view, Op> kByName = [] {
    std::map<std::string_view, Op> names;
    for (int i = 0; i < kOps; ++i) names.emplace(kInfo[i].name, static_cast<Op>(i));
    return names;
  }();
  const auto found = kByName.find(name);
  if (found == kByName.end()) return std::nullopt;
  return found->second;
}

bool accepts(Domain domain, DType type) {
  switch (domain) {
    case Domain::any: return true;
    case Domain::numbers: return type != DType::boolean;
    case Domain::floats: return is_float(type);
    case Domain::integers: return is_integer(type);
    case Domain::bits: return !is_float(type);
    case Domain::boolean: return type == DType::boolean;
  }
  return false;
}

}  // namespace fusec
