#include "tools/fusec/model.h"

#include <algorithm>
#include <set>

#include "lib/support/text.h"
#include "tools/fusec/execute.h"

namespace fusec::cli {

namespace {

// Names of dims, by the importer's rule.
bool is_open(const onnx::DimMessage& dim) { return !dim.value || *dim.value == -1; }
std::string dim_name(const onnx::ValueInfo& input, size_t axis) {
  const std::string_view name = input.dims[axis].name;
  return name.empty() || name == "?" ? std::string(input.name) + "." + std::to_string(axis) : std::string(name);
}

/// Dims that --dim can name.
std::set<std::string> open_dims(const onnx::ModelMessage& message) {
  std::set<std::string> out;
  for (const onnx::ValueInfo& input : message.inputs)
    for (size_t a = 0; a < input.dims.size(); ++a)
      if (is_open(input.dims[a])) out.insert(dim_name(input, a));
  return out;
}

/// Sizes of named dims that given inputs have; those that are there already stay. Were there any?
bool add_sizes(const onnx::ModelMessage& message, const Tensors& given, Sizes& sizes) {
  bool added = false;
  for (const onnx::ValueInfo& input : message.inputs) {
    const auto tensor = given.find(std::string(input.name));
    if (tensor == given.end() || tensor->second.extents.size() != input.dims.size()) continue;
    for (size_t a = 0; a < input.dims.size(); ++a)
      if (is_open(input.dims[a])) added |= sizes.emplace(dim_name(input, a), tensor->second.extents[a]).second;
  }
  return added;
}

}  // namespace

Result<WholeModel> read_model(const std::string& path, const std::vector<std::string>& dims, const Tensors& given) {
  ImportOptions options;
  Result<Sizes> sizes = parse_dims(dims);
  if (!sizes) return sizes.error();
  options.sizes = *sizes;
  for (const auto& [name, tensor] : given) options.values[name] = std::make_shared<const Tensor>(tensor);
  Result<WholeModel> model = read_model_file(path, options);
  if (model && !given.empty() && add_sizes(model->file->message, given, options.sizes))
    model = read_model_file(path, options);
  if (!model) return model;
  const std::set<std::string> open = open_dims(model->file->message);
  for (const auto& [name, size] : *sizes)
    if (!open.contains(name)) {
      const std::vector<std::string> names(open.begin(), open.end());
      return input_error("the model has no dim " + name +
                         (names.empty() ? "" : ", only " + join(", ", names.data(), names.data() + names.size())));
    }
  return model;
}

Result<std::optional<WholeModel>> whole_model(const std::string& path, const std::vector<std::string>& dims,
                                              const Tensors& given) {
  if (!path.ends_with(".onnx")) return std::optional<WholeModel>();
  Result<WholeModel> model = read_model(path, dims, given);
  if (!model) return model.error();
  if (model->boundaries.empty()) return std::optional<WholeModel>();
  return std::optional(std::move(*model));
}

std::string tensor_text(const WholeModel& model, std::optional<size_t> tensor) {
  if (!tensor) return "none";
  const ModelTensor& t = model.tensors[*tensor];
  return "%" + one_line(t.name) + " " + (t.type ? text(*t.type) : "of unknown shape");
}

std::string operator_text(const ModelBoundary& boundary) {
  return boundary.op + (boundary.domain.empty() ? "" : " of " + quoted(boundary.domain));
}

}  // namespace fusec::cli
