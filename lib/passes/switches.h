#pragma once
// Switches for looking inside a compilation: the flags of `fusec opt`, and, for those who embed fusec, the words of FUSEC_OPTIONS.
//
//   Switches switches;
//   if (Status s = read_switches("--dump-dir=/tmp/d --print-changed", switches); !s) …
//   Trace trace(switches.dump_dir);
//   Result<Graph> done = run_pipeline(graph, switches.pass, trace);
//   trace.say(report(switches, trace));

#include <span>
#include <string>
#include <string_view>

#include "lib/passes/pipeline.h"
#include "lib/support/trace.h"

namespace fusec {

struct Switches {
  PassOptions pass;
  std::string dump_dir;             // graphs before the first and after each pass; of a program also its kernels
  bool time = false, stats = false;
};

struct Switch {
  const char* name;                 // "--dump-dir"
  const char* value;                // "DIR", what follows it; "" when nothing does
  const char* what;
  /// Sets it. Errors   input: a value that is none.
  Status (*set)(Switches&, const std::string& value);
};
/// Every switch, one row each. Lists may be given more than once.
std::span<const Switch> switches();

/// Reads words parted by blanks, "--print-changed --dump-dir=DIR"; a value with blanks stands in double quotes,
/// a quote or backslash behind a backslash.
/// Errors   input: a word that is no switch, a value that is missing or that its switch does not take.
Status read_switches(std::string_view words, Switches& to);

/// What --stats and --time-passes print, a line each; "" without them.
std::string report(const Switches& switches, const Trace& trace);

}  // namespace fusec
