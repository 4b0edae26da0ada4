#pragma once
// The pass table and the one loop that runs it.
//
//   Trace trace;
//   Result<Graph> ready = run_pipeline(*graph, {.numerics = Numerics::fused}, trace);

#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/passes/pass.h"

namespace fusec {

struct PassOptions {
  Numerics numerics = Numerics::strict;
  std::vector<std::string> passes;       // names, in order; empty = the whole pipeline
  std::set<std::string> print_after;     // names of passes, or "all": their result goes to the trace
  bool print_changed = false;            // the result of each pass that changed something
  bool verify_each = false;              // always in debug builds
  std::set<std::string> disable;         // names of passes (skipped) and of rules (never fire)
  int64_t stop_after_rule = -1;          // no rule fires after the n-th firing; bisects a miscompile
  std::string command;                   // what repeats this run, for reproducers; "" = a `fusec opt` line
};

/// Every pass there is, in the order of a compilation; some run twice, and `why` says why.
std::span<const Pass> pipeline();
/// Looks a pass up by name.
const Pass* find_pass(std::string_view name);

/// Errors   input: a name among the options that is of no pass and no rule. run_pipeline does it first.
Status check_names(const PassOptions& options);

/// Runs the passes of `options` over a graph.
/// Takes    any graph; it is verified first.
/// Returns  an equal graph without composites (when the whole pipeline ran), as far as the numerics mode allows.
/// Trace    times by pass, counters "rule NAME" and "nodes NAME", dumps 00-input.fus, 01-canonicalise.fus …, printed graphs.
/// Errors   input: the graph does not verify, or a name in `options` is no pass and no rule. internal: a pass failed or broke a
///          promise; a reproducer is written and named in the error's notes.
Result<Graph> run_pipeline(const Graph& graph, const PassOptions& options, Trace& trace);

}  // namespace fusec
