#pragma once
// A whole model, ready to run: its regions as programs, its boundaries as extern operators.
//
//   Result<ModelProgram> program = ModelProgram::make(*model, {.device = "cpu"});
//   Result<std::vector<Tensor>> outputs = program->run(inputs);          // both in the file's order
//
// Every value has memory of its own from the start; a reshape is the same memory. Of a GPU's values an operator without an
// implementation there is computed on the host, between two copies.

#include <memory>
#include <span>

#include "fusec/fusec.h"
#include "lib/import/model.h"
#include "runtime/backend.h"
#include "runtime/extern.h"
#include "runtime/extern_device.h"

namespace fusec {

class ModelProgram {
 public:
  /// Compiles every region, uploads the weights, computes what hangs on them alone.
  /// Errors   input: a dim without a size, an operator that nobody here computes (each named, with its count), what compile()
  ///          refuses; environment: no OpenBLAS, no such device, out of memory.
  static Result<ModelProgram> make(std::shared_ptr<const WholeModel> model, const CompileOptions& options);

  /// Not thread-safe: a call's values are the program's.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);

  const std::string& device() const { return device_; }
  /// Calls of a run that went through the host although the device is a GPU.
  size_t host_calls() const { return host_calls_; }

 private:
  struct Place {
    std::shared_ptr<Memory> memory;  // null: a view, or a weight used where it is
    ExternValue value;
  };

  Status allocate();
  Status place(size_t tensor);
  Status run_step(size_t step);
  Status run_boundary(const ModelStep& step);
  Status run_on_host(const ExternCall& call);
  bool on_gpu() const { return device_.starts_with("cuda"); }
  ExternCall call_of(const ModelStep& step);

  std::shared_ptr<const WholeModel> model_;
  std::string device_;
  std::shared_ptr<const Backend> backend_;        // null: the reference evaluator
  std::vector<std::optional<Program>> programs_;  // of each region
  std::vector<Place> places_;                     // of each tensor
  std::shared_ptr<DeviceOps> device_ops_;         // of a GPU; null elsewhere
  std::vector<ExternKept> kept_;                  // of each step
  size_t host_calls_ = 0;
};

}  // namespace fusec
