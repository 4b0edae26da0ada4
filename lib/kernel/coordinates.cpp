// Coordinates pulled from a node to its operands. Every op says where it reads; nothing else about it matters here.
//
//   y = transpose x {perm=[1,0]},  y wanted at (i, j)   →  x wanted at (j, i)
//   s = sum x {axes=[1]},          s wanted at (i)      →  x wanted at (i, r), r the domain's reduced axis

#include <algorithm>

#include "lib/kernel/builder.h"

namespace fusec {

using index::Coord;
using index::Coords;

std::vector<bool> reduced_dims(const Node& node, size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : node.attrs->axes) reduced[size_t(axis)] = true;
  return reduced;
}

uint32_t KernelBuilder::demand(NodeId node, Coords at, Val guard) {
  std::vector<Demand>& list = demands[node];
  for (uint32_t k = 0; k < list.size(); k++)
    if (list[k].guard == guard && index::equal(list[k].at, at)) return k;
  if (list.size() >= 64) refuse("too-many-views", "one value is read through more than 64 different views");
  list.push_back({std::move(at), guard});
  return uint32_t(list.size() - 1);
}

/// Operand of an elementwise op or a broadcast: dims aligned right, an extent of 1 is always index 0.
Coords KernelBuilder::operand_coords(const Coords& at, const Shape& shape, const Shape& operand) const {
  Coords out;
  const size_t skip = shape.size() - operand.size();
  for (size_t k = 0; k < operand.size(); k++) {
    const bool repeated = operand[k].is(1) && !shape[skip + k].is(1);
    out.push_back(repeated ? Coord{index::zero(atoms.size())} : at[skip + k]);
  }
  return out;
}

Coords KernelBuilder::identity() const {
  Coords at;
  size_t atom = 0;
  for (const std::vector<Dim>& list : domain.kept) {
    Coord coord{index::zero(atoms.size())};
    Dim factor = 1;
    for (size_t k = list.size(); k-- > 0;) {
      coord.at.factor[atom + k] = factor;
      factor = factor * list[k];
    }
    atom += list.size();
    at.push_back(coord);
  }
  return at;
}

/// Coordinates in `from` of the element that a reshape puts at `at` in `to`.
std::optional<Coords> KernelBuilder::through_reshape(const Coords& at, const Shape& to, const Shape& from) {
  Coords out(from.size(), Coord{index::zero(atoms.size())});
  for (const index::Run& run : index::align(from, to)) {
    std::vector<size_t> in_dims, out_dims;  // without dims of extent 1
    for (size_t k = run.from_begin; k < run.from_end; k++)
      if (!from[k].is(1)) in_dims.push_back(k);
    for (size_t k = run.to_begin; k < run.to_end; k++)
      if (!to[k].is(1)) out_dims.push_back(k);
    if (in_dims.empty()) continue;
    if (in_dims.size() == 1 && out_dims.size() == 1) {
      out[in_dims[0]] = at[out_dims[0]];
      continue;
    }
    const bool linear = std::all_of(out_dims.begin(), out_dims.end(), [&](size_t k) { return at[k].extra == kNoVal; });
    Linear flat = index::zero(atoms.size());
    Dim stride = 1;
    for (size_t k = out_dims.size(); k-- > 0;) {
      flat = index::sum(flat, index::scaled(at[out_dims[k]].at, stride));
      stride = stride * to[out_dims[k]];
    }
    if (in_dims.size() == 1 && linear) {
      out[in_dims[0]] = {flat};
      continue;
    }
    // Several dims to fill: hand out whole atoms from the innermost dim, splitting one where a dim ends inside it.
    std::vector<size_t> pool;
    bool all_whole = true;
    for (size_t k : out_dims) {
      auto part = index::whole(at[k], to[k], atoms);
      if (!part) {
        all_whole = false;
        break;
      }
      pool.insert(pool.end(), part->begin(), part->end());
    }
    bool done = all_whole;
    for (size_t n = in_dims.size(); done && n-- > 0;) {
      Coord& coord = out[in_dims[n]];
      coord = {index::zero(atoms.size())};
      Dim filled = 1;
      const Dim& need = from[in_dims[n]];
      while (!(filled == need)) {
        if (pool.empty()) {
          done = false;
          break;
        }
        const size_t atom = pool.back();
        const Dim next = filled * atoms[atom];
        if (next == need || exact_quotient(need, next)) {  // equal first: 0 divides nothing
          coord.at.factor[atom] = filled;
          filled = next;
          pool.pop_back();
          continue;
        }
        auto rest = exact_quotient(need, filled);
        if (rest && exact_quotient(atoms[atom], *rest)) {
          split = Split{atom_home[atom].first, atom_home[atom].second, *rest};
          return std::nullopt;
        }
        done = false;
        break;
      }
    }
    if (done) continue;
    // No refinement covers it: divide and take remainders, as values.
    Val whole_index = kNoVal;
    Dim inner = 1;
    for (size_t k = out_dims.size(); k-- > 0;) {
      Val part = position(at[out_dims[k]]);
      if (!inner.is(1)) part = compute(Op::mul, DType::i64, {part, size_of(inner)});
      whole_index = whole_index == kNoVal ? part : compute(Op::add, DType::i64, {whole_index, part});
      inner = inner * to[out_dims[k]];
    }
    if (whole_index == kNoVal) whole_index = integer(0);
    Dim below = 1;
    for (size_t n = in_dims.size(); n-- > 0;) {
      Val part = whole_index;
      if (!below.is(1)) part = compute(Op::trunc_div, DType::i64, {part, size_of(below)});
      if (n > 0) part = compute(Op::trunc_mod, DType::i64, {part, size_of(from[in_dims[n]])});
      out[in_dims[n]] = {index::zero(atoms.size()), part};
      below = below * from[in_dims[n]];
    }
  }
  return out;
}

/// Every kept atom appears, in exactly one whole coordinate, and no reduced one does.
bool KernelBuilder::covers_kept_atoms(const Coords& at, const Shape& shape) const {
  std::vector<int> seen(atoms.size(), 0);
  for (size_t k = 0; k < at.size(); k++) {
    if (shape[k].is(1) && index::is_constant(at[k].at) && at[k].extra == kNoVal) continue;
    auto part = index::whole(at[k], shape[k], atoms);
    if (!part) return false;
    for (size_t atom : *part) seen[atom]++;
  }
  for (size_t k = 0; k < atoms.size(); k++)
    if (seen[k] != (atom_reduced[k] ? 0 : 1) && !atoms[k].is(1)) return false;
  return true;
}

/// Where a reduction reads: its own coordinates on the kept dims, the domain's reduced atoms on the others. The first reduction
/// decides which atoms are reduced; the others must agree.
std::optional<Coords> KernelBuilder::reduce_coords(NodeId id, const Coords& at) {
  const Node& node = graph.node(id);
  const Shape& shape = graph.node(node.args[0]).type.shape;
  const std::vector<bool> reduced = reduced_dims(node, shape.size());

  Coords kept(shape.size(), Coord{index::zero(atoms.size())});
  std::vector<bool> used(atoms.size(), false);
  size_t next = 0;
  for (size_t k = 0; k < shape.size(); k++) {
    if (reduced[k]) {
      next += node.attrs->keep;
      continue;
    }
    kept[k] = at[next++];
    auto part = index::whole(kept[k], shape[k], atoms);
    if (!part && !shape[k].is(1)) {
      refuse("reduction-recomputed", "a reduction is read through a view that is not one row for one row");
      return std::nullopt;
    }
    if (part)
      for (size_t atom : *part) used[atom] = true;
  }
  for (size_t k = 0; k < atoms.size(); k++)
    if (used[k] && atom_reduced[k]) {
      refuse("two-axis-sets", "a reduction is read along an axis that the group reduces");
      return std::nullopt;
    }

  // The operand was already wanted by a consumer over full rows: read it the same way.
  for (const Demand& known : demands[node.args[0]]) {
    bool same = known.guard == kNoVal;
    std::vector<bool> rest(atoms.size(), false);
    for (size_t k = 0; same && k < shape.size(); k++) {
      if (!reduced[k]) {
        same = index::equal(known.at[k], kept[k]);
        continue;
      }
      auto part = index::whole(known.at[k], shape[k], atoms);
      same = bool(part);
      if (part)
        for (size_t atom : *part) rest[atom] = true;
    }
    if (!same) continue;
    for (size_t k = 0; k < atoms.size(); k++)
      same &= atoms[k].is(1) || (reduced_known ? rest[k] == atom_reduced[k] : rest[k] == !used[k]);
    if (!same) continue;
    for (size_t k = 0; k < atoms.size(); k++) atom_reduced[k] = rest[k];
    reduced_known = true;
    return known.at;
  }

  // Otherwise the atoms that the result does not walk, in order.
  std::vector<size_t> pool;
  for (size_t k = 0; k < atoms.size(); k++)
    if (reduced_known ? atom_reduced[k] : !used[k] && !atoms[k].is(1)) pool.push_back(k);
  Dim reduced_elements = 1;
  for (size_t k = 0; k < shape.size(); k++)
    if (reduced[k]) reduced_elements = reduced_elements * shape[k];
  if (!reduced_known && pool.empty() && !reduced_elements.is(1)) {
    // Only row values are wanted: the reduced axes are this reduction's own. Start over with them in the domain.
    for (size_t k = 0; k < shape.size(); k++)
      if (reduced[k]) domain.reduced.push_back({shape[k]});
    split = Split{~size_t{0}, 0, 1};
    return std::nullopt;
  }
  if (reduced_known)
    for (size_t k = 0; k < atoms.size(); k++)
      if (!used[k] && !atom_reduced[k] && !atoms[k].is(1)) {
        refuse("reduction-recomputed", "a reduction would be computed again along an axis that it does not have");
        return std::nullopt;
      }
  Dim pool_elements = 1;
  for (size_t atom : pool) pool_elements = pool_elements * atoms[atom];
  if (!(pool_elements == reduced_elements)) {
    refuse(reduced_known ? "two-axis-sets" : "reduction-recomputed",
           reduced_known ? "reductions over different axes do not share a kernel"
                         : "a reduction would be computed again along an axis that it does not have");
    return std::nullopt;
  }
  const std::vector<size_t> all = pool;
  Coords out = kept;
  size_t taken = 0;
  for (size_t k = 0; k < shape.size(); k++) {
    if (!reduced[k]) continue;
    std::vector<size_t> part;
    Dim filled = 1;
    while (!(filled == shape[k])) {
      if (taken == pool.size()) {
        refuse("two-axis-sets", "reductions over different axes do not share a kernel");
        return std::nullopt;
      }
      const size_t atom = pool[taken];
      const Dim next_filled = filled * atoms[atom];
      if (next_filled == shape[k] || exact_quotient(shape[k], next_filled)) {
        part.push_back(atom);
        filled = next_filled;
        taken++;
        continue;
      }
      auto rest = exact_quotient(shape[k], filled);
      auto inner = rest ? exact_quotient(atoms[atom], *rest) : std::nullopt;
      if (inner) {
        split = Split{atom_home[atom].first, atom_home[atom].second, *inner};
        return std::nullopt;
      }
      refuse("not-one-domain", "a reduced extent does not match the axes of the group");
      return std::nullopt;
    }
    Dim factor = 1;
    for (size_t n = part.size(); n-- > 0;) {
      out[k].at.factor[part[n]] = factor;
      factor = factor * atoms[part[n]];
    }
  }
  for (size_t atom : all) atom_reduced[atom] = true;
  reduced_known = true;
  return out;
}

/// A scan is computed where it is read, in the order of its axis: its axis becomes the reduced one, and every row of the domain must be
/// another line of it.
bool KernelBuilder::scan_fits(NodeId id, const Coords& at) {
  const Node& node = graph.node(id);
  const Shape& shape = node.type.shape;
  const auto axis = static_cast<size_t>(node.attrs->axis);
  const bool first = scan == ~NodeId{0};
  if (fold != ~NodeId{0}) return refuse("scan-beside-reduction", "a running sum and a reduction do not share a kernel"), false;
  if (!first && graph.node(scan).attrs->reverse != node.attrs->reverse)
    return refuse("scan-directions", "one running sum goes forward, the other one backward"), false;
  scan = id;
  std::vector<int> seen(atoms.size(), 0);
  std::vector<bool> own(atoms.size(), false);
  for (size_t k = 0; k < shape.size(); k++) {
    if (shape[k].is(1) && index::is_constant(at[k].at) && at[k].extra == kNoVal) continue;
    const auto part = index::whole(at[k], shape[k], atoms);
    if (!part) return refuse("scan-through-view", "a running sum is read through a view that is not one element for one element"), false;
    for (size_t atom : *part) seen[atom]++, own[atom] = own[atom] || k == axis;
    // Its atoms are one axis again only where the call's tensors are contiguous there.
    if (k == axis && std::count_if(part->begin(), part->end(), [&](size_t atom) { return !atoms[atom].is(1); }) > 1)
      return refuse("scan-axis-split", "a view cuts the axis of a running sum"), false;
  }
  for (size_t k = 0; k < atoms.size(); k++) {
    if (atoms[k].is(1)) continue;
    if (seen[k] != 1) return refuse("scan-recomputed", "a running sum would be computed again along an axis that it does not have"), false;
    if (first) atom_reduced[k] = own[k];
    else if (own[k] != atom_reduced[k]) return refuse("two-axis-sets", "running sums along different axes do not share a kernel"), false;
  }
  return true;
}

/// The index is computed here and now: where the data is read depends on it.
void KernelBuilder::pull_gather(const Node& node, Demand& wanted) {
  const auto axis = static_cast<size_t>(node.attrs->axis);
  const Shape &data = graph.node(node.args[0]).type.shape, &by = graph.node(node.args[1]).type.shape;
  if (++gathers > 16) return refuse("gathers-too-deep", "more than 16 gathers by indices that gathers give");
  const uint32_t which = demand(node.args[1], operand_coords(wanted.at, node.type.shape, by), wanted.guard);
  Val index = value_now(node.args[1], which);
  gathers--;
  if (failed()) return;
  if (graph.node(node.args[1]).type.dtype != DType::i64) index = compute(Op::cast, DType::i64, {index});
  const Val n = size_of(data[axis]), zero = integer(0);
  index = compute(Op::select, DType::i64,
                  {compute(Op::lt, DType::boolean, {index, zero}), compute(Op::add, DType::i64, {index, n}), index});
  const Val within = both(compute(Op::ge, DType::boolean, {index, zero}), compute(Op::lt, DType::boolean, {index, n}));
  Coords at = operand_coords(wanted.at, node.type.shape, data);
  at[axis] = {index::zero(atoms.size()), index};
  wanted.within = {within};
  wanted.operands = {demand(node.args[0], std::move(at), both(wanted.guard, within)), which};
}

void KernelBuilder::pull(NodeId id, Demand& wanted) {
  if (!wanted.operands.empty()) return;
  const Node& node = graph.node(id);
  const Attrs& attrs = *node.attrs;
  auto shape_of = [&](size_t k) -> const Shape& { return graph.node(node.args[k]).type.shape; };
  auto read = [&](size_t k, Coords at, Val guard) {
    wanted.operands.push_back(demand(node.args[k], std::move(at), guard));
  };

  if (is_elementwise(node.op)) {
    for (size_t k = 0; k < node.args.size(); k++)
      read(k, operand_coords(wanted.at, node.type.shape, shape_of(k)), wanted.guard);
    return;
  }
  if (is_reduce(node.op)) {
    if (wanted.guard != kNoVal) return refuse("guarded-reduction", "a reduction is read under a pad or a concat");
    if (scan != ~NodeId{0}) return refuse("scan-beside-reduction", "a running sum and a reduction do not share a kernel");
    fold = id;
    if (auto at = reduce_coords(id, wanted.at)) read(0, *at, kNoVal);
    return;
  }
  if (is_scan(node.op)) {
    if (wanted.guard != kNoVal) return refuse("guarded-reduction", "a running sum is read under a pad or a concat");
    if (node.type.shape[size_t(attrs.axis)].is(1) || scan_fits(id, wanted.at)) read(0, wanted.at, kNoVal);
    return;
  }
  Coords at = wanted.at;
  switch (node.op) {
    case Op::gather: return pull_gather(node, wanted);
    case Op::broadcast:
      return read(0, operand_coords(at, node.type.shape, shape_of(0)), wanted.guard);
    case Op::reshape:
      if (auto through = through_reshape(at, node.type.shape, shape_of(0))) read(0, *through, wanted.guard);
      return;
    case Op::transpose:
      for (size_t k = 0; k < at.size(); k++) at[size_t(attrs.perm[k])] = wanted.at[k];
      return read(0, at, wanted.guard);
    case Op::slice:
      for (size_t k = 0; k < at.size(); k++) {
        at[k].at = index::scaled(at[k].at, attrs.step[k]);
        at[k].at.offset = at[k].at.offset + attrs.start[k];
        if (at[k].extra != kNoVal && attrs.step[k] != 1)
          at[k].extra = compute(Op::mul, DType::i64, {at[k].extra, integer(attrs.step[k])});
      }
      return read(0, at, wanted.guard);
    case Op::reverse:
      for (int64_t axis : attrs.axes) {
        Coord& coord = at[size_t(axis)];
        coord.at = index::scaled(coord.at, -1);
        coord.at.offset = coord.at.offset + shape_of(0)[size_t(axis)] - 1;
        if (coord.extra != kNoVal) coord.extra = compute(Op::neg, DType::i64, {coord.extra});
      }
      return read(0, at, wanted.guard);
    case Op::pad: {
      Val within = kNoVal;
      for (size_t k = 0; k < at.size(); k++) {
        if (attrs.low[k].is(0) && attrs.high[k].is(0)) continue;
        at[k].at.offset = at[k].at.offset - attrs.low[k];
        within = both(within, inside_range(at[k], 0, shape_of(0)[k]));
      }
      wanted.within = {within};
      return read(0, at, both(wanted.guard, within));
    }
    case Op::concat: {
      const size_t axis = size_t(attrs.axis);
      Dim before = 0;
      for (size_t k = 0; k < node.args.size(); k++) {
        at = wanted.at;
        at[axis].at.offset = at[axis].at.offset - before;
        const Val within = inside_range(at[axis], 0, shape_of(k)[axis]);
        wanted.within.push_back(within);
        read(k, at, both(wanted.guard, within));
        before = before + shape_of(k)[axis];
      }
      return;
    }
    default:
      refuse("no-kernel", std::string(name(node.op)) + " has no place in a kernel");
  }
}

}  // namespace fusec
