// Every exact card and every formula (test/op_cards.h) on the reference, the folder, the CPU and simt: all values of one narrow operand, all
// pairs of 8-bit ones, 2^22 drawn pairs of 16-bit ones, 2^20 of wider ones. Minutes; docs/numerics.md has its last result.
//
//   ninja -C build op_cards_exhaustive fusec_simt && build/test/op_cards_exhaustive

#include <iostream>

#include "test/op_cards.h"

namespace fusec {
namespace {

class Cards : public testing::TestWithParam<int> {};

TEST_P(Cards, GiveTheSameBits) {
  const DType type = DType(GetParam());
  const std::vector<std::string> devices = card_devices(true);
  std::string line = "| " + std::string(name(type));
  double results = 0;
  for (int arity : {1, 2, 3}) {
    const CardsCompared c = compare_cards(type, arity, devices, arity == 2 && bytes(type) == 2 ? 1 << 22 : 1 << 20, true);
    line += " | " + std::to_string(c.cards);
    results += c.tuples;
  }
  line += " | " + std::to_string(uint64_t(results / 1e6)) + " | reference, folder";
  for (const std::string& device : devices) line += ", " + device;
  std::cout << line << " |\n";
}

INSTANTIATE_TEST_SUITE_P(OfType, Cards, testing::Range(0, kDTypes), [](const auto& param) { return std::string(name(DType(param.param))); });

}  // namespace
}  // namespace fusec
