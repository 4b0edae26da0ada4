#pragma once
// Softmax of long rows, whose max and sum one sweep takes together (the ring): exp in fewer instructions where more is known than that it is one of
// an f32. cells.cuh says how (RowExp).

#include "codegen/cuda/body.h"

namespace fusec::cuda {

/// The load whose bytes an online state folds as they lie in memory (kNear), lifted; or kNoVal.
Val folded_bytes(const Writer& writer, const Reduction& reduction);
/// What a value of such a load has added when it is lifted.
std::string lift_of(DType bytes);
/// Statement: the words of the load as an array of lifted floats.
std::string lift(const Writer& writer, Val load, const std::string& words, const std::string& array);

/// exp(x - max) / sum of an online state, where nothing else wants the exp: of few terms, or of bytes.
struct Softmax {
  Val probability = kNoVal, x = kNoVal, max = kNoVal, sum = kNoVal;
  Val bytes = kNoVal;  // folded_bytes; kNoVal: few terms
};
std::optional<Softmax> softmax_of(const Writer& writer);
/// Statement behind those of max and 1 / sum: the member `p` of Row.
std::string softmax_row_text(const Writer& writer, const Softmax& softmax);
/// Statements that make the probabilities of a vector, at hand in `body` then.
void probabilities_text(const Writer& writer, Body& body, const Softmax& softmax);

}  // namespace fusec::cuda
