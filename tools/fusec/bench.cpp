// fusec bench: times graphs on a device, as a fraction of the rate at which the same device copies memory in the same run.
//
//   fusec bench FILE…          graphs of files: warm calls back to back, buffers rotating; --flush: caches flushed before each
//   fusec bench --suite        the workloads of tools/bench/workloads, flushed, checked, with what their kernels are
//   fusec bench --sweep        six kernels over many row lengths: no cliffs

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "lib/support/files.h"
#include "runtime/backend.h"
#include "tools/fusec/bench_table.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/kernels.h"
#include "tools/fusec/suite.h"
#include "tools/fusec/sweep.h"
#include "tools/fusec/tuner.h"

namespace fusec::cli {
namespace {

constexpr double kSmall = 200e6;  // bytes below which a copy of the same size is the measure
constexpr double kTiny = 1e6;     // … and below which no rate is: a launch is

struct Options {
  std::vector<std::string> files, dims, only;
  std::string json, suite;
  std::vector<int64_t> lengths;
  bool tuned_gap = false;
  bool is_suite = false, is_sweep = false, quick = false, flush = false, markdown = false, check = true;
  double bytes = 0;
  int runs = 31;
  bool runs_given = false;
  ExecuteOptions execute{.device = "auto"};
};

/// Where the table goes: standard output belongs to the JSON when that goes there.
std::ostream& shown(const Options& o) { return o.json == "-" ? std::cerr : std::cout; }

MeasureOptions measure_options(const Options& o) {
  return {.compile = {.numerics = o.execute.numerics, .tuning = o.execute.tuning, .schedule = o.execute.schedule}, .runs = o.runs, .check = o.check};
}

/// What the options ask to be measured, in order.
Result<std::vector<Workload>> chosen(const Options& o, const Backend& device, std::vector<std::string>& notes) {
  std::vector<Workload> out;
  if (!o.is_suite) {
    for (const std::string& file : o.files) {
      Result<std::vector<Workload>> workloads = workloads_of(file, o.dims);
      if (!workloads) return workloads.error();
      std::move(workloads->begin(), workloads->end(), std::back_inserter(out));
    }
    return out;
  }
  Result<std::string> folder = workloads_folder(o.suite);
  if (!folder) return folder.error();
  Result<std::vector<Workload>> all = load_workloads(*folder, o.only);
  if (!all) return all.error();
  const double most = o.bytes > 0 ? o.bytes : is_gpu(device) ? 0 : 64e6;
  if (most > 0) notes.push_back("each workload is shrunk until it moves at most " + size_text(most));
  for (const Workload& w : *all) {
    Result<Workload> one = most > 0 ? shrunk(w, most) : Result<Workload>(w);
    if (!one) return one.error();
    out.push_back(std::move(*one));
  }
  return out;
}

Result<BenchRow> one_row(Measurer& measurer, const Backend& device, const Flush& flush, const Workload& workload, const Options& o) {
  BenchRow row{workload.name, {}, 0, "", 0};
  Result<Figures> figures = measurer.measure(workload.subject, measure_options(o));
  if (!figures) {
    row.error = figures.error().message;
    row.status = status_of(figures.error());
    return row;
  }
  row.figures = std::move(*figures);
  if (row.figures.bytes > kTiny && row.figures.bytes < kSmall && is_gpu(device)) {
    Result<double> same = copy_rate(device, flush, size_t(row.figures.bytes / 32) * 16, o.runs);
    if (!same) return same.error();
    row.same = *same;
  }
  return row;
}

/// The suite, or files with flushed caches.
int run_flushed(const Options& o) {
  Result<std::shared_ptr<const Backend>> device = backend(o.execute.device);
  if (!device) return fail(device.error());
  const Backend& d = **device;
  BenchTable table{d.name(), d.description(), today(), {}, {}, {}};
  Result<std::vector<Workload>> workloads = chosen(o, d, table.notes);
  if (!workloads) return fail(workloads.error());
  if (!o.execute.tuning.empty()) table.notes.push_back("tuning file: " + o.execute.tuning);
  for (const std::string& edit : o.execute.schedule) table.notes.push_back("schedule by hand: " + edit);
  Result<Flush> flush = Flush::make(d);
  if (!flush) return fail(flush.error());
  Result<Ceilings> ceilings = measure_ceilings(d, *flush, o.bytes > 0 ? size_t(o.bytes) / 32 * 16 : 0, o.runs);
  if (!ceilings) return fail(ceilings.error());
  table.ceilings = *ceilings;
  if (!o.markdown) shown(o) << heading(table) << "\n" << terminal_head() << std::flush;
  int status = 0;
  Measurer measurer(d, *flush);
  for (const Workload& workload : *workloads) {
    Result<BenchRow> row = one_row(measurer, d, *flush, workload, o);
    if (!row) return fail(row.error());
    status = std::max(status, row->error.empty() ? int(!row->figures.good) : row->status);
    table.rows.push_back(std::move(*row));
    if (!o.markdown) shown(o) << terminal_row(table, table.rows.back()) << std::flush;
  }
  shown(o) << (o.markdown ? markdown(table) : terminal_foot(table));
  if (!o.json.empty())
    if (Status s = write_output(o.json, json(table).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); !s) return fail(s.error());
  return status;
}

/// The suite by the model beside the best candidates: how far the model is from what measuring would find.
int run_gap(const Options& o) {
  Result<std::shared_ptr<const Backend>> device = backend(o.execute.device);
  if (!device) return fail(device.error());
  std::vector<std::string> notes;
  Result<std::vector<Workload>> workloads = chosen(o, **device, notes);
  if (!workloads) return fail(workloads.error());
  Result<Flush> flush = Flush::make(**device);
  if (!flush) return fail(flush.error());
  Measurer measurer(**device, *flush);
  for (const std::string& note : notes) shown(o) << note << "\n";
  shown(o) << (o.markdown ? "| workload | model µs | best µs | gap | best candidate |\n|---|---|---|---|---|\n"
                           : column("workload", 36) + column("model", 11) + column("best", 11) + column("gap", 8) + "best candidate\n")
            << std::flush;
  nlohmann::json rows = nlohmann::json::array();
  int status = 0;
  for (const Workload& w : *workloads) {
    TuneOptions options{measure_options(o), 96};
    options.measure.check_elements = 100'000;
    if (!o.runs_given) options.measure.runs = 11;
    Result<Tuned> tuned = tune(measurer, **device, w.subject, options);
    if (!tuned) {
      shown(o) << column(w.name, 36) << "failed: " << tuned.error().message << std::endl;
      status = std::max(status, status_of(tuned.error()));
      continue;
    }
    std::string best;
    for (const TunedKernel& k : tuned->kernels) {
      best += (best.empty() ? "" : "; ") + (k.entry.schedule.empty() ? std::string("the model's") : k.entry.schedule);
      if (!k.wrong.empty()) best += " WRONG " + k.wrong, status = std::max(status, 1);
    }
    const double gap = tuned->best > 0 ? tuned->model / tuned->best - 1 : 0;
    const std::string model = fixed(tuned->model * 1e6, 1), fastest = fixed(tuned->best * 1e6, 1), percent = fixed(gap * 100, 1) + " %";
    if (o.markdown) shown(o) << "| " << w.name << " | " << model << " | " << fastest << " | " << percent << " | " << best << " |" << std::endl;
    else shown(o) << column(w.name, 36) << column(model + " µs", 11) << column(fastest + " µs", 11) << column(percent, 8) << best << std::endl;
    rows.push_back({{"name", w.name}, {"model_s", tuned->model}, {"best_s", tuned->best}, {"best", best}});
  }
  if (!o.json.empty())
    if (Status s = write_output(o.json, rows.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"); !s) return fail(s.error());
  return status;
}

/// Files, by calls back to back over buffers that rotate through more than the caches hold.
int run_files(const Options& o) {
  const std::string device = resolve(o.execute.device);
  double ceiling = 0;
  if (device != "reference") {
    Result<std::shared_ptr<const Backend>> found = backend(device);
    if (!found) return fail(found.error());
    Result<double> rate = copy_rate(**found, Flush(), size_t{256} << 20, 15);
    if (!rate) return fail(rate.error());
    ceiling = *rate;
    shown(o) << "copy rate of " << (*found)->name() << ": " << size_text(ceiling) << "/s\n";
  }
  shown(o) << column("graph", 32) << column("median", 11) << column("spread", 8) << column("moved", 11) << column("rate", 13) << "of copy\n";
  nlohmann::json rows = nlohmann::json::array();
  int status = 0;
  for (const std::string& file : o.files) {
    Result<std::vector<Graph>> graphs = load_graphs(file);
    if (!graphs) {
      status = std::max(status, fail(graphs.error()));
      continue;
    }
    for (const Graph& graph : *graphs) {
      Result<Inputs> inputs = complete_inputs(graph, {}, dims_of(graph, o.dims), 0);
      Timing timing;
      timing.rotate = true;
      Result<std::vector<Tensor>> values = inputs ? execute({device, o.execute.numerics, o.execute.schedule, o.execute.tuning}, graph, inputs->values, &timing)
                                                  : Result<std::vector<Tensor>>(inputs.error());
      if (!values) {
        status = std::max(status, fail(values.error().note("while timing " + file)));
        continue;
      }
      const double rate = timing.bytes / timing.median;
      shown(o) << column("@" + printable(one_line(graph.name())), 32) << column(time_text(timing.median), 11) << column(fixed(timing.spread * 100, 0) + " %", 8)
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

int run_sweep(const Options& o) {
  if (o.is_suite || !o.files.empty()) return fail(input_error("--sweep brings its own graphs: neither FILE nor --suite beside it"));
  Result<std::shared_ptr<const Backend>> device = backend(o.execute.device);
  if (!device) return fail(device.error());
  MeasureOptions measure = measure_options(o);
  measure.check_elements = 100'000;
  measure.host = false;
  if (!o.runs_given) measure.runs = 11;
  return sweep(**device, {measure, o.bytes, o.quick, o.only, o.lengths, o.markdown, o.json});
}

int run(const Options& o) {
  if (Status s = may_write_output(o.json); !s) return fail(s.error());
  if (o.is_sweep) return run_sweep(o);
  if (!o.lengths.empty() || o.quick) return fail(input_error("--length and --quick belong to --sweep"));
  if (o.is_suite && !o.files.empty()) return fail(input_error("--suite brings its own graphs: no FILE beside it"));
  if (!o.is_suite && o.files.empty()) return fail(input_error("FILE is missing, or --suite, or --sweep"));
  if (!o.is_suite && !o.only.empty()) return fail(input_error("--only chooses workloads of --suite and columns of --sweep"));
  if (o.tuned_gap) return run_gap(o);
  if (!o.is_suite && !o.flush && !o.markdown && (o.runs_given || !o.check || o.bytes > 0))
    return fail(input_error("--runs, --no-check and --bytes belong to --flush, --suite, --sweep and --markdown"));
  return o.is_suite || o.flush || o.markdown ? run_flushed(o) : run_files(o);
}

const char kFooter[] = R"(A rate is the bytes of all inputs and outputs, each once, over the median time. It is compared with the rate at which the same
device copies a large block in the same run. --suite and --flush start every timed call from flushed caches (a memset, then a
read, so that no dirty line is left), time it between two events on a GPU, poison the outputs first and check them against the
reference evaluator; "of same" compares small ones with a copy of their own size, "host / bare / replay" is what a warm call
costs the host beside a bare launch of an empty kernel and a replay of the prepared call, "compile ms" what NVRTC took when the
kernels were compiled, "disk ms" the way of the first kernel from the disk cache to its launch. A large graph is checked on some
of its rows where a line of its file says which extent has indices that are independent of each other: "; rows: 32768".

  fusec bench docs/examples/*.fus                        back to back, buffers rotating
  fusec bench --suite --device cuda --json suite.json    the workloads of tools/bench/workloads
  fusec bench --suite --only scale_f32 --markdown        some of them, as a Markdown table
  fusec bench --suite --device cpu --bytes 16e6          shrunk until each moves at most 16 MB
  fusec bench --sweep --device cuda --json sweep.json    one row a length; what is below its bound is listed
  fusec bench --sweep --only softmax_f32 --length 50257  one point
  fusec bench softmax.fus --flush --schedule threads=256 a schedule set by hand)";

}  // namespace

Action add_bench(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->files, ".fus or .onnx files; every graph in them is timed on drawn inputs");
  app.add_option("--device", options->execute.device, "auto, cpu or cuda[:N]")->capture_default_str();
  add_list(app, "--dim", options->dims, "N=1024: size of a named dim");
  CLI::Option* suite = app.add_option("--suite", options->suite, "time the workloads of this folder (default: those that came with fusec)")->expected(0, 1);
  app.add_flag("--sweep", options->is_sweep, "look for cliffs: six kernels over row lengths from 16 to 1048576 in three types");
  app.add_flag("--quick", options->quick, "fewer lengths of the sweep");
  app.add_option("--length", options->lengths, "only this row length of the sweep")->expected(1)->take_all()->allow_extra_args(false)->check(CLI::Range(int64_t{1}, int64_t{1} << 28));
  add_list(app, "--only", options->only, "only this workload of the suite; of the sweep an op, a type or a pair such as softmax_f32");
  app.add_flag("--tuned-gap", options->tuned_gap, "time the model's schedules beside the best candidates of each kernel");
  app.add_flag("--flush", options->flush, "flush the caches before each call of FILE, and check the results");
  app.add_option("--bytes", options->bytes, "shrink the suite's workloads to at most so many bytes each (default: as they are; 64e6 on the CPU); of the sweep: what each point moves (1e9; 32e6)")->check(not_bytes);
  CLI::Option* runs = app.add_option("--runs", options->runs, "timed calls of each; the median counts (sweep: 11)")->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_flag("!--no-check", options->check, "do not compare with the reference evaluator");
  app.add_flag("--markdown", options->markdown, "print a Markdown table");
  app.add_option("--json", options->json, "also write the figures to this file; - is standard output, and the table goes to standard error");
  add_numerics_option(app, options->execute.numerics);
  add_schedule_option(app, options->execute.schedule);
  add_tuning_option(app, options->execute.tuning);
  app.footer(kFooter);
  return [options, suite, runs] {
    options->runs_given = runs->count() > 0;
    options->is_suite = suite->count() > 0;
    return run(*options);
  };
}

}  // namespace fusec::cli
