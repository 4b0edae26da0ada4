// Text to machine code in this process: clang's front end, most of its -O1, our pass, ORC.
//
// Each kernel has its own library of symbols, which holds exactly what the runtime and libm offer: a search of the
// process would find, say, a memcpy with no hook, and detection would be lost without a sign.

#include <clang/Basic/Diagnostic.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/FunctionAttrs.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <span>

#include "test/simt/instrument.h"
#include "test/simt/kernel.h"
#include "test/simt/symbols.h"

namespace fusec::simt {

extern const char kShim[];

/// The library of one kernel's symbols; gone with the kernel.
struct Code {
  llvm::orc::LLJIT* jit;
  llvm::orc::JITDylib* library;

  ~Code() { llvm::consumeError(jit->getExecutionSession().removeJITDylib(*library)); }
};

namespace {

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

// Why: contraction, aliasing and float-to-int as the device's compiler has them; no builtins, or loops would turn into
// calls of memset.
const char* const kArguments[] = {"-triple",
                                  "x86_64-pc-linux-gnu",
                                  "-x",
                                  "c++",
                                  "-std=c++20",
                                  "-w",
                                  "-O1",
                                  "-mrelocation-model",
                                  "pic",
                                  "-pic-level",
                                  "2",
                                  "-ffp-contract=off",
                                  "-relaxed-aliasing",
                                  "-fno-strict-float-cast-overflow",
                                  "-fno-builtin",
                                  "-fno-finite-loops",
                                  "-disable-llvm-passes",
                                  "-mframe-pointer=none",
                                  "-debug-info-kind=line-tables-only",
                                  "-dwarf-version=4",
                                  "-include",
                                  "/simt_shim.h"};

llvm::orc::LLJIT* start_jit(std::string& error) {
  static llvm::orc::LLJIT* jit = [&]() -> llvm::orc::LLJIT* {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto host = llvm::orc::JITTargetMachineBuilder::detectHost();
    if (!host) return error = llvm::toString(host.takeError()), nullptr;
    host->setCodeGenOptLevel(
        llvm::CodeGenOptLevel::None);  // a third of the compilation less; runs as fast, hooks dominate
    auto made = llvm::orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(*host)
                    .setLinkProcessSymbolsByDefault(false)
                    .setPlatformSetUp(llvm::orc::setUpInactivePlatform)  // no initialisers, no process symbols
                    .create();
    if (!made) return error = llvm::toString(made.takeError()), nullptr;
    return made->release();  // lives as long as the process: kernels may outlive any static
  }();
  return jit;
}

std::unique_ptr<llvm::Module> parse(const std::string& text, llvm::LLVMContext& context, std::string& error) {
  std::vector<const char*> arguments(std::begin(kArguments), std::end(kArguments));
  arguments.insert(arguments.end(), {"-target-cpu", has_v3() ? "x86-64-v3" : "x86-64", "kernel"});
  llvm::raw_string_ostream out(error);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions());
  clang::DiagnosticsEngine early(new clang::DiagnosticIDs(), options,
                                 new clang::TextDiagnosticPrinter(out, options.get()));
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arguments, early)) return nullptr;
  // Only these two files exist: no text reaches the host's headers.
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(new llvm::vfs::InMemoryFileSystem());
  files->setCurrentWorkingDirectory("/");
  files->addFile("/kernel", 0, llvm::MemoryBuffer::getMemBufferCopy(text, "kernel"));
  files->addFile("/simt_shim.h", 0, llvm::MemoryBuffer::getMemBuffer(kShim, "simt_shim.h"));
  clang::CompilerInstance compiler;
  compiler.setInvocation(invocation);
  compiler.createFileManager(files);
  compiler.setVerboseOutputStream(llvm::nulls());  // or it counts errors on stderr
  compiler.createDiagnostics(new clang::TextDiagnosticPrinter(out, options.get()), true);
  clang::EmitLLVMOnlyAction action(&context);
  if (!compiler.ExecuteAction(action)) return nullptr;
  return action.takeModule();
}

// clang -O1 without its last stage, which takes vector loads apart into the elements that are used: what the text asks
// for is what is counted.
void optimise(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass());
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(
      builder.buildFunctionSimplificationPipeline(llvm::OptimizationLevel::O1, llvm::ThinOrFullLTOPhase::None)));
  passes.addPass(llvm::ReversePostOrderFunctionAttrsPass());  // readonly arguments: see make_entry
  passes.run(module, modules);
}

// Machine code under the names that instrument() left; fills what the kernel knows by address.
std::string load(std::unique_ptr<llvm::Module> module, std::unique_ptr<llvm::LLVMContext> context, const Names& names,
                 Kernel& kernel) {
  std::string error;
  llvm::orc::LLJIT* jit = start_jit(error);
  if (!jit) return error;
  static int count = 0;
  auto library = jit->createJITDylib("simt." + std::to_string(count++));
  if (!library) return llvm::toString(library.takeError());
  kernel.code = std::make_shared<Code>(jit, &*library);
  llvm::orc::SymbolMap symbols;
  for (const Symbol& symbol : std::span(kSymbols, kSymbolCount))
    symbols[jit->mangleAndIntern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                                  llvm::JITSymbolFlags::Exported};
  if (auto failed = library->define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return llvm::toString(std::move(failed));
  module->setDataLayout(jit->getDataLayout());
  if (auto failed = jit->addIRModule(*library, llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
    return llvm::toString(std::move(failed));
  for (const Names::Entry& entry : names.entries) {
    auto found = jit->lookup(*library, entry.symbol);
    if (!found) return llvm::toString(found.takeError());
    kernel.entries[entry.name] = {found->toPtr<void (*)(const void*)>(), entry.arg_bytes};
  }
  for (const Names::Global& global : names.globals) {
    auto found = jit->lookup(*library, global.symbol);
    if (!found) return llvm::toString(found.takeError());
    kernel.globals.push_back({found->toPtr<const char*>(), found->toPtr<const char*>() + global.bytes});
  }
  return "";
}

std::unique_ptr<Kernel> compile_fresh(const std::string& text, std::string& error) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = parse(text, *context, error);
  if (!module) {
    if (error.empty()) error = "the text does not compile";
    return nullptr;
  }
  auto kernel = std::make_unique<Kernel>();
  optimise(*module);
  Names names;
  error = instrument(*module, *kernel, names);
  if (error.empty() && names.entries.empty()) error = "the text has no __global__ function";
  if (error.empty()) {
    llvm::StripDebugInfo(*module);  // the sites have it; the code generator need not carry it
    error = load(std::move(module), std::move(context), names, *kernel);
  }
  return error.empty() ? std::move(kernel) : nullptr;
}

// Tests load the same text for many seeds, sizes and orders.
struct Recent {
  std::string text;
  std::shared_ptr<const Kernel> kernel;
};
constexpr size_t kMostRecent = 64;

}  // namespace

std::shared_ptr<const Kernel> compile(const std::string& text, std::string& error) {
  static std::mutex one_at_a_time;
  static auto* recent = new std::list<Recent>;  // the last used first; never destroyed: kernels may outlive any static
  std::lock_guard lock(one_at_a_time);
  auto known = std::find_if(recent->begin(), recent->end(), [&](const Recent& r) { return r.text == text; });
  if (known != recent->end()) {
    recent->splice(recent->begin(), *recent, known);
    return known->kernel;
  }
  std::shared_ptr<const Kernel> kernel = compile_fresh(text, error);
  if (kernel) recent->push_front({text, kernel});
  if (recent->size() > kMostRecent) recent->pop_back();
  return kernel;
}

}  // namespace fusec::simt
