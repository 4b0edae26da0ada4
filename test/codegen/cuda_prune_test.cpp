// What of a prelude a text reaches. A name that is missed is a kernel that does not compile; one too many costs a fraction of a millisecond.

#include <gtest/gtest.h>

#include "codegen/cuda/prune.h"
#include "codegen/cuda/texts.h"

namespace fusec::cuda {
namespace {

const char* const kSmall = R"(// Of all.
typedef float f32;
#define D static __device__
// Twice.
D f32 twice(f32 x) {
  return x + x;
}
D f32 four_times(f32 x) { return twice(twice(x)); }
template <class T> struct Box { T value; };
template <> struct Box<f32> { f32 value; };
enum Kind { kOne, kTwo };
#define FUSEC_MAKE(T)           \
  D T add_##T(T x) {            \
    return near_##T(x) + seed;  \
  }
D f32 near_half(f32 x) { return x; }
D int seed_of(int x) { return x; }
FUSEC_MAKE(half)
FUSEC_MAKE(wide)
D f32 root(f32 x) { return x; }
D f64 root(f64 x) { return x; }
D f32 exact(u64 x) { return (f32)root((f64)x); }
#ifndef FUSEC_SIMT
D f32 least(f32 x) { return x; }
#endif
)";

std::string reached(const char* user) { return Library(kSmall).reached_from(user); }
bool has(const std::string& text, const char* what) { return text.find(what) != text.npos; }

TEST(Prune, NothingIsReachedButWhatStandsForItself) {
  EXPECT_EQ(reached(""), "// Of all.\ntypedef float f32;\n#ifndef FUSEC_SIMT\n#endif\n");
}

TEST(Prune, ThroughOthersInTheirOrderWithTheirComments) {
  const std::string text = reached("y = four_times(x);");
  EXPECT_TRUE(has(text, "#define D static __device__\n// Twice.\nD f32 twice(f32 x) {\n  return x + x;\n}\nD f32 four_times"));
  EXPECT_FALSE(has(text, "Box"));
}

TEST(Prune, TypesWithTheirSpecialisationsAndValuesOfEnumerations) {
  EXPECT_TRUE(has(reached("Box<int> b;"), "struct Box { T value; };\ntemplate <> struct Box<f32>"));
  EXPECT_TRUE(has(reached("f<kTwo>();"), "enum Kind"));
  EXPECT_FALSE(has(reached("// kTwo and four_times, in a comment"), "enum Kind"));
}

TEST(Prune, NamesThatMacrosPaste) {
  EXPECT_TRUE(has(reached("add_half(x)"), "FUSEC_MAKE(half)"));
  EXPECT_FALSE(has(reached("add_half(x)"), "FUSEC_MAKE(wide)"));
  EXPECT_TRUE(has(reached("FUSEC_MAKE(int)"), "D f32 near_half")) << "near_ is pasted to something";
  EXPECT_FALSE(has(reached("FUSEC_MAKE(int)"), "seed_of"));
}

TEST(Prune, DoublesForTextsThatComputeInThem) {
  EXPECT_EQ(reached("root(x)").find("f64"), std::string::npos);
  EXPECT_TRUE(has(reached("root((f64)x)"), "D f64 root(f64 x)"));
  EXPECT_TRUE(has(reached("exact(x)"), "D f64 root(f64 x)"));
}

TEST(Prune, ConditionsStayAroundWhatGoes) {
  EXPECT_TRUE(has(reached("least(x)"), "#ifndef FUSEC_SIMT\nD f32 least(f32 x) { return x; }\n#endif\n"));
}

TEST(Prune, TheWholePreludeReachesItself) {
  // Names that macros paste are written nowhere.
  const std::string pasted = " unpack_f16 unpack_bf16 unpack_f8e4m3 unpack_f8e5m2 tree_mul tree_min tree_max tree_or tree_and";
  for (const Text* t = kTexts; t->name; ++t) EXPECT_EQ(Library(t->text).reached_from(t->text + pasted).size(), std::string(t->text).size()) << t->name;
}

}  // namespace
}  // namespace fusec::cuda
