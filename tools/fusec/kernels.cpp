#include "tools/fusec/kernels.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "lib/fusion/cost.h"
#include "tools/fusec/execute.h"
#if FUSEC_HAS_CPU
#include "codegen/cpu/cpu.h"
#endif
#if FUSEC_HAS_CUDA
#include "codegen/cuda/cuda.h"
#endif

namespace fusec::cli {

/// Devices whose rates the table of architectures has.
const std::pair<std::string_view, int> kNamedTargets[] = {{"h200", 90}};

/// Those that the skeletons are written for and NVRTC 12 or 13 has.
constexpr int kArchitectures[] = {80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

int sm_of(const std::string& target) {
  int sm = -1;
  for (const auto& [device, architecture] : kNamedTargets)
    if (target == device) return architecture;
  if (!target.starts_with("sm_")) return -1;
  const auto [end, error] = std::from_chars(target.data() + 3, target.data() + target.size(), sm);
  const bool known = std::find(std::begin(kArchitectures), std::end(kArchitectures), sm) != std::end(kArchitectures);
  return error == std::errc() && end == target.data() + target.size() && known ? sm : -1;
}

void add_kernel_options(CLI::App& app, KernelOptions& options) {
  app.add_option("--target", options.target, "cpu, h200, or an architecture such as sm_90: no GPU is needed")->capture_default_str();
  add_list(app, "--dim", options.dims, "N=1024: size of a named dim (default: 1024 each)");
  app.add_flag("!--no-fuse", options.fuse, "one kernel an operation");
  add_numerics_option(app, options.numerics);
  add_schedule_option(app, options.schedule);
  add_tuning_option(app, options.tuning);
}

void add_schedule_option(CLI::App& app, std::vector<std::string>& edits) {
  add_list(app, "--schedule", edits,
           "FIELD=VALUE, or gN:FIELD=VALUE for kernel N: set a field of the schedule by hand, in the words of explain (threads=512, "
           "keep=reload, lane=8, access.0=16x). Other fields follow where they must");
}

void add_tuning_option(CLI::App& app, std::string& file) {
  app.add_option("--tuning", file, "take schedules from this file where it has them (fusec tune; default: FUSEC_TUNING)");
}

Result<std::shared_ptr<const Scheduler>> scheduler_of(const std::string& target) {
  if (target == "cpu") {
#if FUSEC_HAS_CPU
    return cpu::scheduler(cpu::host());
#else
    return environment_error("target cpu: this fusec was built without LLVM");
#endif
  }
  const int sm = sm_of(target);
  if (sm < 0) {
    std::string known = "cpu, h200";
    for (int architecture : kArchitectures) known += ", sm_" + std::to_string(architecture);
    return input_error("unknown target '" + target + "': " + known + " are known");
  }
#if FUSEC_HAS_CUDA
  return cuda::scheduler(cuda::device(sm));
#else
  return environment_error("target " + target + ": this fusec was built without the CUDA toolkit");
#endif
}

std::string saving_text(size_t kernels, double bytes, const Graph& graph, const Sizes& sizes) {
  return std::to_string(kernels) + (kernels == 1 ? " kernel, " : " kernels, ") + size_text(bytes) + " moved; one kernel an operation: " +
         std::to_string(unfused_kernels(graph)) + ", " + size_text(unfused_traffic(graph, sizes));
}

Result<std::string> saving_text(const Graph& graph, const Sizes& sizes, Numerics numerics) {
  Result<ProgramPlan> plan = make_plan(graph, {.numerics = numerics});
  if (!plan) return plan.error();
  double bytes = 0;
  for (const PlanStep& step : plan->steps) {
    Result<Kernel> kernel = build(*step.graph, step.group, {.numerics = numerics});
    if (!kernel) return kernel.error();
    bytes += double(facts(*kernel, dense_binding(*kernel, sizes)).footprint);
  }
  return saving_text(plan->steps.size(), bytes, *plan->graph, sizes);
}

Result<Planned> plan_kernels(const Graph& graph, const KernelOptions& options) {
  Result<std::shared_ptr<const Scheduler>> scheduler = scheduler_of(options.target);
  if (!scheduler) return scheduler.error();
  return plan_kernels(graph, options, **scheduler);
}

constexpr int64_t kMostBytes = int64_t{1} << 46;  // of a value; execute() refuses the same

Result<Planned> plan_kernels(const Graph& graph, const KernelOptions& options, const Scheduler& scheduler) {
  Planned out;
  Result<Sizes> sizes = parse_dims(options.dims);
  if (!sizes) return sizes.error();
  out.sizes = std::move(*sizes);
  const std::vector<std::string> symbols = graph.symbols();
  for (const auto& [name, size] : out.sizes)
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) return input_error("graph @" + graph.name() + " has no dim " + name);
  for (const std::string& symbol : symbols)
    if (out.sizes.emplace(symbol, 1024).second) out.assumed.push_back(symbol);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Type& type = graph.node(id).type;
    int64_t size = int64_t(bytes(type.dtype));
    for (const Dim& dim : type.shape) {
      const std::optional<int64_t> extent = dim.value(out.sizes);
      if (!extent || *extent < 0) return input_error("the dim " + dim.text() + " has no sensible value with these sizes");
      if (*extent == 0) size = 0;
      if (__builtin_mul_overflow(size, *extent, &size) || size > kMostBytes)
        return input_error("a value of type " + text(type) + " is larger than any memory with these sizes");
    }
  }
  Result<Chooser> chooser = Chooser::make(options.schedule, options.tuning);
  if (!chooser) return chooser.error();
  Result<ProgramPlan> plan = make_plan(graph, {.numerics = options.numerics, .fuse = options.fuse});
  if (!plan) return plan.error();
  out.plan = std::make_unique<ProgramPlan>(std::move(*plan));
  if (Status fits = chooser->fits(out.plan->steps.size()); !fits) return fits.error();
  for (const PlanStep& step : out.plan->steps) {
    Result<Kernel> kernel = build(*step.graph, step.group, {.numerics = options.numerics});
    if (!kernel) return kernel.error();
    PlannedKernel k{&step, std::move(*kernel), {}, {}, {}};
    k.facts = facts(k.kernel, dense_binding(k.kernel, out.sizes));
    Result<Choice> choice = chooser->choose(out.kernels.size(), k.kernel, k.facts, scheduler);
    if (!choice) return choice.error();
    k.choice = std::move(*choice);
    k.launch = scheduler.launch(k.kernel, k.schedule(), k.facts);
    out.kernels.push_back(std::move(k));
  }
  return out;
}

}  // namespace fusec::cli
