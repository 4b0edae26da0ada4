// Everything that is not the idea of one pass: it verifies, times, prints, dumps and keeps the reproducer.

#include "lib/passes/pipeline.h"

#include <algorithm>

#include "lib/ir/decompose.h"
#include "lib/passes/canonicalise.h"
#include "lib/passes/fold_constants.h"
#include "lib/passes/pair_reductions.h"
#include "lib/passes/recognise.h"
#include "lib/passes/reduces.h"
#include "lib/passes/rules.h"
#include "lib/passes/simplify.h"
#include "lib/passes/views.h"

namespace fusec {
namespace {

Result<Graph> decompose_pass(const Graph& graph, PassContext&) { return decompose(graph); }

const Pass kPipeline[] = {
    {"canonicalise", canonicalise, "one spelling for each thing, so that every later pass looks for one"},
    {"fold_constants", fold_constants, "evaluate what is known: importers compute shapes, scales and masks from constants"},
    {"simplify", simplify, "identities, compares, bits and casts until none fires"},
    {"views", views, "compose and drop views; move them behind elementwise ops where two become one"},
    {"recognise", recognise, "fused and fast: softmax, norms and activations that were written out become one node"},
    {"decompose", decompose_pass, "composites become primitives; the planner sees nothing else"},
    {"simplify", simplify, "again: decompositions meet their surroundings (casts in a row, scales of one)"},
    {"fold_constants", fold_constants, "again: parameters of norms are often constants, and their arithmetic then is too"},
    {"reduces", reduces, "merge reductions, drop those over one element, move them below transposes"},
    {"views", views, "again: decompositions and reduces bring views of their own"},
    {"simplify", simplify, "again: what views and reduces took away joins neighbours"},
    {"fold_constants", fold_constants, "again: constants that were broadcast, or a sum's only addend, stand bare now"},
    {"pair_reductions", pair_reductions, "last, on the final primitives: which reductions one sweep may carry"},
};

bool is_rule(std::string_view name) {
  for (const auto* table : rule_tables())
    for (const RewriteRule& rule : *table)
      if (rule.name == name) return true;
  return false;
}

std::vector<const Pass*> chosen(const PassOptions& options) {
  std::vector<const Pass*> passes;
  if (options.passes.empty())
    for (const Pass& pass : kPipeline) passes.push_back(&pass);
  for (const std::string& name : options.passes) passes.push_back(find_pass(name));
  std::erase_if(passes, [&](const Pass* pass) { return options.disable.contains(std::string(pass->name)); });
  return passes;
}

std::string_view text(Numerics numerics) {
  return numerics == Numerics::strict ? "strict" : numerics == Numerics::fused ? "fused" : "fast";
}

/// Our fault: keep what repeats it.
Error with_reproducer(Error error, const Graph& before, const Pass& pass, const PassOptions& options, const Trace& trace) {
  error.kind = Error::internal;
  error = error.note("in pass " + std::string(pass.name));
  std::string command = options.command;
  if (command.empty()) command = "fusec opt --passes=" + std::string(pass.name) + " --numerics=" + std::string(text(options.numerics));
  const Result<std::string> path = write_reproducer(trace.dump_dir(), command, print(before));
  return error.note(path ? "reproducer: " + *path : path.error().message);
}

void report(const Graph& before, const Graph& after, const Pass& pass, const PassOptions& options, Trace& trace) {
  const std::string name(pass.name);
  trace.count("nodes " + name, int64_t(after.size()) - int64_t(before.size()));
  const bool wanted = options.print_after.contains(name) || options.print_after.contains("all");
  const bool changed = options.print_changed && before.hash() != after.hash();
  if (wanted || changed) trace.say("; after " + name + "\n" + print(after));
  if (trace.dumps()) trace.dump_next(name, print(after));
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

const Pass* find_pass(std::string_view name) {
  const Pass* found = std::find_if(std::begin(kPipeline), std::end(kPipeline), [&](const Pass& p) { return p.name == name; });
  return found == std::end(kPipeline) ? nullptr : found;
}

Status check_names(const PassOptions& options) {
  for (const std::string& name : options.passes)
    if (!find_pass(name)) return input_error("there is no pass \"" + name + "\"; fusec passes lists them");
  for (const std::string& name : options.print_after)
    if (name != "all" && !find_pass(name)) return input_error("there is no pass \"" + name + "\" to print after");
  for (const std::string& name : options.disable)
    if (!find_pass(name) && !is_rule(name)) return input_error("there is no pass or rule \"" + name + "\" to disable");
  return Done{};
}

Result<Graph> run_pipeline(const Graph& graph, const PassOptions& options, Trace& trace) {
  if (const Status names = check_names(options); !names) return names.error();
  if (const Status valid = verify(graph); !valid) return valid.error();
  if (trace.dumps()) trace.dump_next("input", print(graph));
#ifdef NDEBUG
  const bool verify_each = options.verify_each;
#else
  const bool verify_each = true;
#endif

  RuleControl rules;
  rules.disabled.insert(options.disable.begin(), options.disable.end());
  rules.stop_after = options.stop_after_rule;
  PassContext context{options.numerics, rules, trace};
  Graph current = graph;
  for (const Pass* pass : chosen(options)) {
    Result<Graph> next = [&] {
      const Trace::Timer timer(trace, pass->name);
      return pass->function(current, context);
    }();
    if (!next) return with_reproducer(next.error(), current, *pass, options, trace);
    if (verify_each)
      if (const Status valid = verify(*next); !valid) return with_reproducer(valid.error(), current, *pass, options, trace);
    report(current, *next, *pass, options, trace);
    current = std::move(*next);
  }
  for (const auto& [rule, count] : rules.firings)
    if (count) trace.count("rule " + rule, count);
  return current;
}

}  // namespace fusec
