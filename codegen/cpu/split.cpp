// Long reductions in parts: the entry stores the state of each part, the second entry merges the parts of a row in
// a tree of a fixed order.
#include "codegen/cpu/skeleton.h"

namespace fusec::cpu {

using V = llvm::Value*;

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
    // A tree over neighbours, in the place of the lower one: 1 and 2, 3 and 4, then the pairs; whoever is left alone waits.
    const V count = parts(), first = b_.CreateMul(item_number_, count);
    auto read_part = [&](size_t u, V part) {
      State out;
      for (size_t f = 0; f < zero.size(); ++f)
        out.push_back(b_.CreateAlignedLoad(zero[f]->getType(), state_address(frames[u], b_.CreateAdd(first, part), field + f), llvm::Align(8)));
      return out;
    };
    e_.loop(e_.i64(0), e_.i64(62), e_.i64(1), [&](V level) {
      V apart = b_.CreateShl(e_.i64(1), level);
      e_.loop(e_.i64(0), b_.CreateSub(count, apart), b_.CreateShl(apart, e_.i64(1)), [&](V part) {
        for (size_t u = 0; u < frames.size(); ++u) {
          const State merged = folder.merge(read_part(u, part), read_part(u, b_.CreateAdd(part, apart)));
          for (size_t f = 0; f < zero.size(); ++f)
            b_.CreateAlignedStore(merged[f], state_address(frames[u], b_.CreateAdd(first, part), field + f), llvm::Align(8));
        }
      });
    });
    e_.loop(e_.i64(0), b_.CreateSelect(b_.CreateICmpSGT(count, e_.i64(0)), e_.i64(1), e_.i64(0)), e_.i64(1), [&](V part) {
      for (size_t u = 0; u < frames.size(); ++u) {
        const State merged = folder.merge(read_sum(u), read_part(u, part));
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

}  // namespace fusec::cpu
