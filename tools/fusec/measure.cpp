#include "tools/fusec/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <semaphore>
#include <thread>
#include <utility>

#include "lib/ir/convert.h"
#include "runtime/program.h"
#include "tools/fusec/check.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/kernels.h"
#include "tools/fusec/slices.h"

namespace fusec::cli {
namespace {

constexpr int64_t kDrawn = 4194301;  // elements that are drawn of an input (a prime); a larger one repeats them

/// An input: what was drawn of it, which the device holds over and over.
struct Drawn {
  const Tensor* block;
  std::vector<int64_t> extents;
  std::unique_ptr<Memory> memory;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
  }
  /// Appends elements [first, first + count) of the whole.
  void copy_to(std::vector<std::byte>& to, int64_t first, int64_t count) const {
    const int64_t size = int64_t(bytes(block->dtype)), period = block->elements();
    while (count > 0) {
      const int64_t at = first % period, n = std::min(count, period - at);
      to.insert(to.end(), block->data.begin() + at * size, block->data.begin() + (at + n) * size);
      first += n, count -= n;
    }
  }
};

void make_positive(Tensor& t) {
  if (!is_float(t.dtype)) return;
  std::vector<double> values(t.elements());
  convert(t.dtype, t.data.data(), DType::f64, reinterpret_cast<std::byte*>(values.data()), int64_t(values.size()));
  for (double& x : values) x = std::abs(x) + 1;
  convert(DType::f64, reinterpret_cast<const std::byte*>(values.data()), t.dtype, t.data.data(), int64_t(values.size()));
}

Result<std::vector<int64_t>> extents_of(const Type& type, const Sizes& sizes) {
  std::vector<int64_t> out;
  int64_t size = int64_t(bytes(type.dtype));
  for (const Dim& dim : type.shape) {
    const std::optional<int64_t> extent = dim.value(sizes);
    if (!extent || *extent < 0) return input_error("the dim " + dim.text() + " has no size: give --dim");
    out.push_back(*extent);
    if (__builtin_mul_overflow(size, *extent, &size) || size > int64_t{1} << 40) return input_error("a tensor is too large to measure");
  }
  return out;
}

/// An input in the device's memory.
Status put(const Backend& device, Drawn& out) {
  const int64_t all = out.elements(), size = int64_t(bytes(out.block->dtype));
  Result<std::unique_ptr<Memory>> memory = device.allocate(size_t(all * size));
  if (!memory) return memory.error();
  out.memory = std::move(*memory);
  std::byte* to = static_cast<std::byte*>(out.memory->data);
  if (all == 0) return Done{};
  if (Status s = device.upload(to, out.block->data.data(), out.block->data.size()); !s) return s;
  for (int64_t there = out.block->elements(); there < all;) {
    const int64_t n = std::min(there, all - there);
    if (Status s = device.copy(to + there * size, to, size_t(n * size), nullptr); !s) return s;
    there += n;
  }
  return Done{};
}

struct Place {
  std::vector<Drawn> inputs;
  std::vector<std::unique_ptr<Memory>> outputs;
  std::vector<std::vector<int64_t>> output_extents;
  std::vector<Buffer> in, out;
  double bytes = 0;
  int64_t elements = 0;
};

using Draw = std::function<const Tensor&(const std::string& name, DType type, int64_t count, bool positive)>;

Result<Place> place(const Backend& device, const Graph& graph, const Subject& subject, const Draw& draw) {
  Place p;
  for (const Port& port : graph.inputs()) {
    const Type& type = graph.node(port.node).type;
    Result<std::vector<int64_t>> extents = extents_of(type, subject.sizes);
    if (!extents) return extents.error();
    Drawn made{nullptr, std::move(*extents), nullptr};
    const bool positive = std::find(subject.positive.begin(), subject.positive.end(), port.name) != subject.positive.end();
    made.block = &draw(port.name, type.dtype, std::min(made.elements(), kDrawn), positive);
    if (Status s = put(device, made); !s) return s.error();
    p.elements += made.elements();
    p.bytes += double(made.elements()) * double(fusec::bytes(type.dtype));
    p.inputs.push_back(std::move(made));
  }
  for (const Port& port : graph.outputs()) {
    const Type& type = graph.node(port.node).type;
    Result<std::vector<int64_t>> extents = extents_of(type, subject.sizes);
    if (!extents) return extents.error();
    int64_t n = 1;
    for (int64_t e : *extents) n *= e;
    const size_t size = size_t(n) * fusec::bytes(type.dtype);
    Result<std::unique_ptr<Memory>> memory = device.allocate(size);
    if (!memory) return memory.error();
    if (Status s = device.fill((*memory)->data, 0x7f, size, nullptr); !s) return s.error();
    p.elements += n, p.bytes += double(size);
    p.outputs.push_back(std::move(*memory));
    p.output_extents.push_back(std::move(*extents));
  }
  for (const Drawn& d : p.inputs) p.in.push_back({d.memory->data, d.extents, {}});
  for (size_t i = 0; i < p.outputs.size(); ++i) p.out.push_back({p.outputs[i]->data, p.output_extents[i], {}});
  return p;
}

/// The graph that is checked, with what it is given and what the device made of it.
struct Sample {
  Graph graph;
  std::vector<Tensor> inputs, outputs;
  std::string what;
};

Result<Sample> sample(const Backend& device, const Graph& graph, const Subject& subject, const Place& p, int64_t wanted) {
  int64_t kept = 0;
  std::vector<Run> chosen;
  if (p.elements > 4 * wanted && subject.rows > 1) {
    kept = std::clamp<int64_t>(int64_t(double(wanted) * double(subject.rows) / double(p.elements)), 1, subject.rows);
    if (subject.rows >= 3 && p.elements / subject.rows * 3 <= 2 * wanted) kept = std::max<int64_t>(kept, 3);
    chosen = spread_out(subject.rows, kept);
  }
  const int64_t cut = kept ? subject.rows : -1;
  Result<Graph> small = kept ? parse(with_extent(subject.text, subject.rows, kept)) : Result<Graph>(graph);
  if (!small) return small.error().note("while cutting rows out of the graph");
  Sample out{std::move(*small), {}, {}, kept ? std::to_string(kept) + " of " + std::to_string(subject.rows) + " rows" : "whole"};
  auto extents = [&](std::vector<int64_t> e) {
    for (int64_t& n : e)
      if (n == cut) n = kept;
    return e;
  };
  for (const Drawn& d : p.inputs) {
    Tensor& t = out.inputs.emplace_back(Tensor{d.block->dtype, extents(d.extents), {}});
    each_run(d.extents, cut, chosen, [&](int64_t first, int64_t count) { d.copy_to(t.data.own(), first, count); });
  }
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const DType type = graph.node(graph.outputs()[i].node).type.dtype;
    const int64_t size = int64_t(fusec::bytes(type));
    Tensor& t = out.outputs.emplace_back(Tensor{type, extents(p.output_extents[i]), {}});
    t.data.resize(size_t(t.elements() * size));
    size_t at = 0;
    Status done = Done{};
    each_run(p.output_extents[i], cut, chosen, [&](int64_t first, int64_t count) {
      if (done) done = device.download(t.data.data() + at, static_cast<const std::byte*>(p.outputs[i]->data) + first * size, size_t(count * size));
      at += size_t(count * size);
    });
    if (!done) return done.error();
  }
  return out;
}

Result<Checked> check_sample(const Sample& taken, Numerics numerics) {
  Result<CheckReport> report = check(taken.graph, taken.inputs, taken.outputs, numerics);
  if (!report) return report.error();
  Checked out{report->good, taken.what + (report->good ? ", right" : ", WRONG: " + report->text)};
  while (out.text.ends_with('\n')) out.text.pop_back();
  return out;
}

/// As many comparisons at a time as there are cores.
Result<Checked> check_in_turn(Sample taken, Numerics numerics) {
  static std::counting_semaphore<> free(std::max(1u, std::thread::hardware_concurrency()));
  free.acquire();
  Result<Checked> out = check_sample(taken, numerics);
  free.release();
  return out;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int64_t Figures::registers() const {
  int64_t most = -1;
  for (const KernelFigures& k : kernels) most = std::max(most, k.registers);
  return most;
}
int64_t Figures::spill_bytes() const {
  int64_t sum = -1;
  for (const KernelFigures& k : kernels)
    if (k.spill_bytes >= 0) sum = std::max<int64_t>(sum, 0) + k.spill_bytes;
  return sum;
}
int64_t Figures::compile_us() const {
  int64_t sum = -1;
  for (const KernelFigures& k : kernels)
    if (k.compile_us >= 0) sum = std::max<int64_t>(sum, 0) + k.compile_us;
  return sum;
}

const Tensor& Measurer::drawn(const std::string& name, DType type, int64_t count, bool positive) {
  const std::string key = name + " " + std::string(fusec::name(type)) + " " + std::to_string(count) + (positive ? "+" : "");
  auto [at, fresh] = drawn_.emplace(key, Tensor{});
  if (fresh) {
    at->second = draw(name, type, {count}, 0);
    if (positive) make_positive(at->second);
  }
  return at->second;
}

Result<Program> Measurer::compile(const Subject& subject, const MeasureOptions& options) const {
  Result<Graph> graph = parse(subject.text);
  if (!graph) return graph.error();
  CompileOptions with = options.compile;
  with.device = device_.name(), with.sizes = subject.sizes;
  return fusec::compile(*graph, with);
}

/// From the key of the first kernel, through the entry on disk and the driver, to its launch: the median of a few, each with a cache that
/// holds nothing in memory.
Result<double> Measurer::from_disk(const Program& program, const Subject& subject, const MeasureOptions& options, const PackedCall& call,
                                   std::span<const uintptr_t> pointers) const {
  KernelOptions plain;
  plain.numerics = options.compile.numerics, plain.schedule = options.compile.schedule, plain.tuning = options.compile.tuning;
  for (const auto& [name, size] : subject.sizes) plain.dims.push_back(name + "=" + std::to_string(size));
  Result<Planned> planned = plan_kernels(program.graph(), plain, device_);
  if (!planned) return planned.error();
  if (planned->kernels.empty() || call.steps.size() != planned->kernels.size()) return 0.0;
  const PlannedKernel& kernel = planned->kernels.front();
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    Cache fresh(CacheOptions{.warn = false});
    if (!fresh.directory()) return 0.0;
    const double start = now();
    Result<std::shared_ptr<const Loaded>> code = device_.load(kernel.kernel, kernel.schedule(), fresh);
    if (!code) return code.error();
    PackedCall one = call;
    one.steps.resize(1);
    one.steps[0].code = *code;
    if (Status s = program.impl().start_at(one, pointers, nullptr); !s) return s.error();
    const double took = now() - start;
    if (Status s = device_.wait(nullptr); !s) return s.error();
    if (fresh.stats().compilations == 0) times.push_back(took);
  }
  return times.empty() ? 0.0 : spread(std::move(times)).median;
}

Result<Figures> Measurer::measure(const Subject& subject, const MeasureOptions& options, std::future<Result<Checked>>* later) {
  const double start = now();
  Result<Program> program = compile(subject, options);
  if (!program) return program.error();
  const double compiled = now() - start;
  Result<Figures> out = measure(*program, subject, options, later);
  if (out) out->compile += compiled;
  return out;
}

Result<Figures> Measurer::measure(const Program& program, const Subject& subject, const MeasureOptions& options, std::future<Result<Checked>>* later) {
  const Graph& graph = program.graph();
  Figures out;
  Result<Place> placed = place(device_, graph, subject, [this](const std::string& name, DType type, int64_t count, bool positive) -> const Tensor& {
    return drawn(name, type, count, positive);
  });
  if (!placed) return placed.error();
  const Place& p = *placed;
  out.bytes = p.bytes;
  settle(device_, std::exchange(returned_, p.bytes));
  if (Status s = device_.wait(nullptr); !s) return s.error();
  const double first = now();
  const std::function<Status()> call = [&] { return program.run(p.in, p.out); };
  if (Status s = call(); !s) return s.error();
  if (Status s = device_.wait(nullptr); !s) return s.error();
  out.compile = now() - first;
  if (options.check) {
    Result<Sample> taken = sample(device_, graph, subject, p, options.check_elements);
    if (!taken) return taken.error();
    if (later) {
      *later = std::async(std::launch::async, check_in_turn, std::move(*taken), options.compile.numerics);
    } else {
      Result<Checked> checked = check_sample(*taken, options.compile.numerics);
      if (!checked) return checked.error();
      out.checked = true, out.good = checked->good, out.check = std::move(checked->text);
    }
  }
  Result<std::shared_ptr<const PackedCall>> packed = program.impl().packed_call(p.in, p.out);
  if (!packed) return packed.error();
  size_t arguments = 0;
  for (const PackedStep& step : (*packed)->steps) {
    const Artifact& a = *step.code->artifact;
    auto fact = [&](const char* key) {
      auto found = a.facts.find(key);
      return found == a.facts.end() ? int64_t{-1} : found->second;
    };
    out.kernels.push_back({a.entry, print(a.schedule), fact("registers"), fact("spill_bytes"), fact("compile_us"),
                           device_.occupancy(a, step.launch).fraction});
    arguments = std::max<size_t>(arguments, step.bytes);
  }
  for (int i = 0; i < 2; ++i)
    if (Status s = call(); !s) return s.error();
  Result<std::vector<double>> times = device_.time(options.runs, [&] { return flush_(); }, call);
  if (!times) return times.error();
  out.time = spread(std::move(*times));
  if (options.host && is_gpu(device_)) {
    Result<std::function<Status()>> empty = device_.empty_launch(arguments);
    if (!empty) return empty.error();
    Result<Prepared> prepared = program.prepare(p.in, p.out);
    if (!prepared) return prepared.error();
    Result<std::vector<double>> host = host_times(device_, {call, *empty, [&] { return prepared->replay(); }});
    if (!host) return host.error();
    out.host = (*host)[0], out.bare = (*host)[1], out.replay = (*host)[2];
    if ((*packed)->workspace() == 0) {
      std::vector<uintptr_t> pointers;
      for (const std::vector<Buffer>& side : {p.in, p.out})
        for (const Buffer& b : side) pointers.push_back(reinterpret_cast<uintptr_t>(b.data));
      pointers.resize(pointers.size() + 3, 0);
      Result<double> disk = from_disk(program, subject, options, **packed, pointers);
      if (!disk) return disk.error();
      out.from_disk = *disk;
    }
  }
  return out;
}

Result<std::vector<double>> Measurer::kernel_times(const Program& program, const Subject& subject, int runs) {
  Result<Place> placed = place(device_, program.graph(), subject, [this](const std::string& name, DType type, int64_t count, bool positive) -> const Tensor& {
    return drawn(name, type, count, positive);
  });
  if (!placed) return placed.error();
  const Place& p = *placed;
  settle(device_, std::exchange(returned_, p.bytes));
  // The whole call once, so that what each kernel reads is there.
  if (Status s = program.run(p.in, p.out); !s) return s.error();
  Result<std::shared_ptr<const PackedCall>> packed = program.impl().packed_call(p.in, p.out);
  if (!packed) return packed.error();
  std::unique_ptr<Memory> workspace;
  if ((*packed)->workspace() > 0) {
    Result<std::unique_ptr<Memory>> memory = device_.allocate((*packed)->workspace());
    if (!memory) return memory.error();
    workspace = std::move(*memory);
  }
  const uintptr_t counters = workspace ? reinterpret_cast<uintptr_t>(workspace->data) : 0;
  std::vector<uintptr_t> pointers;
  for (const std::vector<Buffer>& side : {p.in, p.out})
    for (const Buffer& b : side) pointers.push_back(reinterpret_cast<uintptr_t>(b.data));
  for (uintptr_t pointer : {counters ? counters + (*packed)->counters() : 0, counters, uintptr_t{0}}) pointers.push_back(pointer);
  std::vector<double> out;
  for (const PackedStep& step : (*packed)->steps) {
    PackedCall one = **packed;
    one.steps = {step};
    const std::function<Status()> call = [&] { return program.impl().start_at(one, pointers, nullptr); };
    for (int i = 0; i < 3; ++i)
      if (Status s = call(); !s) return s.error();
    Result<std::vector<double>> times = device_.time(runs, [&] { return flush_(); }, call);
    if (!times) return times.error();
    out.push_back(spread(std::move(*times)).median);
  }
  return out;
}

}  // namespace fusec::cli
