#pragma once
// What a back end says about schedules. Runtimes ask it through a device (runtime/backend.h), tools without one.

#include <optional>
#include <string>
#include <vector>

#include "codegen/artifact.h"
#include "codegen/schedule.h"

namespace fusec {

/// One other way to run a kernel: what differs from the model's choice, as set() takes it, separated by spaces; "" is that choice.
struct Candidate {
  std::string edits;
  Schedule schedule;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// The back end's own choice. Pure, microseconds.
  virtual Schedule schedule(const Kernel& kernel, const Facts& facts) const = 0;
  virtual Launch launch(const Kernel& kernel, const Schedule& schedule, const Facts& facts) const = 0;

  /// After fields of a schedule were changed: fills in those that follow from others (steps, exact blocks, pieces no wider than a
  /// lane's vector).
  /// Returns  "", or why the kernel cannot run like that on such a call. Then it must not be emitted.
  virtual std::string settle(const Kernel& kernel, const Facts& facts, Schedule& schedule) const = 0;

  /// Fields that code or launch of such a schedule look at and that somebody may set, parted by blanks; others follow from these or count for nothing.
  /// "": whatever settle takes.
  virtual std::string_view fields(const Schedule&) const { return ""; }

  /// Schedules that are worth measuring, the model's own first; each settled, none twice. All compute the right thing, but sums may fold in
  /// another order. Some milliseconds.
  virtual std::vector<Candidate> candidates(const Kernel& kernel, const Facts& facts) const = 0;

  /// The kernel comes behind another one of the same call: its launch may begin before that one has ended, and its code waits.
  virtual void follow(Schedule&) const {}

  /// From an artifact's registers and shared memory.
  virtual Occupancy occupancy(const Artifact&, const Launch&) const { return {}; }

  /// What tuned schedules are keyed by: "NVIDIA H200", "" when no device is there; and "sm_90", "cpu: znver5, 64 bytes".
  virtual std::string device_key() const { return ""; }
  virtual std::string target_key() const = 0;
};

/// The schedule after `edits`, settled; nullopt: it cannot run like that.
std::optional<Schedule> edited(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts, const Schedule& from, std::string_view edits);

/// Every combination of one text of each list, applied to the model's choice: candidates() of a table. Lists of edits may be empty texts.
/// A candidate's edits have the values that its schedule has: where settle made something else of one, that.
class CandidateList {
 public:
  CandidateList(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts);
  const Schedule& own() const { return own_; }
  void combine(const std::vector<std::vector<std::string>>& lists);
  std::vector<Candidate> take() { return std::move(out_); }

 private:
  const Scheduler& scheduler_;
  const Kernel& kernel_;
  const Facts& facts_;
  Schedule own_;
  std::vector<Candidate> out_;
  std::vector<std::string> seen_;  // bytes of what is there
};

}  // namespace fusec
