// fusec run of a whole network: regions fused, the rest through a library, on one device.

#include <algorithm>
#include <chrono>
#include <iostream>

#include "runtime/extern_model.h"
#include "tools/fusec/ceilings.h"
#include "tools/fusec/model.h"

namespace fusec::cli {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Result<Graph> input_ports(const WholeModel& model) {
  GraphBuilder b(model.name);
  for (size_t t : model.inputs) b.input(model.tensors[t].name, *model.tensors[t].type);
  return std::move(b).finish({});
}

Result<std::vector<Tensor>> execute_model(const ExecuteOptions& options, std::shared_ptr<const WholeModel> model,
                                          std::span<const Tensor> inputs, Timing* timing) {
  const double start = now();
  Result<ModelProgram> program = ModelProgram::make(std::move(model), {.device = resolve(options.device),
                                                                       .numerics = options.numerics,
                                                                       .tuning = options.tuning,
                                                                       .schedule = options.schedule,
                                                                       .switches = options.switches});
  if (!program) return program.error();
  Result<std::vector<Tensor>> outputs = program->run(inputs);
  if (!outputs || !timing) return outputs;
  timing->device = program->device();
  timing->compile = now() - start;
  for (std::span<const Tensor> side : {inputs, std::span<const Tensor>(*outputs)})
    for (const Tensor& t : side) timing->bytes += double(t.data.size());
  std::vector<double> times;
  for (const double first = now(); times.size() < 7 || (now() - first < 0.5 && times.size() < 2000);) {
    const double t = now();
    if (Result<std::vector<Tensor>> again = program->run(inputs); !again) return again;
    times.push_back(now() - t);
    if (now() - first > 20) break;
  }
  const Spread seen = spread(std::move(times));
  timing->runs = seen.runs, timing->median = seen.median, timing->best = seen.best, timing->spread = seen.spread;
  if (program->host_calls()) std::cerr << program->host_calls() << " operators ran on the host, between copies\n";
  return outputs;
}

}  // namespace fusec::cli
