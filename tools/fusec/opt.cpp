// fusec opt: rewrites graphs and prints them; fusec rules and passes: what there is to rewrite with.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "lib/passes/pipeline.h"
#include "lib/passes/rules.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/text_commands.h"

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph, dump_dir, passes;
  std::vector<std::string> print_after, disable;
  PassOptions pass;
  bool time = false, stats = false;
  const CLI::Option* chosen = nullptr;  // --passes: given with nothing, no pass runs
};

std::vector<std::string> separated(const std::vector<std::string>& lists) {
  std::vector<std::string> out;
  for (const std::string& list : lists)
    for (size_t at = 0; at <= list.size();) {
      const size_t end = std::min(list.find(',', at), list.size());
      if (end > at) out.push_back(list.substr(at, end - at));
      at = end + 1;
    }
  return out;
}

void declare(CLI::App& app, Options& o) {
  o.chosen = app.add_option("--passes", o.passes, "a,b: only these, in this order; nothing: none (default: the whole pipeline)")->expected(0, 1);
  add_list(app, "--print-after", o.print_after, "pass or all: print the graph after it, to stderr");
  app.add_flag("--print-changed", o.pass.print_changed, "print the graph after each pass that changed it, to stderr");
  app.add_option("--dump-dir", o.dump_dir, "write 00-input.fus, 01-…fus there");
  app.add_flag("--verify-each", o.pass.verify_each, "verify the graph after each pass");
  add_list(app, "--disable", o.disable, "pass or rule that must not run; may repeat");
  app.add_option("--stop-after-rule", o.pass.stop_after_rule, "no rule fires after the n-th firing: bisects a miscompile")->check(CLI::NonNegativeNumber);
  app.add_flag("--time-passes", o.time, "seconds of each pass, to stderr");
  app.add_flag("--stats", o.stats, "firings of each rule, to stderr");
  add_numerics_option(app, o.pass.numerics);
}

Result<std::string> opt(const Options& o, const Graph& graph) {
  PassOptions pass = o.pass;
  pass.passes = separated({o.passes});
  const std::vector<std::string> after = separated(o.print_after), disable = separated(o.disable);
  pass.print_after.insert(after.begin(), after.end());
  pass.disable.insert(disable.begin(), disable.end());
  if (o.chosen->count() > 0 && pass.passes.empty()) return print(graph);
  Trace trace(o.dump_dir);
  trace.sink = [](std::string_view text) { std::cerr << text << (text.ends_with('\n') ? "" : "\n"); };
  Result<Graph> done = run_pipeline(graph, pass, trace);
  if (!done) return done.error();
  if (const Status dumped = trace.dumped(); !dumped) return dumped.error();
  if (o.stats)
    for (const auto& [name, count] : trace.counters()) std::cerr << name << ": " << count << "\n";
  if (o.time)
    for (const auto& [name, seconds] : trace.times()) std::cerr << name << ": " << time_text(seconds) << "\n";
  return print(*done);
}

}  // namespace

TextAction add_text_opt(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options](const Graph& graph) { return opt(*options, graph); };
}

Action add_opt(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, ".fus or .onnx file; - is .fus on standard input")->required();
  app.add_option("--graph", options->graph, "only this graph of the file");
  declare(app, *options);
  return [options] {
    return print_each(options->file, options->graph, [&](const Graph& graph) { return opt(*options, graph); });
  };
}

Action add_rules(CLI::App&) {
  return [] {
    for (const std::vector<RewriteRule>* table : rule_tables())
      for (const RewriteRule& rule : *table) {
        std::string left = text(rule.find);
        std::string name = rule.name;
        name.resize(std::max<size_t>(name.size() + 1, 26), ' ');
        left.resize(std::max<size_t>(left.size() + 1, 44), ' ');
        std::cout << name << left << "-> " << text(rule.put) << "   (" << fusec::name(rule.holds) << (rule.when ? ", when it may" : "") << ")\n";
      }
    return 0;
  };
}

Action add_passes(CLI::App&) {
  return [] {
    for (const Pass& pass : pipeline()) {
      std::string name(pass.name);
      name.resize(std::max<size_t>(name.size() + 1, 20), ' ');
      std::cout << name << pass.why << "\n";
    }
    return 0;
  };
}

}  // namespace fusec::cli
