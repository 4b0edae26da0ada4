// Vectors over the vector axis: groups side by side, a masked rest; joint lanes over two axes; chunks with stores
// around the cache; square tiles that are turned in registers.
#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

/// Vectors over [from, to) of the vector axis: `side` full ones at a time; the rest one by one, or, where each vector
/// is a walk over the reduced axes, in one group. What remains is masked.
void Skeleton::lanes(V from, V to, llvm::function_ref<void(std::span<Spot>)> body) {
  if (e_.joint > 1) return joint_lanes(from, to, body);
  const int64_t w = e_.width, group = w * e_.side;
  auto spots = [&](V i, bool masked) {
    std::vector<Spot> out;
    for (unsigned u = 0; u < e_.side; ++u) {
      V at = b_.CreateAdd(i, e_.i64(u * w));
      out.push_back({at, u, masked ? e_.alive(at, to) : nullptr, masked ? b_.CreateSub(to, at) : nullptr});
    }
    return out;
  };
  V full = b_.CreateSub(to, e_.i64(group - 1));
  // Where the loop of groups stops: from + whole groups.
  V span = b_.CreateSub(to, from);
  V whole = b_.CreateSub(
      span, b_.CreateSRem(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, span, e_.i64(0)), e_.i64(group)));
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
      Spot spot{i, 0, e_.alive(i, to), b_.CreateSub(to, i)};
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
  V rest = b_.CreateAdd(
      from, b_.CreateSub(span, b_.CreateSRem(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, span, e_.i64(0)),
                                             e_.i64(indices))));
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
  frame.left = spot.left;
  return frame;
}

/// These vectors at every index of the comb axis, index by index.
std::vector<Frame> Skeleton::combed(std::span<Frame> frames) {
  std::vector<Frame> out;
  for (int64_t c = 0; c < e_.comb; ++c)
    for (const Frame& frame : frames) {
      out.push_back(frame);
      out.back().index[e_.comb_axis] = e_.i64(c);
      out.back().known |= AxisSet(1u << e_.comb_axis);
      out.back().comb = true;
    }
  return out;
}

/// Bytes of the whole call are beyond what caches keep: stores may go around them.
V Skeleton::large() {
  int64_t element = 0;
  for (const Inst& inst : e_.kernel.values)
    if (inst.kind == Kind::load || inst.kind == Kind::store)
      element += static_cast<int64_t>(bytes(e_.kernel.operands[inst.operand].type));
  V total = e_.i64(element);
  for (size_t k = 0; k < e_.kernel.axes.size(); ++k) total = b_.CreateMul(total, e_.extent(k));
  return b_.CreateICmpSGT(total, e_.i64(int64_t{24} << 20));
}

V Skeleton::end_of(size_t axis, V from) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(from, e_.i64(e_.schedule.block[axis])),
                                  e_.extent(axis));
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
    if (e_.comb > 1 && inner_.empty()) frames = combed(frames);  // a reduced comb axis opens inside its sweeps
    row(frames);
  };
  if (bypassed_.empty()) return lanes(from, to, body);
  // A masked head brings the first bypassing store to a vector's boundary; the others must then stand on one too.
  V start = e_.variable(b_.getInt64Ty(), "start"), around = e_.variable(b_.getInt1Ty(), "around");
  b_.CreateStore(from, start);
  b_.CreateStore(b_.getFalse(), around);
  e_.when(large(), [&] {
    V first = from;
    if (e_.joint == 1 && e_.comb == 1) head(frame, first, to);
    b_.CreateStore(first, start);
    V aligned = b_.getTrue();
    Frame probe = frame;
    probe.index[e_.vector_axis] = first;
    for (Val v : bypassed_) {
      const int64_t size = static_cast<int64_t>(bytes(e_.kernel.operands[e_.kernel.values[v].operand].type));
      V low = b_.CreatePtrToInt(e_.address(probe, v), b_.getInt64Ty());
      if (e_.comb > 1 && e_.differs(v, AxisSet(1u << e_.comb_axis)))
        low = b_.CreateOr(low, b_.CreateMul(e_.step(v, e_.comb_axis), e_.i64(size)));
      aligned = b_.CreateAnd(aligned, b_.CreateIsNull(b_.CreateAnd(low, e_.i64(size * e_.width - 1))));
    }
    b_.CreateStore(aligned, around);
  });
  from = b_.CreateLoad(b_.getInt64Ty(), start);
  e_.choose(
      b_.CreateLoad(b_.getInt1Ty(), around),
      [&] {
        e_.bypass = true;
        lanes(from, to, body);
        e_.bypass = false;
      },
      [&] { lanes(from, to, body); });
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
      V low = b_.CreateOr(b_.CreatePtrToInt(e_.address(probe, v), b_.getInt64Ty()),
                          b_.CreateMul(e_.step(v, q), e_.i64(size)));
      aligned = b_.CreateAnd(aligned, b_.CreateIsNull(b_.CreateAnd(low, e_.i64(size * e_.width - 1))));
    }
    e_.choose(
        aligned,
        [&] {
          e_.bypass = true;
          squares();
          e_.bypass = false;
        },
        squares);
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

}  // namespace fusec::cpu
