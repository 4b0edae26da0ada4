// LLVM IR to an object file in memory. The emitter writes vector code that is already where it should be, so a handful
// of cheap passes does what O3 would: 8–14 ms a kernel against 19–44 (measured with LLVM 19 on two Zen 5 cores, no
// faster code).
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/InitializePasses.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/PassRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils.h>

#include <chrono>
#include <mutex>

#include "codegen/cpu/emit.h"

namespace fusec::cpu {
namespace {

void start_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

/// One target machine a thread and device: making one costs a millisecond, and they are not shared safely.
llvm::TargetMachine* machine(const Device& device, std::string& error) {
  start_llvm();
  thread_local std::unique_ptr<llvm::TargetMachine> kept;
  thread_local std::string kept_for;
  const std::string want = device.cpu + "\n" + device.features;
  if (kept && kept_for == want) return kept.get();
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // x * y + z stays two roundings
  kept.reset(target->createTargetMachine(triple, device.cpu, device.features, options, llvm::Reloc::PIC_,
                                         llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  kept_for = want;
  if (!kept) error = "LLVM has no code generator for " + triple;
  return kept.get();
}

enum class Form { ir, assembly, object };

struct Output {
  llvm::SmallVector<char, 0> bytes;
  Emitted emitted;
};

Result<Output> generate(const Kernel& kernel, const Schedule& schedule, const Device& device, const std::string& entry,
                        Form form) {
  std::string error;
  llvm::TargetMachine* target = machine(device, error);
  if (!target) return environment_error("no CPU code generator: " + error);
  llvm::LLVMContext context;
  Output out;
  out.emitted = emit(context, kernel, schedule, device, entry);
  if (!out.emitted.fault.empty()) {
    out.emitted.module.reset();
    return internal_error(out.emitted.fault);
  }
  llvm::Module& module = *out.emitted.module;
  module.setDataLayout(target->createDataLayout());
#if LLVM_VERSION_MAJOR >= 21
  module.setTargetTriple(target->getTargetTriple());
#else
  module.setTargetTriple(target->getTargetTriple().str());
#endif
  const std::string prefer = std::to_string(device.vector_bytes * 8);
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", device.cpu);
    f.addFnAttr("target-features", device.features);
    f.addFnAttr("prefer-vector-width", prefer);
    f.addFnAttr("min-legal-vector-width", prefer);
  }
  llvm::raw_string_ostream complaint(error);
  if (llvm::verifyModule(module, &complaint)) {
    out.emitted.module.reset();
    return internal_error("the CPU emitter wrote invalid LLVM IR: " + complaint.str());
  }
  llvm::raw_svector_ostream stream(out.bytes);
  llvm::legacy::PassManager passes;
  // First of all: EarlyCSE would bring in a stand-in that knows no target, under which masked loads fall apart into
  // branches.
  passes.add(llvm::createTargetTransformInfoWrapperPass(target->getTargetIRAnalysis()));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  if (form == Form::ir) {
    passes.run(module);
    module.print(stream, nullptr);
  } else {
    const auto type = form == Form::object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
    if (target->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
      out.emitted.module.reset();
      return internal_error("LLVM cannot write this kind of file");
    }
    passes.run(module);
  }
  out.emitted.module.reset();  // before its context
  return out;
}

Result<std::string> text(const Kernel& kernel, const Schedule& schedule, const Device& device, const std::string& entry,
                         Form form) {
  Result<Output> out = generate(kernel, schedule, device, entry, form);
  if (!out) return out.error();
  return std::string(out->bytes.begin(), out->bytes.end());
}

}  // namespace

Result<Artifact> compile(const Kernel& kernel, const Schedule& schedule, const Device& device,
                         const std::string& entry) {
  const auto start = std::chrono::steady_clock::now();
  Result<Output> out = generate(kernel, schedule, device, entry, Form::object);
  if (!out) return out.error();
  Artifact artifact;
  artifact.target = "cpu:" + device.cpu;
  artifact.entry = out->emitted.entry;
  artifact.finish_entry = out->emitted.finish_entry;
  artifact.bytes.assign(out->bytes.begin(), out->bytes.end());
  artifact.slots = std::move(out->emitted.slots);
  artifact.schedule = schedule;
  const auto spent = std::chrono::steady_clock::now() - start;
  artifact.facts["compile_us"] = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
  return artifact;
}

Result<std::string> llvm_ir(const Kernel& kernel, const Schedule& schedule, const Device& device,
                            const std::string& entry) {
  return text(kernel, schedule, device, entry, Form::ir);
}

Result<std::string> assembly(const Kernel& kernel, const Schedule& schedule, const Device& device,
                             const std::string& entry) {
  return text(kernel, schedule, device, entry, Form::assembly);
}

}  // namespace fusec::cpu
