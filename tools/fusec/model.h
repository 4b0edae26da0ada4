#pragma once
// Whole ONNX models on the command line: networks of which fusec computes a part.

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "lib/import/model.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/kernels.h"
#include "tools/fusec/tensor_file.h"

namespace fusec::cli {

/// A model with the sizes that `dims` ("N=8") and the given inputs say; those may also shape it.
/// Errors   input: a dim that no input has; a file that is at fault.
Result<WholeModel> read_model(const std::string& path, const std::vector<std::string>& dims, const Tensors& given = {});

/// Is it an ONNX file with operators that the importer does not take? nullopt: no, all of it is one graph.
/// Otherwise as read_model.
Result<std::optional<WholeModel>> whole_model(const std::string& path, const std::vector<std::string>& dims,
                                              const Tensors& given = {});

/// What explain says of a whole model. `device`: "" = the options' target, else one that is here, measured now.
Result<std::string> explain_model(const WholeModel& model, const KernelOptions& options, const std::string& device,
                                  bool json);

/// Outputs of a whole model, in its order; inputs likewise. With `timing`, whole runs are repeated for about half a second: on a GPU
/// the copies of inputs and outputs are in them.
/// Errors   those of ModelProgram (runtime/extern_model.h).
Result<std::vector<Tensor>> execute_model(const ExecuteOptions& options, std::shared_ptr<const WholeModel> model,
                                          std::span<const Tensor> inputs, Timing* timing = nullptr);
/// The model's inputs as a graph that has no nodes: what completes inputs.
Result<Graph> input_ports(const WholeModel& model);

/// [{"symbol": "side/2", "of": "side+1", "by": 2}], for reports and manifests.
nlohmann::json quotients_json(const WholeModel& model);
/// "%x f32[1,3,224,224]".
std::string tensor_text(const WholeModel& model, std::optional<size_t> tensor);
/// "MatMul", or "Attention of \"com.microsoft\"".
std::string operator_text(const ModelBoundary& boundary);

}  // namespace fusec::cli
