// The pass: one hook in front of each load, store and copy; places for runtime calls; shared memory; doors to the
// kernels.
//
//   %v = load float, ptr %p, !dbg !7      =>   call void @simt_rt_access(ptr %p, i32 12)  ; site 12: line 7, 4 bytes, read
//                                              %v = load float, ptr %p
//   call void @simt_rt_fence(i32 1, i32 0)  =>  call void @simt_rt_fence(i32 1, i32 13)
//   @tile (thread_local)                  =>   simt_is_shared() + its offset in the block's arena
//   void @g0(ptr byval %args)             =>   void @simt.entry.g0(ptr %args), which takes g0's parameters from there
//
// It runs after optimisation, so that hooks cost the optimiser nothing and see the accesses that are left.

#include "test/simt/instrument.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <map>

namespace fusec::simt {
namespace {

using namespace llvm;

constexpr const char* kKernelSection = "simt_kernels";
constexpr uint64_t kMostFrame = 40 << 10;  // bytes of local variables of one function: more would be slow on a device too
constexpr uint64_t kFirst = 128, kZone = 64, kDynamicAlign = 1024;

class Pass {
 public:
  Pass(Module& module, Kernel& kernel, Names& names)
      : module_(module),
        kernel_(kernel),
        names_(names),
        layout_(module.getDataLayout()),
        context_(module.getContext()) {
    kernel_.sites.assign(1, Site{});
  }

  std::string run() {
    lay_out_shared();
    for (Function& function : module_)
      if (!function.isDeclaration()) {
        check_frame(function);
        function.addFnAttr("probe-stack", "inline-asm");  // a frame of many pages touches each: none steps over the guard
        guard_divisions(function);
        hook(function);
        hook_bare_loops(function);
      }
    for (GlobalVariable* variable : shared_) replace_shared(*variable);
    name_globals();
    for (Function& function : make_early_list())
      if (function.getSection() == kKernelSection) make_entry(function);
    return problem_;
  }

 private:
  // The lines of the text that lead to an instruction. Frames of the shim (another file) are left out.
  uint32_t site(const Instruction& at, uint32_t bytes = 0, uint32_t align = 1, bool write = false,
                bool is_volatile = false) {
    Site s;
    s.bytes = bytes, s.align = align, s.write = write, s.is_volatile = is_volatile;
    for (const DILocation* l = at.getDebugLoc(); l; l = l->getInlinedAt())
      if (l->getFilename() == "kernel" && l->getLine()) s.lines.push_back(l->getLine());
    auto key = std::make_tuple(s.lines, bytes, align, write, is_volatile);
    auto [found, fresh] = site_of_.try_emplace(key, static_cast<uint32_t>(kernel_.sites.size()));
    if (fresh) kernel_.sites.push_back(std::move(s));
    return found->second;
  }

  FunctionCallee runtime(const char* name, std::initializer_list<Type*> parameters) {
    return module_.getOrInsertFunction(name, FunctionType::get(Type::getVoidTy(context_), parameters, false));
  }

  // A load of the thread's own memory, of a constant or of the kernel's arguments needs no hook.
  static bool is_private(Value* pointer) {
    const Value* object = getUnderlyingObject(pointer, 0);
    if (isa<AllocaInst>(object)) return true;
    if (auto* global = dyn_cast<GlobalVariable>(object)) return global->isConstant() && !global->isThreadLocal();
    auto* argument = dyn_cast<Argument>(object);
    return argument && argument->hasByValAttr();
  }

  void hook_access(Instruction& at, Value* pointer, Type* type, Align align, bool write, bool is_volatile) {
    if (is_private(pointer)) return;
    IRBuilder<> build(&at);
    uint32_t bytes = static_cast<uint32_t>(layout_.getTypeStoreSize(type));
    build.CreateCall(
        runtime("simt_rt_access", {build.getPtrTy(), build.getInt32Ty()}),
        {pointer, build.getInt32(site(at, bytes, static_cast<uint32_t>(align.value()), write, is_volatile))});
  }

  void hook_range(MemIntrinsic& at, Value* pointer, MaybeAlign align, bool write) {
    if (is_private(pointer)) return;
    IRBuilder<> build(&at);
    auto* constant = dyn_cast<ConstantInt>(at.getLength());
    uint32_t bytes = constant ? static_cast<uint32_t>(constant->getZExtValue()) : 0;
    build.CreateCall(runtime("simt_rt_range", {build.getPtrTy(), build.getInt64Ty(), build.getInt32Ty()}),
                     {pointer, build.CreateZExt(at.getLength(), build.getInt64Ty()),
                      build.getInt32(site(at, bytes, static_cast<uint32_t>(align.valueOrOne().value()), write))});
  }

  void place_call(CallBase& call) {
    Function* callee = call.getCalledFunction();
    if (!callee || !callee->getName().starts_with("simt_rt_") || !callee->isDeclaration()) return;
    unsigned last = call.arg_size() - 1;
    if (auto* old = dyn_cast<ConstantInt>(call.getArgOperand(last)); old && old->isZero())
      call.setArgOperand(last, ConstantInt::get(old->getType(), site(call)));
  }

  void hook(Function& function) {
    std::vector<Instruction*> todo;
    for (Instruction& i : instructions(function)) todo.push_back(&i);
    for (Instruction* i : todo) {
      if (auto* load = dyn_cast<LoadInst>(i)) {
        hook_access(*i, load->getPointerOperand(), load->getType(), load->getAlign(), false, load->isVolatile());
      } else if (auto* store = dyn_cast<StoreInst>(i)) {
        hook_access(*i, store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(), true,
                    store->isVolatile());
      } else if (auto* memory = dyn_cast<MemIntrinsic>(i)) {
        if (auto* copy = dyn_cast<MemTransferInst>(i))
          hook_range(*memory, copy->getSource(), copy->getSourceAlign(), false);
        hook_range(*memory, memory->getDest(), memory->getDestAlign(), true);
      } else if (auto* call = dyn_cast<CallBase>(i)) {
        place_call(*call);
      }
    }
  }

  void check_frame(Function& function) {
    uint64_t bytes = 0;
    for (Instruction& i : instructions(function))
      if (auto* variable = dyn_cast<AllocaInst>(&i))
        bytes += variable->getAllocationSize(layout_).value_or(TypeSize::getFixed(kMostFrame)).getFixedValue();
    if (bytes > kMostFrame)
      problem_ = demangle(function.getName().str()) + " has " + std::to_string(bytes) +
                 " bytes of local variables; a thread here has room for " + std::to_string(kMostFrame);
  }

  // A loop that calls nothing would never meet the step limit.
  void hook_bare_loops(Function& function) {
    DominatorTree tree(function);
    LoopInfo loops(tree);
    for (Loop* loop : loops.getLoopsInPreorder()) {
      bool calls = llvm::any_of(loop->blocks(), [](BasicBlock* block) {
        return llvm::any_of(*block, [](Instruction& i) {
          auto* call = dyn_cast<CallBase>(&i);
          return call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("simt_rt_");
        });
      });
      if (calls) continue;
      IRBuilder<> build(loop->getHeader(), loop->getHeader()->getFirstInsertionPt());
      build.CreateCall(runtime("simt_rt_step", {build.getInt32Ty()}),
                       {build.getInt32(site(*loop->getHeader()->getTerminator()))});
    }
  }

  // A device's integer division never traps: x / 0 has all bits set, x % 0 is x, MIN / -1 wraps.
  void guard_divisions(Function& function) {
    std::vector<BinaryOperator*> todo;
    for (Instruction& i : instructions(function))
      if (auto* op = dyn_cast<BinaryOperator>(&i); op && op->isIntDivRem() && !isa<Constant>(op->getOperand(1)))
        todo.push_back(op);
    for (BinaryOperator* op : todo) {
      IRBuilder<> build(op);
      Value *n = op->getOperand(0), *d = op->getOperand(1);
      Type* type = op->getType();
      bool is_signed = op->getOpcode() == Instruction::SDiv || op->getOpcode() == Instruction::SRem;
      bool divides = op->getOpcode() == Instruction::SDiv || op->getOpcode() == Instruction::UDiv;
      Value* zero = build.CreateICmpEQ(d, Constant::getNullValue(type));
      Value* bad = zero;
      if (is_signed) {
        Value* least = ConstantInt::get(type, APInt::getSignedMinValue(type->getScalarSizeInBits()));
        bad = build.CreateOr(zero, build.CreateAnd(build.CreateICmpEQ(n, least),
                                                   build.CreateICmpEQ(d, Constant::getAllOnesValue(type))));
      }
      op->setOperand(1, build.CreateSelect(bad, ConstantInt::get(type, 1), d));
      build.SetInsertPoint(op->getNextNode());
      Value* by_zero = divides ? static_cast<Value*>(Constant::getAllOnesValue(type)) : n;
      auto* result = cast<Instruction>(build.CreateSelect(zero, by_zero, op));
      op->replaceUsesWithIf(result, [&](Use& use) { return use.getUser() != result; });
    }
  }

  // Declared variables one after the other with red zones between them, then `extern __shared__`, which all its
  // declarations share.
  void lay_out_shared() {
    uint64_t at = kFirst;
    for (GlobalVariable& variable : module_.globals()) {
      if (!variable.isThreadLocal()) continue;
      shared_.push_back(&variable);
      if (variable.isDeclaration()) {
        kernel_.dynamic = true;
        continue;
      }
      uint64_t bytes = layout_.getTypeAllocSize(variable.getValueType()),
               align = std::max<uint64_t>(16, variable.getAlign().valueOrOne().value());
      at = (at + align - 1) / align * align;
      std::string name =
          demangle(variable.getName().str());  // "void rows<K, 4>(K::Args const&)::scratch": the last part will do
      if (size_t last = name.rfind("::"); last != std::string::npos) name = name.substr(last + 2);
      kernel_.shared.push_back({name, at, bytes});
      offset_[&variable] = at;
      kernel_.shared_bytes += bytes;
      at += bytes + kZone;
    }
    kernel_.dynamic_offset = (at + kDynamicAlign - 1) / kDynamicAlign * kDynamicAlign;
    for (GlobalVariable* variable : shared_) offset_.try_emplace(variable, kernel_.dynamic_offset);
  }

  Value* arena(Function& function) {
    auto [found, fresh] = arena_.try_emplace(&function, nullptr);
    if (fresh) {
      IRBuilder<> build(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
      found->second =
          build.CreateCall(module_.getOrInsertFunction("simt_is_shared", FunctionType::get(build.getPtrTy(), false)));
    }
    return found->second;
  }

  void replace_shared(GlobalVariable& variable) {
    for (User* user : make_early(variable.users())) {
      auto* address = dyn_cast<IntrinsicInst>(user);
      if (!address || address->getIntrinsicID() != Intrinsic::threadlocal_address) {
        problem_ = "shared variable " + demangle(variable.getName().str()) + " is used in a way that cannot run here";
        continue;
      }
      Value* base = arena(*address->getFunction());
      IRBuilder<> build(address);
      // The arena's call stands first in the entry block; an address taken there earlier would come before it.
      if (address->getParent() == &address->getFunction()->getEntryBlock())
        cast<Instruction>(base)->moveBefore(&*address->getParent()->getFirstInsertionPt());
      address->replaceAllUsesWith(build.CreateConstInBoundsGEP1_64(build.getInt8Ty(), base, offset_[&variable]));
      address->eraseFromParent();
    }
    if (variable.use_empty()) variable.eraseFromParent();
  }

  // Pointers into the module's own variables reach hooks through selects and tables: the runtime knows their ranges.
  void name_globals() {
    for (GlobalVariable& variable : module_.globals()) {
      if (variable.isDeclaration() || variable.getName().starts_with("llvm.")) continue;
      variable.setName("simt.global." + Twine(names_.globals.size()));
      variable.setLinkage(GlobalValue::ExternalLinkage);
      variable.setComdat(nullptr);
      names_.globals.push_back({variable.getName().str(), layout_.getTypeAllocSize(variable.getValueType())});
    }
  }

  // void simt.entry.NAME(ptr args): CUDA lays parameters out at their natural alignment; clang passes a small struct as
  // its eightbytes, in order, which sit at the same places.
  void make_entry(Function& function) {
    std::string symbol = "simt.entry." + function.getName().str();
    function.setSection("");
    auto* entry = Function::Create(FunctionType::get(Type::getVoidTy(context_), {PointerType::get(context_, 0)}, false),
                                   GlobalValue::ExternalLinkage, symbol, module_);
    IRBuilder<> build(BasicBlock::Create(context_, "", entry));
    std::vector<Value*> values;
    uint64_t at = 0;
    for (Argument& argument : function.args()) {
      Type* type = argument.hasByValAttr() ? argument.getParamByValType() : argument.getType();
      Type* memory = type->isIntegerTy(1) ? build.getInt8Ty() : type;
      uint64_t align = argument.hasByValAttr() ? argument.getParamAlign().valueOrOne().value() :
                                                 layout_.getABITypeAlign(memory).value();
      at = (at + align - 1) / align * align;
      Value* place = build.CreateConstInBoundsGEP1_64(build.getInt8Ty(), entry->getArg(0), at);
      if (argument.hasByValAttr()) {
        // Kernels do not write their __grid_constant__ struct: no copy for each thread.
        if (argument.onlyReadsMemory()) argument.removeAttr(Attribute::ByVal);
        values.push_back(place);
      } else {
        Value* value = build.CreateLoad(memory, place);
        values.push_back(memory == type ? value : build.CreateTrunc(value, type));
      }
      at += layout_.getTypeAllocSize(memory);
    }
    CallInst* call = build.CreateCall(&function, values);
    call->setAttributes(function.getAttributes());
    build.CreateRetVoid();
    names_.entries.push_back({function.getName().str(), symbol, at});
  }

  template <class Range>
  std::vector<User*> make_early(Range range) {
    return {range.begin(), range.end()};
  }
  std::vector<std::reference_wrapper<Function>> make_early_list() { return {module_.begin(), module_.end()}; }

  Module& module_;
  Kernel& kernel_;
  Names& names_;
  const DataLayout& layout_;
  LLVMContext& context_;
  std::map<std::tuple<std::vector<uint32_t>, uint32_t, uint32_t, bool, bool>, uint32_t> site_of_;
  std::vector<GlobalVariable*> shared_;
  std::map<GlobalVariable*, uint64_t> offset_;
  std::map<Function*, Value*> arena_;
  std::string problem_;
};

}  // namespace

std::string instrument(Module& module, Kernel& kernel, Names& names) { return Pass(module, kernel, names).run(); }

}  // namespace fusec::simt
