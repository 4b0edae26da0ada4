// fusec schedules: the skeletons that a kernel may run on.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "tools/fusec/kernels.h"

namespace fusec::cli {
namespace {

struct Row {
  Template skeleton;
  const char* name;
  const char* what;
};
const Row kRows[] = {
    {Template::pointwise, "pointwise", "GPU: no reduction; tiles of vectors, one tile a thread block step"},
    {Template::transpose, "transpose", "GPU: an operand runs across the others; tiles through shared memory"},
    {Template::rows, "rows", "GPU: a row, kept on chip between sweeps, for a part of a warp up to a cluster of blocks"},
    {Template::ring, "ring", "GPU: rows too long for that, streamed through shared memory by bulk copies"},
    {Template::column, "column", "GPU: an outer axis is reduced, vectors run along the kept one"},
    {Template::split, "split", "GPU: few long rows; parts of a row, the last block folds their states in order"},
    {Template::scan, "scan", "GPU: running sums, products and extrema along an axis"},
    {Template::cpu_flat, "cpu_flat", "CPU: no reduction; vectors along the best axis"},
    {Template::cpu_rows, "cpu_rows", "CPU: a row at a time, later sweeps from the cache"},
    {Template::cpu_column, "cpu_column", "CPU: an outer axis is reduced, vectors along the kept one"},
    {Template::cpu_tile, "cpu_tile", "CPU: an operand runs across the others; tiles through registers"},
};

}  // namespace

Action add_schedules(CLI::App& app) {
  struct Options {
    std::string file, graph;
    KernelOptions kernel;
  };
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, "print the schedule of each kernel of this .fus or .onnx file instead");
  app.add_option("--graph", options->graph, "which graph of the file");
  add_kernel_options(app, options->kernel);
  return [options] {
    if (options->file.empty()) {
      for (const Row& row : kRows) std::cout << row.name << std::string(12 - std::string_view(row.name).size(), ' ') << row.what << "\n";
      return 0;
    }
    Result<Graph> graph = load_graph(options->file, options->graph);
    if (!graph) return fail(graph.error());
    Result<Planned> planned = plan_kernels(*graph, options->kernel);
    if (!planned) return fail(planned.error());
    for (size_t i = 0; i < planned->kernels.size(); ++i) std::cout << "g" << i << ": " << print(planned->kernels[i].schedule()) << "\n";
    return 0;
  };
}

}  // namespace fusec::cli
