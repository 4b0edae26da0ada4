#include "tools/fusec/import.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "lib/import/model.h"
#include "lib/import/onnx.h"
#include "lib/import/onnx_mapping.h"
#include "lib/import/onnx_model.h"
#include "lib/import/onnx_table.h"
#include "lib/import/onnx_tensor.h"
#include "lib/import/onnx_text.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"

namespace fusec::cli {

Result<Model> import_model(const std::string& path, const Tensors& given, const Sizes& sizes, std::string* text) {
  ImportOptions options;
  options.sizes = sizes;
  options.sources = text != nullptr;
  for (const auto& [name, tensor] : given) options.values[name] = std::make_shared<const Tensor>(tensor);
  Result<Imported> imported = import_onnx(path, options);
  if (!imported) return imported.error();
  if (text) *text = import_text(*imported);
  Model model{std::move(imported->graph), {}};
  for (size_t i = 0; i < imported->defaults.size(); ++i)
    if (imported->defaults[i]) model.defaults[model.graph.inputs()[i].name] = *imported->defaults[i];
  return model;
}

Result<std::vector<std::string>> model_inputs(const std::string& path) {
  const Result<std::shared_ptr<const onnx::Mapping>> file = onnx::map_model(path);
  if (!file) return file.error();
  Result<onnx::ModelMessage> model = onnx::read_model((*file)->text());
  if (!model) return model.error();
  std::vector<std::string> out;
  for (const onnx::ValueInfo& input : model->inputs) out.emplace_back(input.name);
  return out;
}

Result<Tensors> parse_tensor_proto(const std::string& path) {
  Result<onnx::NamedTensor> tensor = onnx::read_tensor_file(path);
  if (!tensor) return tensor.error();
  return Tensors{{tensor->name, std::move(tensor->tensor)}};
}

namespace {
/// Of a network that is no one graph: where to go on.
Error with_hint(Error error, const std::string& path, const Sizes& sizes) {
  const Result<WholeModel> whole = read_model_file(path, {.sizes = sizes});
  if (!whole || whole->boundaries.empty() || whole->regions.empty()) return error;
  return error.note("as a whole it is a network: `fusec explain` shows what of it is fused, `fusec split` writes that as .fus files, `fusec run` runs it");
}
}  // namespace

// fusec import: ONNX to text.
Action add_import(CLI::App& app) {
  struct Options {
    std::string model, output = "-";
    std::vector<std::string> dims;
    bool operators = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, ".onnx file");
  app.add_option("-o,--output", options->output, ".fus file (default: standard output)");
  add_list(app, "--dim", options->dims, "N=8: value of a named dim of the model");
  app.add_flag("--operators", options->operators, "list the operators that are taken, with their operator sets and element types");
  return [options] {
    if (options->operators) {
      std::cout << onnx::operator_table();
      return 0;
    }
    if (options->model.empty()) return fail(input_error("which .onnx file?"));
    Result<Sizes> sizes = parse_dims(options->dims);
    if (!sizes) return fail(sizes.error());
    std::string text;
    Result<Model> model = import_model(options->model, {}, *sizes, &text);
    if (!model) return fail(with_hint(model.error(), options->model, *sizes));
    for (const auto& [name, tensor] : model->defaults)
      std::cerr << "weight %" << printable(one_line(name)) << " (" << size_text(double(tensor.data.size())) << ") is an input of the graph\n";
    Status written = write_output(options->output, text);
    return written ? 0 : fail(written.error());
  };
}

}  // namespace fusec::cli
