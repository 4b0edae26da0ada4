// fusec fuzz: random graphs on devices against the reference evaluator. What fails is shrunk and written as a .fus file whose first
// comment repeats it.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "lib/fuzz/random_graph.h"
#include "lib/fuzz/shrink.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/trial.h"
#include "tools/fusec/workers.h"

namespace fusec::cli {
namespace {

struct FuzzOptions {
  std::string file;                // "": graphs are drawn
  std::vector<std::string> dims;
  uint64_t seed = 0;
  int64_t count = -1;
  double seconds = 0;
  std::vector<std::string> devices;
  std::string directory = ".", planted;
  size_t nodes = 14;
  double elements = 1 << 14;
  int jobs = 1, most = 20, tries = 400, runs = 1;
  bool coverage = false;
  Numerics numerics = Numerics::strict;
};

/// What all processes of a run add up.
struct Counts {
  std::atomic<int64_t> drawn[kOps][kDTypes];  // nodes of each op, by the type of their first operand, or their own
  std::atomic<int64_t> exact, within, free, refused;
};

std::string_view word(Numerics n) { return n == Numerics::fast ? "fast" : n == Numerics::fused ? "fused" : "strict"; }

struct Fuzzer {
  const FuzzOptions& options;
  TrialOptions how;
  std::optional<Graph> graph;  // of the file
  Sizes sizes{};               // of its dims
  Counts* counts = nullptr;

  fuzz::Failing drawn(uint64_t seed) const {
    if (graph) return {*graph, sizes};
    fuzz::GraphOptions graph_options;
    graph_options.max_nodes = options.nodes;
    graph_options.max_elements = options.elements;
    fuzz::Drawn out = fuzz::random_graph(seed, graph_options);
    return {std::move(out.graph), std::move(out.sizes)};
  }

  void count(const Graph& g, const fuzz::Compared& compared) const {
    for (NodeId id = 0; id < g.size(); ++id) {
      const Node& node = g.node(id);
      ++counts->drawn[size_t(node.op)][size_t(node.args.empty() ? node.type.dtype : g.node(node.args[0]).type.dtype)];
    }
    counts->exact += compared.exact, counts->within += compared.within, counts->free += compared.free;
  }

  std::string common_words() const {
    std::string out;
    for (const std::string& device : how.devices) out += " --device " + device;
    if (options.numerics != Numerics::strict) out += " --numerics " + std::string(word(options.numerics));
    if (options.runs > 1) out += " --runs " + std::to_string(options.runs);
    if (!options.planted.empty()) out += " --plant " + options.planted;
    return out;
  }

  /// Shrinks a failure and writes it. `fails` tries a graph with the seed's inputs.
  void report(uint64_t seed, const fuzz::Failing& first, std::string wrong, const std::function<std::string(const fuzz::Failing&)>& attempt) const {
    auto fails = [&](const fuzz::Failing& next) {
      const std::string found = attempt(next);
      if (!found.empty()) wrong = found;
      return !found.empty();
    };
    const fuzz::Failing small = fuzz::shrink(first, fails, options.tries);
    const std::string path = (std::filesystem::path(options.directory) / ("fuzz-" + std::to_string(seed) + ".fus")).lexically_normal().string();
    std::string repeat = "fusec fuzz " + path + " --seed " + std::to_string(seed);
    for (const auto& [name, size] : small.sizes) repeat += " --dim " + name + "=" + std::to_string(size);
    std::string text = "; " + one_line(repeat + common_words()) + "\n; " + one_line(wrong) + "\n";
    if (!graph) text += "; shrunk from: fusec fuzz --seed " + std::to_string(seed) + " --count 1 --nodes " + std::to_string(options.nodes) +
                        " --elements " + std::to_string(int64_t(options.elements)) + one_line(common_words()) + "\n";
    const Status written = write_output(path, text + print(small.graph));
    std::cerr << (path + ": " + printable(one_line(wrong)) + "\n" + (written ? "" : written.error().text() + "\n")) << std::flush;
  }

  bool item(int64_t k) const {
    const uint64_t seed = options.seed + uint64_t(k);
    const fuzz::Failing first = drawn(seed);
    fuzz::Compared compared;
    std::string refused;
    const std::string wrong = trial(how, first.graph, first.sizes, seed, &compared, &refused);
    count(first.graph, compared);
    if (!refused.empty() && counts->refused++ == 0 && graph) std::cerr << ("seed " + std::to_string(seed) + ": " + refused + "\n") << std::flush;
    if (wrong.empty()) return true;
    std::cerr << ("seed " + std::to_string(seed) + ": " + printable(one_line(wrong)).substr(0, 200) + "; shrinking\n") << std::flush;
    report(seed, first, wrong, [&](const fuzz::Failing& next) { return trial(how, next.graph, next.sizes, seed); });
    return false;
  }

  /// A process ended under its graph: each try has one of its own. `end` is in_child's. Graphs that take too long are shrunk with less
  /// patience, and for a few minutes: other graphs wait for this.
  void died(int64_t k, int end) const {
    const uint64_t seed = options.seed + uint64_t(k);
    const std::string wrong = end >= 256 ? "the process was killed by signal " + std::to_string(end - 256) : "the process ended with status " + std::to_string(end);
    const unsigned patience = end == 256 + SIGALRM ? 10 : 120;
    const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    in_child([&] {
      report(seed, drawn(seed), wrong, [&](const fuzz::Failing& next) {
        if (std::chrono::steady_clock::now() > late) return std::string();
        return in_child([&] { return trial(how, next.graph, next.sizes, seed), 0; }, patience) == end ? wrong : std::string();
      });
      return 0;
    }, 3600);
  }
};

void print_coverage(const Counts& counts) {
  for (int o = 0; o < kOps; ++o) {
    if (info(Op(o)).form == Form::reserved) continue;
    std::cout << name(Op(o)) << ":";
    for (int t = 0; t < kDTypes; ++t)
      if (const int64_t n = counts.drawn[o][t]) std::cout << " " << name(DType(t)) << " " << n;
    std::cout << "\n";
  }
}

/// "112 of 112 ops, 15 of 15 dtypes, 900 pairs of them".
std::string drawn_text(const Counts& counts) {
  int ops = 0, of = 0, pairs = 0, types = 0;
  for (int o = 0; o < kOps; ++o) {
    if (info(Op(o)).form == Form::reserved) continue;
    ++of;
    int here = 0;
    for (int t = 0; t < kDTypes; ++t) here += counts.drawn[o][t] > 0;
    ops += here > 0, pairs += here;
  }
  for (int t = 0; t < kDTypes; ++t) {
    bool here = false;
    for (int o = 0; o < kOps; ++o) here |= counts.drawn[o][t] > 0;
    types += here;
  }
  return std::to_string(ops) + " of " + std::to_string(of) + " ops, " + std::to_string(types) + " of " + std::to_string(kDTypes) + " dtypes, " +
         std::to_string(pairs) + " pairs of them";
}

Result<Fuzzer> prepared(const FuzzOptions& options) {
  Fuzzer out{options, {options.devices, options.numerics, options.runs, {}}, {}};
  if (out.how.devices.empty()) out.how.devices = {"cpu"};
  if (!options.planted.empty()) {
    const size_t at = options.planted.find('=');
    const std::optional<Op> from = op(options.planted.substr(0, at)), to = op(at == std::string::npos ? "" : options.planted.substr(at + 1));
    if (!from || !to || info(*from).arity != info(*to).arity)
      return input_error("--plant " + options.planted + ": OP=OP is expected, two ops of equal arity");
    out.how.planted = {*from, *to};
  }
  if (!options.file.empty()) {
    Result<Graph> graph = load_graph(options.file, "");
    if (!graph) return graph.error();
    Result<Sizes> sizes = parse_dims(options.dims);
    if (!sizes) return sizes.error();
    for (const std::string& symbol : graph->symbols())
      if (!sizes->contains(symbol)) return input_error("dim " + symbol + " has no size: give --dim " + symbol + "=16");
    out.graph = std::move(*graph);
    out.sizes = std::move(*sizes);
  }
  std::error_code made;
  if (std::filesystem::create_directories(options.directory, made); made)
    return environment_error("cannot make " + options.directory + ": " + made.message());
  out.counts = static_cast<Counts*>(shared_memory(sizeof(Counts)));
  if (!out.counts) return environment_error("no memory to share between processes");
  return out;
}

int run_fuzz(const FuzzOptions& options) {
  const Result<Fuzzer> fuzzer = prepared(options);
  if (!fuzzer) return fail(fuzzer.error());
  stop_at_signals();
  // Devices are looked at in a child: what a driver or LLVM has set up does not outlive a fork.
  for (const std::string& device : fuzzer->how.devices)
    if (const int status = in_child([&] { const Status there = available(device); return there ? 0 : fail(there.error()); })) return stopped_by() ? 128 + stopped_by() : status;
  if (options.jobs > 1) ::setenv("FUSEC_THREADS", "1", 0);  // the CPU's threads are taken
  const auto start = std::chrono::steady_clock::now();
  WorkerOptions work;
  work.jobs = options.jobs;
  work.count = options.count >= 0 ? options.count : fuzzer->graph ? 1 : 1000;
  work.seconds = options.seconds;
  work.most_failures = options.most;
  bool told = false;
  const bool terminal = ::isatty(2);  // a file of messages is no place for a line that is written over
  auto tell = [&](const Work& now) {
    if (!terminal) return;
    told = true;
    std::cerr << "\r" << now.done << " graphs, " << now.failed << " failed" << std::flush;
  };
  const Work out = run_items(work, [&](int64_t k) { return fuzzer->item(k); }, [&](int64_t k, int end) { fuzzer->died(k, end); }, tell);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (told) std::cerr << "\n";
  const Counts& counts = *fuzzer->counts;
  if (options.coverage) print_coverage(counts);
  std::string devices;
  for (const std::string& device : fuzzer->how.devices) devices += (devices.empty() ? "" : ", ") + device;
  std::cout << "drawn: " << drawn_text(counts) << "; elements held to every bit: " << counts.exact << ", to a bound: " << counts.within
            << ", to nothing: " << counts.free << "\n" << out.done << " graphs on " << devices << ", " << out.failed << " failed, " << fixed(double(out.done) / seconds, 1) << " a second";
  if (counts.refused) std::cout << "; the reference refused " << counts.refused;
  std::cout << "\n";
  if (stopped_by()) return std::cerr << "stopped by signal " << stopped_by() << "\n", 128 + stopped_by();
  if (fuzzer->graph && out.done && counts.refused == out.done) return fail(input_error(options.file + ": the reference evaluates it for no seed"));
  return out.failed ? 1 : 0;
}

}  // namespace

Action add_fuzz(CLI::App& app) {
  auto options = std::make_shared<FuzzOptions>();
  auto seed = [](const std::string& text) { return not_whole(text, UINT64_MAX); };
  app.add_option("FILE", options->file, "a .fus file to try with many inputs; without one, graphs are drawn");
  add_list(app, "--dim", options->dims, "NAME=SIZE, of the file's graph");
  app.add_option("--seed", options->seed, "first seed; graph k, or the file's inputs, have seed + k")->check(seed);
  app.add_option("--count", options->count, "graphs (default: 1000; of a file 1)")
      ->check([](const std::string& text) { return not_whole(text, INT64_MAX); });
  app.add_option("--time", options->seconds, "start no graph after so many seconds")->check(not_seconds);
  add_list(app, "--device", options->devices, "cpu (default), cuda[:N], simt or reference; may repeat");
  add_numerics_option(app, options->numerics);
  app.add_option("--jobs", options->jobs, "processes; what is drawn and found does not depend on it")->check(CLI::Range(1, 1024));
  app.add_option("--runs", options->runs, "calls of each program, all of which have to give the same bits")->check(CLI::Range(1, 1000000));
  app.add_option("--nodes", options->nodes, "about how many nodes a graph has")->check(CLI::Range(1, 1000000));
  app.add_option("--elements", options->elements, "of a value at most")->check(CLI::Range(1.0, 1e9));
  app.add_option("-o,--output", options->directory, "where failing graphs are written");
  app.add_option("--failures", options->most, "stop after so many (default: 20; 0: never)")->check(CLI::Range(0, 1000000000));
  app.add_option("--shrink", options->tries, "smaller graphs to try for a failing one (default: 400; 0: it is written as it is)")
      ->check(CLI::Range(0, 1000000000));
  app.add_flag("--coverage", options->coverage, "print how many nodes of each op and dtype were drawn");
  app.add_option("--plant", options->planted, "OP=OP: hand the devices the second op in place of the first, to see that it is found");
  return [options] { return run_fuzz(*options); };
}

}  // namespace fusec::cli
