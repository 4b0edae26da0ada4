// fusec run: computes the outputs of one graph.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <chrono>
#include <iostream>

#include "lib/ir/literal.h"
#include "lib/support/text.h"
#include "tools/fusec/check.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/kernels.h"
#include "tools/fusec/import.h"
#include "tools/fusec/model.h"
#include "tools/fusec/progress.h"
#include "tools/fusec/switch_options.h"
#include "tools/fusec/tensor_file.h"

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph;
  ExecuteOptions execute{.device = "auto"};
  std::vector<std::string> inputs, outputs, dims;
  SwitchOptions switches;
  uint64_t seed = 0;
  bool check = false, time = false, quiet = false;
};

/// The graph, and in `given` what its inputs are: from files, and the weights of an ONNX model.
Result<Graph> load(const Options& options, Tensors& given) {
  const bool onnx = options.file.ends_with(".onnx");
  std::optional<Graph> graph;
  if (!onnx) {
    Result<Graph> loaded = load_graph(options.file, options.graph);
    if (!loaded) return loaded;
    graph = std::move(*loaded);
  }
  Result<Tensors> read = read_inputs(options.inputs, onnx ? nullptr : &*graph);
  if (!read) return read.error();
  given = std::move(*read);
  if (onnx) {
    Result<Model> model = import_model(options.file, given);
    if (!model) return model.error();
    graph = std::move(model->graph);
    given.merge(model->defaults);
    return *graph;
  }
  for (const auto& [name, tensor] : given)
    if (std::none_of(graph->inputs().begin(), graph->inputs().end(), [&](const Port& port) { return port.name == name; }))
      return input_error("graph @" + graph->name() + " has no input %" + name);
  return *graph;
}

/// Outputs by name.
std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> out;
  for (const Port& port : graph.outputs()) out.push_back(port.name);
  return out;
}

/// What can be known to be wrong before anything is drawn, compiled or run.
Status check_options(const Options& options, const std::vector<std::string>& names) {
  if (Status there = available(options.execute.device); !there) return there;
  Switches switches;
  if (Status read = read_switches(options.execute.switches, switches); !read) return read;
  if (Status known = check_names(switches.pass); !known) return known;
  std::vector<std::string> files;
  for (const std::string& spec : options.outputs) {
    const auto [name, file] = name_and_file(spec, names);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      return input_error("there is no output " + name + ", only " + join(", ", names.data(), names.data() + names.size()));
    if (file.empty()) return input_error("-o " + spec + ": NAME=FILE is expected");
    if (Status ending = check_tensor_file(file); !ending) return ending;
    if (std::find(files.begin(), files.end(), file) != files.end()) return input_error("-o " + spec + ": " + file + " would be written twice");
    files.push_back(file);
  }
  return Done{};
}

Status write_outputs(const std::vector<std::string>& names, const std::vector<Tensor>& values, const std::vector<std::string>& specs) {
  for (const std::string& spec : specs) {
    const auto [name, file] = name_and_file(spec, names);
    Tensors chosen;
    for (size_t i = 0; i < values.size(); ++i)
      if (name.empty() || names[i] == name) chosen[names[i]] = values[i];
    if (Status s = write_tensors(file, chosen); !s) return s;
  }
  return Done{};
}

std::string drawn_text(const Inputs& inputs, uint64_t seed) {
  return "drawn from seed " + std::to_string(seed) + ": " + printable(one_line(join(", ", inputs.drawn.data(), inputs.drawn.data() + inputs.drawn.size()))) + "\n";
}

/// A few elements for people: all of a small tensor, the first ones of a larger.
std::string preview(const Tensor& tensor) {
  if (tensor.elements() <= 32) return text(tensor);
  std::string out = text(Type{tensor.dtype, {tensor.extents.begin(), tensor.extents.end()}}) + " [";
  for (int64_t i = 0; i < 8; ++i) out += element_text(tensor.dtype, tensor.data.data() + i * bytes(tensor.dtype)) + ", ";
  return out + "...]";
}

/// Where the time to the first result went: "NVRTC 300 ms (40 ms to open)".
std::string first_result(const Timing& timing) {
  const Costs& costs = timing.costs;
  if (costs.compiler.empty()) return "";
  std::string out = "first result: ";
  if (costs.context > 0) out += "context " + time_text(costs.context) + ", ";
  out += costs.compiler + " " + (costs.compiling > 0 ? time_text(costs.compiling) : "not needed");
  if (costs.opening > 0) out += " (" + time_text(costs.opening) + " to open)";
  return out + ", all else " + time_text(timing.compile - costs.context - costs.compiling) + " (" + time_text(costs.loading) + " to load code)\n";
}

/// How many kernels, and what they move. The reference evaluator has none.
Result<std::string> saving_of(const Graph& graph, const std::vector<Tensor>& inputs, const ExecuteOptions& options) {
  if (resolve(options.device) == "reference") return std::string();
  std::vector<std::vector<int64_t>> extents;
  for (const Tensor& t : inputs) extents.push_back(t.extents);
  Result<Sizes> sizes = fusec::bind(graph, extents);
  if (!sizes) return sizes.error();
  Result<std::string> text = saving_text(graph, *sizes, options.numerics);
  return text ? "fused: " + *text + "\n" : text;
}

constexpr double kModelTolerance = 1e-3;  // of an output's largest element: libraries' sums come in other orders than ours

/// Do two runs of a whole model agree? The other one has the reference evaluator in place of the kernels.
bool compare(const std::vector<std::string>& names, const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  bool good = true;
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string what = "check: " + printable(one_line(names[k])) + ": ";
    if (got[k].dtype != DType::f32) {
      good &= got[k] == want[k];
      std::cout << what << (got[k] == want[k] ? "every bit as with the reference\n" : "differs\n");
      continue;
    }
    const auto *a = reinterpret_cast<const float*>(got[k].data.data()), *b = reinterpret_cast<const float*>(want[k].data.data());
    double most = 0, apart = 0;
    for (int64_t i = 0; i < got[k].elements(); ++i) {
      if (std::isfinite(b[i])) most = std::max(most, std::abs(double(b[i])));
      if (std::isnan(a[i]) != std::isnan(b[i])) apart = INFINITY;
      else if (a[i] != b[i] && !std::isnan(a[i])) apart = std::max(apart, std::abs(double(a[i]) - double(b[i])));
    }
    good &= apart <= kModelTolerance * most;
    std::cout << what << "within " << number_text(float(apart / std::max(most, 1e-30))) << " of the largest element; allowed: " << number_text(kModelTolerance) << "\n";
  }
  return good;
}

/// A network of which only parts are kernels.
int run_whole(Options& options, WholeModel whole, Tensors given) {
  const auto model = std::make_shared<const WholeModel>(std::move(whole));
  if (Status good = check_options(options, model->output_names); !good) return fail(good.error());
  Result<Graph> ports = input_ports(*model);
  if (!ports) return fail(ports.error());
  for (size_t t : model->inputs)
    if (model->tensors[t].data) given.emplace(model->tensors[t].name, *model->tensors[t].data);
  Result<Inputs> inputs = complete_inputs(*ports, std::move(given), {}, options.seed);
  if (!inputs) return fail(inputs.error());
  if (!inputs->drawn.empty()) std::cerr << drawn_text(*inputs, options.seed);
  Timing timing;
  Result<std::vector<Tensor>> values = [&] {
    const Progress progress("compiling and running the " + std::to_string(model->regions.size()) + " regions of @" + printable(one_line(model->name)));
    return execute_model(options.execute, model, inputs->values, options.time ? &timing : nullptr);
  }();
  if (!values) return fail(values.error());
  if (Status s = write_outputs(model->output_names, *values, options.outputs); !s) return fail(s.error());
  if (!options.quiet && options.outputs.empty())
    for (size_t i = 0; i < values->size(); ++i) std::cout << printable(one_line(model->output_names[i])) << ": " << preview((*values)[i]) << "\n";
  if (options.time)
    std::cout << "time: " << time_text(timing.median) << " on " << timing.device << ", median of " << timing.runs << "; compile " << time_text(timing.compile) << "\n";
  if (!options.check) return 0;
  const Progress progress("comparing with the reference evaluator");
  ExecuteOptions reference = options.execute;
  reference.device = "reference", reference.schedule.clear(), reference.tuning.clear();
  Result<std::vector<Tensor>> want = execute_model(reference, model, inputs->values);
  if (!want) return fail(want.error());
  return compare(model->output_names, *values, *want) ? 0 : 1;
}

int run(Options& options) {
  options.execute.switches = options.switches.words();
  if (options.file.ends_with(".onnx")) {
    Result<Tensors> given = read_inputs(options.inputs, nullptr);
    if (!given) return fail(given.error());
    Result<std::optional<WholeModel>> model = whole_model(options.file, options.dims, *given);
    if (!model) return fail(model.error());
    if (*model) return run_whole(options, std::move(**model), std::move(*given));
  }
  Tensors given;
  Result<Graph> graph = load(options, given);
  if (!graph) return fail(graph.error());
  if (Status good = check_options(options, output_names(*graph)); !good) return fail(good.error());
  Result<Inputs> inputs = complete_inputs(*graph, std::move(given), options.dims, options.seed);
  if (!inputs) return fail(inputs.error());
  if (!inputs->drawn.empty()) std::cerr << drawn_text(*inputs, options.seed);

  Timing timing;
  guard(print(*graph));
  Result<std::vector<Tensor>> values = [&] {
    const Progress progress("compiling and running @" + printable(one_line(graph->name())));
    return execute(options.execute, *graph, inputs->values, options.time ? &timing : nullptr);
  }();
  if (!values) return fail(with_reproducer(values.error(), print(*graph)));
  if (Status s = write_outputs(output_names(*graph), *values, options.outputs); !s) return fail(s.error());
  if (!options.quiet && options.outputs.empty())
    for (size_t i = 0; i < values->size(); ++i) std::cout << printable(one_line(graph->outputs()[i].name)) << ": " << preview((*values)[i]) << "\n";
  if (options.time) {
    if (Result<std::string> saving = saving_of(*graph, inputs->values, options.execute); saving) std::cout << *saving;
    std::cout << "time: " << time_text(timing.median) << " on " << timing.device << ", median of " << timing.runs << ", "
              << size_text(timing.bytes / std::max(timing.median, 1e-12)) << "/s; compile " << time_text(timing.compile) << "\n"
              << first_result(timing);
  }
  if (!options.check) return 0;
  const Progress progress("comparing with the reference evaluator");
  Result<CheckReport> report = check(*graph, inputs->values, *values, options.execute.numerics);
  if (!report) return fail(report.error());
  std::cout << printable(report->text);
  return report->good ? 0 : 1;
}

}  // namespace

Action add_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, ".fus or .onnx file; - is .fus on standard input")->required();
  app.add_option("--graph", options->graph, "which graph of the file");
  app.add_option("--device", options->execute.device, "auto, cpu, cuda[:N], simt or reference")->capture_default_str();
  add_list(app, "-i,--input", options->inputs, "NAME=FILE: .npy, .npz[:NAME], .safetensors[:NAME], ONNX .pb; or a file with names of its own");
  add_list(app, "-o,--output", options->outputs, "NAME=FILE, or FILE for all: .npy, .npz, .safetensors");
  add_list(app, "--dim", options->dims, "N=1024: size of a named dim");
  add_numerics_option(app, options->execute.numerics);
  add_switches(app, options->switches);
  add_schedule_option(app, options->execute.schedule);
  add_tuning_option(app, options->execute.tuning);
  app.add_option("--seed", options->seed, "of inputs that are not given: floats about normal, integers within 8 (unsigned: up to 16)")
      ->check([](const std::string& text) { return not_whole(text, UINT64_MAX); })
      ->capture_default_str();
  app.add_flag("--check", options->check, "compare with the reference evaluator; exit 1 when they differ");
  app.add_flag("--time", options->time, "median time of a warm call");
  app.add_flag("-q,--quiet", options->quiet, "print no outputs");
  return [options] { return run(*options); };
}

}  // namespace fusec::cli
