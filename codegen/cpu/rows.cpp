// A row: its sweeps one after another, each a walk over the reduced axes that folds and stores.
#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

void Skeleton::row(std::span<Frame> frames) {
  for (size_t s = 0; s < e_.kernel.sweeps.size(); ++s) {
    Pass pass = start(s, frames);
    run({&pass, 1});
    if (at_.split) return save(pass);
    if (!scans_) finish(pass);
  }
  e_.evaluate(frames, lanes_of(frames), row_list_);
}

/// A sweep over these rows (or, with a kept vector axis, over the one row of these vectors), its states at zero.
Skeleton::Pass Skeleton::start(size_t s, std::span<Frame> frames) {
  Pass pass{s, frames, {}};
  if (rows_ || !inner_.empty())  // otherwise all of it is computed at once, side by side
    for (Frame& frame : frames) e_.hoist(frame, sweep_lists_[s]);
  pass.states.resize(rows_ ? frames.size() * e_.side : frames.size());
  for (auto& set : pass.states)
    for (uint16_t r : e_.kernel.sweeps[s].reductions) {
      State variables;
      for (V field : folders_[r].zero(e_.vector_bit ? e_.width : 0)) {
        variables.push_back(e_.variable(field->getType(), "state"));
        b_.CreateStore(field, variables.back());
      }
      set.push_back(variables);
    }
  return pass;
}

/// The passes in one walk over the reduced axes.
void Skeleton::run(std::span<Pass> passes) {
  std::vector<std::vector<Frame>> frames;
  for (const Pass& pass : passes) frames.emplace_back(pass.rows.begin(), pass.rows.end());
  nest(passes, frames, 0);
}

void Skeleton::nest(std::span<Pass> passes, std::vector<std::vector<Frame>>& outer, size_t depth) {
  if (depth < inner_.size()) {
    const size_t axis = inner_[depth];
    if (axis == e_.comb_axis) {
      std::vector<std::vector<Frame>> inside;
      for (auto& frames : outer) inside.push_back(combed(frames));
      return nest(passes, inside, depth + 1);
    }
    const bool part = at_.split && axis == at_.split_axis;
    e_.loop(part ? part_from_ : e_.i64(0), part ? part_to_ : e_.extent(axis), e_.i64(1), [&](V i) {
      auto inside = outer;
      for (size_t p = 0; p < passes.size(); ++p)
        for (Frame& frame : inside[p]) {
          frame.index[axis] = backward_ ? b_.CreateSub(b_.CreateSub(e_.extent(axis), e_.i64(1)), i) : i;
          frame.known |= AxisSet(1u << axis);
          if (depth + 1 < inner_.size() || rows_) e_.hoist(frame, sweep_lists_[passes[p].sweep]);
        }
      nest(passes, inside, depth + 1);
    });
    return;
  }
  if (!rows_) {
    for (size_t p = 0; p < passes.size(); ++p) element(passes[p], outer[p], lanes_of(outer[p]));
    return;
  }
  if (scans_) return scan_lanes(passes, outer);
  const bool part = at_.split && e_.vector_axis == at_.split_axis;
  lanes(part ? part_from_ : e_.i64(0), part ? part_to_ : e_.extent(e_.vector_axis), [&](std::span<Spot> spots) {
    for (size_t p = 0; p < passes.size(); ++p) {
      std::vector<Frame> frames;
      for (const Frame& row : outer[p])
        for (const Spot& spot : spots) frames.push_back(at_lanes(row, spot));
      element(passes[p], frames, spots.size());
    }
  });
}

/// Everything of a pass at one place: frames of `lanes` vectors for each row.
void Skeleton::element(Pass& pass, std::span<Frame> frames, size_t lanes) {
  const auto& reductions = e_.kernel.sweeps[pass.sweep].reductions;
  e_.fetch_reads = pass.fetches;
  if (pass.lazy) return lazy_element(pass, frames);
  if (scans_) return scan_element(pass, frames, lanes);
  if (lazy_ && pass.sweep == 2)
    for (Frame& frame : frames) {
      llvm::Type* type = llvm::FixedVectorType::get(b_.getFloatTy(), e_.width);
      frame.value[lazy_->e] = b_.CreateAlignedLoad(type, row_buffer(frame.index[e_.vector_axis]), llvm::Align(64));
    }
  e_.evaluate(frames, lanes, sweep_lists_[pass.sweep]);
  for (size_t f = 0; f < frames.size(); ++f) {
    auto& states = pass.states[rows_ ? f / lanes * e_.side + f % lanes : f % lanes];
    for (size_t i = 0; i < reductions.size(); ++i) {
      const Folder& folder = folders_[reductions[i]];
      const State old = read(reductions[i], states[i]);
      // Lanes beyond a kept axis fold rubbish that nobody reads; those beyond a reduced one must not.
      State now = folder.fold(old, folder.inputs(frames[f], e_.vector_bit != 0), rows_ ? frames[f].mask : nullptr);
      for (size_t k = 0; k < now.size(); ++k) b_.CreateStore(now[k], states[i][k]);
    }
  }
}

/// The results of a pass, as values of its rows.
void Skeleton::finish(Pass& pass) {
  const auto& reductions = e_.kernel.sweeps[pass.sweep].reductions;
  for (size_t f = 0; f < pass.rows.size(); ++f)
    for (size_t i = 0; i < reductions.size(); ++i) folders_[reductions[i]].finish(state_of(pass, f, i), pass.rows[f]);
}

/// The state of one row, or of the lanes of one vector.
State Skeleton::state_of(Pass& pass, size_t row, size_t i) {
  const uint16_t r = e_.kernel.sweeps[pass.sweep].reductions[i];
  if (!rows_) return read(r, pass.states[row][i]);
  std::vector<State> sets;
  for (size_t u = 0; u < e_.side; ++u) sets.push_back(read(r, pass.states[row * e_.side + u][i]));
  for (; sets.size() > 1; sets.resize(sets.size() / 2))  // neighbours first; `side` is a power of two
    for (size_t u = 0; u < sets.size() / 2; ++u) sets[u] = folders_[r].merge(sets[2 * u], sets[2 * u + 1]);
  return folders_[r].across(sets[0]);
}

State Skeleton::read(size_t reduction, const State& variables) {
  const State zero = folders_[reduction].zero(e_.vector_bit ? e_.width : 0);
  State out;
  for (size_t f = 0; f < zero.size(); ++f) out.push_back(b_.CreateLoad(zero[f]->getType(), variables[f]));
  return out;
}

}  // namespace fusec::cpu
