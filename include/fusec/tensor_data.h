#pragma once
// What a tensor's elements lie in: bytes of its own, or a view of memory that somebody keeps, such as a mapped file.
//
//   TensorData own(16);                                  // zeros, like a vector's
//   TensorData view = TensorData::view(weights, mapping);     // not copied; the mapping lives as long as the view or a copy of it
//
// Reading a view reads that memory where it lies, and a copy of a view is a view. Whatever could write copies it first.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fusec {

class TensorData final {
 public:
  TensorData() = default;
  explicit TensorData(size_t size, std::byte value = {}) : own_(size, value) {}
  TensorData(std::vector<std::byte> own) : own_(std::move(own)) {}
  /// Memory that does not change while `keeper`, which is not null, lives. It is aligned for the elements that it holds.
  static TensorData view(std::span<const std::byte> memory, std::shared_ptr<const void> keeper) {
    TensorData out;
    out.view_ = memory;
    out.keeper_ = std::move(keeper);
    return out;
  }

  bool is_view() const { return keeper_ != nullptr; }
  size_t size() const { return is_view() ? view_.size() : own_.size(); }
  bool empty() const { return size() == 0; }
  const std::byte* data() const { return is_view() ? view_.data() : own_.data(); }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size(); }
  const std::byte& operator[](size_t i) const { return data()[i]; }

  /// To write to. Of a view, the bytes are copied.
  std::vector<std::byte>& own() {
    if (is_view()) own_.assign(view_.begin(), view_.end()), view_ = {}, keeper_ = nullptr;
    return own_;
  }
  std::byte* data() { return own().data(); }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size(); }
  std::byte& operator[](size_t i) { return own()[i]; }
  void resize(size_t size) { own().resize(size); }
  void assign(const std::byte* first, const std::byte* last) { *this = TensorData(std::vector<std::byte>(first, last)); }

  friend bool operator==(const TensorData& a, const TensorData& b) {
    return std::ranges::equal(std::span(a.data(), a.size()), std::span(b.data(), b.size()));
  }

 private:
  std::vector<std::byte> own_;
  std::span<const std::byte> view_;
  std::shared_ptr<const void> keeper_;
};

}  // namespace fusec
