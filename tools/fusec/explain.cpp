// fusec explain: which kernels a graph becomes, what they move, and why it is not fewer.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/fusion/cost.h"
#include "tools/fusec/kernels.h"
#include "tools/fusec/text_commands.h"

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph;
  KernelOptions kernel;
  bool json = false;
};

/// "%y", or "%3" for a value without a name.
std::string value_name(const Graph& graph, NodeId id) {
  for (const Port& port : graph.inputs())
    if (port.node == id) return "%" + port.name;
  const std::string& label = graph.label(id);
  return "%" + (label.empty() ? std::to_string(id) : label);
}

std::string operands(const Graph& graph, const std::vector<NodeId>& ids) {
  std::string out;
  for (NodeId id : ids) out += (out.empty() ? "" : ", ") + value_name(graph, id) + " " + text(graph.node(id).type);
  return out;
}

/// "sub exp div", each op once, in order.
std::string op_names(const Graph& graph, const std::vector<NodeId>& ids) {
  std::string out;
  std::set<Op> seen;
  for (NodeId id : ids)
    if (seen.insert(graph.node(id).op).second) out += (out.empty() ? "" : " ") + std::string(name(graph.node(id).op));
  return out;
}

double moved(const Planned& planned) {
  double total = 0;
  for (const PlannedKernel& k : planned.kernels) total += double(k.facts.footprint);
  return total;
}

std::string as_text(const Graph& graph, const Planned& planned, const Options& o) {
  const Graph& g = *planned.plan->graph;
  std::string out = "graph @" + graph.name() + " for " + o.kernel.target + ": " + saving_text(planned.kernels.size(), moved(planned), g, planned.sizes) + "\n";
  for (const std::string& symbol : planned.assumed) out += "  assumed: " + symbol + " = 1024\n";
  for (size_t i = 0; i < planned.kernels.size(); ++i) {
    const PlannedKernel& k = planned.kernels[i];
    const Graph& own = *k.step->graph;
    out += "g" + std::to_string(i) + ": " + (k.step->copy ? std::string("copy of an output that is an input, a constant or a repeat")
                                                         : op_names(own, k.step->group.nodes)) + "\n";
    out += "  reads     " + operands(own, k.step->group.inputs) + "\n";
    out += "  writes    " + operands(own, k.step->group.outputs) + "\n";
    out += "  moves     " + size_text(double(k.facts.footprint)) + " over " + std::to_string(k.facts.rows) + " rows of " +
           std::to_string(k.facts.columns) + ", " + std::to_string(k.kernel.sweeps.size()) + (k.kernel.sweeps.size() == 1 ? " sweep\n" : " sweeps\n");
    out += "  schedule  " + print(k.schedule()) + (k.choice.by == Choice::model ? "" : std::string(" (by ") + name(k.choice.by) + ")") + "\n";
    out += "  launch    grid " + std::to_string(k.launch.grid[0]) + (k.launch.grid[1] > 1 ? "x" + std::to_string(k.launch.grid[1]) : "") +
           ", block " + std::to_string(k.launch.block) + (k.launch.shared ? ", shared " + std::to_string(k.launch.shared) : "") +
           (k.launch.splits > 1 ? ", splits " + std::to_string(k.launch.splits) : "") + "\n";
  }
  for (const Refusal& r : planned.plan->refusals)
    out += "apart: " + value_name(g, r.producer) + " and " + value_name(g, r.consumer) + ": " + r.code + ": " + r.reason +
           (r.bytes > 0 ? "; together they would move " + size_text(double(r.bytes)) + " less" : "") + "\n";
  return out;
}

nlohmann::json as_json(const Graph& graph, const Planned& planned, const Options& o) {
  const Graph& g = *planned.plan->graph;
  nlohmann::json out = {{"graph", graph.name()}, {"target", o.kernel.target}, {"bytes", moved(planned)},
                        {"unfused_bytes", unfused_traffic(g, planned.sizes)}, {"unfused_kernels", unfused_kernels(g)}};
  out["kernels"] = nlohmann::json::array();
  for (const PlannedKernel& k : planned.kernels) {
    const Graph& own = *k.step->graph;
    nlohmann::json row = {{"copy", k.step->copy}, {"bytes", k.facts.footprint}, {"rows", k.facts.rows}, {"columns", k.facts.columns},
                          {"sweeps", k.kernel.sweeps.size()}, {"schedule", print(k.schedule())}, {"schedule_by", name(k.choice.by)},
                          {"grid", {k.launch.grid[0], k.launch.grid[1], k.launch.grid[2]}}, {"block", k.launch.block},
                          {"cluster", k.launch.cluster}, {"shared", k.launch.shared}, {"splits", k.launch.splits}};
    for (NodeId id : k.step->group.nodes) row["ops"].push_back(name(own.node(id).op));
    for (NodeId id : k.step->group.inputs) row["reads"].push_back(value_name(own, id));
    for (NodeId id : k.step->group.outputs) row["writes"].push_back(value_name(own, id));
    out["kernels"].push_back(std::move(row));
  }
  out["refusals"] = nlohmann::json::array();
  for (const Refusal& r : planned.plan->refusals)
    out["refusals"].push_back({{"producer", value_name(g, r.producer)}, {"consumer", value_name(g, r.consumer)}, {"code", r.code},
                               {"reason", r.reason}, {"bytes", r.bytes}});
  return out;
}

void declare(CLI::App& app, Options& o) {
  add_kernel_options(app, o.kernel);
  app.add_flag("--json", o.json, "as JSON");
}

Result<std::string> explain(const Options& o, const Graph& graph) {
  Result<Planned> planned = plan_kernels(graph, o.kernel);
  if (!planned) return planned.error();
  return o.json ? as_json(graph, *planned, o).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : as_text(graph, *planned, o);
}

}  // namespace

TextAction add_text_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options](const Graph& graph) { return explain(*options, graph); };
}

Action add_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, ".fus or .onnx file; - is .fus on standard input")->required();
  app.add_option("--graph", options->graph, "only this graph of the file");
  declare(app, *options);
  return [options] {
    return print_each(options->file, options->graph, [&](const Graph& graph) { return explain(*options, graph); });
  };
}

}  // namespace fusec::cli
