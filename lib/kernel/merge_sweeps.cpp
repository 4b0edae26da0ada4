// Pairs of reductions that one sweep can carry.
//
//   sweep 0: m = reduce_max v1;  sweep 1: s = sum v4, v4 = exp(v1 - m)   →   sweep 0: online {m, s} of v1

#include "lib/kernel/merge_sweeps.h"

#include <algorithm>
#include <optional>

#include "lib/kernel/axes.h"

namespace fusec {
namespace {

struct Pair {
  uint16_t first, second;  // reductions: second needs first
  Fold fold;
  Val mean;                // welford: the value that result 0 replaces
};

bool is(const Inst& inst, Op op) { return inst.kind == Kind::compute && inst.op == op; }

/// exp(x - max) where max is a reduce_max of x.
std::optional<Pair> online_pair(const Kernel& kernel, uint16_t second) {
  const Inst& e = kernel.values[kernel.reductions[second].inputs[0]];
  if (!is(e, Op::exp) || e.rounds) return std::nullopt;
  const Inst& shifted = kernel.values[e.args[0]];
  if (!is(shifted, Op::sub) || shifted.rounds) return std::nullopt;
  const Inst& max = kernel.values[shifted.args[1]];
  if (max.kind != Kind::result || kernel.reductions[max.reduction].op != Op::reduce_max) return std::nullopt;
  if (kernel.reductions[max.reduction].inputs[0] != shifted.args[0]) return std::nullopt;
  return Pair{max.reduction, second, Fold::online, kNoVal};
}

/// (x - mean)² where mean is sum(x) / count.
std::optional<Pair> welford_pair(const Kernel& kernel, uint16_t second) {
  const Inst& square = kernel.values[kernel.reductions[second].inputs[0]];
  if (!is(square, Op::mul) || square.args[0] != square.args[1] || square.rounds) return std::nullopt;
  const Inst& deviation = kernel.values[square.args[0]];
  if (!is(deviation, Op::sub) || deviation.rounds) return std::nullopt;
  const Inst& mean = kernel.values[deviation.args[1]];
  if (!is(mean, Op::div)) return std::nullopt;
  const Inst& sum = kernel.values[mean.args[0]];
  if (sum.kind != Kind::result || kernel.reductions[sum.reduction].op != Op::sum) return std::nullopt;
  if (kernel.reductions[sum.reduction].inputs[0] != deviation.args[0]) return std::nullopt;
  const Val divisor = mean.args[1];
  if (kernel.values[divisor].varies) return std::nullopt;  // a count, the same for every row
  return Pair{sum.reduction, second, Fold::welford, deviation.args[1]};
}

std::optional<Pair> find_pair(const Kernel& kernel) {
  for (uint16_t k = 0; k < kernel.reductions.size(); k++) {
    const Reduction& second = kernel.reductions[k];
    if (second.results.empty() || second.fold != Fold::op || second.op != Op::sum) continue;
    if (!(kernel.values[second.results[0]].relax & kOnline)) continue;
    auto pair = online_pair(kernel, k);
    if (!pair) pair = welford_pair(kernel, k);
    if (pair && kernel.reductions[pair->first].fold == Fold::op) return pair;
  }
  return std::nullopt;
}

/// A composite's sum of x - mean over the same rows is what the rounding of the mean left: result 2, which a state knows without a sweep
/// (0 where it does not). A sum that somebody wrote is not granted that.
void take_residual(Kernel& kernel, uint16_t reduction, Val deviation) {
  for (Reduction& r : kernel.reductions) {
    if (r.fold != Fold::op || r.op != Op::sum || r.inputs.size() != 1 || r.inputs[0] != deviation) continue;
    if (!std::all_of(r.results.begin(), r.results.end(), [&](Val v) { return kernel.values[v].relax & kOnline; })) continue;
    for (Val result : r.results) {
      kernel.values[result].reduction = reduction;
      kernel.values[result].index = 2;
      kernel.reductions[reduction].results.push_back(result);
    }
    r.inputs.clear();
    r.results.clear();
  }
}

/// The mean of a state is one about a pivot: NaN where an inf stands among numbers or nothing is there, and of whole numbers times their count
/// not whole. Where anything but the deviations of the variance reads the mean or its sum, those stay plain, one addition an element beside
/// the state; the deviations get a sum and a mean of their own, which merge.
void set_deviations_apart(Kernel& kernel, Pair& pair) {
  const Val x = kernel.reductions[pair.first].inputs[0], sum = kernel.reductions[pair.first].results[0], mean = pair.mean;
  auto reads = [](const std::vector<Val>& args, Val value) { return std::find(args.begin(), args.end(), value) != args.end(); };
  auto is_deviation = [&](const Inst& inst) { return is(inst, Op::sub) && inst.args[0] == x && inst.args[1] == mean; };
  bool read = false;
  for (const Inst& inst : kernel.values) read |= (reads(inst.args, mean) && !is_deviation(inst)) || (reads(inst.args, sum) && &inst != &kernel.values[mean]);
  for (const Reduction& r : kernel.reductions) read |= reads(r.inputs, mean) || reads(r.inputs, sum);
  if (!read) return;
  const Val own_sum = Val(kernel.values.size()), own_mean = own_sum + 1;
  for (Inst& inst : kernel.values)
    if (is_deviation(inst)) inst.args[1] = own_mean;
  const Inst sum_inst = kernel.values[sum], mean_inst = kernel.values[mean];
  kernel.values.insert(kernel.values.end(), {sum_inst, mean_inst});
  kernel.values[own_mean].args[0] = own_sum;
  pair.first = kernel.values[own_sum].reduction = uint16_t(kernel.reductions.size());
  pair.mean = own_mean;
  Reduction own = kernel.reductions[sum_inst.reduction];
  own.results = {own_sum};
  kernel.reductions.push_back(std::move(own));
}

void merge(Kernel& kernel, Pair pair) {
  if (pair.fold == Fold::welford) set_deviations_apart(kernel, pair);
  const Val deviation = pair.fold == Fold::welford ? kernel.values[kernel.reductions[pair.second].inputs[0]].args[0] : kNoVal;
  Reduction& first = kernel.reductions[pair.first];
  Reduction& second = kernel.reductions[pair.second];
  first.fold = pair.fold;
  if (pair.fold == Fold::welford) {
    // Result 0 is the mean itself: the division by the count is the fold's own.
    const Val sum = first.results[0];
    kernel.values[pair.mean] = kernel.values[sum];
    kernel.values[pair.mean].index = 0;
    kernel.values[pair.mean].reduction = pair.first;
    first.results = {pair.mean};
  }
  Inst& result = kernel.values[second.results[0]];
  if (pair.fold == Fold::online) result.relax |= kernel.values[second.inputs[0]].relax & (kFewerTerms | kNear);  // the fold's own exp has it now
  result.reduction = pair.first;
  result.index = 1;
  first.results.push_back(second.results[0]);
  second.inputs.clear();
  second.results.clear();
  if (pair.fold == Fold::welford) take_residual(kernel, pair.first, deviation);
}

/// Values in an order where arguments come first: merging moved some results forward.
void sort_values(Kernel& kernel) {
  const size_t n = kernel.values.size();
  std::vector<Val> order, renamed(n, kNoVal);
  std::vector<char> state(n, 0);
  auto needs = [&](Val value) {
    const Inst& inst = kernel.values[value];
    std::vector<Val> out = inst.args;
    out.insert(out.end(), inst.map.extra.begin(), inst.map.extra.end());
    out.push_back(inst.map.guard);
    if (inst.kind == Kind::result)
      for (Val input : kernel.reductions[inst.reduction].inputs) out.push_back(input);
    std::erase(out, kNoVal);
    return out;
  };
  for (Val root = 0; root < n; root++) {
    std::vector<Val> stack{root};
    while (!stack.empty()) {
      const Val value = stack.back();
      if (state[value] == 2) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (Val arg : needs(value))
        if (state[arg] != 2) {
          stack.push_back(arg);
          ready = false;
        }
      if (!ready) continue;
      state[value] = 2;
      renamed[value] = Val(order.size());
      order.push_back(value);
      stack.pop_back();
    }
  }
  std::vector<Inst> values;
  for (Val old : order) values.push_back(std::move(kernel.values[old]));
  for (Inst& inst : values) {
    for (Val& arg : inst.args) arg = renamed[arg];
    for (Val& extra : inst.map.extra)
      if (extra != kNoVal) extra = renamed[extra];
    if (inst.map.guard != kNoVal) inst.map.guard = renamed[inst.map.guard];
  }
  for (Reduction& reduction : kernel.reductions) {
    for (Val& input : reduction.inputs) input = renamed[input];
    for (Val& result : reduction.results) result = renamed[result];
  }
  kernel.values = std::move(values);
}

}  // namespace

Kernel merge_sweeps(const Kernel& kernel) {
  Kernel out = kernel;
  bool changed = false;
  while (auto pair = find_pair(out)) {
    merge(out, *pair);
    changed = true;
  }
  if (!changed) return out;
  sort_values(out);
  drop_unused(out);
  find_varying_axes(out);
  out.sweeps.clear();
  out.row_stores.clear();
  plan_sweeps(out);
  return out;
}

}  // namespace fusec
