#include "tools/fusec/execute.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "lib/ir/bind.h"
#include "lib/ir/convert.h"
#include "lib/support/hash.h"
#include "runtime/backend.h"
#include "runtime/program.h"

namespace fusec::cli {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Tensors in a device's memory. Those of the reference evaluator are used where they are, and so is what a device of the host only
/// reads of a mapped file: a model's weights.
struct Placed {
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<Buffer> buffers;
};

Result<Placed> place(const Backend* device, std::span<const Tensor> tensors, bool upload) {
  Placed out;
  for (const Tensor& t : tensors) {
    void* data = const_cast<std::byte*>(t.data.data());
    const bool here = !device || (t.data.is_view() && !device->name().starts_with("cuda"));
    if (!here) {
      Result<std::unique_ptr<Memory>> memory = device->allocate(t.data.size());
      if (!memory) return memory.error();
      data = (*memory)->data;
      if (Status s = upload && !t.data.empty() ? device->upload(data, t.data.data(), t.data.size()) : Status(Done{}); !s) return s.error();
      out.memory.push_back(std::move(*memory));
    }
    out.buffers.push_back({data, t.extents, {}});
  }
  return out;
}

constexpr double kBeyondCaches = 400e6;  // bytes that no cache of today holds

/// Batches of calls, each of at least a millisecond's work on a GPU: what waiting costs is then shared by the calls of a batch.
Status measure(const Program& program, const std::vector<std::pair<Placed, Placed>>& sets, Timing& timing) {
  const Backend* device = program.impl().backend();
  const bool gpu = program.device().starts_with("cuda");
  size_t next = 0;
  int batch = 1;
  auto once = [&]() -> Status {
    for (int i = 0; i < batch; ++i) {
      const auto& [in, out] = sets[next++ % sets.size()];
      if (Status s = program.run(in.buffers, out.buffers); !s) return s;
    }
    return device ? device->wait(nullptr) : Status(Done{});
  };
  const double first = now();
  for (int i = 0; i < 3; ++i)
    if (Status s = once(); !s) return s;
  const double each = (now() - first) / 3;
  if (gpu) batch = int(std::clamp(1e-3 / each, 1.0, 100.0));
  std::vector<double> times;
  const double start = now();
  while (times.size() < 7 || (now() - start < 0.5 && times.size() < 2000)) {
    const double t = now();
    if (Status s = once(); !s) return s;
    times.push_back((now() - t) / batch);
    if (now() - start > 20) break;
  }
  std::sort(times.begin(), times.end());
  timing.runs = int(times.size()) * batch;
  timing.median = times[times.size() / 2];
  timing.best = times.front();
  timing.spread = (times[times.size() * 9 / 10] - times[times.size() / 10]) / timing.median;
  return Done{};
}

/// The first set of buffers, and, when the timing asks for it, further ones until no cache holds them all.
Status time(const Program& program, std::span<const Tensor> inputs, const std::vector<Tensor>& outputs, Placed& in, Placed& out, Timing& timing) {
  const Backend* device = program.impl().backend();
  std::vector<std::pair<Placed, Placed>> sets;
  const int more = timing.rotate && device ? int(std::clamp(kBeyondCaches / std::max(1.0, timing.bytes), 0.0, 31.0)) : 0;
  for (int i = 0; i < more; ++i) {
    Result<Placed> a = place(device, inputs, true), b = place(device, outputs, false);
    if (!a || !b) return a ? b.error() : a.error();
    sets.emplace_back(std::move(*a), std::move(*b));
  }
  // The first set stays the caller's: its buffers hold the results.
  sets.emplace_back(Placed{{}, in.buffers}, Placed{{}, out.buffers});
  return measure(program, sets, timing);
}

}  // namespace

std::string resolve(const std::string& device) {
  if (device != "auto") return device;
  return backend("auto") ? device : "reference";
}

Status available(const std::string& device) {
  const std::string name = resolve(device);
  if (name == "reference") return Done{};
  Result<std::shared_ptr<const Backend>> found = backend(name);
  return found ? Status(Done{}) : Status(found.error());
}

Result<std::vector<Tensor>> execute(const ExecuteOptions& options, const Graph& graph, std::span<const Tensor> inputs, Timing* timing) {
  const double start = now();
  Result<Program> program = compile(graph, {.device = resolve(options.device), .numerics = options.numerics, .tuning = options.tuning,
                                           .schedule = options.schedule, .switches = options.switches});
  if (!program) return program.error();
  std::vector<std::vector<int64_t>> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    extents.push_back(inputs[i].extents);
    const DType wanted = graph.node(graph.inputs()[i].node).type.dtype;
    if (inputs[i].dtype != wanted)
      return input_error("input %" + graph.inputs()[i].name + " is " + std::string(name(wanted)) + ", not " + std::string(name(inputs[i].dtype)));
  }
  Result<std::vector<std::vector<int64_t>>> shapes = program->output_extents(extents);
  if (!shapes) return shapes.error();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < shapes->size(); ++i) {
    Tensor& t = outputs.emplace_back();
    t.dtype = graph.node(graph.outputs()[i].node).type.dtype;
    t.extents = (*shapes)[i];
    size_t size = bytes(t.dtype);
    for (int64_t extent : t.extents)
      if (__builtin_mul_overflow(size, size_t(extent), &size) || size > size_t{1} << 46) return input_error("an output is larger than any memory");
    t.data.resize(size);
  }
  const Backend* device = program->impl().backend();
  Result<Placed> in = place(device, inputs, true);
  if (!in) return in.error();
  Result<Placed> out = place(device, outputs, false);
  if (!out) return out.error();
  if (Status s = program->run(in->buffers, out->buffers); !s) return s.error();
  if (Status s = device ? device->wait(nullptr) : Status(Done{}); !s) return s.error();
  if (timing) {
    timing->device = program->device();
    timing->compile = now() - start;
    if (device) timing->costs = device->costs();
    for (std::span<const Tensor> side : {inputs, std::span<const Tensor>(outputs)})
      for (const Tensor& t : side) timing->bytes += double(t.data.size());
    if (Status s = time(*program, inputs, outputs, *in, *out, *timing); !s) return s.error();
  }
  for (size_t i = 0; device && i < outputs.size(); ++i)
    if (Status s = device->download(outputs[i].data.data(), out->buffers[i].data, outputs[i].data.size()); !s) return s.error();
  return outputs;
}

std::vector<std::string> test_devices() { return devices(); }

std::pair<std::string, std::string> name_and_file(const std::string& text, const std::vector<std::string>& known) {
  size_t at = text.find('=');
  for (size_t next = at; next != text.npos; next = text.find('=', next + 1))
    if (std::find(known.begin(), known.end(), text.substr(0, next)) != known.end()) at = next;
  return at == text.npos ? std::pair{std::string(), text} : std::pair{text.substr(0, at), text.substr(at + 1)};
}

Result<Tensors> read_inputs(const std::vector<std::string>& specs, const Graph* graph) {
  Tensors given;
  std::optional<std::string> twice;
  std::vector<std::string> known;
  for (size_t i = 0; graph && i < graph->inputs().size(); ++i) known.push_back(graph->inputs()[i].name);
  const auto give = [&](const std::string& name, Tensor tensor) {
    if (!given.emplace(name, std::move(tensor)).second) twice = name;
  };
  for (const std::string& spec : specs) {
    const auto [name, file] = name_and_file(spec, known);
    if (file.empty()) return input_error("-i " + spec + ": NAME=FILE is expected");
    if (name.empty()) {
      Result<Tensors> tensors = read_tensors(file);
      if (!tensors) return tensors.error();
      const bool nameless = graph && graph->inputs().size() == 1 && tensors->size() == 1;
      for (auto& [n, tensor] : *tensors) give(n.empty() && nameless ? graph->inputs()[0].name : n, std::move(tensor));
    } else {
      std::optional<DType> wanted;
      for (size_t i = 0; graph && i < graph->inputs().size(); ++i)
        if (graph->inputs()[i].name == name) wanted = graph->node(graph->inputs()[i].node).type.dtype;
      Result<Tensor> tensor = read_tensor(file, wanted);
      if (!tensor) return tensor.error();
      give(name, std::move(*tensor));
    }
    if (twice) return input_error("-i " + spec + ": input %" + *twice + " is given already");
  }
  return given;
}

std::vector<std::string> dims_of(const Graph& graph, const std::vector<std::string>& dims) {
  std::vector<std::string> out;
  for (const std::string& dim : dims)
    for (const std::string& symbol : graph.symbols())
      if (dim.starts_with(symbol + "=")) out.push_back(dim);
  return out;
}

Result<Sizes> parse_dims(const std::vector<std::string>& dims) {
  Sizes sizes;
  for (const std::string& dim : dims) {
    const size_t at = dim.rfind('=');
    int64_t size = -1;
    if (at != dim.npos) {
      const auto [end, error] = std::from_chars(dim.data() + at + 1, dim.data() + dim.size(), size);
      if (error != std::errc() || end != dim.data() + dim.size()) size = -1;
    }
    if (size < 0) return input_error("--dim " + dim + ": NAME=SIZE is expected, a size from 0 to 2^63 - 1");
    const auto [known, fresh] = sizes.emplace(dim.substr(0, at), size);
    if (!fresh && known->second != size) return input_error("--dim " + dim + ": it is also " + std::to_string(known->second));
  }
  return sizes;
}

Result<Inputs> complete_inputs(const Graph& graph, Tensors given, const std::vector<std::string>& dims, uint64_t seed) {
  Result<Sizes> sizes = parse_dims(dims);
  if (!sizes) return sizes.error();
  const std::vector<std::string> symbols = graph.symbols();
  for (const auto& [name, size] : *sizes)
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) return input_error("graph @" + graph.name() + " has no dim " + name);
  for (const Port& port : graph.inputs()) {
    auto found = given.find(port.name);
    const Shape& shape = graph.node(port.node).type.shape;
    if (found == given.end() || found->second.extents.size() != shape.size()) continue;  // a wrong rank is bind's to report
    for (size_t k = 0; k < shape.size(); ++k)
      if (const std::vector<std::string> names = shape[k].symbols(); names.size() == 1 && shape[k] == Dim::symbol(names[0]))
        if (const auto [known, fresh] = sizes->emplace(names[0], found->second.extents[k]); !fresh && known->second != found->second.extents[k])
          return input_error("dim " + names[0] + " is " + std::to_string(found->second.extents[k]) + " in the file of %" + port.name +
                             ", and " + std::to_string(known->second) + " elsewhere");
  }
  for (bool more = true; more;) {  // 2*N and M*N, where one dim is not known yet
    more = false;
    for (const Port& port : graph.inputs()) {
      auto found = given.find(port.name);
      const Shape& shape = graph.node(port.node).type.shape;
      if (found == given.end() || found->second.extents.size() != shape.size()) continue;
      for (size_t k = 0; k < shape.size(); ++k)
        if (const auto solved = solve_dim(shape[k], found->second.extents[k], *sizes)) more |= sizes->insert(*solved).second;
    }
  }
  for (const Port& port : graph.inputs()) {  // the same, of dims that are known now
    auto found = given.find(port.name);
    const Shape& shape = graph.node(port.node).type.shape;
    if (found == given.end() || found->second.extents.size() != shape.size()) continue;
    for (size_t k = 0; k < shape.size(); ++k)
      if (const auto extent = shape[k].value(*sizes);
          extent && !shape[k].symbols().empty() && *extent != found->second.extents[k])
        return input_error("axis " + std::to_string(k) + " of %" + port.name + " is " + std::to_string(found->second.extents[k]) +
                           " in its file, and " + shape[k].text() + " is " + std::to_string(*extent));
  }
  Inputs out;
  for (const Port& port : graph.inputs()) {
    const Type& type = graph.node(port.node).type;
    if (auto found = given.find(port.name); found != given.end()) {
      if (found->second.dtype != type.dtype)
        return input_error("input %" + port.name + " is " + std::string(name(type.dtype)) + ", its file holds " + std::string(name(found->second.dtype)));
      out.values.push_back(std::move(found->second));
      continue;
    }
    std::vector<int64_t> extents;
    int64_t count = int64_t(bytes(type.dtype));
    for (const Dim& dim : type.shape) {
      const std::optional<int64_t> extent = dim.value(*sizes);
      if (!extent || *extent < 0) {
        std::string missing;
        for (const std::string& s : dim.symbols())
          if (!sizes->contains(s)) missing = s;
        if (missing.empty()) return input_error("the extent " + dim.text() + " of %" + port.name + " has no sensible value");
        return input_error("dim " + missing + " of %" + port.name + " has no size: give --dim " + missing + "=1024, or an input that has it");
      }
      extents.push_back(*extent);
    }
    const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
    for (const int64_t extent : extents)
      if (!empty && (__builtin_mul_overflow(count, extent, &count) || count > int64_t{1} << 40))
        return input_error("input %" + port.name + " is too large to draw");
    out.values.push_back(draw(port.name, type.dtype, std::move(extents), seed));
    out.drawn.push_back(port.name);
  }
  return out;
}

void add_numerics_option(CLI::App& app, Numerics& numerics) {
  auto set = [&numerics](const std::string& word) {
    numerics = word == "fast" ? Numerics::fast : word == "fused" ? Numerics::fused : Numerics::strict;
  };
  app.add_option_function<std::string>("--numerics", set, "strict: fusing changes no bit; fused: narrow intermediates stay f32; fast: approximations too")
      ->check(CLI::IsMember(std::vector<std::string>{"strict", "fused", "fast"}));
}

Tensor draw(const std::string& name, DType dtype, std::vector<int64_t> extents, uint64_t seed) {
  Tensor out{dtype, std::move(extents), {}};
  const int64_t count = out.elements();
  out.data.resize(count * bytes(dtype));
  uint64_t state = Hasher().add(seed).add(name).value() | 1;
  auto next = [&state] {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * 0x2545f4914f6cdd1d;
  };
  constexpr int64_t kChunk = 4096;
  std::vector<double> chunk(kChunk);
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t n = std::min(kChunk, count - at);
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t r = next();
      if (dtype == DType::boolean) chunk[i] = r >> 63;
      else if (is_integer(dtype)) chunk[i] = double((r >> 32) % 17) - (is_signed(dtype) ? 8 : 0);
      else {
        // Irwin-Hall of four 16-bit uniforms: mean 2, variance 1/3.
        double sum = 0;
        for (int k = 0; k < 4; ++k) sum += double((r >> (16 * k)) & 0xffff) / 65536;
        chunk[i] = (sum - 2) * std::sqrt(3.0);
      }
    }
    convert(DType::f64, reinterpret_cast<const std::byte*>(chunk.data()), dtype, out.data.data() + at * bytes(dtype), n);
  }
  return out;
}

}  // namespace fusec::cli
