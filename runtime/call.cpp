// Packing one kind of call: kernels for its layouts, schedules for its sizes, code, workspace, arguments.

#include "runtime/call.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "lib/kernel/kernel.h"
#include "runtime/arena.h"
#include "runtime/arguments.h"
#include "runtime/inspect.h"
#include "runtime/strided.h"

namespace fusec {
namespace {

/// Where a buffer is in this call.
struct Place {
  OperandPlace operand;
  std::vector<int64_t> extents;
  uintptr_t address = 0;   // what its alignment is judged by
  size_t lifetime = ~size_t{0};  // its part of the arena, when it has one
};

/// A step on its way: what is known before its code is there.
struct Draft {
  const PlanStep* step;
  StepKernels::Variant* variant;
  size_t number = Chooser::kNoStep;  // of the plan's step
  Facts facts;
  Schedule schedule;
  std::vector<uint32_t> buffers;  // one a kernel operand
  bool empty = false;
  size_t states = ~size_t{0};
};

/// Runs work(0) … work(count - 1) on a few threads; the first error wins.
Status in_parallel(size_t count, const std::function<Status(size_t)>& work) {
  const size_t threads = std::min<size_t>({count, 8, std::max(1u, std::thread::hardware_concurrency())});
  std::vector<Status> done(count, Done{});
  std::atomic<size_t> next = 0;
  auto loop = [&] {
    for (size_t i; (i = next++) < count;) done[i] = work(i);
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < threads; ++t) others.emplace_back(loop);
  loop();
  for (std::thread& t : others) t.join();
  for (Status& status : done)
    if (!status) return status;
  return Done{};
}

class Packing {
 public:
  Packing(const Packer& p, const CallShape& call) : p_(p), call_(call) {}

  Result<PackedCall> run() {
    if (Status s = place(); !s) return s.error();
    for (size_t i = 0; i < p_.plan.steps.size(); ++i)
      if (Status s = draft(p_.plan.steps[i], p_.steps[i]); !s) return s.error();
    if (Status s = alias_copies(); !s) return s.error();
    if (Status s = load(); !s) return s.error();
    return fill_all();
  }

 private:
  uint32_t inputs() const { return uint32_t(call_.inputs.size()); }
  uint32_t arena() const { return inputs() + uint32_t(call_.outputs.size()); }
  uint32_t counters() const { return arena() + 1; }
  uint32_t absolute() const { return arena() + 2; }

  Result<Place> dense(const Type& type) {
    Place place;
    size_t size = bytes(type.dtype);
    for (const Dim& dim : type.shape) {
      const std::optional<int64_t> extent = dim.value(call_.sizes);
      if (!extent || *extent < 0) return input_error("the extent " + dim.text() + " has no value in this call");
      if (__builtin_mul_overflow(size, size_t(*extent), &size) || size > size_t{1} << 62)
        return input_error("an intermediate " + text(type) + " is larger than any memory");
      place.extents.push_back(*extent);
    }
    place.operand.strides = canonical_strides(place.extents, dense_strides(place.extents));
    return place;
  }

  size_t reserve(const Place& place, DType type, uint32_t first, uint32_t last) {
    size_t size = bytes(type);
    for (int64_t extent : place.extents) size *= size_t(extent);
    lifetimes_.push_back({size, first, last});
    return lifetimes_.size() - 1;
  }

  Status place() {
    for (const PlanBuffer& buffer : p_.plan.buffers) {
      Place& place = places_.emplace_back();
      switch (buffer.of) {
        case PlanBuffer::input:
        case PlanBuffer::output: {
          const bool output = buffer.of == PlanBuffer::output;
          const CallBuffer& given = (output ? call_.outputs : call_.inputs)[buffer.index];
          place.operand = {(output ? inputs() : 0) + buffer.index, 0, given.strides};
          place.extents = given.extents;
          place.address = given.address;
          break;
        }
        case PlanBuffer::constant:
        case PlanBuffer::temporary: {
          Result<Place> made = dense(buffer.type);
          if (!made) return made.error();
          place = std::move(*made);
          place.operand.pointer = arena();
          if (buffer.of == PlanBuffer::temporary) {
            place.lifetime = reserve(place, buffer.type.dtype, buffer.first, buffer.last);
          } else {
            place.operand.pointer = absolute();
            place.operand.offset = int64_t(uintptr_t(p_.constants[buffer.index]->data));
            place.address = uintptr_t(p_.constants[buffer.index]->data);
          }
        }
      }
    }
    redirected_.assign(call_.outputs.size(), false);
    return Done{};
  }

  bool in_place(const StepKernels::Variant& variant, uint32_t input_position, uint32_t output_position) const {
    for (auto [in, out] : variant.kernel->in_place)
      if (variant.kernel->operands[in].index == input_position && variant.kernel->operands[out].index == output_position) return true;
    return false;
  }

  /// May output `o` be written where it is although it is the memory of input `i`? Only when nobody reads the input from then on,
  /// but the writing kernel itself where its table allows that.
  bool may_share(uint32_t i, uint32_t o, const PlanStep& writer, const StepKernels::Variant& variant) const {
    const uint32_t in = p_.plan.input_buffer[i], out = p_.plan.output_buffer[o];
    const uint32_t at = uint32_t(&writer - p_.plan.steps.data());
    for (uint32_t s = at; s < p_.plan.steps.size(); ++s) {
      const PlanStep& step = p_.plan.steps[s];
      for (uint32_t k = 0; k < step.inputs.size(); ++k) {
        if (step.inputs[k] != in) continue;
        if (s > at) return false;
        for (uint32_t w = 0; w < step.outputs.size(); ++w)
          if (step.outputs[w] == out && !in_place(variant, k, w)) return false;
      }
    }
    return true;
  }

  Status draft(const PlanStep& step, StepKernels& kernels) {
    std::vector<Layout> in, out;
    auto layouts = [&](const std::vector<uint32_t>& buffers, std::vector<Layout>& to) {
      for (uint32_t b : buffers) to.push_back(layout(places_[b].extents, places_[b].operand.strides));
    };
    layouts(step.inputs, in), layouts(step.outputs, out);
    Result<StepKernels::Variant*> found = variant(kernels, in, out, p_.numerics);
    if (!found) return found.error();
    // An output on an input's memory: allowed, or computed aside and copied at the end. Its layout may then be another.
    bool moved = false;
    for (auto [i, o] : call_.aliases) {
      const uint32_t buffer = p_.plan.output_buffer[o];
      if (redirected_[o] || std::find(step.outputs.begin(), step.outputs.end(), buffer) == step.outputs.end()) continue;
      if (may_share(i, o, step, **found)) continue;
      Result<Place> aside = dense(p_.plan.buffers[buffer].type);
      if (!aside) return aside.error();
      places_[buffer] = std::move(*aside);
      places_[buffer].operand.pointer = arena();
      places_[buffer].lifetime =
          reserve(places_[buffer], p_.plan.buffers[buffer].type.dtype, p_.plan.buffers[buffer].first, uint32_t(p_.plan.steps.size() + o));
      redirected_[o] = moved = true;
    }
    if (moved) {
      out.clear();
      layouts(step.outputs, out);
      found = variant(kernels, in, out, p_.numerics);
      if (!found) return found.error();
    }
    return add_draft(step, **found, size_t(&step - p_.plan.steps.data()));
  }

  Status add_draft(const PlanStep& step, StepKernels::Variant& variant, size_t number) {
    Draft draft{&step, &variant, number, {}, {}, {}};
    Binding binding{call_.sizes, {}};
    for (const Operand& operand : variant.kernel->operands) {
      const uint32_t b = (operand.output ? step.outputs : step.inputs)[operand.index];
      draft.buffers.push_back(b);
      binding.operands.push_back({reinterpret_cast<void*>(places_[b].address), places_[b].operand.strides});
    }
    draft.empty = true;
    for (uint32_t b : step.outputs) draft.empty &= std::count(places_[b].extents.begin(), places_[b].extents.end(), 0) > 0;
    draft.facts = facts(*variant.kernel, binding);
    Result<Choice> choice = p_.chooser.choose(number, *variant.kernel, draft.facts, p_.backend);
    if (!choice) return choice.error();
    draft.schedule = std::move(choice->schedule);
    drafts_.push_back(std::move(draft));
    return Done{};
  }

  /// Outputs that were computed aside move into place at the very end, when nobody reads the inputs any more.
  Status alias_copies() {
    for (uint32_t o = 0; o < redirected_.size(); ++o) {
      if (!redirected_[o]) continue;
      const uint32_t from = p_.plan.output_buffer[o];
      Place to;
      to.operand = {inputs() + o, 0, call_.outputs[o].strides};
      to.extents = call_.outputs[o].extents;
      to.address = call_.outputs[o].address;
      places_.push_back(std::move(to));
      PlanStep& step = p_.alias_steps[o];
      step = copy_step(p_.plan.buffers[from].type, from, uint32_t(places_.size() - 1));
      Result<StepKernels::Variant*> found =
          variant(p_.alias_copies[o], {layout(places_[from].extents, places_[from].operand.strides)},
                  {layout(places_.back().extents, places_.back().operand.strides)}, p_.numerics);
      if (!found) return found.error();
      if (Status s = add_draft(step, **found, Chooser::kNoStep); !s) return s;
    }
    return Done{};
  }

  static Facts with_alignment(const Kernel& kernel, Facts facts, bool best) {
    size_t a = 0;
    for (const Inst& inst : kernel.values)
      if (inst.kind == Kind::load || inst.kind == Kind::store)
        facts.access[a++].align = best ? 128 : uint32_t(bytes(kernel.operands[inst.operand].type));
    return facts;
  }

  static std::shared_ptr<const Loaded> code(const StepKernels::Variant& variant, const std::string& key) {
    for (const auto& [k, loaded] : variant.code)
      if (k == key) return loaded;
    return nullptr;
  }

  /// "g0", and "g0-2", "g0-3" for what else kernel 0 became: other schedules, other layouts.
  std::string dump_name(size_t number) {
    const int before = p_.steps[number].dumped++;
    return "g" + std::to_string(number) + (before ? "-" + std::to_string(before + 1) : "");
  }

  /// Compiles or fetches what is missing: for this call with every pointer aligned, and with none aligned beyond its elements. A call in
  /// between takes the code of its own schedule where there is any, else the latter's, which fits all: pointers never compile anything.
  /// Where nothing is made ahead, only the one of both that this call takes.
  Status load() {
    struct Job {
      StepKernels::Variant* variant;
      Schedule schedule;
      std::string key;
      std::shared_ptr<const Loaded> loaded;
    };
    std::vector<Job> jobs;
    auto want = [&](size_t number, StepKernels::Variant& variant, const Schedule& schedule) {
      std::string key = bytes(schedule);
      if (code(variant, key)) return;
      for (const Job& job : jobs)
        if (job.variant == &variant && job.key == key) return;
      jobs.push_back({&variant, schedule, std::move(key), nullptr});
      if (number != Chooser::kNoStep && p_.trace.dumps()) dump_kernel(p_.trace, dump_name(number), *variant.kernel, schedule, p_.backend);
    };
    for (Draft& draft : drafts_) {
      if (draft.empty || code(*draft.variant, bytes(draft.schedule))) continue;
      const Kernel& kernel = *draft.variant->kernel;
      const Facts aligned = with_alignment(kernel, draft.facts, true), misaligned = with_alignment(kernel, draft.facts, false);
      Result<Choice> best = p_.chooser.choose(draft.number, kernel, aligned, p_.backend);
      if (!best) return best.error();
      // What was set by hand may need alignment; then calls without it go by the model. It is an experiment: such calls may compile.
      if (best->by == Choice::hand && draft.schedule == best->schedule) {
        want(draft.number, *draft.variant, best->schedule);
        continue;
      }
      Result<Choice> least = p_.chooser.choose(draft.number, kernel, misaligned, p_.backend);
      if (!least) least = p_.chooser.choose(Chooser::kNoStep, kernel, misaligned, p_.backend);
      if (draft.schedule != best->schedule) draft.schedule = least->schedule;
      for (const Choice* choice : {&*best, &*least})
        if (p_.ahead || choice->schedule == draft.schedule) want(draft.number, *draft.variant, choice->schedule);
    }
    Status done = in_parallel(jobs.size(), [&](size_t i) -> Status {
      Result<std::shared_ptr<const Loaded>> loaded = p_.backend.load(*jobs[i].variant->kernel, jobs[i].schedule, p_.cache);
      if (!loaded) return loaded.error();
      jobs[i].loaded = std::move(*loaded);
      return Done{};
    });
    for (Job& job : jobs)
      if (job.loaded) job.variant->code.emplace_back(std::move(job.key), std::move(job.loaded));
    return done;
  }

  Result<PackedCall> fill_all() {
    PackedCall out;
    std::vector<std::pair<std::shared_ptr<const Loaded>, Launch>> starts(drafts_.size());
    size_t counters = 0;
    std::vector<size_t> counter_at(drafts_.size(), 0);
    for (size_t i = 0; i < drafts_.size(); ++i) {
      Draft& draft = drafts_[i];
      if (draft.empty) continue;
      starts[i].first = code(*draft.variant, bytes(draft.schedule));
      starts[i].second = p_.backend.launch(*draft.variant->kernel, starts[i].first->artifact->schedule, draft.facts);
      const Launch& launch = starts[i].second;
      draft.empty = launch.empty;
      if (launch.state_bytes) {
        draft.states = lifetimes_.size();
        lifetimes_.push_back({launch.state_bytes, uint32_t(i), uint32_t(i)});
      }
      counter_at[i] = counters;
      counters += launch.counters * 4;
    }
    out.counter_bytes = counters;
    out.arena_bytes = plan_arena(lifetimes_);
    for (Place& place : places_)
      if (place.lifetime != ~size_t{0}) place.operand.offset = int64_t(lifetimes_[place.lifetime].offset);
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const Draft& draft = drafts_[i];
      if (draft.empty) continue;
      PackedStep step{starts[i].first, starts[i].second};
      std::vector<OperandPlace> operands;
      for (uint32_t b : draft.buffers) {
        operands.push_back(places_[b].operand);
        step.touches.push_back(touch(places_[b], draft, operands.size() - 1));
      }
      const LaunchPlace place{arena(), this->counters(), draft.states == ~size_t{0} ? 0 : int64_t(lifetimes_[draft.states].offset),
                              int64_t(counter_at[i])};
      if (step.launch.state_bytes) step.touches.push_back({place.arena, place.states_offset, step.launch.state_bytes});
      if (step.launch.counters) step.touches.push_back({place.counters, place.counters_offset, step.launch.counters * sizeof(uint32_t)});
      if (Status s = fill(*draft.variant->kernel, *step.code->artifact, draft.facts, call_.sizes, step.launch, operands, place, out, step); !s)
        return s.error();
      out.steps.push_back(std::move(step));
    }
    return out;
  }

  PackedStep::Touch touch(const Place& place, const Draft& draft, size_t operand) const {
    const Strided s{nullptr, place.extents, place.operand.strides, bytes(draft.variant->kernel->operands[operand].type)};
    const Range r = range(s);
    return {place.operand.pointer, place.operand.offset + int64_t(r.begin), r.end - r.begin};
  }

  const Packer& p_;
  const CallShape& call_;
  std::vector<Place> places_;          // one a plan buffer, then the targets of alias copies
  std::vector<Lifetime> lifetimes_;
  std::vector<bool> redirected_;       // outputs that are computed aside
  std::vector<Draft> drafts_;
};

}  // namespace

Result<StepKernels::Variant*> variant(StepKernels& step, std::vector<Layout> inputs, std::vector<Layout> outputs, Numerics numerics) {
  for (auto& v : step.variants)
    if (v->inputs == inputs && v->outputs == outputs) return v.get();
  Result<Kernel> kernel = build(*step.step->graph, step.step->group, {numerics, inputs, outputs});
  if (!kernel) return kernel.error();
  auto made = std::make_unique<StepKernels::Variant>();
  made->inputs = std::move(inputs), made->outputs = std::move(outputs);
  made->kernel = std::make_shared<const Kernel>(std::move(*kernel));
  step.variants.push_back(std::move(made));
  return step.variants.back().get();
}

Result<PackedCall> pack(const Packer& packer, const CallShape& call) { return Packing(packer, call).run(); }

}  // namespace fusec
