#pragma once
// What others may ask of a reader. A row is the constant that the reader enforces, a row of the table in docs/ir.md, and a case of
// test/support/limits_test.cpp, which goes to the limit and beyond. Below them memory and time are a multiple of the bytes read.
//
//   if (++nodes > kMaxNodes) return error("more than 1,000,000 nodes");

#include "fusec/type.h"

namespace fusec {

#define FUSEC_LIMITS(LIMIT)                                                                                            \
  LIMIT(kMaxNodes, 1'000'000, "nodes of a graph")                                                                      \
  LIMIT(kMaxName, 65'536, "bytes of a name: of a graph, a value, an output, a size")                                   \
  LIMIT(kMaxDimTerms, 64, "terms of a dim")                                                                            \
  LIMIT(kMaxDimDegree, 16, "sizes multiplied in one term of a dim")                                                    \
  LIMIT(kMaxSplatBytes, 1 << 28, "bytes of a text's constants that are written as one element, or as a repeated list") \
  LIMIT(kMaxModelBytes, int64_t{1} << 31, "bytes of an ONNX file, without external data")                              \
  LIMIT(kMaxModelItems, 2'000'000, "nodes, attributes, names and dims of an ONNX file")                                \
  LIMIT(kMaxModelFolds, 64 << 20, "bytes of constants that an ONNX file's nodes make while it is read")                \
  LIMIT(kMaxStreamBytes, 1 << 28, "bytes of a pipe, a device, or standard input that is no regular file")              \
  LIMIT(kMaxArtifactBytes, 1 << 30, "bytes of a file of the cache")

#define FUSEC_LIMIT_CONSTANT(name, value, what) inline constexpr int64_t name = value;
FUSEC_LIMITS(FUSEC_LIMIT_CONSTANT)
#undef FUSEC_LIMIT_CONSTANT

struct Limit {
  int64_t most;
  const char* what;
};
#define FUSEC_LIMIT_ROW(name, value, what) {name, what},
inline constexpr Limit kLimits[] = {{kMaxRank, "axes of a value, and brackets of a list inside one another"},
                                    {INT64_MAX, "elements of a value; no dim is negative"},
                                    FUSEC_LIMITS(FUSEC_LIMIT_ROW)};
#undef FUSEC_LIMIT_ROW

}  // namespace fusec
