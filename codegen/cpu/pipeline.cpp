// Rows in a pipeline.
#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

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

}  // namespace fusec::cpu
