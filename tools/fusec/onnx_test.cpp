#include "tools/fusec/onnx_test.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/fus_file.h"
#include "tools/fusec/import.h"
#include "tools/fusec/tensor_file.h"

namespace fusec::cli {
namespace {

namespace fs = std::filesystem;

/// input_0.pb, input_1.pb … of a data set, with their names.
Result<std::vector<std::pair<std::string, Tensor>>> read_set(const fs::path& folder, const char* prefix) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (size_t i = 0;; ++i) {
    const fs::path file = folder / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return out;
    Result<Tensors> tensor = read_tensors(file.string());
    if (!tensor) return tensor.error();
    out.emplace_back(tensor->begin()->first, std::move(tensor->begin()->second));
  }
}

/// As ONNX's own runner compares: relative 1e-3, absolute 1e-7 for f32 and wider; what a narrow float can hold otherwise.
double tolerance(DType type) {
  switch (type) {
    case DType::f16: return 2e-3;
    case DType::bf16: return 1.6e-2;
    case DType::f8e4m3:
    case DType::f8e5m2: return 0.25;
    default: return 1e-4;
  }
}

/// The node tests of ONNX 1.12 keep bf16 data as u16: what the model says counts.
void mend_bfloat16(Tensor& tensor, DType said) {
  if (said == DType::bf16 && tensor.dtype == DType::u16) tensor.dtype = DType::bf16;
}

/// Some data files have other dims than their model says.
bool fits(const Tensor& tensor, const Type& type) {
  if (tensor.extents.size() != type.shape.size()) return false;
  for (size_t a = 0; a < type.shape.size(); ++a)
    if (type.shape[a].is_constant() && !type.shape[a].is(tensor.extents[a])) return false;
  return true;
}

/// One data set on one device; "" when every output is right.
std::string run_set(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<std::pair<std::string, Tensor>>& wanted,
                    const std::string& device) {
  Result<std::vector<Tensor>> got = execute({.device = device}, graph, inputs);
  if (!got) return "on " + device + ": " + got.error().text();
  if (got->size() > wanted.size()) return "the data set has " + std::to_string(wanted.size()) + " outputs, the graph " + std::to_string(got->size());
  for (size_t i = 0; i < got->size(); ++i)
    if (std::string d = difference((*got)[i], wanted[i].second, false, tolerance(wanted[i].second.dtype)); !d.empty())
      return "on " + device + ": output " + graph.outputs()[i].name + " " + d;
  return "";
}

}  // namespace

void run_onnx_test(const std::string& folder, const std::vector<std::string>& devices, OnnxTally& tally) {
  for (const fs::directory_entry& set : fs::directory_iterator(folder)) {
    if (!set.path().filename().string().starts_with("test_data_set_")) continue;
    auto failed = [&](const std::string& what) {
      ++tally.failed;
      std::cout << "FAILED " << fs::path(folder).filename().string() << ": " << what << "\n";
    };
    auto unsupported = [&](const Error& error) {
      ++tally.unsupported;
      std::string reason = error.text();
      reason = reason.substr(0, reason.find('\n'));
      if (const size_t at = reason.find("model.onnx: "); at != reason.npos) reason = reason.substr(at + 12);  // else each is unique
      tally.reasons[reason].push_back(fs::path(folder).filename().string());
    };
    auto inputs = read_set(set.path(), "input_"), wanted = read_set(set.path(), "output_");
    if (!inputs || !wanted) {
      unsupported(inputs ? wanted.error() : inputs.error());  // an element type that we have not
      continue;
    }
    // Data files stand for inputs by their number; some carry other names than the model's.
    Result<std::vector<std::string>> names = model_inputs(folder + "/model.onnx");
    if (!names) {
      unsupported(names.error());
      continue;
    }
    Tensors given;
    for (size_t k = 0; k < inputs->size() && k < names->size(); ++k) given[(*names)[k]] = std::move((*inputs)[k].second);
    Result<Model> model = import_model(folder + "/model.onnx", given);
    if (!model) {
      unsupported(model.error());
      continue;
    }
    bool sound = true;
    for (const Port& port : model->graph.inputs()) {
      const Type& type = model->graph.node(port.node).type;
      const auto data = given.find(port.name);
      if (data == given.end()) continue;
      mend_bfloat16(data->second, type.dtype);
      sound &= fits(data->second, type);
    }
    if (!sound) {
      unsupported(input_error("its data files have other dims than the model says"));
      continue;
    }
    for (size_t k = 0; k < wanted->size() && k < model->graph.outputs().size(); ++k)
      mend_bfloat16((*wanted)[k].second, model->graph.node(model->graph.outputs()[k].node).type.dtype);
    given.merge(model->defaults);
    Result<Inputs> values = complete_inputs(model->graph, std::move(given), {}, 0);
    if (!values || !values->drawn.empty()) {
      failed(values ? "the data set lacks an input" : values.error().text());
      continue;
    }
    for (const std::string& device : devices) {
      const std::string wrong = run_set(model->graph, values->values, *wanted, device);
      if (wrong.empty()) ++tally.passed;
      else failed(wrong);
    }
  }
}

void print_onnx_tally(const OnnxTally& tally, bool verbose) {
  if (!verbose) return;
  std::vector<std::pair<size_t, std::string>> rows;
  for (const auto& [reason, tests] : tally.reasons) rows.emplace_back(tests.size(), reason);
  std::sort(rows.begin(), rows.end(), std::greater());
  for (const auto& [count, reason] : rows) {
    std::cout << "unsupported, " << count << (count == 1 ? " time: " : " times: ") << reason << "\n ";
    for (const std::string& test : tally.reasons.at(reason)) std::cout << " " << test;
    std::cout << "\n";
  }
}

}  // namespace fusec::cli
