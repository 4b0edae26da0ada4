#include "codegen/cuda/shape.h"

#include <algorithm>

namespace fusec::cuda {

View::View(const Kernel& k, unsigned axis) : kernel(k), vector_axis(axis), stages(k.stages()) {
  row_axes = k.has_reductions() ? k.kept_axes() : 0;
  access_of.assign(k.values.size(), ~0u);
  for (Val v = 0; v < k.values.size(); ++v) {
    if (k.values[v].kind != Kind::load && k.values[v].kind != Kind::store) continue;
    access_of[v] = static_cast<uint32_t>(accesses.size());
    accesses.push_back(v);
  }
}

Level View::level(Val v) const {
  const Inst& inst = kernel.values[v];
  if (inst.kind == Kind::constant) return Level::constant;
  return inst.varies & ~row_axes ? Level::element : Level::row;
}

std::vector<unsigned> View::space(bool reduced) const {
  std::vector<unsigned> out;
  for (unsigned k = 0; k < kernel.axes.size(); ++k)
    if (kernel.axes[k].reduced == reduced && k != vector_axis) out.push_back(k);
  if (vector_axis < kernel.axes.size() && kernel.axes[vector_axis].reduced == reduced) out.push_back(vector_axis);
  return out;
}

std::vector<Val> View::fold_inputs(size_t sweep) const {
  std::vector<Val> out;
  for (uint16_t r : kernel.sweeps[sweep].reductions)
    for (Val v : kernel.reductions[r].inputs) out.push_back(v);
  return out;
}

std::vector<Val> View::element_stores() const {
  std::vector<Val> out;
  for (const Sweep& sweep : kernel.sweeps) out.insert(out.end(), sweep.stores.begin(), sweep.stores.end());
  if (!kernel.has_reductions()) out.insert(out.end(), kernel.row_stores.begin(), kernel.row_stores.end());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Val> View::row_stores() const {
  if (!kernel.has_reductions()) return {};
  return kernel.row_stores;
}

size_t View::folds() const {
  size_t n = 0;
  for (size_t i = 0; i < kernel.sweeps.size(); ++i)
    if (!kernel.sweeps[i].reductions.empty()) n = i + 1;
  return n;
}

std::optional<Dim> step(const Kernel& kernel, const Inst& access, unsigned axis) {
  const Operand& operand = kernel.operands[access.operand];
  for (size_t b = 0; b < access.map.at.size(); ++b) {
    const Dim& factor = access.map.at[b].factor[axis];
    if (factor.is(0)) continue;
    if (b + 1 == access.map.at.size() && operand.unit) return factor;
    return std::nullopt;
  }
  return Dim(0);
}

std::optional<Dim> View::linear(const Inst& access, bool reduced) const {
  const std::vector<unsigned> axes = space(reduced);
  std::optional<Dim> unit;
  Dim walked = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const Dim& extent = kernel.axes[axes[i]].extent;
    if (extent.is(1)) continue;
    const std::optional<Dim> s = step(kernel, access, axes[i]);
    if (!s) return std::nullopt;
    if (!unit) unit = s, walked = *s * extent;
    else if (*s == walked) walked = walked * extent;
    else return std::nullopt;
  }
  return unit ? *unit : Dim(0);
}

bool walks(const Inst& access, unsigned axis) {
  if (access.map.at.empty() || axis >= access.map.at.back().factor.size()) return false;
  for (size_t b = 0; b + 1 < access.map.at.size(); ++b)
    if (!access.map.at[b].factor[axis].is(0)) return false;
  return access.map.at.back().factor[axis].is(1);
}

DType kept_type(const Kernel& kernel, Val v) {
  const Inst& inst = kernel.values[v];
  if (inst.kind == Kind::load) return kernel.operands[inst.operand].type;
  return inst.rounds || (inst.kind == Kind::compute && inst.op == Op::cast) ? inst.type : compute_type(inst.type);
}

bool takes_formulas(const View& view) {
  for (Val v = 0; v < view.kernel.values.size(); ++v) {
    const Inst& inst = view.kernel.values[v];
    if (inst.kind == Kind::compute && view.level(v) == Level::element && info(inst.op).form == Form::formula) return true;
  }
  return false;
}

int64_t known_columns(const Kernel& kernel) {
  Dim columns = 1;
  for (const Axis& axis : kernel.axes)
    if (axis.reduced) columns = columns * axis.extent;
  return columns.is_constant() ? columns.constant() : 0;
}

std::vector<char> outlives_stage(const View& view) {
  const std::vector<Inst>& values = view.kernel.values;
  std::vector<char> out(values.size(), 0);
  for (const Reduction& r : view.kernel.reductions)
    for (Val v : r.inputs) out[v] = 1;
  for (Val user = 0; user < values.size(); ++user)
    each_operand(values[user], [&](Val v) {
      const bool behind = view.level(user) != Level::row || values[user].kind == Kind::store || view.stages[user] != view.stages[v];
      if (behind || (view.wide(v) && values[v].kind == Kind::result)) out[v] = 1;
    });
  return out;
}

bool is_parameter(const View& view, Val load) {
  const Inst& inst = view.kernel.values[load];
  return inst.kind == Kind::load && inst.varies == AxisSet(1u << view.vector_axis) && inst.map.guard == kNoVal && !is_computed(inst);
}

bool is_computed(const Inst& access) {
  return std::any_of(access.map.extra.begin(), access.map.extra.end(), [](Val x) { return x != kNoVal; });
}

Val summed_bytes(const Kernel& kernel, const Reduction& r) {
  if (r.fold != Fold::op || r.op != Op::sum || r.accumulate != DType::f32 || r.scan) return kNoVal;
  const Inst& cast = kernel.values[r.inputs[0]];
  if (cast.kind != Kind::compute || cast.op != Op::cast || cast.type != DType::f32) return kNoVal;
  const Val v = cast.args[0];
  const Inst& load = kernel.values[v];
  if (load.kind != Kind::load || (load.type != DType::u8 && load.type != DType::i8)) return kNoVal;
  return kernel.operands[load.operand].type == load.type && load.map.guard == kNoVal && !is_computed(load) ? v : kNoVal;
}

bool sums_bytes(const Kernel& kernel) {
  for (const Reduction& r : kernel.reductions)
    if (summed_bytes(kernel, r) == kNoVal) return false;
  return kernel.has_reductions() && kernel.sweeps.size() == 1 && kernel.sweeps[0].stores.empty();
}

bool is_guarded(const View& view, const Inst& access) { return access.map.guard != kNoVal && view.wide(access.map.guard); }

namespace {

/// What every value of an index is a multiple of: row i of 1024 columns begins at i * 1024.
int64_t factor_of(const Kernel& kernel, Val index) {
  const Inst& inst = kernel.values[index];
  if (inst.kind == Kind::constant) return int64_t(inst.bits);
  if (inst.kind != Kind::compute || inst.op != Op::mul) return 1;
  for (Val arg : inst.args)
    if (kernel.values[arg].kind == Kind::constant) return int64_t(kernel.values[arg].bits);
  return 1;
}

}  // namespace

int64_t largest_piece(const View& view, const Schedule& s, const Facts& facts, size_t access) {
  const Val v = view.accesses[access];
  const Inst& inst = view.kernel.values[v];
  const unsigned axis = s.vector_axis;
  const int64_t size = int64_t(bytes(view.kernel.operands[inst.operand].type));
  const int64_t V = view.kernel.axes.empty() ? 1 : std::max<int>(1, s.lane[axis]);
  const bool computed = is_computed(inst);
  // A gathered row: one index for the whole vector, which moves it by so many elements.
  const bool row = computed && inst.map.extra.size() == 1 && view.kernel.operands[inst.operand].unit && !view.wide(inst.map.extra[0]) &&
                   s.edges != Edges::window;
  const int64_t moved = row ? factor_of(view.kernel, inst.map.extra[0]) * size : 0;
  const Facts::Access& f = facts.access[access];
  const bool neighbours = view.flat ? view.linear(inst, false) == Dim(1) : f.step[axis] == 1;
  // Beside vectors that run on into the next row a parameter begins anywhere: single elements, or out of words.
  if (view.flat && !neighbours && is_parameter(view, v) && walks(inst, axis) && f.step[axis] == 1 && size < 4 && size * V % 4 == 0 && f.align % 4 == 0) return 4;
  if (!view.wide(v) || (computed && !row) || is_guarded(view, inst) || !neighbours) return size;
  auto fits = [&](int64_t p) {
    if (f.align % p || moved % p) return false;
    if (view.flat) return true;
    // Windows move against the rows: a row's start is a multiple of V when rows follow each other without gaps.
    int64_t against_row = s.edges == Edges::window && s.skeleton != Template::column ? facts.columns : 0;
    const std::vector<unsigned> kept = view.space(false);
    std::vector<int64_t> against(view.kernel.axes.size(), 0);
    for (size_t n = kept.size(); n-- > 0;) against[kept[n]] = against_row, against_row *= facts.extents[kept[n]];
    for (unsigned k = 0; k < view.kernel.axes.size(); ++k)
      if (k != axis && facts.extents[k] > 1 && (f.step[k] - against[k]) * size % p) return false;
    return true;
  };
  int64_t piece = std::min<int64_t>(16, size * V);
  while (piece > size && !fits(piece)) piece /= 2;
  return piece;
}

namespace {

int64_t widest_of(const View& view) {
  size_t widest = 1;
  for (Val v : view.accesses)
    if (view.wide(v)) widest = std::max(widest, bytes(view.kernel.operands[view.kernel.values[v].operand].type));
  return int64_t(widest);
}

}  // namespace

bool by_words(const View& view, const Schedule& s) {
  const bool held = s.skeleton == Template::rows && s.keep == Keep::registers && !s.slots;
  return s.edges == Edges::window && !view.flat && (held || s.skeleton == Template::ring) && std::max<int>(1, s.lane[s.vector_axis]) * widest_of(view) == 4;
}

int64_t window_of(const View& view, const Schedule& s) {
  if (s.edges != Edges::window || view.flat) return 1;
  const int64_t V = std::max<int>(1, s.lane[s.vector_axis]);
  return s.skeleton == Template::ring || by_words(view, s) ? std::max<int64_t>(V, 128 / widest_of(view)) : V;
}

std::vector<size_t> element_loads(const View& view) {
  std::vector<size_t> out;
  for (size_t i = 0; i < view.accesses.size(); ++i) {
    const Inst& inst = view.kernel.values[view.accesses[i]];
    if (inst.kind == Kind::load && inst.varies == AxisSet((1u << view.kernel.axes.size()) - 1)) out.push_back(i);
  }
  return out;
}

bool may_slide(const View& view, unsigned V) {
  if (view.kernel.sweeps.size() != 1 || !view.element_stores().empty() || view.folds() != 1) return false;
  for (unsigned axis : view.space(false)) {  // a batch of one is a batch, and so is one that lies along the vectors
    const Dim& extent = view.kernel.axes[axis].extent;
    if (axis == view.vector_axis ? !extent.is_constant() : !extent.is(1)) return false;
  }
  const std::vector<size_t> loads = element_loads(view);
  for (size_t i : loads) {
    const Inst& inst = view.kernel.values[view.accesses[i]];
    if (is_computed(inst) || inst.map.guard != kNoVal || V * bytes(view.kernel.operands[inst.operand].type) != 16) return false;
  }
  for (Val v : view.needed(view.fold_inputs(0), [](Val) { return false; }))
    if (view.level(v) == Level::row && view.wide(v)) return false;
  return !loads.empty();
}

bool slides(const View& view, const Schedule& s) {
  bool any = false;
  for (size_t i = 0; i < view.accesses.size(); ++i) any |= s.access[i].staged;
  return any && s.skeleton == Template::column && s.edges == Edges::window;
}

bool unpacks_again(const View& view, const Schedule& s) {
  const int kept = s.slots ? 33 : s.lanes_per_row <= 32 || takes_formulas(view) ? 32 : 16;
  return s.keep == Keep::registers && s.steps * std::max<int>(1, s.lane[s.vector_axis]) > kept;
}

}  // namespace fusec::cuda
