#pragma once
// Which schedule a kernel takes: the back end's model, unless somebody set fields by hand.
//
//   Result<Chooser> chooser = Chooser::make({"threads=512", "g1:keep=reload"});
//   Result<Choice> choice = chooser->choose(step, kernel, facts, scheduler);

#include <string>
#include <vector>

#include "codegen/scheduler.h"
#include "fusec/result.h"

namespace fusec {

struct Choice {
  enum By : uint8_t { model, hand } by = model;
  Schedule schedule;
};

class Chooser {
 public:
  /// Number of a step that is no kernel of the plan (a copy of an output): only the model chooses for it.
  static constexpr size_t kNoStep = ~size_t{0};

  Chooser() = default;
  /// `edits` are FIELD=VALUE (set() in codegen/schedule.h) for every kernel, or gN:FIELD=VALUE for kernel N; later ones win.
  /// Errors   input: an edit that is not of this form. Whether fields and values exist is seen when they are applied.
  static Result<Chooser> make(const std::vector<std::string>& edits);

  /// Errors   input: no such field or value, or the kernel cannot run like that.
  Result<Choice> choose(size_t step, const Kernel& kernel, const Facts& facts, const Scheduler& scheduler) const;

 private:
  struct Edit {
    size_t step;  // kNoStep: every one
    std::string text;
  };
  std::vector<Edit> edits_;
};

/// "model", "hand"
const char* name(Choice::By by);

}  // namespace fusec
