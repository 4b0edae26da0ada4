#pragma once
// Running states of the reductions of one sweep: `struct AccOf<S>` with zero, merge (lower, upper), peer and fresh, and the
// statements that fold a lane's vector into it and read results from it.

#include "codegen/cuda/body.h"

namespace fusec::cuda {

/// Field types and sizes of a sweep's state. `lanes` = 1 when a lane's vector folds into one state (the vector axis is reduced),
/// V when every element has its own.
struct StateLayout {
  struct Field {
    DType type;
    std::string name;
  };
  std::vector<Field> fields;
  unsigned lanes = 1;
  size_t bytes = 8;  // of the struct, aligned to 8
};
StateLayout state_layout(const Kernel& kernel, size_t sweep, unsigned lanes);

/// Rows in registers that fill all their lanes: whoever meets has the same count, a constant, so it does not travel.
bool alike(const Schedule& schedule);
/// Is a sweep's state one of mean and squares whose lanes meet all at once, and that keeps what the rounding of its mean left?
bool keeps_rest(const Kernel& kernel, const Schedule& schedule, size_t sweep);

/// The struct, at namespace scope, with `more` members. Uses formulas of the writer.
std::string state_text(Writer& writer, size_t sweep, const StateLayout& layout, const std::string& more = "");
/// Ring: `struct LaneOf<S>`, the inputs of one vector with identities for elements that are not there, and what follows for `struct AccOf`:
/// fold (several vectors at once) and meet<Lanes> (all lanes at once). False: an argmax among them is folded vector by vector.
bool folds_together(const Kernel& kernel, size_t sweep);
std::string lane_text(const Writer& writer, size_t sweep);
std::string together_text(Writer& writer, size_t sweep);
/// Statements that put the inputs (at hand in `body`) into `lane`.
void take_text(Writer& writer, Body& body, size_t sweep);

/// The words of a vector's bytes, at hand in `body`, that a fold adds as they are (summed_bytes).
std::optional<std::string> added_words(const Writer& writer, const Body& body, const Reduction& reduction);
/// Statements that fold the inputs (at hand in `body`) into `acc`; elements from `n` on are left out.
void fold_text(Writer& writer, Body& body, size_t sweep, const StateLayout& layout);
/// Scans: `struct AccOf` with members that shuffle (from, at), run over a lane's vector in order, and fold what came before into it.
std::string scan_state_text(Writer& writer, size_t sweep, const StateLayout& layout);

/// Expression of result `index` of a reduction from `acc`, in compute_type(type of the result); "[e]" where lanes > 1.
std::string result_text(const Writer& w, const Inst& result, size_t sweep, const StateLayout& layout);

}  // namespace fusec::cuda
