// Axes: dropped, ordered, merged; then what varies along them and in which sweep everything happens.
//
//   x[i,j,k] dense, y[i,j,k] dense, no reduction   →  one axis of i*j*k
//   sum of x over k                                →  axes {i*j kept, k reduced}

#include "lib/kernel/axes.h"

#include <algorithm>
#include <numeric>

#include "lib/kernel/index.h"

namespace fusec {
namespace {

bool is_access(const Inst& inst) { return inst.kind == Kind::load || inst.kind == Kind::store; }

template <class Visit>
void for_each_form(Kernel& kernel, Visit visit) {
  for (Inst& inst : kernel.values)
    for (Linear& form : inst.map.at) visit(form);
}

/// order[k] = old axis that becomes axis k; axes not in it go (their index is always 0).
void keep_axes(Kernel& kernel, const std::vector<size_t>& order) {
  std::vector<Axis> axes;
  for (size_t old : order) axes.push_back(kernel.axes[old]);
  for_each_form(kernel, [&](Linear& form) {
    std::vector<Dim> factor;
    for (size_t old : order) factor.push_back(form.factor[old]);
    form.factor = std::move(factor);
  });
  kernel.axes = std::move(axes);
}

void drop_single(Kernel& kernel) {
  std::vector<size_t> order;
  for (size_t k = 0; k < kernel.axes.size(); k++)
    if (!kernel.axes[k].extent.is(1)) order.push_back(k);
  keep_axes(kernel, order);
  auto add_single = [&](bool reduced) {
    kernel.axes.push_back({1, reduced});
    for_each_form(kernel, [](Linear& form) { form.factor.push_back(0); });
  };
  const bool any_reduced = std::any_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& axis) { return axis.reduced; });
  if (kernel.has_reductions() && !any_reduced) add_single(true);
  if (kernel.axes.empty()) add_single(false);
}

/// The access that moves most bytes; a store wins over a load of the same size, since scattered stores cost most.
const Inst* costliest_access(const Kernel& kernel) {
  const Inst* best = nullptr;
  double most = -1;
  for (const Inst& inst : kernel.values) {
    if (!is_access(inst)) continue;
    double elements = double(bytes(inst.type));
    for (size_t k = 0; k < kernel.axes.size(); k++)
      if (std::any_of(inst.map.at.begin(), inst.map.at.end(), [&](const Linear& form) { return !form.factor[k].is(0); }))
        elements *= index::guess(kernel.axes[k].extent);
    if (inst.kind == Kind::store) elements *= 1.0001;
    if (elements > most) {
      most = elements;
      best = &inst;
    }
  }
  return best;
}

void order_by_memory(Kernel& kernel) {
  const Inst* access = costliest_access(kernel);
  if (!access) return;
  // Outer blocks first, then larger steps first; an axis the access does not walk stays outside.
  auto key = [&](size_t axis) {
    for (size_t block = 0; block < access->map.at.size(); block++)
      if (const Dim& factor = access->map.at[block].factor[axis]; !factor.is(0))
        return std::pair<double, double>(double(block), -std::abs(index::guess(factor)));
    return std::pair<double, double>(-1, 0);
  };
  std::vector<size_t> order(kernel.axes.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  keep_axes(kernel, order);
}

bool walk_alike(Kernel& kernel, size_t outer, size_t inner) {
  if (kernel.axes[outer].reduced != kernel.axes[inner].reduced) return false;
  bool alike = true;
  for_each_form(kernel, [&](Linear& form) {
    if (form.factor[outer].is(0) && form.factor[inner].is(0)) return;
    alike = alike && form.factor[outer] == form.factor[inner] * kernel.axes[inner].extent;
  });
  return alike;
}

void merge_neighbours(Kernel& kernel) {
  for (size_t k = kernel.axes.size(); k-- > 1;) {
    if (!walk_alike(kernel, k - 1, k)) continue;
    kernel.axes[k].extent = kernel.axes[k - 1].extent * kernel.axes[k].extent;
    std::vector<size_t> order;
    for (size_t n = 0; n < kernel.axes.size(); n++)
      if (n != k - 1) order.push_back(n);
    keep_axes(kernel, order);
  }
}

AxisSet axes_of(const Linear& form) {
  AxisSet set = 0;
  for (size_t k = 0; k < form.factor.size(); k++)
    if (!form.factor[k].is(0)) set |= AxisSet(1u << k);
  return set;
}

bool same_map(const Map& a, const Map& b) {
  return a.guard == b.guard && a.extra == b.extra &&
         std::equal(a.at.begin(), a.at.end(), b.at.begin(), b.at.end(),
                    [](const Linear& x, const Linear& y) { return index::equal(x, y); });
}

}  // namespace

AxisSet Kernel::reduced_axes() const {
  AxisSet set = 0;
  for (size_t k = 0; k < axes.size(); k++)
    if (axes[k].reduced) set |= AxisSet(1u << k);
  return set;
}

AxisSet Kernel::kept_axes() const { return AxisSet(((1u << axes.size()) - 1) & ~reduced_axes()); }

std::vector<uint16_t> Kernel::stages() const {
  std::vector<uint16_t> stage(values.size(), 0);
  for (size_t k = 0; k < values.size(); k++) {
    const Inst& inst = values[k];
    auto after = [&](Val arg) {
      if (arg != kNoVal) stage[k] = std::max(stage[k], stage[arg]);
    };
    for (Val arg : inst.args) after(arg);
    for (Val extra : inst.map.extra) after(extra);
    after(inst.map.guard);
    if (inst.kind != Kind::result) continue;
    for (Val input : reductions[inst.reduction].inputs) after(input);
    stage[k] += !reductions[inst.reduction].scan;
  }
  return stage;
}

void drop_unused(Kernel& kernel) {
  std::vector<char> used(kernel.values.size(), false), fold(kernel.reductions.size(), false);
  for (size_t k = kernel.values.size(); k-- > 0;) {
    const Inst& inst = kernel.values[k];
    if (inst.kind == Kind::store) used[k] = true;
    if (!used[k]) continue;
    for (Val arg : inst.args) used[arg] = true;
    for (Val extra : inst.map.extra)
      if (extra != kNoVal) used[extra] = true;
    if (inst.map.guard != kNoVal) used[inst.map.guard] = true;
    if (inst.kind != Kind::result) continue;
    fold[inst.reduction] = true;
    for (Val input : kernel.reductions[inst.reduction].inputs) used[input] = true;
  }
  std::vector<Val> renamed(kernel.values.size(), kNoVal);
  std::vector<uint16_t> renumbered(kernel.reductions.size(), 0);
  std::vector<Reduction> reductions;
  for (size_t k = 0; k < fold.size(); k++)
    if (fold[k]) {
      renumbered[k] = uint16_t(reductions.size());
      reductions.push_back(kernel.reductions[k]);
    }
  std::vector<Inst> values;
  auto rename = [&](Val& value) {
    if (value != kNoVal) value = renamed[value];
  };
  for (size_t k = 0; k < used.size(); k++) {
    if (!used[k]) continue;
    renamed[k] = Val(values.size());
    Inst inst = std::move(kernel.values[k]);
    for (Val& arg : inst.args) rename(arg);
    for (Val& extra : inst.map.extra) rename(extra);
    rename(inst.map.guard);
    if (inst.kind == Kind::result) inst.reduction = renumbered[inst.reduction];
    values.push_back(std::move(inst));
  }
  for (Reduction& reduction : reductions) {
    for (Val& input : reduction.inputs) rename(input);
    for (Val& result : reduction.results) rename(result);
  }
  kernel.values = std::move(values);
  kernel.reductions = std::move(reductions);
}

void arrange_axes(Kernel& kernel) {
  drop_single(kernel);
  order_by_memory(kernel);
  merge_neighbours(kernel);
}

void find_varying_axes(Kernel& kernel) {
  const AxisSet reduced = kernel.reduced_axes();
  for (size_t k = 0; k < kernel.values.size(); k++) {
    Inst& inst = kernel.values[k];
    inst.varies = 0;
    for (const Linear& form : inst.map.at) inst.varies |= axes_of(form);
    for (Val extra : inst.map.extra)
      if (extra != kNoVal) inst.varies |= kernel.values[extra].varies;
    if (inst.map.guard != kNoVal) inst.varies |= kernel.values[inst.map.guard].varies;
    for (Val arg : inst.args) inst.varies |= kernel.values[arg].varies;
    if (inst.kind == Kind::result) {
      for (Val input : kernel.reductions[inst.reduction].inputs) inst.varies |= kernel.values[input].varies;
      inst.varies &= AxisSet(~reduced);
      if (kernel.scans()) inst.varies = AxisSet((1u << kernel.axes.size()) - 1);
    }
  }
}

void plan_sweeps(Kernel& kernel) {
  const std::vector<uint16_t> stage = kernel.stages();
  const AxisSet reduced = kernel.reduced_axes();
  size_t sweeps = 1, store_sweep = 0;
  std::vector<Val> full;
  for (size_t k = 0; k < kernel.values.size(); k++) {
    const Inst& inst = kernel.values[k];
    if (inst.kind == Kind::result) sweeps = std::max<size_t>(sweeps, stage[k]);
    if (inst.kind != Kind::store) continue;
    if (kernel.has_reductions() && !(inst.varies & reduced) && stage[k] > 0) {
      kernel.row_stores.push_back(Val(k));
      continue;
    }
    full.push_back(Val(k));
    store_sweep = std::max<size_t>(store_sweep, stage[k]);
  }
  // A store that needs no reduction and does not vary along the reduced axes is a row store all the same.
  if (kernel.has_reductions())
    std::erase_if(full, [&](Val store) {
      if (kernel.values[store].varies & reduced) return false;
      kernel.row_stores.push_back(store);
      return true;
    });
  std::sort(kernel.row_stores.begin(), kernel.row_stores.end());
  if (!full.empty()) sweeps = std::max(sweeps, store_sweep + 1);
  kernel.sweeps.resize(sweeps);
  for (size_t k = 0; k < kernel.values.size(); k++) {
    if (kernel.values[k].kind != Kind::result) continue;
    // Any result stands for its reduction: of a pair the first may be unused.
    std::vector<uint16_t>& reductions = kernel.sweeps[kernel.scans() ? 0 : stage[k] - 1u].reductions;
    if (!std::count(reductions.begin(), reductions.end(), kernel.values[k].reduction)) reductions.push_back(kernel.values[k].reduction);
  }
  if (!full.empty()) kernel.sweeps[store_sweep].stores = full;
}

namespace {

/// Does a sweep after the store's load the operand, once more perhaps? A schedule may keep what it loaded, and need not.
bool loads_later(const Kernel& kernel, Val store, uint16_t operand) {
  auto has = [&](const Sweep& sweep) { return std::count(sweep.stores.begin(), sweep.stores.end(), store) > 0; };
  const auto own = std::find_if(kernel.sweeps.begin(), kernel.sweeps.end(), has);
  if (own == kernel.sweeps.end()) return false;  // a row's own store, after the last
  std::vector<Val> open;
  for (auto sweep = own + 1; sweep < kernel.sweeps.end(); ++sweep)
    for (uint16_t r : sweep->reductions) open.insert(open.end(), kernel.reductions[r].inputs.begin(), kernel.reductions[r].inputs.end());
  std::vector<char> seen(kernel.values.size(), false);
  while (!open.empty()) {
    const Val value = open.back();
    open.pop_back();
    if (value == kNoVal || seen[value]) continue;
    seen[value] = true;
    const Inst& inst = kernel.values[value];
    if (inst.kind == Kind::load && inst.operand == operand) return true;
    open.insert(open.end(), inst.args.begin(), inst.args.end());
    open.insert(open.end(), inst.map.extra.begin(), inst.map.extra.end());
    open.push_back(inst.map.guard);
  }
  return false;
}

}  // namespace

/// An input may be the output's own memory when its only load reads just the element that the store then writes, and no later sweep
/// loads it again.
void find_in_place(Kernel& kernel) {
  for (Val at = 0; at < kernel.values.size(); at++) {
    const Inst& store = kernel.values[at];
    if (store.kind != Kind::store) continue;
    const Operand& out = kernel.operands[store.operand];
    size_t stores = 0;
    for (const Inst& other : kernel.values) stores += other.kind == Kind::store && other.operand == store.operand;
    for (uint16_t k = 0; k < kernel.operands.size() && stores == 1; k++) {
      const Operand& in = kernel.operands[k];
      if (in.output || bytes(in.type) != bytes(out.type) || in.block_end != out.block_end || in.extents != out.extents) continue;
      bool fits = true;
      for (const Inst& load : kernel.values)
        if (load.kind == Kind::load && load.operand == k) fits = fits && same_map(load.map, store.map);
      if (fits && !loads_later(kernel, at, k)) kernel.in_place.push_back({k, store.operand});
    }
  }
}

}  // namespace fusec
