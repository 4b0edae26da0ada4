// Scans: the running values of a line, in the order of its axis.
//
// Lanes across lines (a kept vector axis): each lane has its own running value. Lanes along the line: a vector is scanned in registers, in
// log2(width) shifts (Hillis & Steele, CACM 1986), and what came before it is folded in last:
//
//   carry 10, [1, 2, 3, 4]  + shifted by 1 → [1, 3, 5, 7]  + shifted by 2 → [1, 3, 6, 10]  + carry → [11, 13, 16, 20], carry 20
#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

/// Vectors of the one row, one after the other; the short one is the last, or, backward, the first.
void Skeleton::scan_lanes(std::span<Pass> passes, std::vector<std::vector<Frame>>& rows) {
  V w = e_.i64(e_.width), count = e_.extent(e_.vector_axis);
  V full = b_.CreateSub(count, b_.CreateURem(count, w));
  auto at = [&](V index, V mask) {
    const Spot spot{index, 0, mask, mask ? b_.CreateSub(count, index) : nullptr};
    for (size_t p = 0; p < passes.size(); ++p) {
      Frame frame = at_lanes(rows[p][0], spot);
      element(passes[p], {&frame, 1}, 1);
    }
  };
  auto rest = [&] { e_.when(b_.CreateICmpSLT(full, count), [&] { at(full, e_.alive(full, count)); }); };
  if (backward_) rest();
  e_.loop(e_.i64(0), full, w, [&](V i) { at(backward_ ? b_.CreateSub(b_.CreateSub(full, w), i) : i, nullptr); });
  if (!backward_) rest();
}

/// x moved by `by` lanes in the direction of the scan, identities behind it.
State Skeleton::shifted(const State& x, const State& identity, unsigned by) const {
  State out;
  llvm::SmallVector<int, 64> from;
  const auto w = static_cast<int>(e_.width), d = static_cast<int>(by);
  for (int l = 0; l < w; ++l) from.push_back(backward_ ? (l + d < w ? l + d : w) : l < d ? w : l - d);
  for (size_t k = 0; k < x.size(); ++k) out.push_back(b_.CreateShuffleVector(x[k], identity[k], from));
  return out;
}

/// Running values of one vector behind `carry`; `next` is the carry of the vector after it.
State Skeleton::scan_vector(const Folder& folder, const State& carry, State x, State& next) {
  for (unsigned by = 1; by < e_.width; by *= 2) x = folder.merge(shifted(x, folder.zero(e_.width), by), x);
  const State through = folder.merge(carry, x);
  next.clear();
  llvm::SmallVector<int, 64> last(e_.width, backward_ ? 0 : static_cast<int>(e_.width) - 1);
  for (V field : through) next.push_back(b_.CreateShuffleVector(field, last));
  return x;
}

/// Inputs at all frames, the running values, then everything that reads them, stores last. Frames of a comb come index by index.
void Skeleton::scan_element(Pass& pass, std::span<Frame> frames, size_t lanes) {
  e_.evaluate(frames, lanes, scan_list_);
  const auto& reductions = e_.kernel.sweeps[pass.sweep].reductions;
  const size_t groups = frames.size() / lanes;
  for (size_t i = 0; i < reductions.size(); ++i) {
    const Folder& folder = folders_[reductions[i]];
    const bool exclusive = e_.kernel.reductions[reductions[i]].exclusive;
    const unsigned wide = e_.vector_bit ? e_.width : 0;
    for (size_t g = 0; g < groups; ++g)
      for (size_t lane = 0; lane < lanes; ++lane) {
        Frame& frame = frames[(backward_ ? groups - 1 - g : g) * lanes + lane];
        const State& variables = pass.states[rows_ ? 0 : lane][i];
        const State before = read(reductions[i], variables);
        llvm::SmallVector<V, 2> x = folder.inputs(frame, wide != 0);
        State now, shown;
        if (rows_) {
          if (frame.mask) x[0] = b_.CreateSelect(frame.mask, x[0], folder.zero(wide)[0]);
          State local = scan_vector(folder, before, {x[0]}, now);
          if (exclusive) local = shifted(local, folder.zero(wide), 1);
          shown = folder.merge(before, local);
        } else {
          now = folder.fold(before, x, nullptr);
          shown = exclusive ? before : now;
        }
        for (size_t k = 0; k < now.size(); ++k) b_.CreateStore(now[k], variables[k]);
        folder.finish(shown, frame);
      }
  }
  e_.evaluate(frames, lanes, sweep_lists_[pass.sweep]);
}

}  // namespace fusec::cpu
