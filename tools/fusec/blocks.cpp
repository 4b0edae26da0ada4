#include "tools/fusec/blocks.h"

namespace fusec::cli {

Result<Buffer> Blocks::add(fuzz::Placed given) {
  fuzz::Placed& placed = placed_.emplace_back(std::move(given));
  std::byte* base = placed.block.data();
  if (device_) {
    Result<std::unique_ptr<Memory>> there = device_->allocate(placed.block.size());
    if (!there) return there.error();
    memory_.push_back(std::move(*there));
    base = static_cast<std::byte*>(memory_.back()->data);
    if (!placed.block.empty())
      if (Status s = device_->upload(base, placed.block.data(), placed.block.size()); !s) return s.error();
  }
  return Buffer{base + placed.layout.offset * int64_t(bytes(placed.tensor.dtype)), placed.tensor.extents, placed.layout.strides};
}

Result<std::vector<std::byte>> Blocks::read(size_t k) const {
  std::vector<std::byte> out = placed_[k].block;
  if (device_ && !out.empty())
    if (Status s = device_->download(out.data(), memory_[k]->data, out.size()); !s) return s.error();
  return out;
}

}  // namespace fusec::cli
