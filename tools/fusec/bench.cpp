// fusec bench: times graphs on a device, as a fraction of the rate at which the same device copies memory in the same run.

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/fusec/command.h"
#include "tools/fusec/copy_rate.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/kernels.h"
#include "runtime/backend.h"

namespace fusec::cli {

Result<double> copy_rate(const std::string& device) {
  Result<std::shared_ptr<const Backend>> found = backend(device);
  if (!found) return found.error();
  const Backend& d = **found;
  const size_t bytes = size_t{256} << 20;
  Result<std::unique_ptr<Memory>> from = d.allocate(bytes), to = d.allocate(bytes);
  if (!from) return from.error();
  if (!to) return to.error();
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    const int count = 4;  // back to back: what starting and waiting cost is shared
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      if (Status s = d.copy((*to)->data, (*from)->data, bytes, nullptr); !s) return s.error();
    if (Status s = d.wait(nullptr); !s) return s.error();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * double(bytes) * count / seconds);
  }
  return best;
}

namespace {

struct Options {
  std::vector<std::string> files, dims;
  std::string json;
  ExecuteOptions execute{.device = "auto"};
};

std::string column(std::string text, size_t width) {
  size_t shown = 0;  // letters, not bytes: µ is two bytes
  for (char c : text) shown += (c & 0xc0) != 0x80;
  return text.append(shown < width ? width - shown : 1, ' ');
}

int run(const Options& o) {
  const std::string device = resolve(o.execute.device);
  double ceiling = 0;
  if (device != "reference") {
    Result<double> rate = copy_rate(device);
    if (!rate) return fail(rate.error());
    ceiling = *rate;
    std::cout << "copy rate of " << device << ": " << size_text(ceiling) << "/s\n";
  }
  std::cout << column("graph", 32) << column("median", 11) << column("spread", 8) << column("moved", 11) << column("rate", 13) << "of copy\n";
  nlohmann::json rows = nlohmann::json::array();
  int status = 0;
  for (const std::string& file : o.files) {
    Result<std::vector<Graph>> graphs = load_graphs(file);
    if (!graphs) {
      status = std::max(status, fail(graphs.error()));
      continue;
    }
    for (const Graph& graph : *graphs) {
      std::vector<std::string> dims;
      for (const std::string& dim : o.dims)
        for (const std::string& symbol : graph.symbols())
          if (dim.starts_with(symbol + "=")) dims.push_back(dim);
      Result<Inputs> inputs = complete_inputs(graph, {}, dims, 0);
      Timing timing;
      timing.rotate = true;
      Result<std::vector<Tensor>> values = inputs ? execute({device, o.execute.numerics, o.execute.schedule}, graph, inputs->values, &timing)
                                                  : Result<std::vector<Tensor>>(inputs.error());
      if (!values) {
        status = std::max(status, fail(values.error().note("while timing " + file)));
        continue;
      }
      const double rate = timing.bytes / timing.median;
      std::cout << column("@" + graph.name(), 32) << column(time_text(timing.median), 11) << column(fixed(timing.spread * 100, 0) + " %", 8)
                << column(size_text(timing.bytes), 11) << column(size_text(rate) + "/s", 13)
                << (ceiling > 0 ? fixed(rate / ceiling * 100, 0) + " %" : "-") << std::endl;
      rows.push_back({{"file", file}, {"graph", graph.name()}, {"device", timing.device}, {"median_s", timing.median}, {"best_s", timing.best},
                      {"spread", timing.spread}, {"bytes", timing.bytes}, {"bytes_per_s", rate}, {"copy_bytes_per_s", ceiling},
                      {"compile_s", timing.compile}, {"runs", timing.runs}});
    }
  }
  if (!o.json.empty())
    if (Status s = write_output(o.json, rows.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); !s) return fail(s.error());
  return status;
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->files, ".fus or .onnx files; every graph in them is timed on drawn inputs")->required();
  app.add_option("--device", options->execute.device, "auto, cpu or cuda[:N]")->capture_default_str();
  add_list(app, "--dim", options->dims, "N=1024: size of a named dim");
  app.add_option("--json", options->json, "also write the figures to this file; - is standard output");
  add_numerics_option(app, options->execute.numerics);
  add_schedule_option(app, options->execute.schedule);
  return [options] { return run(*options); };
}

}  // namespace fusec::cli
