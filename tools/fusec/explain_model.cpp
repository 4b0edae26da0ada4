// fusec explain MODEL.onnx: which parts of a network become kernels, what that saves, and what is left to others.
//
// "Before" is one kernel an operation of the same graphs: an operation reads its operands and writes its result, a softmax or
// a norm is one, views and constants cost nothing. Times are predictions for both: the largest of a kernel's bytes at the
// device's copy rate, its arithmetic at its add rate, and a launch.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/fusion/cost.h"
#include "runtime/backend.h"
#include "tools/fusec/model.h"
#include "tools/fusec/roofline.h"

namespace fusec::cli {
namespace {

struct Sum {
  size_t kernels = 0;
  double bytes = 0, seconds = 0;

  void operator+=(const Sum& other) { kernels += other.kernels, bytes += other.bytes, seconds += other.seconds; }
};

struct RegionReport {
  std::string ops;  // each once
  Sum before, after;
};

struct ModelReport {
  std::string target;
  Limits limits;
  std::vector<std::string> assumed;
  std::vector<RegionReport> regions;
  Sum before, after;                                               // without what is computed once
  std::map<std::string, size_t> boundaries, unknown;               // by operator
  std::map<std::pair<std::string, std::string>, size_t> left_out;  // by operator and reason
  std::vector<std::string> unshaped;                               // tensors
};

Sum sum_of(const Planned& planned, const Limits& limits, const Scheduler& scheduler) {
  Sum out{.kernels = planned.kernels.size()};
  for (const PlannedKernel& k : planned.kernels) {
    const KernelReport r = report(k, limits, nullptr, scheduler);
    out.bytes += r.bytes, out.seconds += r.predicted;
  }
  return out;
}

/// One kernel an operation.
Sum unfused(const Graph& graph, const Sizes& sizes, const Limits& limits) {
  Sum out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (is_leaf(node.op) || node.op == Op::reshape || node.op == Op::broadcast) continue;
    const std::set<NodeId> reads(node.args.begin(), node.args.end());
    const double result = value_bytes(graph, id, sizes);
    const bool picks = node.op == Op::slice || node.op == Op::gather;  // reads of its first operand what it gives
    double bytes = result;
    for (NodeId a : reads) {
      const double operand = value_bytes(graph, a, sizes);
      bytes += picks && a == node.args[0] ? std::min(operand, result) : operand;
    }
    ++out.kernels, out.bytes += bytes;
    out.seconds += std::max({bytes / std::max(limits.copy, 1.0),
                             node_work(graph, id, sizes) / std::max(limits.arithmetic, 1.0), limits.launch});
  }
  return out;
}

/// `quotients`: their sizes, which follow from others.
Result<RegionReport> report_region(const Graph& graph, KernelOptions options, const Sizes& quotients, const Limits& limits,
                                   const Scheduler& scheduler, std::set<std::string>& assumed) {
  RegionReport out;
  options.dims.clear();  // the importer has put them in
  for (const std::string& symbol : graph.symbols())
    if (const auto size = quotients.find(symbol); size != quotients.end()) options.dims.push_back(symbol + "=" + std::to_string(size->second));
  Result<Planned> planned = plan_kernels(graph, options, scheduler);
  if (!planned) return planned.error().note("in region @" + graph.name());
  out.before = unfused(graph, planned->sizes, limits), out.after = sum_of(*planned, limits, scheduler);
  assumed.insert(planned->assumed.begin(), planned->assumed.end());
  std::set<Op> seen;
  for (const Node& node : graph.nodes())
    if (!is_leaf(node.op) && seen.insert(node.op).second)
      out.ops += (out.ops.empty() ? "" : " ") + std::string(name(node.op));
  return out;
}

/// Sizes of quotients, where what they are quotients of is assumed to be 1024 as everything else.
Sizes quotient_sizes(const WholeModel& model, std::set<std::string>& assumed) {
  Sizes all, out;
  for (const Quotient& q : model.quotients)
    for (const std::string& symbol : q.of.symbols()) all.emplace(symbol, 1024);
  for (const Quotient& q : model.quotients) all.erase(q.symbol);
  for (const auto& [symbol, size] : all) assumed.insert(symbol);
  add_quotients(model.quotients, all);
  for (const Quotient& q : model.quotients)
    if (const auto size = all.find(q.symbol); size != all.end()) out.insert(*size);
  return out;
}

Result<Limits> limits_of(const KernelOptions& options, const Backend* device) {
  if (device) return measured_limits(*device);
  if (const int sm = sm_of(options.target); sm > 0) return table_limits(sm);
  Result<std::shared_ptr<const Backend>> host = backend("cpu");
  return host ? measured_limits(**host) : Result<Limits>(host.error());
}

Result<ModelReport> make_report(const WholeModel& model, const KernelOptions& options, const std::string& device_name) {
  ModelReport out;
  std::shared_ptr<const Backend> device;
  std::shared_ptr<const Scheduler> scheduler;
  if (!device_name.empty()) {
    Result<std::shared_ptr<const Backend>> found = backend(device_name);
    if (!found) return found.error();
    scheduler = device = std::move(*found);
  } else {
    Result<std::shared_ptr<const Scheduler>> found = scheduler_of(options.target);
    if (!found) return found.error();
    scheduler = std::move(*found);
  }
  out.target = device ? device->name() : options.target;
  Result<Limits> limits = limits_of(options, device.get());
  if (!limits) return limits.error();
  out.limits = std::move(*limits);
  std::set<std::string> assumed;
  const Sizes quotients = quotient_sizes(model, assumed);
  for (const ModelRegion& region : model.regions) {
    Result<RegionReport> r = report_region(region.graph, options, quotients, out.limits, *scheduler, assumed);
    if (!r) return r.error();
    if (!region.once) out.before += r->before, out.after += r->after;
    out.regions.push_back(std::move(*r));
  }
  out.assumed.assign(assumed.begin(), assumed.end());
  for (const ModelBoundary& b : model.boundaries) {
    if (b.why == Boundary::outside) ++out.boundaries[operator_text(b)];
    else if (b.why == Boundary::unknown) ++out.unknown[operator_text(b)];
    else ++out.left_out[{operator_text(b), b.reason}];
  }
  for (const ModelTensor& t : model.tensors)
    if (!t.type) out.unshaped.push_back(t.name);
  return out;
}

std::string kernels_text(size_t n) { return std::to_string(n) + (n == 1 ? " kernel" : " kernels"); }

std::string sum_text(const Sum& after, const Sum& before) {
  return kernels_text(after.kernels) + " of " + std::to_string(before.kernels) + ", " + size_text(after.bytes) +
         " of " + size_text(before.bytes) + ", " + time_text(after.seconds) + " of " + time_text(before.seconds);
}

std::string tensors_text(const WholeModel& model, const std::vector<std::optional<size_t>>& tensors) {
  std::string out;
  for (const auto& t : tensors) out += (out.empty() ? "" : ", ") + tensor_text(model, t);
  return out;
}

std::string counts_text(const std::map<std::string, size_t>& counts) {
  std::vector<std::pair<size_t, std::string>> sorted;
  for (const auto& [name, n] : counts) sorted.emplace_back(n, name);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [n, name] : sorted) out += (out.empty() ? "" : ", ") + name + " " + std::to_string(n);
  return out;
}

/// Dims of the inputs that have no size yet: what would tell more shapes.
std::string sizes_hint(const WholeModel& model) {
  std::set<std::string> open;  // a quotient follows from these
  for (size_t t : model.inputs)
    for (const Dim& d : model.tensors[t].type->shape)
      for (const std::string& symbol : d.symbols()) open.insert(symbol);
  std::string out;
  for (const std::string& symbol : open) out += (out.empty() ? "; sizes may give some: --dim " : " --dim ") + one_line(symbol) + "=8";
  return out;
}

std::string as_text(const WholeModel& model, const ModelReport& r) {
  const size_t outside = model.boundaries.size();
  std::string out = "model @" + one_line(model.name) + " for " + r.target + ": " + std::to_string(model.nodes) +
                    " nodes of operator set " + std::to_string(model.operator_set) + ", " + std::to_string(outside) +
                    " left to others, " + std::to_string(model.regions.size()) +
                    (model.regions.size() == 1 ? " region\n" : " regions\n");
  for (const std::string& symbol : r.assumed) out += "  assumed: " + one_line(symbol) + " = 1024\n";
  for (const Quotient& q : model.quotients) out += "  rounded:  " + one_line(Dim::symbol(q.symbol).text() + " = (" + q.of.text() + ")/" + std::to_string(q.by)) + "\n";
  out += "  limits: copy " + size_text(r.limits.copy) + "/s, " + fixed(r.limits.arithmetic * 1e-12, 2) + " T adds/s (" +
         r.limits.source + ")\n";
  for (const ModelStep& step : model.steps) {
    if (!step.is_region()) continue;
    const RegionReport& region = r.regions[*step.region];
    out += "r" + std::to_string(*step.region) + ": " + sum_text(region.after, region.before) +
           (model.regions[*step.region].once ? ", once: it reads weights only" : "") + "\n  fuses     " + region.ops +
           "\n";
    if (!step.inputs.empty()) out += "  reads     " + tensors_text(model, step.inputs) + "\n";
    out += "  writes    " + tensors_text(model, step.outputs) + "\n";
  }
  if (!r.boundaries.empty()) out += "boundaries: " + counts_text(r.boundaries) + "\n";
  for (const auto& [what, n] : r.left_out)
    out += "left out: " + what.first + " " + std::to_string(n) + ": " + what.second + "\n";
  if (!r.unknown.empty()) out += "not known: " + counts_text(r.unknown) + "\n";
  if (!r.unshaped.empty()) {
    out += "no shape known: " + std::to_string(r.unshaped.size()) +
           (r.unshaped.size() == 1 ? " tensor, %" : " tensors, first %") + one_line(r.unshaped[0]) + sizes_hint(model) + "\n";
  }
  return out + "total: " + sum_text(r.after, r.before) + "\n";
}

nlohmann::json as_json(const Sum& sum) {
  return {{"kernels", sum.kernels}, {"bytes", sum.bytes}, {"predicted_s", sum.seconds}};
}

nlohmann::json names(const WholeModel& model, const std::vector<std::optional<size_t>>& tensors) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& t : tensors) out.push_back(t ? nlohmann::json(model.tensors[*t].name) : nlohmann::json(nullptr));
  return out;
}

nlohmann::json as_json(const WholeModel& model, const ModelReport& r) {
  nlohmann::json out = {{"model", model.name},
                        {"target", r.target},
                        {"nodes", model.nodes},
                        {"operator_set", model.operator_set},
                        {"before", as_json(r.before)},
                        {"after", as_json(r.after)},
                        {"boundaries", r.boundaries},
                        {"not_known", r.unknown},
                        {"no_shape", r.unshaped},
                        {"assumed", r.assumed},
                        {"quotients", quotients_json(model)},
                        {"limits",
                         {{"copy_bytes_per_s", r.limits.copy},
                          {"adds_per_s", r.limits.arithmetic},
                          {"launch_s", r.limits.launch},
                          {"source", r.limits.source}}}};
  out["regions"] = nlohmann::json::array();
  for (const ModelStep& step : model.steps) {
    if (!step.is_region()) continue;
    const RegionReport& region = r.regions[*step.region];
    out["regions"].push_back({{"name", model.regions[*step.region].graph.name()},
                              {"ops", region.ops},
                              {"once", model.regions[*step.region].once},
                              {"reads", names(model, step.inputs)},
                              {"writes", names(model, step.outputs)},
                              {"before", as_json(region.before)},
                              {"after", as_json(region.after)}});
  }
  out["left_out"] = nlohmann::json::array();
  for (const auto& [what, n] : r.left_out)
    out["left_out"].push_back({{"op", what.first}, {"reason", what.second}, {"nodes", n}});
  return out;
}

}  // namespace

Result<std::string> explain_model(const WholeModel& model, const KernelOptions& options, const std::string& device,
                                  bool json) {
  Result<ModelReport> report = make_report(model, options, device);
  if (!report) return report.error();
  if (!json) return printable(as_text(model, *report));
  return as_json(model, *report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace fusec::cli
