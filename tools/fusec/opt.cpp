// fusec opt: rewrites graphs and prints them; fusec rules and passes: what there is to rewrite with.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "lib/passes/pipeline.h"
#include "lib/passes/rules.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/switch_options.h"
#include "tools/fusec/text_commands.h"

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph, passes;
  Numerics numerics = Numerics::strict;
  SwitchOptions switches;
  const CLI::Option* chosen = nullptr;  // --passes: given with nothing, no pass runs
};

std::vector<std::string> separated(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void declare(CLI::App& app, Options& o) {
  o.chosen = app.add_option("--passes", o.passes, "a,b: only these, in this order; nothing: none (default: the whole pipeline)")->expected(0, 1);
  add_switches(app, o.switches);
  add_numerics_option(app, o.numerics);
}

Result<std::string> opt(const Options& o, const Graph& graph) {
  Switches switches;
  if (Status s = read_switches(o.switches.words(), switches); !s) return s.error();
  switches.pass.numerics = o.numerics;
  switches.pass.passes = separated(o.passes);
  if (o.chosen->count() > 0 && switches.pass.passes.empty()) return print(graph);
  Trace trace(switches.dump_dir);
  trace.sink = [](std::string_view text) { std::cerr << text << (text.ends_with('\n') ? "" : "\n"); };
  Result<Graph> done = run_pipeline(graph, switches.pass, trace);
  if (!done) return done.error();
  if (const Status dumped = trace.dumped(); !dumped) return dumped.error();
  std::cerr << report(switches, trace);
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
