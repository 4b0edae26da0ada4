// fusec fuzz: random graphs on a device against the reference evaluator. A failure is written as a .fus file whose first comment
// repeats it.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>

#include "lib/fuzz/random_graph.h"
#include "lib/ir/convert.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"

namespace fusec::cli {
namespace {

struct FuzzOptions {
  uint64_t seed = 0;
  int64_t count = 1000;
  double seconds = 0;
  std::string device = "cpu";
  std::string directory = ".";
  size_t nodes = 14;
};

/// Equal bits; any NaN equals any NaN; the two zeros are equal only as bits.
bool same_bits(const Tensor& a, const Tensor& b, int64_t& at) {
  const size_t size = bytes(a.dtype);
  for (int64_t k = 0; k < a.elements(); k++) {
    if (std::memcmp(a.data.data() + size_t(k) * size, b.data.data() + size_t(k) * size, size) == 0) continue;
    if (is_float(a.dtype) && std::isnan(element(a, k)) && std::isnan(element(b, k))) continue;
    at = k;
    return false;
  }
  return true;
}

/// Within the rounding of a sum in another order: the bound is relative to the largest finite magnitude.
bool close(const Tensor& got, const Tensor& want, int64_t& at) {
  double most = 0;
  for (int64_t k = 0; k < want.elements(); k++)
    if (const double x = std::abs(element(want, k)); std::isfinite(x)) most = std::max(most, x);
  const double relative = want.dtype == DType::f32 || want.dtype == DType::f64 ? 1e-4 : 0.3;
  for (int64_t k = 0; k < want.elements(); k++) {
    const double x = element(got, k), y = element(want, k);
    // A sum may overflow in one order and not in another.
    if (!std::isfinite(x) || !std::isfinite(y) || std::abs(x - y) <= relative * most) continue;
    at = k;
    return false;
  }
  return true;
}

/// "" or what is wrong.
std::string trial(const FuzzOptions& options, uint64_t seed, const Graph& graph, const Sizes& sizes) {
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < graph.inputs().size(); k++) {
    const Type& type = graph.node(graph.inputs()[k].node).type;
    std::vector<int64_t> extents;
    for (const Dim& dim : type.shape) extents.push_back(dim.value(sizes).value_or(0));
    inputs.push_back(fuzz::random_tensor(type.dtype, extents, seed * 16 + k));
  }
  Result<std::vector<Tensor>> want = evaluate(graph, inputs);
  if (!want) return want.error().kind == Error::input ? "" : "reference: " + want.error().text();
  Result<std::vector<Tensor>> got = execute({options.device, Numerics::strict}, graph, inputs);
  if (!got) return options.device + ": " + got.error().text();
  const std::vector<fuzz::Agreement> agreements = fuzz::agreements(graph);
  for (size_t k = 0; k < want->size(); k++) {
    const Tensor &a = (*got)[k], &b = (*want)[k];
    if (a.dtype != b.dtype || a.extents != b.extents) return "output " + std::to_string(k) + " has another type";
    int64_t at = 0;
    const bool good = agreements[k] == fuzz::Agreement::none || (agreements[k] == fuzz::Agreement::exact ? same_bits(a, b, at) : close(a, b, at));
    if (!good)
      return "output " + std::to_string(k) + " element " + std::to_string(at) + ": " + fixed(element(a, at), 9) + " instead of " +
             fixed(element(b, at), 9) + (agreements[k] == fuzz::Agreement::exact ? " (every bit is expected)" : "");
  }
  return "";
}

int run_fuzz(const FuzzOptions& options) {
  if (Status there = available(options.device); !there) return fail(there.error());
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  int64_t done = 0, failed = 0;
  double shown = 0;
  for (; done < options.count && failed < 20; done++) {
    if (options.seconds > 0 && elapsed() > options.seconds) break;
    const uint64_t seed = options.seed + uint64_t(done);
    fuzz::GraphOptions graph_options;
    graph_options.max_nodes = options.nodes;
    const fuzz::Drawn drawn = fuzz::random_graph(seed, graph_options);
    if (std::string wrong = trial(options, seed, drawn.graph, drawn.sizes); !wrong.empty()) {
      failed++;
      const std::string command = "fusec fuzz --seed " + std::to_string(seed) + " --count 1 --nodes " + std::to_string(options.nodes) + " --device " + options.device;
      const std::string path = options.directory + "/fuzz-" + std::to_string(seed) + ".fus";
      std::string sizes;
      for (const auto& [name, value] : drawn.sizes) sizes += "; " + name + " = " + std::to_string(value) + "\n";
      if (Status written = write_output(path, "; " + one_line(command) + "\n; " + one_line(wrong) + "\n" + sizes + print(drawn.graph)); !written) return fail(written.error());
      std::cerr << path << ": " << wrong << "\n";
    }
    if (elapsed() - shown > 1) {
      shown = elapsed();
      std::cerr << "\r" << done + 1 << " graphs, " << failed << " failed" << std::flush;
    }
  }
  if (shown > 0) std::cerr << "\n";
  std::cout << done << " graphs on " << options.device << ", " << failed << " failed, " << fixed(double(done) / elapsed(), 1) << " a second\n";
  return failed ? 1 : 0;
}

}  // namespace

Action add_fuzz(CLI::App& app) {
  auto options = std::make_shared<FuzzOptions>();
  app.add_option("--seed", options->seed, "first seed; graph k has seed + k")
      ->check([](const std::string& text) { return not_whole(text, UINT64_MAX); });
  app.add_option("--count", options->count, "graphs")->check([](const std::string& text) { return not_whole(text, INT64_MAX); });
  app.add_option("--time", options->seconds, "stop after so many seconds")->check(not_seconds);
  app.add_option("--device", options->device, "cpu, cuda[:N] or simt");
  app.add_option("--nodes", options->nodes, "about how many nodes a graph has")->check(CLI::Range(1, 1000000));
  app.add_option("-o,--output", options->directory, "where failing graphs are written");
  return [options] { return run_fuzz(*options); };
}

}  // namespace fusec::cli
