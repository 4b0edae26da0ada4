// Overlap of strided memory against the obvious answer; the arena's offsets.

#include "runtime/strided.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "runtime/arena.h"

namespace fusec {
namespace {

struct Box {
  uintptr_t at;
  std::vector<int64_t> extents, strides;
  size_t element;
  Strided view() const { return {reinterpret_cast<const void*>(at), extents, strides, element}; }

  std::multiset<uintptr_t> bytes() const {
    std::multiset<uintptr_t> out;
    std::vector<int64_t> index(extents.size(), 0);
    for (int64_t e : extents)
      if (e == 0) return out;
    for (;;) {
      int64_t offset = 0;
      for (size_t k = 0; k < index.size(); ++k) offset += index[k] * strides[k];
      for (size_t b = 0; b < element; ++b) out.insert(at + offset * int64_t(element) + b);
      size_t k = index.size();
      while (k > 0 && ++index[k - 1] == extents[k - 1]) index[--k] = 0;
      if (k == 0) return out;
    }
  }
};

Box random_box(std::mt19937& random) {
  Box box{100000 + random() % 64, {}, {}, size_t{1} << random() % 3};
  for (size_t k = random() % 4; k > 0; --k) {
    box.extents.push_back(int64_t(random() % 5));
    box.strides.push_back(int64_t(random() % 25) - 8);
  }
  return box;
}

TEST(Strided, OverlapIsExactOnSmallBoxes) {
  std::mt19937 random(3);
  int meet = 0;
  for (int round = 0; round < 4000; ++round) {
    const Box a = random_box(random), b = random_box(random);
    const auto x = a.bytes(), y = b.bytes();
    bool shared = false;
    for (uintptr_t p : x) shared |= y.contains(p);
    meet += shared;
    EXPECT_EQ(overlaps(a.view(), b.view()), shared) << "round " << round;
    if (!x.empty()) {
      EXPECT_EQ(range(a.view()).begin, *x.begin());
      EXPECT_EQ(range(a.view()).end, *x.rbegin() + 1);
    }
    const bool twice = std::set<uintptr_t>(x.begin(), x.end()).size() != x.size();
    if (twice) {
      EXPECT_TRUE(overlaps_itself(a.view())) << "round " << round;
    }
  }
  EXPECT_GT(meet, 500);
  EXPECT_LT(meet, 3500);
}

TEST(Strided, DenseAndPaddedLayoutsDoNotOverlapThemselves) {
  EXPECT_FALSE(overlaps_itself(Box{64, {4, 6}, {6, 1}, 4}.view()));
  EXPECT_FALSE(overlaps_itself(Box{64, {4, 6}, {1, 4}, 4}.view()));
  EXPECT_FALSE(overlaps_itself(Box{64, {4, 6}, {100, -2}, 4}.view()));
  EXPECT_FALSE(overlaps_itself(Box{64, {1, 6}, {0, 1}, 4}.view())) << "a stride of extent 1 says nothing";
  EXPECT_TRUE(overlaps_itself(Box{64, {4}, {0}, 4}.view()));
  EXPECT_TRUE(overlaps_itself(Box{64, {3, 3}, {1, 1}, 4}.view()));
}

TEST(Strided, GatherAndScatterAreInverse) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    Box box = random_box(random);
    if (overlaps_itself(box.view())) continue;
    std::vector<std::byte> memory(4096, std::byte{7});
    const std::vector<std::byte> before = memory;
    const Strided s{memory.data() + 2048, box.extents, box.strides, box.element};
    size_t count = box.element;
    for (int64_t e : box.extents) count *= size_t(e);
    std::vector<std::byte> dense(count), back(count);
    for (std::byte& b : dense) b = std::byte(random());
    scatter(dense.data(), s);
    gather(s, back.data());
    EXPECT_EQ(dense, back);
    size_t changed = 0;
    for (size_t i = 0; i < memory.size(); ++i) changed += memory[i] != before[i];
    EXPECT_LE(changed, count);
  }
}

TEST(Arena, LiveValuesNeverShareBytes) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> values(random() % 40);
    for (Lifetime& v : values) {
      v.bytes = random() % 3000;
      v.first = random() % 10;
      v.last = v.first + random() % 5;
    }
    const size_t total = plan_arena(values);
    size_t sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += (values[i].bytes + 255) / 256 * 256;
      EXPECT_EQ(values[i].offset % 256, 0u);
      EXPECT_LE(values[i].offset + values[i].bytes, total);
      for (size_t k = 0; k < i; ++k) {
        const bool together = values[i].first <= values[k].last && values[k].first <= values[i].last;
        const bool apart = values[i].offset + values[i].bytes <= values[k].offset || values[k].offset + values[k].bytes <= values[i].offset;
        if (together && values[i].bytes && values[k].bytes) {
          EXPECT_TRUE(apart);
        }
      }
    }
    EXPECT_LE(total, sum);
  }
  std::vector<Lifetime> chain{{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  EXPECT_EQ(plan_arena(chain), 2048u) << "a chain needs two places";
}

}  // namespace
}  // namespace fusec
