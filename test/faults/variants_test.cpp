// What `; variants: N` promises of the graphs in this folder: each is run folded and in nine kinds of call, on every device, and a
// fault in one of them is found and named.

#include "tools/fusec/variants.h"

#include <gtest/gtest.h>

namespace fusec::cli {
namespace {

std::string differs(const Tensor& got, const Tensor& want, bool, double) { return got.data == want.data ? "" : "is another"; }

Result<Program> compiled(const std::string& text, const char* device) {
  const Result<Graph> graph = parse(text);
  EXPECT_TRUE(graph) << graph.error().text();
  return compile(*graph, {.device = device, .cache = false});
}

const Tensor kThree{DType::u8, {3}, std::vector{std::byte{1}, std::byte{2}, std::byte{3}}};

TEST(Variants, NineKindsOfCallOnEveryDevice) {
  const std::vector<Tensor> x = {kThree};
  for (const char* device : {"reference", "cpu", "simt", "cuda"}) {
    const Result<Program> program = compiled("graph @g(%x: u8[N]) -> u8[N] { %y = xor %x, 0\n return %y }", device);
    if (!program) continue;  // not here
    const Status good = check_variants(*program, x, "N", {x, true, 0, differs});
    EXPECT_TRUE(good) << good.error().text();
    EXPECT_EQ(program->stats().calls, 9u) << device;
    if (std::string_view(device) == "reference") continue;
    EXPECT_EQ(program->stats().cold, 9u) << device << ": own, 67 and 4099, each dense, at stride 2 and off by one";
  }
}

TEST(Variants, WithoutASymbolNothingIsTiled) {
  const std::vector<Tensor> x = {kThree};
  const Result<Program> program = compiled("graph @g(%x: u8[3]) -> u8[3] { return %x }", "reference");
  ASSERT_TRUE(program);
  EXPECT_TRUE(check_variants(*program, x, "", {x, true, 0, differs}));
  EXPECT_EQ(program->stats().calls, 3u);
}

TEST(Variants, AFaultOfOneSizeIsFoundAndNamed) {
  const std::vector<Tensor> x = {kThree};
  for (const char* size : {"3", "67", "4099"}) {
    // Wrong where N is `size` alone.
    const Result<Program> program = compiled(std::string("graph @g(%x: u8[N]) -> u8[N] { %n = size {shape=[N]}\n %b = eq %n, ") + size +
                                             "\n %z = xor %x, 1\n %y = select %b, %z, %x\n return %y }", "reference");
    ASSERT_TRUE(program) << program.error().text();
    const Status found = check_variants(*program, x, "N", {x, true, 0, differs});
    ASSERT_FALSE(found);
    const std::string text = found.error().text();
    EXPECT_NE(text.find(size == std::string("3") ? "folded" : std::string("variant: ") + size), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fusec::cli
