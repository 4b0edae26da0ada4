// fusec explain: which kernels a graph becomes, what they move, and why it is not fewer.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/fusion/cost.h"
#include "lib/support/text.h"
#include "runtime/program.h"
#include "tools/fusec/kernels.h"
#include "tools/fusec/measure.h"
#include "tools/fusec/model.h"
#include "tools/fusec/roofline.h"
#include "tools/fusec/text_commands.h"
#if FUSEC_HAS_CUDA
#include "codegen/cuda/cuda.h"
#endif

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph;
  std::vector<std::string> inputs;
  KernelOptions kernel;
  std::string device;          // "": none
  bool json = false, costs = false, time = false;
};

/// What a report of costs adds to the plan.
struct Costs {
  Limits limits;
  std::vector<KernelReport> kernels;
};

/// "%y", %"two words", or "%3" for a value without a name.
std::string value_name(const Graph& graph, NodeId id) {
  for (const Port& port : graph.inputs())
    if (port.node == id) return "%" + brief(port.name);
  const std::string& label = graph.label(id);
  return "%" + (label.empty() ? std::to_string(id) : brief(label));
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

std::string as_text(const Graph& graph, const Planned& planned, const Options& o, const Costs& costs) {
  const Graph& g = *planned.plan->graph;
  std::string out = "graph @" + brief(graph.name()) + " for " + o.kernel.target + ": " + saving_text(planned.kernels.size(), moved(planned), g, planned.sizes) + "\n";
  for (const std::string& symbol : planned.assumed) out += "  assumed: " + one_line(symbol) + " = 1024\n";
  if (o.costs)
    out += "  limits: copy " + size_text(costs.limits.copy) + "/s, " + fixed(costs.limits.arithmetic * 1e-12, 2) + " T adds/s (" + costs.limits.source + ")\n";
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
    if (i < costs.kernels.size()) out += text(costs.kernels[i]);
    if (!k.choice.note.empty()) out += "  note      " + k.choice.note + "\n";
  }
  for (const Refusal& r : planned.plan->refusals)
    out += "apart: " + value_name(g, r.producer) + " and " + value_name(g, r.consumer) +
           (r.siblings() ? ", which both read " + value_name(g, r.shared) : "") + ": " + r.code + ": " + r.reason +
           (r.bytes > 0 ? "; together they would move " + size_text(double(r.bytes)) + " less" : "") + "\n";
  return out;
}

nlohmann::json as_json(const Graph& graph, const Planned& planned, const Options& o, const Costs& costs) {
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
    if (out["kernels"].size() < costs.kernels.size()) row["costs"] = json(costs.kernels[out["kernels"].size()]);
    out["kernels"].push_back(std::move(row));
  }
  if (o.costs)
    out["limits"] = {{"copy_bytes_per_s", costs.limits.copy}, {"adds_per_s", costs.limits.arithmetic}, {"launch_s", costs.limits.launch}, {"source", costs.limits.source}};
  out["refusals"] = nlohmann::json::array();
  for (const Refusal& r : planned.plan->refusals) {
    out["refusals"].push_back({{"producer", value_name(g, r.producer)}, {"consumer", value_name(g, r.consumer)}, {"code", r.code},
                               {"reason", r.reason}, {"bytes", r.bytes}});
    if (r.siblings()) out["refusals"].back()["shared"] = value_name(g, r.shared);
  }
  return out;
}

void declare(CLI::App& app, Options& o) {
  add_kernel_options(app, o.kernel);
  app.add_flag("--json", o.json, "as JSON");
  app.add_flag("--costs", o.costs, "also bytes, arithmetic, what bounds each kernel, predicted time, registers and occupancy; compiles, runs nothing on a GPU");
  app.add_option("--device", o.device, "cpu, cuda[:N]: the same of a device that is here, against what it can do, measured now")->excludes(app.get_option("--target"));
  app.add_flag("--time", o.time, "with --device: measure each kernel, too");
}

/// Code for a target without a device: what the compiler says of its registers. Null where there is nothing to say.
Result<std::shared_ptr<const Artifact>> compiled([[maybe_unused]] const Options& o, [[maybe_unused]] const PlannedKernel& k) {
#if FUSEC_HAS_CUDA
  if (const int sm = sm_of(o.kernel.target); sm > 0) {
    Result<Artifact> made = cuda::compile(cuda::emit(k.kernel, k.schedule()), sm);
    if (!made) return made.error();
    return std::make_shared<const Artifact>(std::move(*made));
  }
#endif
  return std::shared_ptr<const Artifact>();
}

/// Costs of a target: code is compiled, nothing runs; limits are the table's (of the CPU: measured).
Result<Costs> costs_of_target(const Options& o, const Planned& planned, const Scheduler& scheduler) {
  Costs out;
  if (const int sm = sm_of(o.kernel.target); sm > 0) {
    out.limits = table_limits(sm);
  } else {
    Result<std::shared_ptr<const Backend>> host = backend("cpu");
    Result<Limits> limits = host ? measured_limits(**host) : Result<Limits>(host.error());
    if (!limits) return limits.error();
    out.limits = std::move(*limits);
  }
  for (const PlannedKernel& k : planned.kernels) {
    Result<std::shared_ptr<const Artifact>> artifact = compiled(o, k);
    if (!artifact) return artifact.error();
    out.kernels.push_back(report(k, out.limits, artifact->get(), scheduler));
  }
  return out;
}

/// Costs on a device: its limits are measured, with --time its kernels too.
Result<Costs> costs_on_device(const Options& o, const Graph& graph, const Planned& planned, const Backend& device) {
  Costs out;
  Result<Limits> limits = measured_limits(device);
  if (!limits) return limits.error();
  out.limits = std::move(*limits);
  Result<Flush> flush = Flush::make(device);
  if (!flush) return flush.error();
  Measurer measurer(device, *flush);
  const Subject subject{print(graph), planned.sizes, {}, 0};
  MeasureOptions options;
  options.compile = {.numerics = o.kernel.numerics, .fuse = o.kernel.fuse, .tuning = o.kernel.tuning, .schedule = o.kernel.schedule};
  Result<Program> program = measurer.compile(subject, options);
  if (!program) return program.error();
  std::vector<double> times;
  if (o.time) {
    Result<std::vector<double>> seen = measurer.kernel_times(*program, subject, 21);
    if (!seen) return seen.error();
    times = std::move(*seen);
  }
  Cache& cache = Cache::shared();
  for (const PlannedKernel& k : planned.kernels) {
    Result<std::shared_ptr<const Loaded>> code = device.load(k.kernel, k.schedule(), cache);
    if (!code) return code.error();
    out.kernels.push_back(report(k, out.limits, (*code)->artifact.get(), device));
    if (out.kernels.size() <= times.size() && times.size() == planned.kernels.size()) out.kernels.back().measured = times[out.kernels.size() - 1];
  }
  return out;
}

Result<std::string> explain(const Options& given, const Graph& graph) {
  Options o = given;
  std::shared_ptr<const Scheduler> scheduler;
  std::shared_ptr<const Backend> device;
  if (!o.device.empty()) {
    Result<std::shared_ptr<const Backend>> found = backend(o.device);
    if (!found) return found.error();
    scheduler = device = std::move(*found);
    o.kernel.target = device->name(), o.costs = true;
  } else {
    if (o.time) return input_error("--time measures: it needs --device");
    Result<std::shared_ptr<const Scheduler>> found = scheduler_of(o.kernel.target);
    if (!found) return found.error();
    scheduler = std::move(*found);
  }
  Result<Planned> planned = plan_kernels(graph, o.kernel, *scheduler);
  if (!planned) return planned.error();
  Costs costs;
  if (o.costs) {
    Result<Costs> made = device ? costs_on_device(o, graph, *planned, *device) : costs_of_target(o, *planned, *scheduler);
    if (!made) return made.error();
    costs = std::move(*made);
  }
  return o.json ? as_json(graph, *planned, o, costs).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : printable(as_text(graph, *planned, o, costs));
}

/// A network of which only parts are kernels: all of it, or one of its regions as if it were a graph of its own.
int explain_whole(Options o, const WholeModel& model) {
  if (o.graph.empty()) {
    if (o.costs || o.time) return fail(input_error("a whole model's times are predictions: --costs and --time are for one of its regions, --graph r0"));
    Result<std::string> out = explain_model(model, o.kernel, o.device, o.json);
    if (!out) return fail(out.error());
    std::cout << *out;
    return 0;
  }
  o.kernel.dims.clear();  // the importer has put them in
  for (const ModelRegion& region : model.regions) {
    if (region.graph.name() != o.graph) continue;
    Result<std::string> out = explain(o, region.graph);
    if (!out) return fail(out.error());
    std::cout << *out;
    return 0;
  }
  return fail(input_error("the model has no region " + o.graph + ": r0 to r" + std::to_string(model.regions.size() - 1) + " are there"));
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
  app.add_option("--graph", options->graph, "only this graph of the file, or this region of a model");
  declare(app, *options);
  add_list(app, "-i,--input", options->inputs, "NAME=FILE: an input of an ONNX model whose value shapes it (a shape, a choice)");
  return [options] {
    Result<Tensors> given = read_inputs(options->inputs, nullptr);
    if (!given) return fail(given.error());
    Result<std::optional<WholeModel>> model = whole_model(options->file, options->kernel.dims, *given);
    if (!model) return fail(model.error());
    if (*model) return explain_whole(*options, **model);
    return print_each(options->file, options->graph, [&](const Graph& graph) { return explain(*options, graph); });
  };
}

}  // namespace fusec::cli
