#include "tools/fusec/tuner.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "tools/fusec/kernels.h"

namespace fusec::cli {
namespace {

constexpr double kWorthIt = 0.99;  // a candidate must take less of the model's time than this
constexpr size_t kFinalists = 4;

struct Trial {
  std::string edits;
  std::optional<Result<Program>> program;
  std::future<Result<Checked>> check;
  Figures figures;
  double seconds = 0;  // 0: it failed
};

/// Edits of one kernel as the options of a program take them.
std::vector<std::string> for_step(size_t step, const std::string& edits) {
  std::vector<std::string> out;
  for (size_t at = 0; at < edits.size();) {
    const size_t end = std::min(edits.find(' ', at), edits.size());
    if (end > at) out.push_back("g" + std::to_string(step) + ":" + edits.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

MeasureOptions with(const TuneOptions& o, size_t step, const std::string& edits) {
  MeasureOptions out = o.measure;
  for (std::string& edit : for_step(step, edits)) out.compile.schedule.push_back(std::move(edit));
  out.host = false;
  return out;
}

void compile_all(const Measurer& measurer, const Subject& subject, const TuneOptions& o, size_t step, std::vector<Trial>& trials) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < trials.size();) trials[i].program.emplace(measurer.compile(subject, with(o, step, trials[i].edits)));
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::max(1u, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
}

Result<TunedKernel> tune_kernel(Measurer& measurer, const Backend& device, const Subject& subject, const TuneOptions& o, size_t step, const PlannedKernel& kernel) {
  TunedKernel out;
  std::vector<Trial> trials;
  for (Candidate& c : device.candidates(kernel.kernel, kernel.facts)) {
    if (trials.size() >= o.most) break;
    trials.emplace_back().edits = std::move(c.edits);
  }
  compile_all(measurer, subject, o, step, trials);
  MeasureOptions look = o.measure;
  look.host = false, look.runs = std::min(look.runs, 7);
  for (Trial& t : trials) {
    Result<Figures> seen = *t.program ? measurer.measure(**t.program, subject, look, look.check ? &t.check : nullptr) : Result<Figures>(t.program->error());
    if (!seen && t.edits.empty()) return seen.error().note("while measuring the model's own choice");
    if (!seen) {
      ++out.failed;
      continue;
    }
    t.figures = std::move(*seen), t.seconds = t.figures.time.median;
    ++out.tried;
  }
  for (Trial& t : trials)
    if (t.check.valid())
      if (Result<Checked> found = t.check.get(); !found || !found->good) {
        out.wrong = "'" + t.edits + "': " + (found ? found->text : found.error().message);
        if (t.edits.empty()) return internal_error("the model's own choice is wrong: " + out.wrong);
        t.seconds = 0;
      }
  // The fastest again, in turns with the model's own, so that clocks and neighbours hit all of them.
  std::vector<Trial*> finalists;
  for (size_t i = 1; i < trials.size(); ++i)
    if (trials[i].seconds > 0) finalists.push_back(&trials[i]);
  std::sort(finalists.begin(), finalists.end(), [](const Trial* a, const Trial* b) { return a->seconds < b->seconds; });
  if (finalists.size() > kFinalists) finalists.resize(kFinalists);
  finalists.insert(finalists.begin(), &trials[0]);
  MeasureOptions last = o.measure;
  last.host = last.check = false;
  std::vector<std::vector<double>> times(finalists.size());
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < finalists.size(); ++i) {
      Result<Figures> seen = measurer.measure(**finalists[i]->program, subject, last);
      if (!seen) return seen.error();
      times[i].push_back(seen->time.median);
    }
  size_t best = 0;
  for (std::vector<double>& t : times) std::sort(t.begin(), t.end());
  for (size_t i = 1; i < finalists.size(); ++i)
    if (times[i][1] < times[best][1]) best = i;
  if (times[best][1] > kWorthIt * times[0][1]) best = 0;
  const Trial& winner = *finalists[best];
  TuningEntry& e = out.entry;
  e.device = device.device_key(), e.target = device.target_key(), e.kernel = kernel_digest(kernel.kernel), e.shape = shape_class(kernel.facts);
  e.schedule = winner.edits;
  e.seconds = times[best][1], e.model_seconds = times[0][1];
  e.bytes_per_s = winner.figures.bytes / std::max(e.seconds, 1e-12);
  if (step < winner.figures.kernels.size()) {
    const KernelFigures& k = winner.figures.kernels[step];
    e.registers = k.registers, e.spill_bytes = std::max<int64_t>(k.spill_bytes, 0), e.occupancy = k.occupancy;
  }
  return out;
}

}  // namespace

Result<Tuned> tune(Measurer& measurer, const Backend& device, const Subject& subject, const TuneOptions& options) {
  Result<Graph> graph = parse(subject.text);
  if (!graph) return graph.error();
  std::vector<std::string> dims;
  for (const auto& [name, size] : subject.sizes) dims.push_back(name + "=" + std::to_string(size));
  KernelOptions plain;  // what the model says, whatever FUSEC_TUNING has
  plain.numerics = options.measure.compile.numerics, plain.dims = dims;
  Result<Planned> planned = plan_kernels(*graph, plain, device);
  if (!planned) return planned.error();
  Tuned out;
  TuneOptions o = options;
  for (size_t step = 0; step < planned->kernels.size(); ++step) {
    if (planned->kernels[step].step->copy) continue;
    Result<TunedKernel> one = tune_kernel(measurer, device, subject, o, step, planned->kernels[step]);
    if (!one) return one.error().note("while tuning g" + std::to_string(step) + " of graph @" + graph->name());
    one->entry.name = graph->name() + " g" + std::to_string(step);
    if (out.model == 0) out.model = one->entry.model_seconds;
    out.best = one->entry.seconds;
    out.bytes = one->entry.bytes_per_s * one->entry.seconds;
    for (std::string& edit : for_step(step, one->entry.schedule)) o.measure.compile.schedule.push_back(std::move(edit));
    out.kernels.push_back(std::move(*one));
  }
  return out;
}

}  // namespace fusec::cli
