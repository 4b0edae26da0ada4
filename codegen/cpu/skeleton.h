#pragma once
// The loop nest of a kernel, in parts: items and functions (emit.cpp), vectors over the vector axis and tiles
// (lanes.cpp), sweeps over rows (rows.cpp), scans (scan.cpp), rows in a pipeline (pipeline.cpp), parts of long reductions (split.cpp).
// Internal to codegen/cpu.

#include "codegen/cpu/emit.h"
#include "codegen/cpu/lazy.h"
#include "codegen/cpu/reduce.h"

namespace fusec::cpu {

class Skeleton {
 public:
  explicit Skeleton(Emitter& emitter);
  void main(const std::string& name);
  void finish(const std::string& name);

 private:
  using V = llvm::Value*;
  using Sets = std::vector<std::vector<State>>;
  /// A sweep over some rows, in progress. With a kept vector axis the rows are vectors side by side.
  struct Pass {
    size_t sweep;
    std::span<Frame> rows;
    Sets states;          // variables; [row * side + lane group][reduction of the sweep], or [vector][reduction]
    bool fetches = true;  // what it reads is far: prefetch what asks for it
    bool lazy = false;    // the sum of a lazy pair, in place of two sweeps
  };
  Pass start(size_t s, std::span<Frame> frames);
  void run(std::span<Pass> passes);
  void finish(Pass& pass);
  State state_of(Pass& pass, size_t row, size_t i);
  void row(std::span<Frame> frames);
  void nest(std::span<Pass> passes, std::vector<std::vector<Frame>>& outer, size_t depth);
  void element(Pass& pass, std::span<Frame> frames, size_t lanes);
  void scan_lanes(std::span<Pass> passes, std::vector<std::vector<Frame>>& rows);
  void scan_element(Pass& pass, std::span<Frame> frames, size_t lanes);
  State scan_vector(const Folder& folder, const State& carry, State x, State& next);
  State shifted(const State& x, const State& identity, unsigned by) const;
  /// A vector: index of lane 0 along the vector axis (joint lanes: of the group), its number in the group, live lanes.
  struct Spot {
    V index;
    unsigned unit;
    V mask;
    V left = nullptr;  // masked: indices from here to the end
  };
  void lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body);
  void joint_lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body);
  Frame at_lanes(const Frame& outer, const Spot& spot);
  std::vector<Frame> combed(std::span<Frame> frames);
  /// Vectors of a row among `frames`: a tile's frames are rows of one vector, others are one row.
  size_t lanes_of(std::span<Frame> frames) const {
    return rows_ || frames[0].tile ? 1 : frames.size() / (frames[0].comb ? static_cast<size_t>(e_.comb) : 1);
  }
  void pipeline(Frame& root, V begin, V end);
  void start_lazy(Frame& row);
  void lazy_element(Pass& pass, std::span<Frame> frames);
  void raise_reference(Pass& pass, V most, V walked);
  V row_buffer(V element);
  V aligned_rows();
  void chunk(Frame& frame);
  void head(Frame& frame, V& from, V to);
  V large();
  void hoist_all(Frame& frame);
  /// Indices of the outer axes from an item's number; what is left over last: chunk and part.
  void place(Frame& frame, V item, V* chunk, V* part);
  void runs(Frame& root, V begin, V end);
  void item(Frame& frame, V chunk_number);
  void tiles(Frame& frame);
  V chunks(size_t axis);
  V parts();
  V chunk_end() { return end_of(e_.vector_axis, chunk_from_); }
  V end_of(size_t axis, V from);
  State read(size_t reduction, const State& variables);
  V state_address(Frame& frame, V item, size_t field);
  size_t fields() const;
  void save(Pass& pass);
  void merge_parts(std::span<Frame> frames);

  Emitter& e_;
  Builder& b_;
  Items at_;
  bool rows_ = false;
  bool scans_ = false, backward_ = false;
  std::vector<size_t> inner_;  // reduced axes other than the vector axis, outermost first
  std::vector<std::vector<Val>> sweep_lists_;
  std::vector<Val> row_list_, bypassed_;
  std::vector<Val> scan_list_;  // what the inputs of scans need
  std::vector<Folder> folders_;
  std::optional<LazyPair> lazy_;  // a softmax in one walk
  std::vector<Val> lazy_list_;    // what its x needs
  V buffer_ = nullptr, reference_ = nullptr,
    limit_ = nullptr;                          // exponentials of a row; what x is compared with, in every lane
  V part_from_ = nullptr, part_to_ = nullptr;  // of the split axis, when split
  V item_number_ = nullptr, chunk_from_ = nullptr, tile_from_ = nullptr;
};

}  // namespace fusec::cpu
