#pragma once
// Which schedule a kernel takes: the back end's model, unless a tuning file knows better or somebody set fields by hand.
//
//   Result<Chooser> chooser = Chooser::make({"threads=512", "g1:keep=reload"}, "h200.json");
//   Result<Choice> choice = chooser->choose(step, kernel, facts, scheduler);

#include <string>
#include <vector>

#include "runtime/tuning.h"

namespace fusec {

struct Choice {
  enum By : uint8_t { model, tuned, hand } by = model;
  Schedule schedule;
  std::string note;  // why a tuning file's choice was not taken
};

class Chooser {
 public:
  /// Number of a step that is no kernel of the plan (a copy of an output): only the model chooses for it.
  static constexpr size_t kNoStep = ~size_t{0};

  Chooser() = default;
  /// `edits` are FIELD=VALUE (set() in codegen/schedule.h) for every kernel, or gN:FIELD=VALUE for kernel N; later ones win.
  /// `tuning` is a tuning file; "": the one that FUSEC_TUNING names, if any, which is ignored with a warning when it is not usable.
  /// Errors   input: an edit that is not of this form (whether fields and values exist is seen when they are applied); the tuning file.
  static Result<Chooser> make(const std::vector<std::string>& edits, const std::string& tuning);

  /// Errors   input: an edit names a kernel beyond the plan's.
  Status fits(size_t kernels) const;
  /// Errors   input: no such field or value, or the kernel cannot run like that.
  Result<Choice> choose(size_t step, const Kernel& kernel, const Facts& facts, const Scheduler& scheduler) const;

 private:
  struct Edit {
    size_t step;  // kNoStep: every one
    std::string text;
  };
  std::vector<Edit> edits_;
  std::shared_ptr<const Tuning> tuning_;  // null: none
};

/// "model", "tuning file", "hand"
const char* name(Choice::By by);

}  // namespace fusec
