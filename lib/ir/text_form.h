#pragma once
// Conventions of the text form that printer and parser share.

#include <set>
#include <string>
#include <string_view>

#include "fusec/graph.h"
#include "lib/support/limits.h"

namespace fusec {

/// May operand `i` of `op` be a bare literal, which takes the element type of operand `j`? Both are the op's data operands.
inline bool types_literal(Op op, size_t i, size_t j) {
  if (i == j || !is_elementwise(op)) return false;
  return info(op).rule != Rule::select || (i > 0 && j > 0);
}

/// The port name of an output that gives none: its value's name, or its position; where that is taken, t'3 for the fourth.
inline std::string default_output_name(std::string_view label, size_t position, const std::set<std::string>& taken) {
  std::string name = label.empty() ? std::to_string(position) : std::string(label);
  if (taken.contains(name)) name = name.substr(0, kMaxName - 32) + "'" + std::to_string(position);
  while (taken.contains(name)) name += '\'';
  return name;
}

struct RelaxName {
  std::string_view name;
  Relax flag;
};
inline constexpr RelaxName kRelaxNames[] = {
    {"contract", kContract}, {"reciprocal", kReciprocal}, {"online", kOnline}, {"fewer_terms", kFewerTerms}, {"near", kNear}};

}  // namespace fusec
