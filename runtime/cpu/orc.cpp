#include "runtime/cpu/orc.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

namespace fusec::cpu {
namespace {

namespace orc = llvm::orc;

std::string text(llvm::Error error) { return llvm::toString(std::move(error)); }

/// Memory of this thread for a kernel's row buffer; it grows and stays until the thread ends.
extern "C" void* fusec_scratch(int64_t bytes) {
  thread_local std::unique_ptr<std::byte[], void (*)(std::byte*)> memory(nullptr, [](std::byte* p) { std::free(p); });
  thread_local int64_t size = 0;
  if (size < bytes) {
    size = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, static_cast<size_t>(size))));
    if (!memory) std::abort();  // a megabyte at most
  }
  return memory.get();
}

/// The session and the layer that links objects: LLJIT without its compiler, which would initialise a target for every
/// process that only loads what a cache already holds.
struct Engine {
  std::unique_ptr<orc::ExecutionSession> session;
  std::unique_ptr<orc::ObjectLinkingLayer> layer;
  orc::JITDylib* host = nullptr;
  std::string error;
  std::atomic<uint64_t> loaded{0};

  Engine() {
    auto control = orc::SelfExecutorProcessControl::Create();
    if (!control) {
      error = text(control.takeError());
      return;
    }
    session = std::make_unique<orc::ExecutionSession>(std::move(*control));
    session->setErrorReporter(
        [](llvm::Error e) { llvm::consumeError(std::move(e)); });  // reported by the lookup that failed
    auto memory = llvm::jitlink::InProcessMemoryManager::Create();
    if (!memory) {
      error = text(memory.takeError());
      return;
    }
    layer = std::make_unique<orc::ObjectLinkingLayer>(*session, std::move(*memory));
    host = &session->createBareJITDylib("host");
    orc::SymbolMap symbols;
    auto add = [&](const char* name, auto* address) {
      symbols[session->intern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    };
    add("fmodf", static_cast<float (*)(float, float)>(&::fmodf));
    add("fmod", static_cast<double (*)(double, double)>(&::fmod));
    add("fmaf", static_cast<float (*)(float, float, float)>(&::fmaf));
    add("fma", static_cast<double (*)(double, double, double)>(&::fma));
    add("floorf", static_cast<float (*)(float)>(&::floorf));
    add("floor", static_cast<double (*)(double)>(&::floor));
    add("ceilf", static_cast<float (*)(float)>(&::ceilf));
    add("ceil", static_cast<double (*)(double)>(&::ceil));
    add("truncf", static_cast<float (*)(float)>(&::truncf));
    add("trunc", static_cast<double (*)(double)>(&::trunc));
    add("roundevenf", static_cast<float (*)(float)>(&::roundevenf));
    add("roundeven", static_cast<double (*)(double)>(&::roundeven));
    add("fusec_scratch", &fusec_scratch);
    add("memcpy", static_cast<void* (*)(void*, const void*, size_t)>(&::memcpy));
    add("memset", static_cast<void* (*)(void*, int, size_t)>(&::memset));
    if (llvm::Error e = host->define(orc::absoluteSymbols(std::move(symbols)))) error = text(std::move(e));
  }

  ~Engine() {
    if (session)
      if (llvm::Error e = session->endSession()) llvm::consumeError(std::move(e));
  }
};

/// Kept alive by the handles, so that code outlives the end of main in whatever order statics die.
std::shared_ptr<Engine> engine() {
  static std::mutex lock;
  static std::shared_ptr<Engine> one;
  std::lock_guard guard(lock);
  if (!one) one = std::make_shared<Engine>();
  return one;
}

struct Loaded {
  std::shared_ptr<Engine> engine;
  orc::JITDylib* library;
  ~Loaded() {
    if (llvm::Error e = engine->session->removeJITDylib(*library)) llvm::consumeError(std::move(e));
  }
};

}  // namespace

Result<Code> load(std::span<const uint8_t> object, const std::string& entry, const std::string& finish_entry) {
  std::shared_ptr<Engine> e = engine();
  if (!e->error.empty()) return environment_error("the loader for CPU kernels did not start: " + e->error);
  auto library = e->session->createJITDylib("kernel " + std::to_string(e->loaded++));
  if (!library) return internal_error("no library for a CPU kernel: " + text(library.takeError()));
  auto loaded = std::make_shared<Loaded>(e, &*library);
  library->addToLinkOrder(*e->host);
  auto buffer =
      llvm::MemoryBuffer::getMemBufferCopy({reinterpret_cast<const char*>(object.data()), object.size()}, entry);
  if (llvm::Error error = e->layer->add(*library, std::move(buffer)))
    return internal_error("a CPU kernel's object is damaged: " + text(std::move(error)));
  auto find = [&](const std::string& name) -> Result<Entry> {
    auto symbol = e->session->lookup({&*library}, e->session->intern(name));
    if (!symbol) return internal_error("a CPU kernel did not link: " + text(symbol.takeError()));
    return symbol->getAddress().toPtr<Entry>();
  };
  Code code;
  Result<Entry> main = find(entry);
  if (!main) return main.error();
  code.entry = *main;
  if (!finish_entry.empty()) {
    Result<Entry> finish = find(finish_entry);
    if (!finish) return finish.error();
    code.finish = *finish;
  }
  code.owner = std::move(loaded);
  return code;
}

}  // namespace fusec::cpu
