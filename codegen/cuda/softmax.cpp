#include "codegen/cuda/softmax.h"

#include <algorithm>

namespace fusec::cuda {
namespace {

bool granted(const Inst& inst, Op op, uint8_t relax) { return inst.kind == Kind::compute && inst.op == op && inst.type == DType::f32 && (inst.relax & relax) == relax; }

/// Is `of` the only one that reads v?
bool read_by(const Kernel& kernel, Val v, Val of) {
  bool alone = true;
  for (Val user = 0; user < kernel.values.size(); ++user) each_operand(kernel.values[user], [&](Val x) { alone &= x != v || user == of; });
  for (const Reduction& r : kernel.reductions) alone &= !std::count(r.inputs.begin(), r.inputs.end(), v);
  return alone;
}

}  // namespace

Val folded_bytes(const Writer& w, const Reduction& r) {
  const Kernel& kernel = w.kernel();
  bool near = false;
  for (Val v : r.results) near |= v != kNoVal && (kernel.values[v].relax & kNear) && !(kernel.values[v].relax & kFewerTerms);
  const Inst& x = kernel.values[r.inputs[0]];
  if (!near || r.fold != Fold::online || r.accumulate != DType::f32 || !granted(x, Op::cast, 0)) return kNoVal;
  const Val load = x.args[0];
  const Inst& bytes = kernel.values[load];
  const bool is_byte = bytes.kind == Kind::load && (bytes.type == DType::u8 || bytes.type == DType::i8) && w.operand(load).type == bytes.type;
  return is_byte && w.V % 4 == 0 && w.view.wide(load) ? load : kNoVal;
}

std::string lift_of(DType bytes) { return bytes == DType::i8 ? "32896.0f" : "32768.0f"; }

std::string lift(const Writer& w, Val load, const std::string& words, const std::string& array) {
  return std::string("lift_bytes<") + (w.inst(load).type == DType::i8 ? "true" : "false") + ">(" + words + ", " + array + ");";
}

std::optional<Softmax> softmax_of(const Writer& w) {
  const Kernel& kernel = w.kernel();
  for (Val p = 0; p < kernel.values.size(); ++p) {
    if (!w.by_reciprocal(p) || !granted(kernel.values[p], Op::div, 0) || !w.view.wide(p)) continue;
    const Val e = kernel.values[p].args[0], sum = kernel.values[p].args[1];
    const bool few = granted(kernel.values[e], Op::exp, kFewerTerms), near = granted(kernel.values[e], Op::exp, kNear);
    if ((!few && !near) || kernel.values[sum].kind != Kind::result || !read_by(kernel, e, p)) continue;
    const Val d = kernel.values[e].args[0];
    const Reduction& r = kernel.reductions[kernel.values[sum].reduction];
    if (!granted(kernel.values[d], Op::sub, 0) || r.fold != Fold::online || r.results.size() < 2 || r.results[1] != sum || !read_by(kernel, d, e)) continue;
    const Val x = kernel.values[d].args[0], max = kernel.values[d].args[1], bytes = folded_bytes(w, r);
    if (max == kNoVal || max != r.results[0] || x != r.inputs[0] || (!few && bytes == kNoVal)) continue;
    return Softmax{p, x, max, sum, few ? kNoVal : bytes};
  }
  return std::nullopt;
}

std::string softmax_row_text(const Writer& w, const Softmax& s) {
  const std::string m = "row.v" + std::to_string(s.max), q = "row.q" + std::to_string(s.sum);
  if (s.bytes == kNoVal) return "    row.p = few_of_row(" + m + ", " + q + ");\n";
  return "    row.p = bytes_of_row(" + m + " + " + lift_of(w.inst(s.bytes).type) + ", " + q + ");\n";
}

void probabilities_text(const Writer& w, Body& body, const Softmax& s) {
  const std::string p = "v" + std::to_string(s.probability), V = std::to_string(w.V);
  std::string x;
  if (s.bytes != kNoVal) {
    const std::string lifted = "lifted" + std::to_string(s.bytes);
    body.close_loop();
    body.line("f32 " + lifted + "[" + V + "];");
    body.line(lift(w, s.bytes, *body.words(s.bytes), lifted));
    x = lifted + "[e]";
  } else {
    body.need({s.x});
    x = body.at(s.x);
  }
  body.hoist("f32 " + p + "[" + V + "];");
  body.open_loop();
  body.line(p + "[e] = " + (s.bytes != kNoVal ? "bytes" : "few") + "_in_row(" + x + ", row.p);");
  body.have(s.probability, p);
}

}  // namespace fusec::cuda
