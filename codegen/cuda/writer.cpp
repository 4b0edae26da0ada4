#include "codegen/cuda/writer.h"

#include <algorithm>
#include <bit>

#include "codegen/cuda/words.h"
#include "lib/ir/formula.h"

namespace fusec::cuda {
namespace {

std::string dec(uint64_t n) { return std::to_string(n); }

}  // namespace

Writer::Writer(const View& v, const Schedule& s) : view(v), schedule(s), args(s.wide_index) {
  const Kernel& k = view.kernel;
  as_float.assign(k.values.size(), 1);
  for (const Inst& inst : k.values)
    each_operand(inst, [&](Val x) {
      if (inst.kind != Kind::compute || inst.op != Op::cast || inst.type != DType::f32) as_float[x] = 0;
    });
  for (const Reduction& r : k.reductions)
    for (Val x : r.inputs) as_float[x] = 0;
  for (Val x = 0; x < k.values.size(); ++x) {
    const Inst& inst = k.values[x];
    as_float[x] = as_float[x] && inst.kind == Kind::load && (inst.type == DType::u8 || inst.type == DType::i8) && k.operands[inst.operand].type == inst.type;
  }
  bool nothing = false;  // to reduce: all results are a fold's first value
  for (const Axis& axis : k.axes) nothing = nothing || (axis.reduced && axis.extent.is_constant() && axis.extent.constant() == 0);
  known.assign(k.values.size(), 0);
  for (Val v = 0; v < k.values.size(); ++v) {
    const Inst& inst = k.values[v];
    switch (inst.kind) {
      case Kind::constant: case Kind::dim: known[v] = 1; break;
      case Kind::compute: known[v] = all_known(inst.args) && !hidden(inst); break;
      case Kind::result: known[v] = nothing || all_known(k.reductions[inst.reduction].inputs); break;
      case Kind::load: case Kind::store: case Kind::iota: break;
    }
  }
}

bool Writer::all_known(const std::vector<Val>& values) const {
  return std::all_of(values.begin(), values.end(), [&](Val x) { return known[x]; });
}

std::optional<size_t> Writer::hidden(const Inst& inst) const {
  if (!all_known(inst.args)) return std::nullopt;
  for (size_t i = 0; i < inst.args.size(); ++i)
    if (compute_type(this->inst(inst.args[i]).type) == DType::f32) return i;
  return std::nullopt;
}

void Writer::choose_pairs() {
  const Kernel& k = kernel();
  paired.assign(k.values.size(), 0);
  packed_only.assign(k.values.size(), 1);
  for (Val v = 0; v < k.values.size(); ++v) {
    const Inst& inst = k.values[v];
    paired[v] = inst.kind == Kind::compute && (inst.op == Op::add || inst.op == Op::sub || inst.op == Op::mul) && inst.rounds &&
                holds_pairs(inst.type) && view.wide(v) && view.level(v) == Level::element;
  }
  for (Val v = 0; v < k.values.size(); ++v) {
    const Inst& inst = k.values[v];
    each_operand(inst, [&](Val x) {
      const bool packs = inst.kind == Kind::store && x == inst.args[0] && k.operands[inst.operand].type == k.values[x].type;
      if (!packs && !paired[v]) packed_only[x] = 0;
    });
  }
  for (const Reduction& r : k.reductions)
    for (Val x : r.inputs) packed_only[x] = 0;
  for (Val x = 0; x < k.values.size(); ++x) packed_only[x] = packed_only[x] && is_narrow(k.values[x].type);
  packs.assign(k.values.size(), 0);
  for (Val v = 0; v < k.values.size(); ++v)
    packs[v] = k.values[v].kind == Kind::compute && k.values[v].rounds && holds_pairs(k.values[v].type) && view.wide(v) &&
               view.level(v) == Level::element && !paired[v] && !packed_only[v] && !divides_by_one(v);
  choose_contractions();
}

void Writer::choose_contractions() {
  const Kernel& k = kernel();
  auto granted = [](const Inst& i, Op op) {
    return i.kind == Kind::compute && i.op == op && (i.relax & kContract) && !i.rounds && is_float(i.type);
  };
  contracted.assign(k.values.size(), 0);
  for (Val v = 0; v < k.values.size(); ++v) contracted[v] = granted(k.values[v], Op::mul) && view.level(v) == Level::element;
  for (const Inst& inst : k.values)
    each_operand(inst, [&](Val x) {
      const bool taken = granted(inst, Op::add) && inst.args[0] == x && !(inst.args[1] == x);
      if (!taken) contracted[x] = 0;
    });
  for (const Reduction& r : k.reductions)
    for (Val x : r.inputs) contracted[x] = 0;
  for (Val x : schedule.cut) contracted[x] = 0;
}

void Writer::use_formula(Op op, DType type) {
  const Formula* f = formula(op, type);
  formulas.insert({op, f ? f->result : type});
}

std::string Writer::index(unsigned axis) {
  (kernel().axes[axis].reduced ? element_indices : row_indices).insert(axis);
  return (view.flat ? "te.i" : "t.i") + dec(axis);
}

bool Writer::by_reciprocal(Val v) const {
  const Inst& i = inst(v);
  return i.kind == Kind::compute && i.op == Op::div && (i.relax & kReciprocal) && is_float(i.type) && view.level(v) == Level::element &&
         view.level(i.args[1]) == Level::row;
}

bool Writer::is_bound(Val v) const {
  const Inst& i = inst(v);
  const uint64_t magnitude = i.bits & 0x7fffffffu;
  return i.kind == Kind::constant && compute_type(i.type) == DType::f32 && magnitude != 0 && magnitude <= 0x7f800000u;
}

bool Writer::lies_inside(Val x, DType type) const {
  const Inst& i = inst(x);
  if (i.kind != Kind::compute || i.op != Op::clamp || compute_type(i.type) != DType::f32 || !is_integer(type) || bytes(type) > 2) return false;
  const Inst &low = inst(i.args[1]), &high = inst(i.args[2]);
  if (low.kind != Kind::constant || high.kind != Kind::constant) return false;
  const float from = std::bit_cast<float>(uint32_t(low.bits)), to = std::bit_cast<float>(uint32_t(high.bits));
  const float span = float(uint32_t(1) << (8 * bytes(type) - (is_signed(type) ? 1 : 0)));
  return from >= (is_signed(type) ? -span : 0.0f) && to <= span - 1 && from <= to;
}

bool Writer::is_small(Val v) const {
  const Inst& i = inst(v);
  if (i.kind != Kind::compute || i.op != Op::cast || i.type != DType::f32) return false;
  const DType from = inst(i.args[0]).type;
  return is_integer(from) && bytes(from) <= 2;
}

bool Writer::divides_by_one(Val v) const {
  const Inst& i = inst(v);
  return i.kind == Kind::compute && i.op == Op::div && compute_type(i.type) == DType::f32 && V > 1 && view.wide(v) &&
         !view.wide(i.args[1]) && !by_reciprocal(v) && !divides_bf16(v);
}

bool Writer::is_bf16(Val v) const {
  const Inst& i = inst(v);
  const bool converted = i.kind == Kind::compute && (i.op == Op::cast || i.op == Op::bitcast);
  return i.type == DType::bf16 && (i.kind == Kind::load || i.rounds || converted);
}

bool Writer::divides_bf16(Val v) const {
  const Inst& i = inst(v);
  return i.kind == Kind::compute && i.op == Op::div && i.type == DType::bf16 && i.rounds && view.wide(v) && !view.wide(i.args[1]) &&
         is_bf16(i.args[0]) && is_bf16(i.args[1]) && !by_reciprocal(v);
}

std::string Writer::valid() const {
  if (schedule.edges == Edges::full || V == 1) return "";
  return windows() ? "e < n && t.e + e >= 0" : "e < n";
}

std::string Writer::whole() const {
  if (schedule.edges == Edges::full || V == 1) return "";
  return "n == " + dec(V) + (windows() ? " && t.e >= 0" : "");
}

std::string Writer::whole(Val load) const {
  const Inst& i = inst(load);
  Dim pitch = 1;
  for (const Axis& axis : kernel().axes)
    if (axis.reduced) pitch = pitch * axis.extent;
  // Of a part of a concat, and of what a pad surrounds, the neighbour's row may lie in no buffer.
  if (i.kind != Kind::load || i.map.guard != kNoVal || !windows() || words() || view.linear(i, true) != Dim(1) || view.linear(i, false) != pitch) return whole();
  return "t.r * columns(a) + t.e + " + dec(V) + " <= rows(a) * columns(a)";
}

bool Writer::scattered(Val a) const {
  const Inst& inst = this->inst(a);
  for (Val v : inst.map.extra)
    if (v != kNoVal && view.wide(v)) return true;
  return inst.map.guard != kNoVal && view.wide(inst.map.guard);
}

std::string Writer::fetch_kind(Val load, bool streamed) const {
  if (streamed) return "kStreamed";
  const size_t whole = bytes(operand(load).type) * V;
  if (access(load).bypass && access(load).bytes == 16 && (whole == 16 || whole == 32) && schedule.edges == Edges::full) return "kPast";
  if (access(load).bytes < 4 && !words()) return "kPlain";  // ahead of a block's reductions they take registers
  if (access(load).early) return "kPlain";  // not behind the barriers of the reductions, where ptxas puts loads of read-only memory
  for (auto [in, out] : kernel().in_place)
    if (in == inst(load).operand) return "kPlain";
  return "kReadOnly";
}

bool Writer::contiguous(Val a) const {
  if (!view.wide(a) || scattered(a)) return false;
  // Pieces wider than an element are only chosen where the step is 1; a single element is its own neighbour.
  if (view.flat) {
    const std::optional<Dim> unit = view.linear(inst(a), false);
    return unit && unit->is(1);
  }
  if (V == 1 || access(a).bytes > bytes(operand(a).type)) return true;
  const std::optional<Dim> s = step(kernel(), inst(a), view.vector_axis);
  return s && s->is(1);
}

bool Writer::runs_on(Val a) const {
  const std::optional<Dim> s = step(kernel(), inst(a), view.vector_axis);
  return view.flat && V > 1 && s && s->is(1) && !scattered(a);
}

std::string Writer::words_type(Val a) const {
  return "Words<" + dec(bytes(operand(a).type) * (view.wide(a) ? V : 1)) + ">";
}

}  // namespace fusec::cuda
