// Skeletons that are filled in (codegen/cuda/skeleton.h): what each line with an @ and each $ becomes.

#include "codegen/cuda/skeleton.h"

#include <gtest/gtest.h>

namespace fusec::cuda {
namespace {

std::string filled(const std::string& text) {
  Parts parts;
  parts.numbers = {{"One", 1}, {"Two", 2}, {"V", 8}, {"No", 0}};
  parts.texts = {{"rows", "a.rows"}, {"twice", "$rows + $rows"}};
  parts.bodies = {{"load", "    raw.l0 = t.r + row.t;\n    if (x) {\n      y(raw);\n    }\n"}, {"one", "    z();\n"}, {"two0", "    w(t);\n"}, {"none", ""}};
  parts.file = [](const std::string& name) { return name == "part" ? "@if Two == 2\n  inside($V);\n@end\n" : ""; };
  return fill("@kernel\n" + text, parts).kernel;
}

TEST(Fill, Numbers) {
  EXPECT_EQ(filled("  $V $rows $twice x$V;\n"), "  8 a.rows a.rows + a.rows x8;\n");
  EXPECT_EQ(filled("$(2 + 3 * V) $((2 + 3) * V) $(V / 3 % 2) $(10 - 2 - 1)\n"), "26 40 0 7\n");
  EXPECT_EQ(filled("$(V > 2 && !No || No) $(V <= 7) $(V >= 8 && Two != 1) $(One == Two)\n"), "1 0 1 0\n");
}

TEST(Fill, IndicesOfOneElementAreNone) {
  EXPECT_EQ(filled("At t$[=Two]$[=One]; t$[i:Two]$[s:One].r\n"), "At t[2]; t[i].r\n");
}

TEST(Fill, Branches) {
  const std::string text = "@if $A\n  a\n@elif V == 8\n  b\n@if No\n  c\n@else\n  d\n@end\n@else\n  e\n@end\nf\n";
  EXPECT_EQ(filled("@let A = 1\n" + text), "  a\nf\n");
  EXPECT_EQ(filled("@let A = 0\n" + text), "  b\n  d\nf\n");
  EXPECT_EQ(filled("@// nothing\n@if No\nx\n@end\n"), "");
}

TEST(Fill, Loops) {
  EXPECT_EQ(filled("  @unroll i Two\n    x$[i:Two];\n  @end\n"), "#pragma unroll\n  for (int i = 0; i < 2; ++i) {\n    x[i];\n  }\n");
  EXPECT_EQ(filled("  @unroll i One\n    x;\n  @end\n"), "  x;\n");
  EXPECT_EQ(filled("  @unroll i One\n    x;\n    y;\n  @end\n"), "  {\n    x;\n    y;\n  }\n");
  EXPECT_EQ(filled("  @unroll i Two\n    @body none\n  @end\n"), "") << "a loop around nothing";
  EXPECT_EQ(filled("@each S Two\n  x$S;\n@end\n"), "  x0;\n  x1;\n");
}

TEST(Fill, Blocks) {
  const std::string inside = "    x;\n  @end\n";
  EXPECT_EQ(filled("  @block Two > 1 : if (left > $V)\n" + inside), "  if (left > 8) {\n    x;\n  }\n");
  EXPECT_EQ(filled("  @block No : if (left > $V)\n" + inside), "  x;\n");
}

TEST(Fill, StatementsWithWordsReplaced) {
  EXPECT_EQ(filled("  @body load t=t[i] raw=raw[i][s]\n"), "  raw[i][s].l0 = t[i].r + row.t;\n  if (x) {\n    y(raw[i][s]);\n  }\n") << "row.t is a member";
  EXPECT_EQ(filled("@let S = 0\n  @body two$S t=t$[i:One]\n"), "  w(t);\n");
  EXPECT_EQ(filled("    @include part\n"), "    inside(8);\n");
}

TEST(Fill, WhatIsMissingIsAnErrorOfTheText) {
  EXPECT_NE(filled("  x$nothing;\n").find("#error"), std::string::npos);
  EXPECT_NE(filled("  @body nothing\n").find("#error"), std::string::npos);
  EXPECT_NE(filled("  @nothing\n").find("#error"), std::string::npos);
  EXPECT_NE(fill("@kernel\n@if nothing > 1\n@end\n", {}).before.find("#error"), std::string::npos);
}

TEST(Fill, LinesInFrontStandAtNamespaceScope) {
  EXPECT_TRUE(is_filled("// x\n@kernel\ny\n"));
  EXPECT_FALSE(is_filled("template <class K> D void f();\n"));
  const Filled both = fill("// $V\n@kernel\ny\n", {{{"V", 4}}, {}, {}, {}});
  EXPECT_EQ(both.before, "// 4\n");
  EXPECT_EQ(both.kernel, "y\n");
}

}  // namespace
}  // namespace fusec::cuda
