// A formula as one device function: a statement a step, over the cells of exact primitives. It is printed once a kernel and
// called; the compiler decides what to inline.

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/cuda/words.h"
#include "lib/ir/formula.h"

namespace fusec::cuda {
namespace {

/// x < c ? c : x and x > c ? c : x with a constant that is no NaN are one instruction each, with the same bits; -0 counts as less
/// than 0 there, so a lower bound of -0 and an upper one of +0 qualify.
std::string clamp_text(const Formula& f, const Step& select, const std::vector<std::string>& args) {
  const Step& test = f.steps[select.args[0]];
  if (test.kind != Step::compute || (test.op != Op::lt && test.op != Op::gt) || select.type != DType::f32) return "";
  const Step& bound = f.steps[select.args[1]];
  if (test.args[0] != select.args[2] || test.args[1] != select.args[1] || bound.kind != Step::constant) return "";
  const uint32_t c = static_cast<uint32_t>(bound.bits), magnitude = c & 0x7fffffffu;
  if (magnitude == 0 ? (c != 0) != (test.op == Op::lt) : magnitude > 0x7f800000u) return "";
  return std::string(test.op == Op::lt ? "greatest(" : "least(") + args[2] + ", " + args[1] + ")";
}

/// Signs of f32 as arithmetic, which instructions take as modifiers of their operands. The cells work on bits, for the sake of NaNs
/// whose sign somebody may look at; nobody looks at one inside a formula.
std::string sign_text(const Step& s, const std::string& x) {
  if (s.type != DType::f32) return "";
  return s.op == Op::neg ? "-" + x : s.op == Op::abs ? "fabsf(" + x + ")" : "";
}

/// Where each f32 step lies, as far as a bound shows; a NaN may be anywhere.
struct Range {
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};
std::vector<Range> ranges(const Formula& f) {
  std::vector<Range> out(f.steps.size());
  for (size_t i = 0; i < f.steps.size(); ++i) {
    const Step& s = f.steps[i];
    if (s.type != DType::f32) continue;
    if (s.kind == Step::constant) out[i].low = out[i].high = std::bit_cast<float>(uint32_t(s.bits));
    if (s.kind != Step::compute) continue;
    if (s.op == Op::abs) out[i].low = 0;
    if (s.op == Op::add) out[i] = {out[s.args[0]].low + out[s.args[1]].low, out[s.args[0]].high + out[s.args[1]].high};
    if (s.op == Op::fma && out[s.args[0]].low >= 0 && out[s.args[1]].low >= 0)
      out[i] = {out[s.args[0]].low * out[s.args[1]].low + out[s.args[2]].low, out[s.args[0]].high * out[s.args[1]].high + out[s.args[2]].high};
    const Step& test = f.steps[s.args[0]];
    if (s.op != Op::select || test.kind != Step::compute || test.args[0] != s.args[2] || test.args[1] != s.args[1]) continue;
    const Range bound = out[s.args[1]], x = out[s.args[2]];
    if (test.op == Op::gt) out[i] = {std::min(x.low, bound.low), std::min(x.high, bound.high)};
    if (test.op == Op::lt) out[i] = {std::max(x.low, bound.low), std::max(x.high, bound.high)};
  }
  return out;
}

}  // namespace

std::string formula_name(Op op, DType result) {
  const Formula* f = formula(op, result);
  return "formula_" + std::string(name(op)) + "_" + std::string(name(f ? f->result : result));
}

std::string formula_text(Op op, DType result) {
  const Formula* known = formula(op, result);
  if (!known) return "#error no formula for " + std::string(name(op)) + "\n";  // a card without its steps: NVRTC will say so
  const Formula& f = *known;
  const std::string type = c_type(f.type);
  std::string out = "D " + type + " " + formula_name(op, result) + "(";
  for (int p = 0; p < f.operands + f.scalars; ++p) out += (p ? ", " : "") + type + " p" + std::to_string(p);
  out += ") {\n";
  const std::vector<Range> range = ranges(f);
  // 1 / x of numbers that are far from where a reciprocal over- or underflows.
  auto plain_reciprocal = [&](const Step& s) {
    const Step& x = f.steps[s.args[0]];
    return s.op == Op::div && s.type == DType::f32 && x.kind == Step::constant && x.bits == 0x3f800000u && range[s.args[1]].low >= 0x1p-60f &&
           range[s.args[1]].high <= 0x1p60f;
  };
  auto at = [](uint16_t step) { return "s" + std::to_string(step); };
  for (size_t i = 0; i < f.steps.size(); ++i) {
    const Step& s = f.steps[i];
    std::string value;
    switch (s.kind) {
      case Step::parameter: value = "p" + std::to_string(s.bits); break;
      case Step::constant: value = literal(s.type, s.bits); break;
      case Step::compute: {
        const DType from = f.steps[s.args[0]].type;
        std::vector<std::string> args;
        for (int k = 0; k < info(s.op).arity; ++k) args.push_back(at(s.args[static_cast<size_t>(k)]));
        value = s.op == Op::select ? clamp_text(f, s, args) : sign_text(s, args[0]);
        if (!value.empty()) break;
        value = plain_reciprocal(s)   ? "rcp_plain(" + args[1] + ")"
                : s.op == Op::cast    ? cast(from, s.type, args[0])
                : s.op == Op::bitcast ? bitcast(from, s.type, args[0])
                                      : cell(s.op, s.type, args);
        break;
      }
    }
    out += "  const " + c_type(s.type) + " " + at(static_cast<uint16_t>(i)) + " = " + value + ";\n";
  }
  return out + "  return " + at(static_cast<uint16_t>(f.steps.size() - 1)) + ";\n}\n";
}

}  // namespace fusec::cuda
