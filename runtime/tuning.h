#pragma once
// A tuning file: which candidate was fastest for a kernel, on a device, for a class of shapes. JSON, meant to be shared and read:
//
//   {"fusec_tuning": 1, "entries": [
//     {"device": "NVIDIA H200", "target": "sm_90", "kernel": "3f2a…", "shape": "2^20 x 1024", "schedule": "threads=512 rows_in_flight=4",
//      "name": "softmax g0", "seconds": 0.000252, "model_seconds": 0.00027, "bytes_per_s": 4.26e12, "registers": 40, "spill_bytes": 0, "occupancy": 0.75}]}
//
// A schedule is written as what differs from the model's choice, and is taken only where it is one of the back end's candidates: a file
// can make a kernel slower, never wrong.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/scheduler.h"
#include "fusec/result.h"

namespace fusec {

struct TuningEntry {
  std::string device, target, kernel, shape;  // the key
  std::string schedule;                       // a candidate's edits; "" = the model's choice is the fastest
  // What was seen, for people.
  std::string name;
  double seconds = 0, model_seconds = 0, bytes_per_s = 0, occupancy = 0;
  int64_t registers = -1, spill_bytes = -1;
};

class Tuning {
 public:
  /// Errors   input: not JSON, or not of this form. A file of another version is empty; `note` says so.
  static Result<Tuning> parse(std::string_view text, const std::string& file = "");
  /// Errors   input: no such file; those of parse.
  static Result<Tuning> load(const std::string& path);
  std::string text() const;

  /// Adds an entry, or replaces that of the same key.
  void put(TuningEntry entry);
  /// The entry for a kernel; without a device any entry of the target counts. Null: there is none.
  const TuningEntry* find(const std::string& device, const std::string& target, const Kernel& kernel, const Facts& facts) const;
  size_t size() const { return entries_.size(); }
  const std::string& note() const { return note_; }

 private:
  std::map<std::vector<std::string>, TuningEntry> entries_;  // by target, kernel, shape, device
  std::string note_;
};

/// 16 hexadecimal digits of what the kernel computes; the same on every machine.
std::string kernel_digest(const Kernel& kernel);
/// "2^20 x 1024": rows by their power of two, columns exactly: schedules follow the length of rows closely, their number hardly.
std::string shape_class(const Facts& facts);

}  // namespace fusec
