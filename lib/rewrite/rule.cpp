// Patterns as text, for `fusec rules` and for error messages.

#include "lib/rewrite/rule.h"

#include "lib/support/text.h"

namespace fusec {
namespace {

std::string_view infix(Op op) {
  switch (op) {
    case Op::add: return "+";
    case Op::sub: return "-";
    case Op::mul: return "*";
    case Op::div: return "/";
    case Op::and_: return "&";
    case Op::or_: return "|";
    case Op::xor_: return "^";
    case Op::shl: return "<<";
    case Op::shr: return ">>";
    case Op::eq: return "==";
    case Op::ne: return "!=";
    case Op::lt: return "<";
    case Op::le: return "<=";
    case Op::gt: return ">";
    case Op::ge: return ">=";
    default: return "";
  }
}

/// An operand: in parentheses when it is an infix expression itself.
std::string operand(const Pattern& p) {
  const bool wrap = p.kind == Pattern::node && !infix(p.op).empty();
  return wrap ? "(" + text(p) + ")" : text(p);
}

std::string node_text(const Pattern& p) {
  if (const std::string_view sign = infix(p.op); !sign.empty())
    return operand(p.args[0]) + " " + std::string(sign) + " " + operand(p.args[1]);
  if (p.op == Op::neg) return "-" + operand(p.args[0]);
  if (p.op == Op::bitwise_not) return "~" + operand(p.args[0]);
  std::string out(name(p.op));
  out += '(';
  for (size_t k = 0; k < p.args.size(); k++) out += (k ? ", " : "") + text(p.args[k]);
  if (p.index != kNoSlot) out += p.index == 0 ? ", A" : ", B";
  return out + ")";
}

}  // namespace

std::string text(const Pattern& p) {
  switch (p.kind) {
    case Pattern::value: return std::string(1, "xyz"[p.index]);
    case Pattern::constant: return std::string(1, "cdef"[p.index]);
    case Pattern::number: return p.literal == int64_t(p.literal) && number_text(p.literal) != "-0.0" ? std::to_string(int64_t(p.literal))
                                                                                                  : number_text(p.literal);
    case Pattern::special: return p.which == Pattern::all_ones ? "all_ones" : p.which == Pattern::lowest ? "lowest" : "highest";
    case Pattern::node: return node_text(p);
    case Pattern::fold: return "fold(" + text(p.args[0]) + ")";
    case Pattern::derived: return "derived(c)";
  }
  return "";
}

std::string_view name(Holds holds) {
  switch (holds) {
    case Holds::exact: return "exact";
    case Holds::integers: return "integers";
    case Holds::floats: return "floats";
    case Holds::fused: return "fused";
    case Holds::fast: return "fast";
  }
  return "";
}

}  // namespace fusec
