#pragma once
// What a Program holds: the plan, kernels and code made so far, calls worked out so far, workspaces.

#include <atomic>
#include <shared_mutex>
#include <unordered_map>

#include "runtime/call.h"
#include "runtime/workspace.h"

namespace fusec {

class Program::Impl {
 public:
  Impl(ProgramPlan plan, std::shared_ptr<const Backend> backend, const CompileOptions& options, std::unique_ptr<Trace> trace);

  /// Uploads constants and, where every size is known, compiles.
  Status prepare();

  Status run(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const RunOptions& options);
  Result<size_t> workspace_bytes(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  /// What such a call starts, for explain and bench.
  Result<std::shared_ptr<const PackedCall>> packed_call(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  Stats stats() const;
  /// Starts a packed call. `pointers`: inputs, outputs, arena, counters, zero.
  Status start_at(const PackedCall& call, std::span<const uintptr_t> pointers, void* stream);

  const ProgramPlan& plan() const { return plan_; }
  const Backend* backend() const { return backend_.get(); }  // null: the reference evaluator
  const std::string& device() const { return device_; }
  Numerics numerics() const { return options_.numerics; }

 private:
  /// Calls that differ in pointers only: what is known of their buffers, and the packed call for each way outputs share memory
  /// with inputs (most often none).
  using Aliases = std::vector<std::pair<uint32_t, uint32_t>>;
  struct CallKind {
    CallShape shape;                                     // aliases empty
    std::vector<std::pair<int64_t, int64_t>> reach;      // bytes before and behind the first element, inputs then outputs
    std::vector<std::pair<Aliases, std::shared_ptr<const PackedCall>>> packed;
    std::shared_ptr<const PackedCall> find(const Aliases& aliases) const {  // null: nobody asked yet
      for (const auto& [of, call] : packed)
        if (of == aliases) return call;
      return nullptr;
    }
  };
  struct Hash {
    size_t operator()(const std::vector<int64_t>& key) const noexcept;
  };
  struct Scratch;

  Status run_reference(std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  /// What the caller's buffers are, checked against the graph.
  Result<CallShape> describe(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const;
  Status check_count(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const;
  /// A call's signature, into the scratch; what is known of it, under one lock, or null; and what may take long, in two steps.
  static void sign(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs);
  Result<std::shared_ptr<const PackedCall>> known(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs) const;
  Result<std::shared_ptr<const PackedCall>> work_out(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs, void* stream);
  Result<std::shared_ptr<CallKind>> kind(Scratch& scratch, std::span<const Buffer> inputs, std::span<const Buffer> outputs, void* stream);
  /// Finds outputs that share memory with something; the pairs go to the scratch.
  Status find_aliases(Scratch& scratch, const CallKind& kind, std::span<const Buffer> inputs, std::span<const Buffer> outputs) const;
  Result<std::shared_ptr<const PackedCall>> packed(const Scratch& scratch, CallKind& kind, void* stream);
  Result<PackedCall> pack_now(const CallShape& shape);
  Status start(const PackedCall& call, Scratch& scratch, void* stream) const;

  std::unique_ptr<Trace> trace_;       // where kernels are dumped
  ProgramPlan plan_;
  std::shared_ptr<const Backend> backend_;
  CompileOptions options_;
  Chooser chooser_;
  std::string device_;
  std::unique_ptr<Cache> own_cache_;   // without a directory
  Cache* cache_;
  std::vector<std::unique_ptr<Memory>> constants_;
  std::vector<StepKernels> steps_, alias_copies_;
  std::vector<PlanStep> alias_steps_;
  std::mutex packing_;
  mutable std::shared_mutex memo_mutex_;
  std::unordered_map<std::vector<int64_t>, std::shared_ptr<CallKind>, Hash> memo_;
  Workspaces workspaces_;
  mutable std::atomic<uint64_t> calls_ = 0, cold_ = 0, kernels_ = 0;
};

}  // namespace fusec
