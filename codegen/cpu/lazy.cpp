#include "codegen/cpu/lazy.h"

namespace fusec::cpu {
namespace {

/// Users of a value other than `user`, roots included.
bool only_used_by(const Kernel& kernel, Val v, Val user) {
  for (Val u = 0; u < kernel.values.size(); ++u) {
    if (u == user) continue;
    const Inst& inst = kernel.values[u];
    for (Val a : inst.args)
      if (a == v) return false;
    for (Val a : inst.map.extra)
      if (a == v) return false;
    if (inst.map.guard == v) return false;
  }
  for (const Reduction& r : kernel.reductions)
    for (Val a : r.inputs)
      if (a == v) return false;
  return true;
}

bool is_op(const Kernel& kernel, Val v, Op op) {
  return kernel.values[v].kind == Kind::compute && kernel.values[v].op == op && kernel.values[v].type == DType::f32;
}

}  // namespace

std::optional<LazyPair> lazy_pair(const Kernel& kernel) {
  if (kernel.sweeps.size() != 3 || kernel.reductions.size() != 2) return {};
  const Sweep &first = kernel.sweeps[0], &second = kernel.sweeps[1];
  if (first.reductions.size() != 1 || second.reductions.size() != 1 || !first.stores.empty() || !second.stores.empty())
    return {};
  LazyPair out{};
  out.max = first.reductions[0];
  out.sum = second.reductions[0];
  const Reduction &max = kernel.reductions[out.max], &sum = kernel.reductions[out.sum];
  if (max.fold != Fold::op || sum.fold != Fold::op || max.op != Op::reduce_max || sum.op != Op::sum) return {};
  if (sum.accumulate != DType::f32 || max.results.size() != 1 || sum.results.size() != 1) return {};
  if (!(kernel.values[sum.results[0]].relax & kOnline)) return {};
  out.e = sum.inputs[0];
  if (!is_op(kernel, out.e, Op::exp)) return {};
  out.shifted = kernel.values[out.e].args[0];
  if (!is_op(kernel, out.shifted, Op::sub)) return {};
  out.x = kernel.values[out.shifted].args[0];
  if (!(kernel.values[out.x].varies & kernel.reduced_axes())) return {};  // equal elements, no vectors to keep
  if (out.x != max.inputs[0] || kernel.values[out.shifted].args[1] != max.results[0] ||
      kernel.values[out.x].type != DType::f32)
    return {};
  // One result value each: two would be rounded apart.
  for (Val v = 0; v < kernel.values.size(); ++v)
    if (kernel.values[v].kind == Kind::result && v != max.results[0] && v != sum.results[0]) return {};
  if (!only_used_by(kernel, max.results[0], out.shifted) || !only_used_by(kernel, out.shifted, out.e)) return {};
  return out;
}

}  // namespace fusec::cpu
