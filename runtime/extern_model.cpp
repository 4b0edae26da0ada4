// Steps in order: a region's program on its values' memory, or an extern operator on them.

#include "runtime/extern_model.h"

#include <algorithm>
#include <map>

#include "lib/support/text.h"
#include "runtime/host_memory.h"

namespace fusec {
namespace {

/// By a step, or as an output, itself or under other dims.
bool is_read(const WholeModel& model, size_t tensor) {
  if (!model.tensors[tensor].readers.empty()) return true;
  for (std::optional<size_t> at : model.outputs)
    for (; at; at = model.tensors[*at].view_of)
      if (*at == tensor) return true;
  return false;
}

/// Why a tensor has no shape: what is said of the node that gives it, else what could give it one.
Error unknown_shape(const WholeModel& model, size_t tensor) {
  for (const ModelStep& step : model.steps) {
    if (step.is_region() || std::find(step.outputs.begin(), step.outputs.end(), std::optional(tensor)) == step.outputs.end()) continue;
    const ModelBoundary& b = model.boundaries[*step.boundary];
    const std::string node = "node " + std::to_string(b.node) + " (" + b.op + "), which gives " + quoted(model.tensors[tensor].name) + ": ";
    if (!b.reason.empty()) return input_error(node + b.reason);
    std::string operands;
    for (const std::optional<size_t>& input : step.inputs) {
      if (!input || !model.tensors[*input].type) continue;
      operands += (operands.empty() ? "" : ", ") + text(*model.tensors[*input].type);
    }
    return input_error(node + "no shape follows from " + (operands.empty() ? "its operands" : operands) +
                       "; --dim, or inputs that it depends on, may give one");
  }
  return input_error("the shape of " + quoted(model.tensors[tensor].name) + " is not known: give --dim, or the inputs that it depends on");
}

/// Operators that nobody here computes: all of them, so that one try tells everything. Then values without a size.
Status check(const WholeModel& model) {
  std::map<std::string, size_t> missing;
  for (const ModelBoundary& b : model.boundaries)
    if (b.why != Boundary::unshaped &&
        !find_extern(b.op, b.domain)) {  // behind an unknown shape everything is left out
      std::string what = b.op + (b.domain.empty() ? "" : " of " + quoted(b.domain));
      if (!b.reason.empty()) what += " (" + b.reason + ")";
      ++missing[what];
    }
  if (!missing.empty()) {
    Error error = input_error("operators that are neither fused nor run here:");
    for (const auto& [what, n] : missing)
      error = error.note(what + ": " + std::to_string(n) + (n == 1 ? " node" : " nodes"));
    return error;
  }
  for (size_t k = 0; k < model.tensors.size(); ++k) {
    const ModelTensor& t = model.tensors[k];
    if (!t.type && !is_read(model, k)) continue;
    if (!t.type) return unknown_shape(model, k);
    for (const Dim& d : t.type->shape)
      if (!d.is_constant())
        return input_error("dim " + d.symbols()[0] + " of " + quoted(t.name) + " has no size: give --dim " +
                           d.symbols()[0] + "=8");
  }
  return Done{};
}

size_t bytes_of(const ExternValue& value) { return static_cast<size_t>(value.elements()) * bytes(value.dtype); }

}  // namespace

Result<ModelProgram> ModelProgram::make(std::shared_ptr<const WholeModel> model, const CompileOptions& options) {
  if (Status s = check(*model); !s) return s.error();
  ModelProgram out;
  out.model_ = std::move(model);
  out.device_ = options.device;
  if (options.device != "reference") {
    Result<std::shared_ptr<const Backend>> found = fusec::backend(options.device);
    if (!found) return found.error();
    out.backend_ = std::move(*found);
    out.device_ = out.backend_->name();
  }
#if FUSEC_HAS_CUDA
  if (out.on_gpu()) {
    Result<std::shared_ptr<DeviceOps>> ops = cuda_extern(std::stoi(out.device_.substr(out.device_.find(':') + 1)));
    if (!ops) return ops.error();
    out.device_ops_ = std::move(*ops);
  }
#endif
  if (!out.on_gpu() && !out.model_->boundaries.empty())  // before everything is compiled; a GPU may do without
    if (Status s = product_library(); !s) return s.error();
  for (const ModelRegion& region : out.model_->regions) {
    Result<Program> program = compile(region.graph, options);
    if (!program) return program.error().note("while compiling region @" + region.graph.name());
    out.programs_.emplace_back(std::move(*program));
  }
  if (Status s = out.allocate(); !s) return s.error();
  for (size_t s = 0; s < out.model_->steps.size(); ++s)
    if (const ModelStep& step = out.model_->steps[s]; step.is_region() && out.model_->regions[*step.region].once)
      if (Status done = out.run_step(s); !done) return done.error();
  return out;
}

Status ModelProgram::place(size_t tensor) {
  const ModelTensor& t = model_->tensors[tensor];
  if (!t.type) return Done{};  // nobody reads it
  Place& place = places_[tensor];
  place.value.dtype = t.type->dtype;
  place.value.weight = t.kind == ModelTensor::weight;
  for (const Dim& d : t.type->shape) place.value.extents.push_back(d.constant());
  if (t.view_of) return Done{};
  if (t.kind == ModelTensor::weight && !on_gpu()) {
    place.value.data = const_cast<std::byte*>(t.data->data.data());  // read only
    return Done{};
  }
  Result<std::unique_ptr<Memory>> memory =
      backend_ ? backend_->allocate(bytes_of(place.value)) : allocate_host(bytes_of(place.value));
  if (!memory) return memory.error();
  place.memory = std::move(*memory);
  place.value.data = place.memory->data;
  if (t.kind == ModelTensor::weight)
    return backend_->upload(place.value.data, t.data->data.data(), t.data->data.size());
  return Done{};
}

Status ModelProgram::allocate() {
  places_.resize(model_->tensors.size());
  kept_.resize(model_->steps.size());
  for (size_t t = 0; t < places_.size(); ++t)
    if (Status s = place(t); !s) return s;
  for (size_t t = 0; t < places_.size(); ++t) {
    size_t source = t;
    while (model_->tensors[source].view_of) source = *model_->tensors[source].view_of;
    places_[t].value.data = places_[source].value.data;
  }
  return Done{};
}

Status ModelProgram::run_step(size_t s) {
  const ModelStep& step = model_->steps[s];
  if (!step.is_region()) {
    const ModelBoundary& b = model_->boundaries[*step.boundary];
    if (Status done = run_boundary(step); !done)
      return done.error().note("in node " + std::to_string(b.node) + (b.name.empty() ? "" : " " + quoted(b.name)) +
                               " (" + b.op + ")");
    return Done{};
  }
  std::vector<Buffer> inputs, outputs;
  for (const auto& t : step.inputs) inputs.push_back({places_[*t].value.data, places_[*t].value.extents, {}});
  for (const auto& t : step.outputs) outputs.push_back({places_[*t].value.data, places_[*t].value.extents, {}});
  if (Status done = programs_[*step.region]->run(inputs, outputs); !done)
    return done.error().note("in region @" + model_->regions[*step.region].graph.name());
  return Done{};
}

ExternCall ModelProgram::call_of(const ModelStep& step) {
  ExternCall call{*model_->boundaries[*step.boundary].message, model_->operator_set, {}, {}, &kept_[static_cast<size_t>(&step - model_->steps.data())]};
  for (const auto& t : step.inputs) call.inputs.push_back(t ? std::optional(places_[*t].value) : std::nullopt);
  for (const auto& t : step.outputs)
    call.outputs.push_back(t && is_read(*model_, *t) ? std::optional(places_[*t].value) : std::nullopt);
  return call;
}

Status ModelProgram::run_boundary(const ModelStep& step) {
  const ExternCall call = call_of(step);
  if (std::none_of(call.outputs.begin(), call.outputs.end(), [](const auto& y) { return y.has_value(); }))
    return Done{};  // nobody reads it
  if (Result<const ExternOp*> row = checked_extern(call); !row) return row.error();
  if (device_ops_ && device_ops_->takes(call)) return device_ops_->run(call);
  return on_gpu() ? run_on_host(call) : run_extern(call);
}

/// A GPU's values, for the time of one call on the host.
Status ModelProgram::run_on_host(const ExternCall& call) {
  ++host_calls_;
  if (Status s = backend_->wait(nullptr); !s) return s;
  ExternCall host = call;
  std::vector<std::vector<std::byte>> memory;
  for (auto* side : {&host.inputs, &host.outputs})
    for (auto& value : *side) {
      if (!value) continue;
      std::vector<std::byte>& copy = memory.emplace_back(bytes_of(*value));
      if (side == &host.inputs && !copy.empty())
        if (Status s = backend_->download(copy.data(), value->data, copy.size()); !s) return s;
      value->data = copy.data();
    }
  if (Status s = run_extern(host); !s) return s;
  for (size_t k = 0; k < call.outputs.size(); ++k)
    if (call.outputs[k] && bytes_of(*call.outputs[k]))
      if (Status s = backend_->upload(call.outputs[k]->data, host.outputs[k]->data, bytes_of(*call.outputs[k])); !s)
        return s;
  return Done{};
}

Result<std::vector<Tensor>> ModelProgram::run(std::span<const Tensor> inputs) {
  if (inputs.size() != model_->inputs.size())
    return input_error(std::to_string(inputs.size()) + " inputs, the model has " +
                       std::to_string(model_->inputs.size()));
  host_calls_ = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ExternValue& value = places_[model_->inputs[i]].value;
    if (inputs[i].dtype != value.dtype || inputs[i].extents != value.extents)
      return input_error("input %" + model_->tensors[model_->inputs[i]].name + " is not " +
                         text(*model_->tensors[model_->inputs[i]].type));
    const TensorData& data = inputs[i].data;
    if (Status s = on_gpu() && !data.empty() ? backend_->upload(value.data, data.data(), data.size())
                                             : copy_host(value.data, data.data(), data.size());
        !s)
      return s.error();
  }
  for (size_t s = 0; s < model_->steps.size(); ++s) {
    const ModelStep& step = model_->steps[s];
    if (step.is_region() && model_->regions[*step.region].once) continue;
    if (Status done = run_step(s); !done) return done.error();
  }
  std::vector<Tensor> outputs;
  for (size_t t : model_->outputs) {
    const ExternValue& value = places_[t].value;
    Tensor& out = outputs.emplace_back(Tensor{value.dtype, value.extents, std::vector<std::byte>(bytes_of(value))});
    if (out.data.empty()) continue;
    if (backend_)
      if (Status s = backend_->wait(nullptr); !s) return s.error();
    if (Status s = on_gpu() ? backend_->download(out.data.data(), value.data, out.data.size())
                            : copy_host(out.data.data(), value.data, out.data.size());
        !s)
      return s.error();
  }
  return outputs;
}

}  // namespace fusec
