// Rows in a pipeline.
#include <cmath>
#include <limits>

#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

namespace {
constexpr double kRoom =
    60;  // how far x may exceed the reference: e^60 times 2^20 columns stays far below the largest float
}

/// Groups of rows_in_flight rows, the last sweep of one in the same loop as the first sweep of the next: reads and
/// writes of memory never stop, and what varies along a row only (a scale, a bias) is loaded once a group. Sweeps in
/// between run from cache. A group that would reach beyond `end` repeats the last row, which stores the same values
/// again.
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
  if (lazy_) {
    llvm::FunctionCallee scratch = e_.module.getOrInsertFunction("fusec_scratch", b_.getPtrTy(), b_.getInt64Ty());
    V columns = b_.CreateAdd(e_.extent(e_.vector_axis), e_.i64(e_.width));
    buffer_ = b_.CreateCall(scratch, b_.CreateMul(columns, e_.i64(4)));
    llvm::Type* lanes = llvm::FixedVectorType::get(b_.getFloatTy(), e_.width);
    reference_ = e_.variable(lanes, "reference");
    limit_ = e_.variable(lanes, "limit");
  }
  V around = aligned_rows();
  e_.loop(begin, b_.CreateAdd(end, step), step, [&](V i) {
    std::vector<Frame> done = rows_at(b_.CreateSub(i, step)), next = rows_at(i);
    for (size_t k = 0; k < group; ++k) {
      for (size_t r = 0; r < results.size(); ++r)
        if (!lazy_ || e_.kernel.values[results[r]].reduction == lazy_->sum)
          done[k].value[results[r]] =
              b_.CreateLoad(register_type(e_.context, e_.kernel.values[results[r]].type), kept[k][r]);
      hoist_all(done[k]);
      hoist_all(next[k]);
    }
    Pass read = start(lazy_ ? 1 : 0, next), write = start(last_sweep, done);
    read.lazy = lazy_.has_value();
    read.fetches = true;
    write.fetches = false;
    auto write_rows = [&](bool reads) {
      std::vector<Pass> both;
      both.push_back(write);  // first: a row buffer gives its values away before it takes new ones
      if (reads) both.push_back(read);
      auto go = [&] { run(both); };
      if (bypassed_.empty()) return go();
      e_.choose(
          around,
          [&] {
            e_.bypass = true;
            go();
            e_.bypass = false;
          },
          go);
    };
    if (lazy_) e_.when(b_.CreateICmpSLT(i, end), [&] { start_lazy(next[0]); });
    e_.choose(
        b_.CreateICmpEQ(i, begin), [&] { run({&read, 1}); },
        [&] {
          e_.choose(b_.CreateICmpSLT(i, end), [&] { write_rows(true); }, [&] { write_rows(false); });
          e_.evaluate(done, 1, row_list_);
        });
    e_.when(b_.CreateICmpSLT(i, end), [&] {
      finish(read);
      for (size_t s = 1; s < last_sweep && !lazy_; ++s) {
        Pass middle = start(s, next);
        middle.fetches = false;
        run({&middle, 1});
        finish(middle);
      }
      for (size_t k = 0; k < group; ++k)
        for (size_t r = 0; r < results.size(); ++r)
          if (next[k].value[results[r]]) b_.CreateStore(next[k].value[results[r]], kept[k][r]);
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
      if (k != e_.vector_axis && (e_.kernel.values[v].varies >> k & 1))
        low = b_.CreateOr(low, b_.CreateMul(e_.step(v, k), e_.i64(size)));
    aligned = b_.CreateAnd(aligned, b_.CreateIsNull(b_.CreateAnd(low, e_.i64(size * e_.width - 1))));
  }
  return aligned;
}

// --- a lazy softmax --------------------------------------------------------------------------------------------------

V Skeleton::row_buffer(V element) { return b_.CreateGEP(b_.getFloatTy(), buffer_, element); }

/// The reference of a row: the greatest of its first vector, and finite, so that a row of -inf sums to 0 and not to
/// NaN.
void Skeleton::start_lazy(Frame& row) {
  Frame first = at_lanes(row, {e_.i64(0), 0, e_.alive(e_.i64(0), e_.extent(e_.vector_axis))});
  e_.fetch_reads = false;
  e_.evaluate({&first, 1}, 1, lazy_list_);
  V x = e_.wide(first, lazy_->x);
  Cells c{b_, DType::f32};
  V least = c.number(x, -INFINITY);
  V most = folders_[lazy_->max].across({b_.CreateSelect(first.mask, x, least)})[0];
  V reference = e_.splat(c.max(most, c.number(most, -std::numeric_limits<float>::max())));
  b_.CreateStore(reference, reference_);
  b_.CreateStore(b_.CreateFAdd(reference, c.number(reference, kRoom)), limit_);
}

void Skeleton::lazy_element(Pass& pass, std::span<Frame> frames) {
  Cells c{b_, DType::f32};
  e_.evaluate(frames, frames.size(), lazy_list_);
  std::vector<V> x;
  V most = nullptr;
  for (Frame& frame : frames) {
    V lanes = e_.wide(frame, lazy_->x);
    if (frame.mask) lanes = b_.CreateSelect(frame.mask, lanes, c.number(lanes, -INFINITY));  // exp gives 0 there
    x.push_back(lanes);
    most = most ? b_.CreateSelect(b_.CreateFCmpOGT(lanes, most), lanes, most) : lanes;
  }
  V over = b_.CreateFCmpOGT(most, b_.CreateLoad(most->getType(), limit_));
  e_.when(b_.CreateOrReduce(over), [&] { raise_reference(pass, most, frames[0].index[e_.vector_axis]); });
  V reference = b_.CreateLoad(most->getType(), reference_);
  for (size_t u = 0; u < frames.size(); ++u) frames[u].value[lazy_->shifted] = b_.CreateFSub(x[u], reference);
  e_.evaluate(frames, frames.size(), {lazy_->e});
  for (size_t u = 0; u < frames.size(); ++u) {
    V e = frames[u].value[lazy_->e], sum = pass.states[u][0][0];
    b_.CreateAlignedStore(e, row_buffer(frames[u].index[e_.vector_axis]), llvm::Align(64));
    b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(e->getType(), sum), e), sum);
  }
}

/// Rare: what was summed and kept so far shrinks by exp(old - new). That may underflow where its square root does not
/// while the exponentials are as large as e^60, so the root is applied twice.
void Skeleton::raise_reference(Pass& pass, V most, V walked) {
  Cells c{b_, DType::f32};
  V old = b_.CreateLoad(most->getType(), reference_);
  V reference = e_.splat(folders_[lazy_->max].across({c.max(old, most)})[0]);
  V root =
      expand_formula(b_, Op::exp, DType::f32, {b_.CreateFMul(b_.CreateFSub(old, reference), c.number(old, 0.5))}, 0, 0);
  auto shrink = [&](V at, llvm::Align align) {
    V x = b_.CreateAlignedLoad(most->getType(), at, align);
    b_.CreateAlignedStore(b_.CreateFMul(b_.CreateFMul(x, root), root), at, align);
  };
  for (auto& set : pass.states) shrink(set[0][0], llvm::Align(64));
  e_.loop(e_.i64(0), walked, e_.i64(e_.width), [&](V i) { shrink(row_buffer(i), llvm::Align(64)); });
  b_.CreateStore(reference, reference_);
  b_.CreateStore(b_.CreateFAdd(reference, c.number(reference, kRoom)), limit_);
}

}  // namespace fusec::cpu
