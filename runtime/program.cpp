// A call: its signature (sizes, strides, alignments) finds what was worked out for it, its pointers are checked and patched in, the
// kernels start. Everything that takes longer happens the first time a signature is seen.

#include "runtime/program.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "lib/support/caught.h"
#include "lib/support/hash.h"
#include "runtime/inspect.h"
#include "runtime/log.h"
#include "runtime/strided.h"

namespace fusec {
namespace {

constexpr size_t kMemo = 4096;  // kinds of calls remembered; then all are forgotten, the code stays

std::string port_text(const char* what, const Graph& graph, size_t i) {
  const Port& port = std::string_view(what) == "input" ? graph.inputs()[i] : graph.outputs()[i];
  return std::string(what) + " " + (port.name.empty() ? std::to_string(i) : "%" + port.name);
}

/// Does any index of such a buffer stay below 2^60 bytes from its first element? Everything after this may multiply freely. An extent of 0
/// counts as 1, as in numpy: an empty buffer reaches nothing, but others are made of the rest of its extents.
bool reachable(const CallBuffer& buffer, size_t element) {
  int64_t reach = int64_t(element), count = int64_t(element);
  constexpr int64_t kMost = int64_t{1} << 60;
  for (size_t k = 0; k < buffer.extents.size(); ++k) {
    int64_t step = 0;
    const int64_t extent = std::max<int64_t>(buffer.extents[k], 1);
    if (__builtin_mul_overflow(count, extent, &count) || count > kMost) return false;
    if (buffer.strides[k] == INT64_MIN || __builtin_mul_overflow(std::abs(buffer.strides[k]), extent - 1, &step)) return false;
    if (__builtin_mul_overflow(step, int64_t(element), &step) || __builtin_add_overflow(reach, step, &reach) || reach > kMost) return false;
  }
  return true;
}

const Type& type_of(const Graph& graph, std::span<const Port> ports, size_t i) { return graph.node(ports[i].node).type; }

}  // namespace

/// What one thread needs during a call; kept, so that warm calls allocate nothing.
struct Program::Impl::Scratch {
  std::vector<int64_t> key;
  std::vector<uintptr_t> pointers;  // inputs, outputs, arena, counters, zero
  Aliases aliases;
  std::vector<std::pair<uintptr_t, uint32_t>> begins;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> args;
  std::vector<Region> regions;
};

namespace {

/// The thread's scratch, or, when a call is under way on this thread already (a host's parallel loop may run other work of its own,
/// another call among it), a fresh one.
template <class Scratch>
class Leased {
 public:
  Leased() {
    thread_local Scratch kept;
    thread_local bool taken = false;
    if (taken) fresh_ = std::make_unique<Scratch>();
    else taken_ = &taken;
    if (taken_) *taken_ = true;
    scratch_ = fresh_ ? fresh_.get() : &kept;
  }
  ~Leased() {
    if (taken_) *taken_ = false;
  }
  Leased(const Leased&) = delete;
  Scratch& operator*() { return *scratch_; }

 private:
  Scratch* scratch_;
  bool* taken_ = nullptr;
  std::unique_ptr<Scratch> fresh_;
};

}  // namespace

size_t Program::Impl::Hash::operator()(const std::vector<int64_t>& key) const noexcept {
  return hash_bytes(key.data(), key.size() * sizeof(int64_t));
}

Program::Impl::Impl(ProgramPlan plan, std::shared_ptr<const Backend> backend, const CompileOptions& options, std::unique_ptr<Trace> trace)
    : trace_(std::move(trace)), plan_(std::move(plan)), backend_(std::move(backend)), options_(options), device_(backend_ ? backend_->name() : "reference") {
  if (!options.cache || !backend_) own_cache_ = std::make_unique<Cache>(CacheOptions{.path = ""});
  cache_ = own_cache_ ? own_cache_.get() : &Cache::shared();
  steps_.resize(plan_.steps.size());
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].step = &plan_.steps[i];
  alias_steps_.resize(plan_.source->outputs().size());
  alias_copies_.resize(alias_steps_.size());
  for (size_t i = 0; i < alias_steps_.size(); ++i) alias_copies_[i].step = &alias_steps_[i];
}

Status Program::Impl::prepare() {
  Result<Chooser> chooser = Chooser::make(options_.schedule, options_.tuning);
  if (!chooser) return chooser.error();
  chooser_ = std::move(*chooser);
  if (Status fits = chooser_.fits(plan_.steps.size()); !fits) return fits;
  if (!backend_) return Done{};
  for (NodeId id : plan_.constants) {
    const Tensor& value = *plan_.graph->node(id).attrs->value;
    Result<std::unique_ptr<Memory>> memory = backend_->allocate(value.data.size());
    if (!memory) return memory.error().note("while holding a constant of graph @" + plan_.source->name());
    if (Status done = backend_->upload((*memory)->data, value.data.data(), value.data.size()); !done) return done;
    constants_.push_back(std::move(*memory));
  }
  const std::vector<std::string> symbols = plan_.source->symbols();
  for (const auto& [name, size] : options_.sizes) {
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) return input_error("graph @" + plan_.source->name() + " has no dim " + name);
    if (size < 0) return input_error("dim " + name + " cannot be " + std::to_string(size));
  }
  // What no kernel can do is said now, also where sizes are not known yet.
  for (StepKernels& step : steps_) {
    const std::vector<Layout> in(step.step->inputs.size()), out(step.step->outputs.size());
    if (Result<StepKernels::Variant*> built = variant(step, in, out, options_.numerics); !built)
      return built.error().note("while compiling graph @" + plan_.source->name());
  }
  if (!options_.ahead || options_.sizes.size() != symbols.size()) return Done{};
  // The dense, aligned call. Its code is what the first call finds; misaligned pointers are prepared beside it.
  CallShape shape;
  shape.sizes = options_.sizes;
  auto dense = [&](std::span<const Port> ports, std::vector<CallBuffer>& to) -> Status {
    for (size_t i = 0; i < ports.size(); ++i) {
      CallBuffer& buffer = to.emplace_back();
      for (const Dim& dim : type_of(*plan_.source, ports, i).shape) {
        const std::optional<int64_t> extent = dim.value(shape.sizes);
        if (!extent || *extent < 0) return input_error("dim " + dim.text() + " has no sensible value with these sizes");
        buffer.extents.push_back(*extent);
      }
      buffer.strides = canonical_strides(buffer.extents, dense_strides(buffer.extents));
      buffer.address = 0;
    }
    return Done{};
  };
  if (Status s = dense(plan_.source->inputs(), shape.inputs); !s) return s;
  if (Status s = dense(plan_.source->outputs(), shape.outputs); !s) return s;
  Result<PackedCall> packed = pack_now(shape);
  if (!packed) return packed.error().note("while compiling graph @" + plan_.source->name() + " for " + device_);
  return Done{};
}

Result<PackedCall> Program::Impl::pack_now(const CallShape& shape) {
  std::lock_guard lock(packing_);
  return pack({plan_, *backend_, *cache_, options_.numerics, options_.ahead, chooser_, steps_, alias_copies_, alias_steps_, constants_, *trace_}, shape);
}

Status Program::Impl::check_count(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
  const Graph& graph = *plan_.source;
  if (inputs.size() != graph.inputs().size())
    return input_error("graph @" + graph.name() + " has " + std::to_string(graph.inputs().size()) + " inputs, the call " + std::to_string(inputs.size()));
  if (outputs.size() != graph.outputs().size())
    return input_error("graph @" + graph.name() + " has " + std::to_string(graph.outputs().size()) + " outputs, the call " +
                       std::to_string(outputs.size()));
  return Done{};
}

Result<CallShape> Program::Impl::describe(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
  const Graph& graph = *plan_.source;
  CallShape shape;
  auto given = [&](const Buffer& buffer, const char* what, size_t i, size_t rank, std::vector<int64_t> extents) -> Result<CallBuffer> {
    CallBuffer out;
    out.extents = std::move(extents);
    if (out.extents.size() != rank)
      return input_error(port_text(what, graph, i) + " has rank " + std::to_string(rank) + ", its buffer " + std::to_string(out.extents.size()));
    for (int64_t extent : out.extents)
      if (extent < 0) return input_error(port_text(what, graph, i) + ": a negative extent");
    if (buffer.strides.empty()) out.strides = dense_strides(out.extents);
    else out.strides.assign(buffer.strides.begin(), buffer.strides.end());
    if (out.strides.size() != rank) return input_error(port_text(what, graph, i) + ": " + std::to_string(rank) + " strides are expected");
    out.strides = canonical_strides(out.extents, out.strides);
    const Type& type = type_of(graph, std::string_view(what) == "input" ? graph.inputs() : graph.outputs(), i);
    if (!reachable(out, bytes(type.dtype))) return input_error(port_text(what, graph, i) + ": its extents and strides reach beyond any memory");
    const uintptr_t address = reinterpret_cast<uintptr_t>(buffer.data);
    out.address = uintptr_t{1} << std::min(7, std::countr_zero(address | 128));
    return out;
  };
  std::vector<std::vector<int64_t>> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& type = type_of(graph, graph.inputs(), i);
    Result<CallBuffer> buffer = given(inputs[i], "input", i, type.shape.size(), {inputs[i].extents.begin(), inputs[i].extents.end()});
    if (!buffer) return buffer.error();
    extents.push_back(buffer->extents);
    shape.inputs.push_back(std::move(*buffer));
  }
  Result<Sizes> sizes = fusec::bind(graph, extents);
  if (!sizes) return sizes.error();
  shape.sizes = std::move(*sizes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& type = type_of(graph, graph.outputs(), i);
    std::vector<int64_t> wanted;
    for (const Dim& dim : type.shape) {
      const std::optional<int64_t> extent = dim.value(shape.sizes);
      if (!extent || *extent < 0) return input_error(port_text("output", graph, i) + ": the extent " + dim.text() + " has no sensible value");
      wanted.push_back(*extent);
    }
    std::vector<int64_t> own(outputs[i].extents.begin(), outputs[i].extents.end());
    if (!own.empty() && own != wanted) {
      auto text = [](const std::vector<int64_t>& e) {
        std::string out;
        for (int64_t n : e) out += (out.empty() ? "" : ",") + std::to_string(n);
        return "[" + out + "]";
      };
      return input_error(port_text("output", graph, i) + " is " + text(wanted) + " in this call, its buffer " + text(own));
    }
    Result<CallBuffer> buffer = given(outputs[i], "output", i, type.shape.size(), wanted);
    if (!buffer) return buffer.error();
    if (overlaps_itself({nullptr, buffer->extents, buffer->strides, bytes(type.dtype)}))
      return input_error(port_text("output", graph, i) + ": its strides put several elements in one place");
    shape.outputs.push_back(std::move(*buffer));
  }
  return shape;
}

void Program::Impl::sign(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  std::vector<int64_t>& key = scratch.key;
  key.clear();
  for (std::span<const Buffer> side : {inputs, outputs})
    for (const Buffer& buffer : side) {
      const int align = std::min(7, std::countr_zero(reinterpret_cast<uintptr_t>(buffer.data) | 128));
      key.push_back(align | int64_t(buffer.extents.size()) << 8 | int64_t(buffer.strides.size()) << 32);
      key.insert(key.end(), buffer.extents.begin(), buffer.extents.end());
      key.insert(key.end(), buffer.strides.begin(), buffer.strides.end());
    }
}

Result<std::shared_ptr<const PackedCall>> Program::Impl::known(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
  std::shared_lock lock(memo_mutex_);
  const auto found = memo_.find(scratch.key);
  if (found == memo_.end()) return std::shared_ptr<const PackedCall>();
  if (Status good = find_aliases(scratch, *found->second, inputs, outputs); !good) return good.error();
  return found->second->find(scratch.aliases);
}

Result<std::shared_ptr<Program::Impl::CallKind>> Program::Impl::kind(Scratch& scratch, std::span<const Buffer> inputs,
                                                                    std::span<const Buffer> outputs, void* stream) {
  const std::vector<int64_t>& key = scratch.key;
  {
    std::shared_lock lock(memo_mutex_);
    if (auto found = memo_.find(key); found != memo_.end()) return found->second;
  }
  ++cold_;
  if (Status may = backend_->may_prepare(stream); !may) return may.error();
  Result<CallShape> shape = describe(inputs, outputs);
  if (!shape) return shape.error();
  auto made = std::make_shared<CallKind>();
  made->shape = std::move(*shape);
  auto reach = [&](const std::vector<CallBuffer>& buffers, std::span<const Port> ports) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Range r = range({nullptr, buffers[i].extents, buffers[i].strides, bytes(type_of(*plan_.source, ports, i).dtype)});
      made->reach.emplace_back(int64_t(r.begin), int64_t(r.end));
    }
  };
  reach(made->shape.inputs, plan_.source->inputs());
  reach(made->shape.outputs, plan_.source->outputs());
  std::unique_lock lock(memo_mutex_);
  if (memo_.size() >= kMemo) memo_.clear();
  return memo_.emplace(key, std::move(made)).first->second;
}

Status Program::Impl::find_aliases(Scratch& scratch, const CallKind& kind, std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
  const Graph& graph = *plan_.source;
  const uint32_t first_output = uint32_t(inputs.size()), count = first_output + uint32_t(outputs.size());
  scratch.aliases.clear();
  scratch.begins.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const auto [before, behind] = kind.reach[i];
    if (before == behind) continue;  // no element
    const uintptr_t at = reinterpret_cast<uintptr_t>((i < first_output ? inputs[i] : outputs[i - first_output]).data);
    if (at == 0) return input_error(port_text(i < first_output ? "input" : "output", graph, i < first_output ? i : i - first_output) + ": its buffer is null");
    scratch.begins.emplace_back(at + before, i);
  }
  auto strided = [&](uint32_t i) {
    const bool input = i < first_output;
    const CallBuffer& b = input ? kind.shape.inputs[i] : kind.shape.outputs[i - first_output];
    const Type& type = input ? type_of(graph, graph.inputs(), i) : type_of(graph, graph.outputs(), i - first_output);
    return Strided{(input ? inputs[i] : outputs[i - first_output]).data, b.extents, b.strides, bytes(type.dtype)};
  };
  auto check = [&](uint32_t a, uint32_t b) -> Status {  // ranges meet; at least one is an output
    if (a > b) std::swap(a, b);
    const Strided sa = strided(a), sb = strided(b);
    if (a < first_output && same(sa, sb)) {
      scratch.aliases.emplace_back(a, b - first_output);
      return Done{};
    }
    if (!overlaps(sa, sb)) return Done{};
    const std::string left = a < first_output ? port_text("input", graph, a) : port_text("output", graph, a - first_output);
    return input_error("the memory of " + left + " and of " + port_text("output", graph, b - first_output) +
                       (a < first_output ? " overlaps in part: it may be the same, or apart" : " overlaps"));
  };
  // Sorted by start, a range meets those that follow until one starts behind its end.
  std::sort(scratch.begins.begin(), scratch.begins.end());
  uintptr_t far = 0;  // the furthest end so far: nothing to do for what starts behind it
  for (size_t k = 0; k < scratch.begins.size(); ++k) {
    const auto [begin, i] = scratch.begins[k];
    auto end_of = [&](size_t at) {
      const uint32_t j = scratch.begins[at].second;
      return scratch.begins[at].first + uintptr_t(kind.reach[j].second - kind.reach[j].first);
    };
    if (begin < far)
      for (size_t p = k; p-- > 0;) {
        const uint32_t j = scratch.begins[p].second;
        if (end_of(p) <= begin || (i < first_output && j < first_output)) continue;
        if (Status good = check(i, j); !good) return good;
      }
    far = std::max(far, end_of(k));
  }
  std::sort(scratch.aliases.begin(), scratch.aliases.end());
  return Done{};
}

Result<std::shared_ptr<const PackedCall>> Program::Impl::packed(const Scratch& scratch, CallKind& kind, void* stream) {
  {
    std::shared_lock lock(memo_mutex_);
    if (auto call = kind.find(scratch.aliases)) return call;
  }
  if (Status may = backend_->may_prepare(stream); !may) return may.error();
  CallShape shape = kind.shape;
  shape.aliases = scratch.aliases;
  Result<PackedCall> made = pack_now(shape);
  if (!made) return made.error();
  std::unique_lock lock(memo_mutex_);
  if (auto call = kind.find(scratch.aliases)) return call;  // another thread was first
  kind.packed.emplace_back(scratch.aliases, std::make_shared<const PackedCall>(std::move(*made)));
  return kind.packed.back().second;
}

Result<std::shared_ptr<const PackedCall>> Program::Impl::work_out(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                                                                  void* stream) {
  Result<std::shared_ptr<CallKind>> seen = kind(scratch, inputs, outputs, stream);
  if (!seen) return seen.error();
  if (Status good = find_aliases(scratch, **seen, inputs, outputs); !good) return good.error();
  return packed(scratch, **seen, stream);
}

Status Program::Impl::start(const PackedCall& call, Scratch& scratch, void* stream) const {
  scratch.args.resize((call.args.size() + 63) / 64);
  std::byte* args = scratch.args.empty() ? nullptr : scratch.args.front().bytes;
  if (args) std::memcpy(args, call.args.data(), call.args.size());
  for (const Patch& patch : call.patches) {
    const uint64_t address = scratch.pointers[patch.pointer] + uint64_t(patch.offset);
    std::memcpy(args + patch.at, &address, sizeof(address));
  }
  for (const PackedStep& step : call.steps) {
    scratch.regions.clear();
    if (backend_->wants_regions())
      for (const PackedStep::Touch& touch : step.touches)
        scratch.regions.push_back({reinterpret_cast<const void*>(scratch.pointers[touch.pointer] + uint64_t(touch.offset)), touch.bytes});
    if (Status done = backend_->start(*step.code, step.launch, {args + step.args, step.bytes}, scratch.regions, stream); !done)
      return done.error().note("while starting " + step.code->artifact->entry + " of graph @" + plan_.source->name());
  }
  kernels_ += call.steps.size();
  return Done{};
}

Status Program::Impl::run(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const RunOptions& options) {
  ++calls_;
  if (Status good = check_count(inputs, outputs); !good) return good;
  if (!backend_) return run_reference(inputs, outputs);
  Leased<Scratch> leased;
  Scratch& scratch = *leased;
  sign(scratch, inputs, outputs);
  Result<std::shared_ptr<const PackedCall>> found = known(scratch, inputs, outputs);
  if (found && !*found) found = work_out(scratch, inputs, outputs, options.stream);
  if (!found) return found.error();
  const PackedCall& call = **found;

  scratch.pointers.clear();
  for (std::span<const Buffer> side : {inputs, outputs})
    for (const Buffer& buffer : side) scratch.pointers.push_back(reinterpret_cast<uintptr_t>(buffer.data));
  auto with = [&](void* counters, void* arena) {
    for (void* p : {arena, counters, static_cast<void*>(nullptr)}) scratch.pointers.push_back(reinterpret_cast<uintptr_t>(p));
    return start(call, scratch, options.stream);
  };
  if (call.workspace() == 0) return with(nullptr, nullptr);
  if (options.workspace) {
    if (options.workspace_bytes < call.workspace() || reinterpret_cast<uintptr_t>(options.workspace) % 256)
      return input_error("this call needs a workspace of " + std::to_string(call.workspace()) + " bytes, aligned to 256");
    if (call.counter_bytes)
      if (Status done = backend_->clear(options.workspace, call.counter_bytes, options.stream); !done) return done;
    return with(options.workspace, static_cast<std::byte*>(options.workspace) + call.counters());
  }
  Result<std::unique_ptr<Workspace>> workspace = workspaces_.take(*backend_, call.counters(), call.arena_bytes, options.stream);
  if (!workspace) return workspace.error();
  Status done = with((*workspace)->counters(), (*workspace)->arena());
  // After a failure its counters may not be zero: it goes.
  if (done) workspaces_.give(std::move(*workspace), backend_->captured(options.stream));
  return done;
}

Status Program::Impl::start_at(const PackedCall& call, std::span<const uintptr_t> pointers, void* stream) {
  ++calls_;
  Leased<Scratch> leased;
  (*leased).pointers.assign(pointers.begin(), pointers.end());
  return start(call, *leased, stream);
}

Status Program::Impl::run_reference(std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  Result<CallShape> shape = describe(inputs, outputs);
  if (!shape) return shape.error();
  const Graph& graph = *plan_.source;
  std::vector<Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& value = values.emplace_back();
    value.dtype = type_of(graph, graph.inputs(), i).dtype;
    value.extents = shape->inputs[i].extents;
    value.data.resize(size_t(value.elements()) * bytes(value.dtype));
    const Strided from{inputs[i].data, value.extents, shape->inputs[i].strides, bytes(value.dtype)};
    if (!from.empty() && !from.data) return input_error(port_text("input", graph, i) + ": its buffer is null");
    gather(from, value.data.data());
  }
  Result<std::vector<Tensor>> results = evaluate(graph, values);
  if (!results) return results.error();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Strided to{outputs[i].data, shape->outputs[i].extents, shape->outputs[i].strides, bytes((*results)[i].dtype)};
    if (!to.empty() && !to.data) return input_error(port_text("output", graph, i) + ": its buffer is null");
    scatter((*results)[i].data.data(), to);
  }
  return Done{};
}

Result<size_t> Program::Impl::workspace_bytes(std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  if (Status good = check_count(inputs, outputs); !good) return good.error();
  if (!backend_) return size_t{0};
  Result<std::shared_ptr<const PackedCall>> found = packed_call(inputs, outputs);
  if (!found) return found.error();
  return (*found)->workspace();
}

Result<std::shared_ptr<const PackedCall>> Program::Impl::packed_call(std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  if (Status good = check_count(inputs, outputs); !good) return good.error();
  if (!backend_) return input_error("the reference evaluator starts no kernels");
  Scratch scratch;
  sign(scratch, inputs, outputs);
  return work_out(scratch, inputs, outputs, nullptr);
}

Program::Stats Program::Impl::stats() const {
  return {calls_, cold_, kernels_, cache_->stats().compilations};
}

Status Program::run(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const RunOptions& options) const {
  return caught("the call stopped", [&] { return impl_->run(inputs, outputs, options); });
}

Result<size_t> Program::workspace_bytes(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
  return caught("the call stopped", [&] { return impl_->workspace_bytes(inputs, outputs); });
}

namespace {

Result<std::vector<std::vector<int64_t>>> extents_of_outputs(const Graph& g, std::span<const std::vector<int64_t>> inputs) {
  Result<Sizes> sizes = fusec::bind(g, inputs);
  if (!sizes) return sizes.error();
  std::vector<std::vector<int64_t>> out;
  for (size_t i = 0; i < g.outputs().size(); ++i) {
    out.emplace_back();
    for (const Dim& dim : type_of(g, g.outputs(), i).shape) {
      const std::optional<int64_t> extent = dim.value(*sizes);
      if (!extent || *extent < 0) return input_error("output " + std::to_string(i) + ": the extent " + dim.text() + " has no sensible value");
      out.back().push_back(*extent);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> Program::output_extents(std::span<const std::vector<int64_t>> inputs) const {
  return caught("the call stopped", [&] { return extents_of_outputs(graph(), inputs); });
}

Program::Stats Program::stats() const { return impl_->stats(); }
const Graph& Program::graph() const { return *impl_->plan().source; }
const std::string& Program::device() const { return impl_->device(); }

namespace {

Result<Program> compiled(const Graph& graph, const CompileOptions& options) {
  Result<Switches> switches = program_switches(options.switches);
  if (!switches) return switches.error();
  auto trace = std::make_unique<Trace>(switches->dump_dir);
  trace->sink = [](std::string_view text) { std::fputs((std::string(text) + (text.ends_with('\n') ? "" : "\n")).c_str(), stderr); };
  std::shared_ptr<const Backend> device;
  ProgramPlan plan;
  if (options.device == "reference") {
    if (Status good = verify(graph); !good) return good.error();
    if (!options.schedule.empty()) return input_error("schedule: '" + options.schedule[0] + "' is for kernels, and the reference evaluator has none");
    plan.source = std::make_shared<const Graph>(graph);
  } else {
    Result<std::shared_ptr<const Backend>> found = backend(options.device);
    if (!found) return found.error();
    device = std::move(*found);
    Result<ProgramPlan> made = make_plan(graph, options, *switches, *trace);
    if (!made) return made.error();
    plan = std::move(*made);
  }
  if (const std::string text = report(*switches, *trace); !text.empty()) trace->say(text);
  const Trace& traced = *trace;
  auto impl = std::make_shared<Program::Impl>(std::move(plan), std::move(device), options, std::move(trace));
  if (Status ready = impl->prepare(); !ready) return ready.error();
  if (Status dumped = traced.dumped(); !dumped) return dumped.error();
  return Program(std::move(impl));
}

}  // namespace

Result<Program> compile(const Graph& graph, const CompileOptions& options) {
  return caught("compilation stopped", [&] { return compiled(graph, options); });
}

}  // namespace fusec
