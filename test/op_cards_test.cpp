// Every exact card and every formula (op_cards.h): all values of one narrow operand, all pairs of 8-bit ones, special and drawn values
// otherwise. On the CPU every type; on simt, where clang takes a second a graph, one operand of every type and two of a few.
// test/long/op_cards_exhaustive.cpp has the rest.

#include "test/op_cards.h"

namespace fusec {
namespace {

constexpr size_t kDrawn = 4096;

class Cards : public testing::TestWithParam<int> {};

TEST_P(Cards, GiveTheSameBitsOnTheCpu) {
  for (int arity : {1, 2, 3}) compare_cards(DType(GetParam()), arity, card_devices(false), kDrawn, false);
}

INSTANTIATE_TEST_SUITE_P(OfType, Cards, testing::Range(0, kDTypes), [](const auto& param) { return std::string(name(DType(param.param))); });

TEST(Cards, GiveTheSameBitsInCudaText) {
  const std::vector<std::string> devices = card_devices(true);
  if (devices.empty() || devices.back() != "simt") GTEST_SKIP() << "no simt";
  for (DType type : {DType::i8, DType::u16, DType::f16, DType::bf16, DType::f8e4m3, DType::f32}) {
    compare_cards(type, 1, {"simt"}, kDrawn, false);
    if (HasFailure()) return;
  }
  for (DType type : {DType::i8, DType::f16}) compare_cards(type, 2, {"simt"}, kDrawn, false);
}

}  // namespace
}  // namespace fusec
