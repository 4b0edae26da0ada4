#include <algorithm>
#include <fstream>

#include "lib/import/model.h"
#include "lib/import/onnx.h"
#include "runtime/artifact_file.h"
#include "test/folder.h"
#include "test/fuzz/targets.h"
#include "tools/fusec/tensor_file.h"

namespace fusec::fuzz {
namespace {

using cli::Tensors;

std::string fits(const Tensor& t) {
  if (Status good = check_type({t.dtype, {t.extents.begin(), t.extents.end()}}); !good) return "no type: " + good.error().text();
  return size_t(t.elements()) * bytes(t.dtype) == t.data.size() ? "" : "extents do not fit the data";
}

/// Tensors that a reader accepted, through the writer and the reader again.
std::string survive(const Tensors& tensors, std::string (*write)(const Tensors&), Result<Tensors> (*read)(std::string_view)) {
  for (const auto& [name, tensor] : tensors)
    if (std::string fault = fits(tensor); !fault.empty()) return name + ": " + fault;
  const Result<Tensors> back = read(write(tensors));
  if (!back) return "what is written is not read: " + back.error().text();
  if (back->size() != tensors.size()) return "tensors are lost";
  for (auto a = tensors.begin(), b = back->begin(); a != tensors.end(); ++a, ++b)
    if (a->second.extents != b->second.extents || a->second.data != b->second.data) return a->first + " changed";
  return "";
}

/// A folder of the process with 256 KB of weights, and a model that is another at each call.
struct ModelFolder {
  const Folder folder{"fuzz-onnx"};
  const std::string model = (folder.path / "m.onnx").string(), weights = (folder.path / "w").string();
  static constexpr size_t kWeights = 256 << 10;

  ModelFolder() {
    std::string all(kWeights, 0);
    for (size_t k = 0; k < all.size(); ++k) all[k] = char(k * 7 >> 3);
    std::ofstream(weights, std::ios::binary) << all;
  }
};

std::string whole(const Tensor& t) {
  if (std::string fault = fits(t); !fault.empty()) return fault;
  TensorData copy = t.data;
  for (std::byte& b : copy.own()) b ^= std::byte{1};  // reads all of it, writes to none
  return std::ranges::mismatch(copy, t.data, [](std::byte a, std::byte b) { return a != b; }).in1 == copy.end() ? "" : "a copy writes to its origin";
}

Result<Tensors> npz(std::string_view bytes) { return cli::parse_npz(bytes, {}); }

}  // namespace

std::string read_onnx(std::string_view bytes) {
  for (const bool boundaries : {false, true}) {
    const Result<Imported> model = import_onnx_bytes(bytes, "", {.boundaries = boundaries});
    if (!model && model.error().kind != Error::input) return "no input error: " + model.error().text();
    if (!model) continue;
    if (model->defaults.size() != model->graph.inputs().size()) return "defaults and inputs differ in number";
    if (std::string fault = hold_together(model->graph); !fault.empty()) return fault;
  }
  return "";
}

std::string read_onnx_file(std::string_view bytes) {
  static const ModelFolder there;
  std::ofstream(there.model, std::ios::binary | std::ios::trunc) << bytes;  // nothing of the last one is mapped any more
  for (const bool boundaries : {false, true}) {
    const Result<Imported> model = import_onnx(there.model, {.boundaries = boundaries});
    if (!model && model.error().kind != Error::input) return "no input error: " + model.error().text();
    for (size_t k = 0; model && k < model->defaults.size(); ++k)
      if (model->defaults[k])
        if (std::string fault = whole(*model->defaults[k]); !fault.empty()) return "default " + std::to_string(k) + ": " + fault;
    if (!model) continue;
    if (std::string fault = hold_together(model->graph); !fault.empty()) return fault;
  }
  const Result<WholeModel> model = read_model_file(there.model);
  return model || model.error().kind == Error::input ? "" : "no input error: " + model.error().text();
}

std::string read_npy(std::string_view bytes) {
  for (const std::optional<DType> wanted : {std::optional<DType>(), std::optional(DType::bf16), std::optional(DType::f8e5m2)}) {
    const Result<Tensor> tensor = cli::parse_npy(bytes, wanted);
    if (!tensor) continue;
    if (std::string fault = fits(*tensor); !fault.empty()) return fault;
    const Result<Tensor> back = cli::parse_npy(cli::npy_bytes(*tensor), tensor->dtype);
    if (!back || !(*back == *tensor)) return "what is written is not read";
  }
  return "";
}

std::string read_npz(std::string_view bytes) {
  const Result<Tensors> tensors = npz(bytes);
  return tensors ? survive(*tensors, cli::npz_bytes, npz) : "";
}

std::string read_safetensors(std::string_view bytes) {
  const Result<Tensors> tensors = cli::parse_safetensors(bytes);
  return tensors ? survive(*tensors, cli::safetensors_bytes, cli::parse_safetensors) : "";
}

std::string read_artifact(std::string_view bytes) {
  const Digest key{};
  if (from_file(key, bytes)) return "";  // no input gets here but through its checksum
  // The checksum would keep all else out: the input is what it covers, put between a good head and a good sum.
  std::string file = to_file(key, {}).substr(0, 8 + 4 + 32);
  for (int i = 0; i < 8; ++i) file.push_back(char(uint64_t(bytes.size()) >> (8 * i)));
  file += bytes;
  const Digest sum = sha256(file);
  file.append(reinterpret_cast<const char*>(sum.data()), sum.size());
  const std::optional<Artifact> artifact = from_file(key, file);
  if (!artifact) return "";
  const std::string written = to_file(key, *artifact);
  const std::optional<Artifact> back = from_file(key, written);
  return back && to_file(key, *back) == written ? "" : "what is written is not read";
}

}  // namespace fusec::fuzz
