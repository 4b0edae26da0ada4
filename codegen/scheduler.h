#pragma once
// What a back end says about schedules. Runtimes ask it through a device (runtime/backend.h), tools without one.

#include <string>
#include <vector>

#include "codegen/artifact.h"
#include "codegen/schedule.h"

namespace fusec {

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
};

}  // namespace fusec
