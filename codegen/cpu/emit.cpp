// One loop nest serves every kernel:
//
//   for item in [begin, end):                     kept axes, and a chunk of the vector axis when that is kept
//     kept vector axis:    for each group of vectors of the chunk: row(frames)          (cpu_flat, cpu_column)
//     reduced vector axis: row(frame)                                                    (cpu_rows)
//   row: for each sweep: states = zero; for reduced axes …: fold, store; finish; then the stores of row values.
//
// With a kept vector axis a row has one reduction state a lane, and `side` groups of lanes side by side; with a reduced one it has
// `side` vector states that are merged in a fixed tree at the end. A tail is one masked iteration. Without reductions a sweep is
// straight code. A split reduction stores its states instead of finishing; the second entry merges the parts of a row in order.
#include "codegen/cpu/emit.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/cpu/reduce.h"

namespace fusec::cpu {

using V = llvm::Value*;

Items items(const Kernel& kernel, const Schedule& schedule) {
  Items out;
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    if (kernel.axes[k].reduced) continue;
    if (k == schedule.vector_axis) {
      out.chunked = true;
    } else if (schedule.skeleton == Template::cpu_tile && schedule.lane[k]) {
      out.tiled = true;
      out.tile_axis = k;
    } else if (!schedule.lane[k]) {  // otherwise joint with the vector axis
      out.outer.push_back(k);
    }
  }
  out.split = schedule.finish == Finish::next_kernel;
  if (out.split)
    for (size_t k = kernel.axes.size(); k-- > 0;)
      if (kernel.axes[k].reduced && schedule.block[k]) out.split_axis = k;
  return out;
}

namespace {

class Skeleton {
 public:
  Skeleton(Emitter& e) : e_(e), b_(e.b), at_(items(e.kernel, e.schedule)) {
    const Kernel& k = e.kernel;
    for (size_t i = 0; i < k.axes.size(); ++i)
      if (k.axes[i].reduced && i != e.vector_axis) inner_.push_back(i);
    rows_ = !k.axes.empty() && k.axes[e.vector_axis].reduced;
    for (const Sweep& sweep : k.sweeps) {
      std::vector<Val> roots = sweep.stores;
      for (uint16_t r : sweep.reductions) roots.insert(roots.end(), k.reductions[r].inputs.begin(), k.reductions[r].inputs.end());
      sweep_lists_.push_back(e.needed(roots));
    }
    row_list_ = e.needed(k.row_stores);
    for (uint16_t r = 0; r < k.reductions.size(); ++r) folders_.emplace_back(e, r);
    for (Val v = 0; v < k.values.size(); ++v)
      if (k.values[v].kind == Kind::store && e.access(v).bypass) bypassed_.push_back(v);
  }

  void main(const std::string& name);
  void finish(const std::string& name);

 private:
  using Sets = std::vector<std::vector<State>>;
  /// A sweep over some rows, in progress. With a kept vector axis the rows are vectors side by side.
  struct Pass {
    size_t sweep;
    std::span<Frame> rows;
    Sets states;          // variables; [row * side + lane group][reduction of the sweep], or [vector][reduction]
    bool fetches = true;  // memory is far: prefetch what asks for it
  };
  Pass start(size_t s, std::span<Frame> frames);
  void run(std::span<Pass> passes);
  void finish(Pass& pass);
  State state_of(Pass& pass, size_t row, size_t i);
  void row(std::span<Frame> frames);
  void nest(std::span<Pass> passes, std::vector<std::vector<Frame>>& outer, size_t depth);
  void element(Pass& pass, std::span<Frame> frames, size_t lanes);
  /// A vector: index of lane 0 along the vector axis (joint lanes: of the group), its number in the group, live lanes.
  struct Spot {
    V index;
    unsigned unit;
    V mask;
  };
  void lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body);
  void joint_lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body);
  Frame at_lanes(const Frame& outer, const Spot& spot);
  /// Vectors of a row among `frames`: a tile's frames are rows of one vector, others are one row.
  size_t lanes_of(std::span<Frame> frames) const { return rows_ || frames[0].tile ? 1 : frames.size(); }
  void pipeline(Frame& root, V begin, V end);
  V aligned_rows();
  void chunk(Frame& frame);
  void head(Frame& frame, V& from, V to);
  V large();
  void hoist_all(Frame& frame);
  /// Indices of the outer axes from an item's number; what is left over last: chunk and part.
  void place(Frame& frame, V item, V* chunk, V* part);
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
  std::vector<size_t> inner_;                // reduced axes other than the vector axis, outermost first
  std::vector<std::vector<Val>> sweep_lists_;
  std::vector<Val> row_list_, bypassed_;
  std::vector<Folder> folders_;
  V part_from_ = nullptr, part_to_ = nullptr;  // of the split axis, when split
  V item_number_ = nullptr, chunk_from_ = nullptr, tile_from_ = nullptr;
};

// --- items ----------------------------------------------------------------------------------------------------------------------

V Skeleton::chunks(size_t axis) {
  const int64_t block = e_.schedule.block[axis];
  return b_.CreateUDiv(b_.CreateAdd(e_.extent(axis), e_.i64(block - 1)), e_.i64(block));
}

V Skeleton::parts() { return e_.slot({Slot::splits, 8, 0, 0, {}}); }

void Skeleton::place(Frame& frame, V item, V* chunk, V* part) {
  auto take = [&](V count) {
    if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(count); c && c->isOne()) return static_cast<V>(e_.i64(0));
    V quotient = b_.CreateUDiv(item, count);
    V rest = b_.CreateSub(item, b_.CreateMul(quotient, count));
    item = quotient;
    return rest;
  };
  if (part) *part = take(parts());
  if (chunk) {
    if (at_.outer.empty() && !at_.tiled) *chunk = item;
    else *chunk = take(chunks(e_.vector_axis));
  }
  if (at_.tiled) {
    V number = at_.outer.empty() ? item : take(chunks(at_.tile_axis));
    tile_from_ = b_.CreateMul(number, e_.i64(e_.schedule.block[at_.tile_axis]));
  }
  for (size_t n = at_.outer.size(); n-- > 0;) {
    const size_t axis = at_.outer[n];
    frame.index[axis] = n ? take(e_.extent(axis)) : item;
    frame.known |= AxisSet(1u << axis);
  }
}

void Skeleton::hoist_all(Frame& frame) {
  for (const auto& list : sweep_lists_) e_.hoist(frame, list);
  e_.hoist(frame, row_list_);
}

void Skeleton::main(const std::string& name) {
  auto [begin, end] = e_.begin(name);
  Frame root = e_.root();
  hoist_all(root);
  if (e_.schedule.ahead) pipeline(root, begin, end);
  else e_.loop(begin, end, e_.i64(1), [&](V item) {
    Frame frame = root;
    V chunk_number = nullptr, part = nullptr;
    item_number_ = item;
    place(frame, item, at_.chunked ? &chunk_number : nullptr, at_.split ? &part : nullptr);
    if (at_.split) {
      const int64_t block = e_.schedule.block[at_.split_axis];
      part_from_ = b_.CreateMul(part, e_.i64(block));
      part_to_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(part_from_, e_.i64(block)), e_.extent(at_.split_axis));
    }
    hoist_all(frame);
    if (at_.chunked) {
      chunk_from_ = b_.CreateMul(chunk_number, e_.i64(e_.schedule.block[e_.vector_axis]));
      at_.tiled ? tiles(frame) : chunk(frame);
    } else {
      row({&frame, 1});
    }
  });
  if (!bypassed_.empty()) {
#if defined(__x86_64__)
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
#else
    b_.CreateFence(llvm::AtomicOrdering::Release);
#endif
  }
  e_.end();
}

// --- lanes ----------------------------------------------------------------------------------------------------------------------

/// Vectors over [from, to) of the vector axis: `side` full ones at a time; the rest one by one, or, where each vector is a walk
/// over the reduced axes, in one group. What remains is masked.
void Skeleton::lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body) {
  if (e_.joint > 1) return joint_lanes(from, to, body);
  const int64_t w = e_.width, group = w * e_.side;
  auto spots = [&](V i, bool masked) {
    std::vector<Spot> out;
    for (unsigned u = 0; u < e_.side; ++u) {
      V at = b_.CreateAdd(i, e_.i64(u * w));
      out.push_back({at, u, masked ? e_.alive(at, to) : nullptr});
    }
    return out;
  };
  V full = b_.CreateSub(to, e_.i64(group - 1));
  // Where the loop of groups stops: from + whole groups.
  V span = b_.CreateSub(to, from);
  V whole = b_.CreateSub(span, b_.CreateSRem(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, span, e_.i64(0)), e_.i64(group)));
  V rest = b_.CreateAdd(from, whole);
  e_.loop(from, full, e_.i64(group), [&](V i) {
    auto group_spots = spots(i, false);
    body(group_spots);
  });
  if (!rows_ && !inner_.empty()) {
    e_.when(b_.CreateICmpSLT(rest, to), [&] {
      auto last = spots(rest, true);
      body(last);
    });
  } else {
    e_.loop(rest, to, e_.i64(w), [&](V i) {
      Spot spot{i, 0, e_.alive(i, to)};
      body({&spot, 1});
    });
  }
}

/// The same for joint lanes: a group is `side` vectors, which cover whole indices of the vector axis.
void Skeleton::joint_lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body) {
  const int64_t w = e_.width, indices = w * e_.side / e_.joint;
  auto spots = [&](V i, bool masked) {
    std::vector<Spot> out;
    V left = b_.CreateMul(b_.CreateSub(to, i), e_.i64(e_.joint));
    for (unsigned u = 0; u < e_.side; ++u) out.push_back({i, u, masked ? e_.alive(e_.i64(u * w), left) : nullptr});
    return out;
  };
  V span = b_.CreateSub(to, from);
  V rest = b_.CreateAdd(from, b_.CreateSub(span, b_.CreateSRem(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, span, e_.i64(0)), e_.i64(indices))));
  e_.loop(from, b_.CreateSub(to, e_.i64(indices - 1)), e_.i64(indices), [&](V i) {
    auto group = spots(i, false);
    body(group);
  });
  e_.when(b_.CreateICmpSLT(rest, to), [&] {
      auto last = spots(rest, true);
      body(last);
    });
}

Frame Skeleton::at_lanes(const Frame& outer, const Spot& spot) {
  Frame frame = outer;
  frame.index[e_.vector_axis] = spot.index;
  frame.unit = spot.unit;
  frame.known |= e_.vector_bit;
  frame.mask = spot.mask;
  return frame;
}

/// Bytes of the whole call are beyond what caches keep: stores may go around them.
V Skeleton::large() {
  int64_t element = 0;
  for (const Inst& inst : e_.kernel.values)
    if (inst.kind == Kind::load || inst.kind == Kind::store) element += static_cast<int64_t>(bytes(e_.kernel.operands[inst.operand].type));
  V total = e_.i64(element);
  for (size_t k = 0; k < e_.kernel.axes.size(); ++k) total = b_.CreateMul(total, e_.extent(k));
  return b_.CreateICmpSGT(total, e_.i64(int64_t{24} << 20));
}

V Skeleton::end_of(size_t axis, V from) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(from, e_.i64(e_.schedule.block[axis])), e_.extent(axis));
}

void Skeleton::chunk(Frame& frame) {
  V from = chunk_from_, to = chunk_end();
  std::vector<Frame> units(e_.side, frame);
  if (e_.joint > 1)
    for (unsigned u = 0; u < e_.side; ++u) {  // what varies along the short axis only is the same in every group
      units[u].unit = u;
      units[u].known |= AxisSet(1u << e_.joint_axis);
      hoist_all(units[u]);
    }
  auto body = [&](std::span<Spot> spots) {
    std::vector<Frame> frames;
    for (const Spot& spot : spots) frames.push_back(at_lanes(units[spot.unit], spot));
    row(frames);
  };
  if (bypassed_.empty()) return lanes(from, to, body);
  // A masked head brings the first bypassing store to a vector's boundary; the others must then stand on one too.
  V start = e_.variable(b_.getInt64Ty(), "start"), around = e_.variable(b_.getInt1Ty(), "around");
  b_.CreateStore(from, start);
  b_.CreateStore(b_.getFalse(), around);
  e_.when(large(), [&] {
    V first = from;
    if (e_.joint == 1) head(frame, first, to);
    b_.CreateStore(first, start);
    V aligned = b_.getTrue();
    Frame probe = frame;
    probe.index[e_.vector_axis] = first;
    for (Val v : bypassed_) {
      const uint64_t size = bytes(e_.kernel.operands[e_.kernel.values[v].operand].type) * e_.width;
      V low = b_.CreateAnd(b_.CreatePtrToInt(e_.address(probe, v), b_.getInt64Ty()), e_.i64(static_cast<int64_t>(size) - 1));
      aligned = b_.CreateAnd(aligned, b_.CreateIsNull(low));
    }
    b_.CreateStore(aligned, around);
  });
  from = b_.CreateLoad(b_.getInt64Ty(), start);
  e_.choose(b_.CreateLoad(b_.getInt1Ty(), around), [&] {
    e_.bypass = true;
    lanes(from, to, body);
    e_.bypass = false;
  }, [&] { lanes(from, to, body); });
}

void Skeleton::head(Frame& frame, V& from, V to) {
  const Val v = bypassed_[0];
  const int64_t size = static_cast<int64_t>(bytes(e_.kernel.operands[e_.kernel.values[v].operand].type));
  Frame first = frame;
  first.index[e_.vector_axis] = from;
  V at = b_.CreatePtrToInt(e_.address(first, v), b_.getInt64Ty());
  V missing = b_.CreateUDiv(b_.CreateAnd(b_.CreateNeg(at), e_.i64(size * e_.width - 1)), e_.i64(size));
  V stop = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(from, missing), to);
  e_.when(b_.CreateICmpSLT(from, stop), [&] {
    first.known |= e_.vector_bit;
    first.mask = e_.alive(from, stop);
    row({&first, 1});
  });
  from = stop;
}

/// Squares of `width` by `width` lanes; what does not fill one goes row by row with gathers, masked.
void Skeleton::tiles(Frame& frame) {
  const size_t p = e_.vector_axis, q = at_.tile_axis;
  V w = e_.i64(e_.width), mask = e_.i64(~int64_t{e_.width - 1});
  V p_end = chunk_end(), q_end = end_of(q, tile_from_);
  V p_full = b_.CreateAdd(chunk_from_, b_.CreateAnd(b_.CreateSub(p_end, chunk_from_), mask));
  V q_full = b_.CreateAdd(tile_from_, b_.CreateAnd(b_.CreateSub(q_end, tile_from_), mask));
  auto squares = [&] {
    e_.loop(tile_from_, q_full, w, [&](V j) {
      e_.loop(chunk_from_, p_full, w, [&](V i) {
        std::vector<Frame> frames(e_.width, frame);
        for (unsigned u = 0; u < e_.width; ++u) {
          frames[u].index[p] = i;
          frames[u].index[q] = b_.CreateAdd(j, e_.i64(u));
          frames[u].known |= e_.vector_bit | e_.tile_bit;
          frames[u].tile = true;
        }
        row(frames);
      });
    });
  };
  if (bypassed_.empty()) {
    squares();
  } else {
    V aligned = large();
    Frame probe = frame;
    probe.index[p] = chunk_from_;
    probe.index[q] = tile_from_;
    probe.known |= e_.tile_bit;
    for (Val v : bypassed_) {
      const int64_t size = static_cast<int64_t>(bytes(e_.kernel.operands[e_.kernel.values[v].operand].type));
      V low = b_.CreateOr(b_.CreatePtrToInt(e_.address(probe, v), b_.getInt64Ty()), b_.CreateMul(e_.step(v, q), e_.i64(size)));
      aligned = b_.CreateAnd(aligned, b_.CreateIsNull(b_.CreateAnd(low, e_.i64(size * e_.width - 1))));
    }
    e_.choose(aligned, [&] {
      e_.bypass = true;
      squares();
      e_.bypass = false;
    }, squares);
  }
  e_.loop(tile_from_, q_end, e_.i64(1), [&](V j) {
    Frame line = frame;
    line.index[q] = j;
    line.known |= e_.tile_bit;
    hoist_all(line);
    V from = b_.CreateSelect(b_.CreateICmpSLT(j, q_full), p_full, chunk_from_);
    e_.loop(from, p_end, w, [&](V i) {
      Frame one = line;
      one.index[p] = i;
      one.known |= e_.vector_bit;
      one.mask = e_.alive(i, p_end);
      row({&one, 1});
    });
  });
}

// --- rows -----------------------------------------------------------------------------------------------------------------------

void Skeleton::row(std::span<Frame> frames) {
  for (size_t s = 0; s < e_.kernel.sweeps.size(); ++s) {
    Pass pass = start(s, frames);
    run({&pass, 1});
    if (at_.split) return save(pass);
    finish(pass);
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
    const bool part = at_.split && axis == at_.split_axis;
    e_.loop(part ? part_from_ : e_.i64(0), part ? part_to_ : e_.extent(axis), e_.i64(1), [&](V i) {
      auto inside = outer;
      for (size_t p = 0; p < passes.size(); ++p)
        for (Frame& frame : inside[p]) {
          frame.index[axis] = i;
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
  e_.fetch_reads = e_.fetch_writes = pass.fetches;
  e_.evaluate(frames, lanes, sweep_lists_[pass.sweep]);
  for (size_t f = 0; f < frames.size(); ++f) {
    auto& states = pass.states[rows_ ? f / lanes * e_.side + f % lanes : f];
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

// --- rows in a pipeline ---------------------------------------------------------------------------------------------------------

/// Groups of rows_in_flight rows, the last sweep of one in the same loop as the first sweep of the next: reads and writes of memory
/// never stop, and what varies along a row only (a scale, a bias) is loaded once a group. Sweeps in between run from cache. A group
/// that would reach beyond `end` repeats the last row, which stores the same values again.
void Skeleton::pipeline(Frame& root, V begin, V end) {
  const size_t last_sweep = e_.kernel.sweeps.size() - 1, group = e_.schedule.rows_in_flight;
  V step = e_.i64(static_cast<int64_t>(group));
  std::vector<Val> results;
  for (Val v = 0; v < e_.kernel.values.size(); ++v)
    if (e_.kernel.values[v].kind == Kind::result) results.push_back(v);
  std::vector<std::vector<V>> kept(group);
  for (auto& row : kept)
    for (Val v : results) row.push_back(e_.variable(register_type(e_.context, e_.kernel.values[v].type), "kept"));
  auto rows_at = [&](V first) {
    std::vector<Frame> rows;
    for (size_t k = 0; k < group; ++k) {
      V item = b_.CreateAdd(first, e_.i64(static_cast<int64_t>(k)));
      item = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, item, begin);
      item = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, item, b_.CreateSub(end, e_.i64(1)));
      rows.push_back(root);
      place(rows.back(), item, nullptr, nullptr);
    }
    return rows;
  };
  V around = aligned_rows();
  e_.loop(begin, b_.CreateAdd(end, step), step, [&](V i) {
    std::vector<Frame> done = rows_at(b_.CreateSub(i, step)), next = rows_at(i);
    for (size_t k = 0; k < group; ++k) {
      for (size_t r = 0; r < results.size(); ++r)
        done[k].value[results[r]] = b_.CreateLoad(register_type(e_.context, e_.kernel.values[results[r]].type), kept[k][r]);
      hoist_all(done[k]);
      hoist_all(next[k]);
    }
    Pass read = start(0, next), write = start(last_sweep, done);
    read.fetches = true;
    write.fetches = false;
    auto write_rows = [&](bool reads) {
      std::vector<Pass> both;
      if (reads) both.push_back(read);
      both.push_back(write);
      auto go = [&] { run(both); };
      if (bypassed_.empty()) return go();
      e_.choose(around, [&] {
        e_.bypass = true;
        go();
        e_.bypass = false;
      }, go);
    };
    e_.choose(b_.CreateICmpEQ(i, begin), [&] { run({&read, 1}); }, [&] {
      e_.choose(b_.CreateICmpSLT(i, end), [&] { write_rows(true); }, [&] { write_rows(false); });
      e_.evaluate(done, 1, row_list_);
    });
    e_.when(b_.CreateICmpSLT(i, end), [&] {
      finish(read);
      for (size_t s = 1; s < last_sweep; ++s) {
        Pass middle = start(s, next);
        middle.fetches = false;
        run({&middle, 1});
        finish(middle);
      }
      for (size_t k = 0; k < group; ++k)
        for (size_t r = 0; r < results.size(); ++r) b_.CreateStore(next[k].value[results[r]], kept[k][r]);
    });
  });
}

/// Is the call large, and does every row of every bypassing store begin on a vector's boundary?
V Skeleton::aligned_rows() {
  if (bypassed_.empty()) return b_.getFalse();
  V aligned = large();
  for (Val v : bypassed_) {
    const int64_t size = static_cast<int64_t>(bytes(e_.kernel.operands[e_.kernel.values[v].operand].type));
    V low = b_.CreatePtrToInt(e_.slot({Slot::pointer, 8, e_.ordinal(v), 0, {}}), b_.getInt64Ty());
    for (size_t k = 0; k < e_.kernel.axes.size(); ++k)
      if (k != e_.vector_axis && (e_.kernel.values[v].varies >> k & 1)) low = b_.CreateOr(low, b_.CreateMul(e_.step(v, k), e_.i64(size)));
    aligned = b_.CreateAnd(aligned, b_.CreateIsNull(b_.CreateAnd(low, e_.i64(size * e_.width - 1))));
  }
  return aligned;
}

// --- split reductions -----------------------------------------------------------------------------------------------------------

size_t Skeleton::fields() const {
  size_t n = 0;
  for (const Folder& folder : folders_) n += folder.fields().size();
  return n;
}

/// Field `field` of item `item`, for the lanes that begin at `frame`: 8 bytes for each lane of the item.
V Skeleton::state_address(Frame& frame, V item, size_t field) {
  const int64_t per_item = at_.chunked ? e_.schedule.block[e_.vector_axis] : 1;
  V at = b_.CreateAdd(b_.CreateMul(item, e_.i64(static_cast<int64_t>(fields()))), e_.i64(static_cast<int64_t>(field)));
  at = b_.CreateMul(at, e_.i64(per_item));
  if (at_.chunked) at = b_.CreateAdd(at, b_.CreateSub(frame.index[e_.vector_axis], chunk_from_));
  return b_.CreateGEP(b_.getInt64Ty(), e_.slot({Slot::states, 8, 0, 0, {}}), at);
}

void Skeleton::save(Pass& pass) {
  size_t field = 0;
  for (size_t i = 0; i < folders_.size(); ++i) {
    const size_t n = folders_[i].fields().size();
    for (size_t f = 0; f < pass.rows.size(); ++f) {
      const State state = state_of(pass, f, i);
      for (size_t k = 0; k < n; ++k)
        b_.CreateAlignedStore(state[k], state_address(pass.rows[f], item_number_, field + k), llvm::Align(8));
    }
    field += n;
  }
}

void Skeleton::merge_parts(std::span<Frame> frames) {
  const unsigned lanes = at_.chunked ? e_.width : 0;
  size_t field = 0;
  for (const Folder& folder : folders_) {
    const State zero = folder.zero(lanes);
    std::vector<State> sums;
    for (size_t u = 0; u < frames.size(); ++u) {
      sums.emplace_back();
      for (V z : zero) {
        sums[u].push_back(e_.variable(z->getType(), "merged"));
        b_.CreateStore(z, sums[u].back());
      }
    }
    auto read_sum = [&](size_t u) {
      State out;
      for (size_t f = 0; f < zero.size(); ++f) out.push_back(b_.CreateLoad(zero[f]->getType(), sums[u][f]));
      return out;
    };
    V count = parts();
    e_.loop(e_.i64(0), count, e_.i64(1), [&](V part) {
      V item = b_.CreateAdd(b_.CreateMul(item_number_, count), part);
      for (size_t u = 0; u < frames.size(); ++u) {
        State upper;
        for (size_t f = 0; f < zero.size(); ++f)
          upper.push_back(b_.CreateAlignedLoad(zero[f]->getType(), state_address(frames[u], item, field + f), llvm::Align(8)));
        const State merged = folder.merge(read_sum(u), upper);
        for (size_t f = 0; f < zero.size(); ++f) b_.CreateStore(merged[f], sums[u][f]);
      }
    });
    for (size_t u = 0; u < frames.size(); ++u) folder.finish(read_sum(u), frames[u]);
    field += zero.size();
  }
}

void Skeleton::finish(const std::string& name) {
  auto [begin, end] = e_.begin(name);
  Frame root = e_.root();
  e_.hoist(root, row_list_);
  e_.loop(begin, end, e_.i64(1), [&](V item) {
    Frame frame = root;
    V chunk_number = nullptr;
    item_number_ = item;
    place(frame, item, at_.chunked ? &chunk_number : nullptr, nullptr);
    e_.hoist(frame, row_list_);
    auto body = [&](std::span<Frame> frames) {
      merge_parts(frames);
      e_.evaluate(frames, lanes_of(frames), row_list_);
    };
    if (!at_.chunked) return body({&frame, 1});
    chunk_from_ = b_.CreateMul(chunk_number, e_.i64(e_.schedule.block[e_.vector_axis]));
    lanes(chunk_from_, chunk_end(), [&](std::span<Spot> spots) {
      std::vector<Frame> frames;
      for (const Spot& spot : spots) frames.push_back(at_lanes(frame, spot));
      body(frames);
    });
  });
  e_.end();
}

}  // namespace

Emitted emit(llvm::LLVMContext& context, const Kernel& kernel, const Schedule& schedule, const Device& device, const std::string& entry) {
  Emitted out;
  out.module = std::make_unique<llvm::Module>("fusec", context);
  Emitter emitter(kernel, schedule, device, *out.module);
  Skeleton skeleton(emitter);
  out.entry = entry;
  skeleton.main(entry);
  if (schedule.finish == Finish::next_kernel) {
    out.finish_entry = entry + "_finish";
    skeleton.finish(out.finish_entry);
  }
  out.slots = std::move(emitter.slots);
  out.fault = std::move(emitter.fault);
  return out;
}

}  // namespace fusec::cpu
