#include "lib/fuzz/random_input.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lib/ir/convert.h"
#include "lib/ir/strided.h"
#include "lib/support/hash.h"

namespace fusec::fuzz {
namespace {

constexpr std::byte kUntouched{0xa5};

uint64_t seed_of(std::string_view name, uint64_t seed) { return Hasher().add(seed).add(name).value(); }

int64_t count_of(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (int64_t e : extents) out *= e;
  return out;
}

/// Row-major strides of a box whose axes lie in the order `axes`, the last one innermost.
std::vector<int64_t> strides_in_order(const std::vector<int64_t>& extents, const std::vector<size_t>& axes, int64_t step, int64_t gap) {
  std::vector<int64_t> out(extents.size(), 0);
  int64_t next = step;
  for (size_t k = axes.size(); k-- > 0;) {
    out[axes[k]] = next;
    next = next * std::max<int64_t>(1, extents[axes[k]]) + (k + 1 == axes.size() ? gap : 0);
  }
  return out;
}

}  // namespace

Layout random_layout(const std::vector<int64_t>& extents, bool output, uint64_t seed) {
  Random random(seed);
  std::vector<size_t> axes(extents.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  int64_t step = 1, gap = 0;
  Layout out;
  if (random.chance(2)) out.offset = 1;
  switch (random.below(10)) {
    case 0: step = 2; break;
    case 1: case 2: gap = 1 + int64_t(random.below(3)) * 5; break;
    case 3: gap = 8; break;
    case 4: case 5:
      for (size_t k = axes.size(); k > 1; --k) std::swap(axes[k - 1], axes[random.below(k)]);
      break;
    default: break;
  }
  out.strides = strides_in_order(extents, axes, step, gap);
  if (!output && !axes.empty() && random.chance(8)) out.strides[random.below(axes.size())] = 0;
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();  // takes no memory, however long its other axes are
  if (!output && !axes.empty() && random.chance(12)) {
    const size_t axis = random.below(axes.size());
    if (!empty) out.offset += (extents[axis] - 1) * out.strides[axis];
    out.strides[axis] = -out.strides[axis];
  }
  int64_t last = out.offset;
  for (size_t k = 0; !empty && k < extents.size(); ++k) last += (extents[k] - 1) * std::max<int64_t>(0, out.strides[k]);
  out.elements = last + 1 + int64_t(random.below(3));
  return out;
}

Placed random_input(std::string_view name, DType dtype, const std::vector<int64_t>& extents, uint64_t seed) {
  const uint64_t own = seed_of(name, seed);
  Placed out{{}, random_layout(extents, false, own), {}};
  Random random(own + 1);
  static const std::vector<unsigned> kSpecials = {0, 0, 8, 8, 64, 500};
  static const std::vector<Spread> kSpreads = {Spread::usual, Spread::usual, Spread::usual, Spread::far, Spread::tiny, Spread::wide};
  const unsigned specials = random.pick(kSpecials);
  Tensor block = random_tensor(dtype, {out.layout.elements}, own + 2, specials, random.pick(kSpreads));
  out.tensor = {dtype, extents, std::vector<std::byte>(size_t(count_of(extents)) * bytes(dtype))};
  if (!out.tensor.data.empty())
    Reader(block.data.data(), bytes(dtype), {extents, out.layout.strides, out.layout.offset})
        .read(out.tensor.data.data(), size_t(out.tensor.elements()));
  out.block = std::move(block.data.own());
  return out;
}

Placed placed(Tensor tensor, Layout layout, bool filled) {
  const size_t size = bytes(tensor.dtype);
  Placed out{{}, std::move(layout), std::move(tensor)};
  out.block.assign(size_t(out.layout.elements) * size, kUntouched);
  if (filled && !out.tensor.data.empty()) scatter(out.tensor.data.data(), out.block.data(), size, {out.tensor.extents, out.layout.strides, out.layout.offset});
  return out;
}

Placed output_block(std::string_view name, DType dtype, const std::vector<int64_t>& extents, uint64_t seed) {
  return placed({dtype, extents, {}}, random_layout(extents, true, seed_of(name, ~seed)), false);
}

bool read_output(const std::vector<std::byte>& block, Placed& output) {
  const size_t size = bytes(output.tensor.dtype), count = size_t(count_of(output.tensor.extents));
  output.tensor.data.resize(count * size);
  std::vector<std::byte> expected = output.block;
  if (count) {
    const StridedView view{output.tensor.extents, output.layout.strides, output.layout.offset};
    Reader(block.data(), size, view).read(output.tensor.data.data(), count);
    scatter(output.tensor.data.data(), expected.data(), size, view);
  }
  return block == expected;
}

bool may_hold_output(const Placed& input) {
  for (size_t k = 0; k < input.layout.strides.size(); ++k)
    if (input.layout.strides[k] <= 0 && input.tensor.extents[k] > 1) return false;
  return true;
}

}  // namespace fusec::fuzz
