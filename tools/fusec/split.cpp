// fusec split: a whole model as files, for a host that runs fused regions through the API and the rest by itself.
//
//   DIR/manifest.json        tensors, and steps in order: which region or operator reads and writes which of them
//   DIR/r0.fus, r1.fus …     each region's graph; its inputs and outputs are the step's, in order
//   DIR/weights.safetensors  what the file knows: weights of regions and operators, by tensor name
// docs/onnx.md has the manifest's fields.

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/fusec/model.h"

namespace fusec::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json shape_json(const Shape& shape) {
  json out = json::array();
  for (const Dim& d : shape) out.push_back(d.is_constant() ? json(d.constant()) : json(d.text()));
  return out;
}

json tensor_json(const WholeModel& model, const ModelTensor& t) {
  constexpr const char* kKinds[] = {"input", "weight", "computed"};
  json out = {{"name", t.name},
              {"kind", kKinds[t.kind]},
              {"dtype", t.type ? json(name(t.type->dtype)) : json()},
              {"shape", t.type ? shape_json(t.type->shape) : json()},
              {"readers", t.readers}};
  if (t.producer) out["producer"] = *t.producer;
  if (t.view_of) out["view_of"] = model.tensors[*t.view_of].name;
  return out;
}

json names_json(const WholeModel& model, const std::vector<std::optional<size_t>>& tensors) {
  json out = json::array();
  for (const auto& t : tensors) out.push_back(t ? json(model.tensors[*t].name) : json());
  return out;
}

/// Numbers, texts and lists; tensors and graphs stay in the file.
json attributes_json(const onnx::NodeMessage& node) {
  json out = json::object();
  for (const onnx::Attribute& a : node.attributes) {
    json& value = out[std::string(a.name)];
    switch (a.kind) {
      case onnx::Attribute::real:
        value = a.f;
        break;
      case onnx::Attribute::integer:
        value = a.i;
        break;
      case onnx::Attribute::string:
        value = std::string(a.s);
        break;
      case onnx::Attribute::reals:
        value = a.floats;
        break;
      case onnx::Attribute::integers:
        value = a.ints;
        break;
      default:
        break;  // null
    }
  }
  return out;
}

json step_json(const WholeModel& model, const ModelStep& step) {
  json out = {{"inputs", names_json(model, step.inputs)}, {"outputs", names_json(model, step.outputs)}};
  if (step.is_region()) {
    const ModelRegion& region = model.regions[*step.region];
    out.update({{"region", region.graph.name()}, {"file", region.graph.name() + ".fus"}, {"once", region.once}});
    return out;
  }
  const ModelBoundary& b = model.boundaries[*step.boundary];
  out.update({{"operator", b.op},
              {"domain", b.domain},
              {"node", b.node},
              {"name", b.name},
              {"attributes", attributes_json(*b.message)}});
  if (!b.reason.empty()) out["reason"] = b.reason;
  return out;
}

/// JSON with a line for each element of an array, so that a difference between two manifests is readable.
std::string lines(const json& object) {
  const auto compact = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  std::string out;
  for (const auto& [key, value] : object.items()) {
    out += (out.empty() ? "{\n" : ",\n") + compact(key) + ": ";
    if (!value.is_array() || value.empty()) {
      out += compact(value);
      continue;
    }
    for (size_t k = 0; k < value.size(); ++k) out += (k ? ",\n  " : "[\n  ") + compact(value[k]);
    out += "\n]";
  }
  return out + "\n}\n";
}

json manifest(const WholeModel& model, const std::string& file) {
  json out = {{"format", 1},
              {"model", model.name},
              {"file", file},
              {"operator_set", model.operator_set},
              {"weights", "weights.safetensors"},
              {"quotients", quotients_json(model)},
              {"inputs", json::array()},
              {"outputs", json::array()},
              {"tensors", json::array()},
              {"steps", json::array()}};
  for (size_t t : model.inputs) out["inputs"].push_back(model.tensors[t].name);
  for (size_t k = 0; k < model.outputs.size(); ++k)
    out["outputs"].push_back({{"name", model.output_names[k]}, {"tensor", model.tensors[model.outputs[k]].name}});
  for (const ModelTensor& t : model.tensors) out["tensors"].push_back(tensor_json(model, t));
  for (const ModelStep& step : model.steps) out["steps"].push_back(step_json(model, step));
  return out;
}

Status write_all(const WholeModel& model, const std::string& file, const fs::path& folder) {
  Tensors weights;
  for (const ModelTensor& t : model.tensors)
    if (t.data && !t.view_of) weights.emplace(t.name, *t.data);
  if (Status s = write_tensors((folder / "weights.safetensors").string(), weights); !s) return s;
  for (const ModelRegion& region : model.regions)
    if (Status s = write_output((folder / (region.graph.name() + ".fus")).string(), print(region.graph)); !s) return s;
  return write_output((folder / "manifest.json").string(), lines(manifest(model, file)));
}

/// All files or none: they are written beside the folder, which then takes its name.
Status write_folder(const WholeModel& model, const std::string& file, const std::string& folder) {
  std::error_code fault;
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder, fault)))
    return input_error(folder + " is there already, and not empty");
  std::string partial = fs::path(folder).lexically_normal().string();
  while (partial.size() > 1 && partial.back() == '/') partial.pop_back();
  partial += ".XXXXXX";
  if (!mkdtemp(partial.data())) return environment_error("cannot make a folder beside " + folder);
  Status done = write_all(model, file, partial);
  if (done) fs::permissions(partial, fs::perms(0755), fault);
  if (done && (fs::rename(partial, folder, fault), fault)) done = environment_error(folder + ": " + fault.message());
  if (!done) fs::remove_all(partial, fault);
  return done;
}

int split(const std::string& path, const std::string& folder, const std::vector<std::string>& dims,
          const std::vector<std::string>& inputs) {
  if (!path.ends_with(".onnx")) return fail(input_error(path + ": a model is a file that ends in .onnx"));
  Result<Tensors> given = read_inputs(inputs, nullptr);
  if (!given) return fail(given.error());
  Result<WholeModel> model = read_model(path, dims, *given);
  if (!model) return fail(model.error());
  if (Status s = write_folder(*model, fs::path(path).filename().string(), folder); !s) return fail(s.error());
  std::cout << folder << ": " << model->regions.size() << (model->regions.size() == 1 ? " region, " : " regions, ")
            << model->boundaries.size() << (model->boundaries.size() == 1 ? " operator" : " operators") << " left to the host\n";
  return 0;
}

}  // namespace

json quotients_json(const WholeModel& model) {
  json out = json::array();
  for (const Quotient& q : model.quotients) out.push_back({{"symbol", Dim::symbol(q.symbol).text()}, {"of", q.of.text()}, {"by", q.by}});
  return out;
}

Action add_split(CLI::App& app) {
  struct Options {
    std::string model, folder;
    std::vector<std::string> dims, inputs;
  };
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, ".onnx file")->required();
  app.add_option("-o,--output", options->folder,
                 "folder to make: manifest.json, a .fus file a region, weights.safetensors")
      ->required();
  add_list(app, "--dim", options->dims, "N=8: value of a named dim of the model");
  add_list(app, "-i,--input", options->inputs, "NAME=FILE: an input whose value shapes the model (a shape, a choice)");
  return [options] { return split(options->model, options->folder, options->dims, options->inputs); };
}

}  // namespace fusec::cli
