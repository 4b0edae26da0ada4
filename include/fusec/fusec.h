#pragma once
// The embedding API: hand over a graph once, call the result many times.
//
//   #include <fusec/fusec.h>
//
//   fusec::Result<fusec::Graph> graph = fusec::parse(R"(
//     graph @scale_relu(%x: f32[N,4], %s: f32[4]) -> f32[N,4] {
//       %m: f32[N,4] = mul %x, %s
//       %y: f32[N,4] = relu %m
//       return %y
//     })");
//   if (!graph) return fail(graph.error().text());
//   fusec::Result<fusec::Program> program = fusec::compile(*graph, {.device = "cpu"});
//   if (!program) return fail(program.error().text());
//
//   std::vector<float> x(8, -1.0f), s = {1, 2, 3, 4}, y(8);
//   x[5] = 3;
//   const int64_t rows[] = {2, 4}, row[] = {4};
//   fusec::Status done = program->run({{x.data(), rows}, {s.data(), row}}, {{y.data(), rows}});
//   if (!done) return fail(done.error().text());
//   // y[5] is 6, everything else 0.
//
// Graphs can also be built (graph.h). Nothing here throws; a failed call changes neither the program nor the device's state.

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusec/graph.h"

namespace fusec {

struct CompileOptions {
  std::string device = "auto";             // auto (a GPU if there is one, else cpu), cpu, cuda, cuda:N, reference, simt
  Numerics numerics = Numerics::strict;
  Sizes sizes;                             // of named dims: kernels for them are compiled now; others at the first call that needs them
  bool cache = true;                       // use the cache directory of the user
  bool ahead = true;                       // compile before it is needed what a call of known sizes, or one with other pointers, would
                                           // need. false: only what a call runs, in that call; for programs that are called once
  std::vector<std::string> disabled_rules; // rewrite rules that must not fire
  bool fuse = true;                        // false: one kernel an operation
  std::string tuning;                      // a tuning file (fusec tune) to take schedules from; "": FUSEC_TUNING's, if it is set
  std::vector<std::string> schedule;       // for experiments: fields of the kernels' schedules set by hand, "threads=512" or, for
                                           // one of them, "g1:keep=reload" (codegen/schedule.h). Results may round differently
  std::string switches;                    // for looking inside: "--dump-dir=DIR --print-changed" …, after those of FUSEC_OPTIONS
};

/// Memory of a call, owned by the caller and on the program's device. The spans are views: they and what they show must live until
/// `run` returns.
struct Buffer {
  void* data = nullptr;
  std::span<const int64_t> extents{};  // of outputs they may be left out
  std::span<const int64_t> strides{};  // in elements, one an extent; left out = dense, row-major. May be 0 or negative for inputs
};

struct RunOptions {
  void* stream = nullptr;       // CUDA: a CUstream of the program's device, null is the default stream. The call only enqueues on it
  void* workspace = nullptr;    // device memory, at least workspace_bytes(), aligned to 256, the call's alone until it has finished;
  size_t workspace_bytes = 0;   // null = leased from the program
};

/// A call whose buffers are final, made once and repeated: on a GPU it is one CUDA graph, whose launch costs the host the same however
/// many kernels it has. Cheap to copy. It keeps the program alive; its buffers are the caller's to keep.
class Prepared {
 public:
  /// The call again, with what its buffers hold then. On a GPU it only enqueues on the stream. Replays of one Prepared follow each other
  /// in stream order: the caller orders those on different streams, since they share a workspace.
  Status replay(void* stream = nullptr) const;

  class Call;
  explicit Prepared(std::shared_ptr<const Call> call) : call_(std::move(call)) {}

 private:
  std::shared_ptr<const Call> call_;
};

/// A compiled graph: cheap to copy, usable from any number of threads at a time.
class Program {
 public:
  /// Computes all outputs. Inputs and outputs in the graph's order.
  /// A call whose sizes, strides and alignments were seen before allocates nothing, compiles nothing and waits for nothing.
  /// An output may be exactly an input's memory; one that overlaps anything else partly, or itself, is an input error.
  /// On the CPU the outputs are there when it returns; on a GPU when the stream gets there.
  Status run(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const RunOptions& options = {}) const;
  Status run(std::initializer_list<Buffer> inputs, std::initializer_list<Buffer> outputs, const RunOptions& options = {}) const {
    return run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), options);
  }

  /// Makes such a call ready to be repeated: compiles and allocates what it needs, computes nothing.
  Result<Prepared> prepare(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const;

  /// Bytes of workspace that such a call needs.
  Result<size_t> workspace_bytes(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const;
  /// Extents of the outputs of a call with these input extents.
  Result<std::vector<std::vector<int64_t>>> output_extents(std::span<const std::vector<int64_t>> inputs) const;

  struct Stats {
    uint64_t calls = 0;         // of run
    uint64_t cold = 0;          // … with sizes, strides or alignments not seen before
    uint64_t kernels = 0;       // launched
    uint64_t compilations = 0;  // compiler runs of this process's cache; not those that the cache spared
  };
  Stats stats() const;
  /// The graph that was handed over.
  const Graph& graph() const;
  /// "cpu", "cuda:0" …
  const std::string& device() const;

  class Impl;
  explicit Program(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// Compiles a graph for a device.
/// Errors   input: the graph, an unknown device or dim; environment: no such device, no compiler. Each names the fault and the place.
Result<Program> compile(const Graph& graph, const CompileOptions& options = {});

}  // namespace fusec
