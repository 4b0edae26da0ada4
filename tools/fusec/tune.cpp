// fusec tune: measures ways to run the kernels of a graph on a device and keeps the fastest in a tuning file. Nothing else ever tunes.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "runtime/backend.h"
#include "tools/fusec/bench_table.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/suite.h"
#include "tools/fusec/tuner.h"

namespace fusec::cli {
namespace {

struct Options {
  std::vector<std::string> files, dims;
  std::string device = "auto", output;
  Numerics numerics = Numerics::strict;
  size_t most = 96;
  int runs = 21;
};

/// What is in the file already is kept.
Result<Tuning> start_from(const std::string& path) {
  if (path.empty() || path == "-") return Tuning();
  Result<Tuning> there = Tuning::load(path);
  if (there || !there.error().message.ends_with("No such file or directory")) return there;
  return Tuning();
}

int run(const Options& o) {
  Result<std::shared_ptr<const Backend>> device = backend(o.device);
  if (!device) return fail(device.error());
  Result<Tuning> tuning = start_from(o.output);
  if (!tuning) return fail(tuning.error());
  if (!tuning->note().empty()) return fail(input_error(tuning->note() + "; it is not replaced"));
  if (Status s = may_write_output(o.output); !s) return fail(s.error());
  Result<Flush> flush = Flush::make(**device);
  if (!flush) return fail(flush.error());
  Measurer measurer(**device, *flush);
  int status = 0;
  for (const std::string& file : o.files) {
    Result<std::vector<Workload>> workloads = workloads_of(file, o.dims);
    if (!workloads) return fail(workloads.error());
    for (const Workload& workload : *workloads) {
      TuneOptions options{{.compile = {.numerics = o.numerics}, .runs = o.runs, .check_elements = 100'000}, o.most};
      Result<Tuned> tuned = tune(measurer, **device, workload.subject, options);
      if (!tuned) return fail(tuned.error());
      for (const TunedKernel& k : tuned->kernels) {
        const TuningEntry& e = k.entry;
        std::cerr << column(e.name, 32) << column(time_text(e.model_seconds) + " by the model,", 24) << column(time_text(e.seconds), 10)
                  << (e.schedule.empty() ? "nothing is 1 % faster" : e.schedule) << " (" << k.tried << " measured, " << k.failed << " failed)\n";
        if (!k.wrong.empty()) std::cerr << "  WRONG " << k.wrong << "\n", status = 1;
        tuning->put(e);
      }
    }
  }
  if (Status s = write_output(o.output.empty() ? "-" : o.output, tuning->text()); !s) return fail(s.error());
  return status;
}

const char kFooter[] = R"(Each kernel runs in some dozens of ways, each compiled, checked against the reference evaluator and timed from flushed
caches; the best four are timed again, in turns with the model's choice. The winner, "" where nothing is 1 % faster, goes
into the tuning file, under the device, the kernel and its class of shapes. What the file has already stays.

  fusec tune softmax.fus --device cuda -o h200.json      measure
  fusec explain softmax.fus --target sm_90 --tuning h200.json    where each choice came from
  FUSEC_TUNING=h200.json my_program                       use it

A line "; rows: 32768" in a file with one graph names an extent whose indices are independent of each other: of so many rows a check takes some.)";

}  // namespace

Action add_tune(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->files, ".fus or .onnx files; every graph in them")->required();
  app.add_option("--device", options->device, "auto, cpu or cuda[:N]")->capture_default_str();
  app.add_option("-o,--output", options->output, "tuning file, kept and added to where it is there (default: standard output)");
  add_list(app, "--dim", options->dims, "N=1024: size of a named dim");
  app.add_option("--most", options->most, "candidates of a kernel")->check(CLI::Range(size_t{1}, size_t{10000}))->capture_default_str();
  app.add_option("--runs", options->runs, "timed calls in the final comparison; the median counts")->check(CLI::Range(1, 10000))->capture_default_str();
  add_numerics_option(app, options->numerics);
  app.footer(kFooter);
  return [options] { return run(*options); };
}

}  // namespace fusec::cli
