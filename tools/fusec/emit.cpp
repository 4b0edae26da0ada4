// fusec emit: the text or the bytes of each kernel of a graph.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "tools/fusec/kernels.h"
#include "tools/fusec/text_commands.h"
#if FUSEC_HAS_CPU
#include "codegen/cpu/cpu.h"
#endif
#if FUSEC_HAS_CUDA
#include "codegen/cuda/cuda.h"
#endif

namespace fusec::cli {
namespace {

struct Options {
  std::string file, graph, as = "plan", folder;
  KernelOptions kernel;
};

struct Row {
  const char* as;
  const char* ending;
  bool cpu, cuda;
};
const Row kForms[] = {{"plan", ".plan", true, true}, {"cuda", ".cu", false, true},   {"ptx", ".ptx", false, true},
                      {"cubin", ".cubin", false, true}, {"llvm", ".ll", true, false}, {"asm", ".s", true, false},
                      {"object", ".o", true, false}};

[[maybe_unused]] Result<std::string> bytes_of(Result<Artifact> artifact) {
  if (!artifact) return artifact.error();
  return std::string(artifact->bytes.begin(), artifact->bytes.end());
}

Result<std::string> emit_one(const Options& o, const PlannedKernel& k, [[maybe_unused]] const std::string& entry) {
  if (o.as == "plan") return print(k.kernel) + "schedule " + print(k.schedule()) + "\n";
#if FUSEC_HAS_CPU
  if (o.kernel.target == "cpu") {
    if (o.as == "llvm") return cpu::llvm_ir(k.kernel, k.schedule(), cpu::host(), entry);
    if (o.as == "asm") return cpu::assembly(k.kernel, k.schedule(), cpu::host(), entry);
    return bytes_of(cpu::compile(k.kernel, k.schedule(), cpu::host(), entry));
  }
#endif
#if FUSEC_HAS_CUDA
  const Code code = cuda::emit(k.kernel, k.schedule());
  if (o.as == "cuda") return code.text;
  if (o.as == "ptx") return cuda::ptx(code, sm_of(o.kernel.target));
  return bytes_of(cuda::compile(code, sm_of(o.kernel.target)));
#else
  (void)bytes_of;
  return environment_error("target " + o.kernel.target + " is not in this build");
#endif
}

Result<std::vector<std::string>> emit(const Options& o, const Graph& graph, const Row** form) {
  *form = nullptr;
  for (const Row& row : kForms)
    if (o.as == row.as) *form = &row;
  if (!*form) return input_error("--as " + o.as + ": plan, cuda, ptx, cubin, llvm, asm and object are known");
  if (!(o.kernel.target == "cpu" ? (*form)->cpu : (*form)->cuda))
    return input_error("target " + o.kernel.target + " has no form " + o.as +
                       ((*form)->cuda ? ": give --target sm_90, or another sm_…" : ": that is --target cpu's"));
  Result<Planned> planned = plan_kernels(graph, o.kernel);
  if (!planned) return planned.error();
  std::vector<std::string> out;
  for (size_t i = 0; i < planned->kernels.size(); ++i) {
    Result<std::string> one = emit_one(o, planned->kernels[i], "g" + std::to_string(i));
    if (!one) return one.error().note("while emitting g" + std::to_string(i));
    out.push_back(std::move(*one));
  }
  return out;
}

void declare(CLI::App& app, Options& o) {
  app.add_option("--as", o.as, "plan, cuda, ptx, cubin (sm_…); plan, llvm, asm, object (cpu)")->capture_default_str();
  add_kernel_options(app, o.kernel);
}

}  // namespace

TextAction add_text_emit(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options](const Graph& graph) -> Result<std::string> {
    const Row* form;
    Result<std::vector<std::string>> texts = emit(*options, graph, &form);
    if (!texts) return texts.error();
    std::string out;
    for (const std::string& text : *texts) out += text;
    return out;
  };
}

Action add_emit(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, ".fus or .onnx file; - is .fus on standard input")->required();
  app.add_option("--graph", options->graph, "which graph of the file");
  app.add_option("-o,--output", options->folder, "folder for g0.cu, g1.cu … (default: standard output)");
  declare(app, *options);
  return [options] {
    Result<Graph> graph = load_graph(options->file, options->graph);
    if (!graph) return fail(graph.error());
    const Row* form;
    Result<std::vector<std::string>> texts = emit(*options, *graph, &form);
    if (!texts) return fail(texts.error());
    std::error_code error;
    if (!options->folder.empty()) std::filesystem::create_directories(options->folder, error);
    for (size_t i = 0; i < texts->size(); ++i) {
      const std::string path = options->folder.empty() ? "-" : options->folder + "/g" + std::to_string(i) + form->ending;
      if (Status s = write_output(path, (*texts)[i]); !s) return fail(s.error());
    }
    return 0;
  };
}

}  // namespace fusec::cli
