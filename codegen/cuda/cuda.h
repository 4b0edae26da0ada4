#pragma once
// The CUDA back end: Kernel → Schedule → CUDA C++ text → cubin. Works without a GPU; only compile() and ptx() need NVRTC, which is
// opened when first used (libnvrtc.so.13, then .12: the loader's path, $CUDA_PATH/lib64, $CUDA_HOME/lib64, /usr/local/cuda/lib64).
//
//   const Device& device = cuda::device(90);
//   Schedule s = cuda::schedule(kernel, facts, device);
//   Result<Artifact> artifact = cuda::compile(cuda::emit(kernel, s), device.sm);
//   Launch launch = cuda::launch(kernel, s, facts, device);
//
// Everything here is pure and thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/artifact.h"
#include "codegen/scheduler.h"

namespace fusec::cuda {

/// What a schedule may know about a device. Sizes in bytes, rates in bytes a second.
struct Device {
  int sm;                       // 90: compute capability 9.0
  int multiprocessors;
  int64_t shared_per_block;     // largest dynamic shared memory of a block
  int64_t l2_bytes;
  int64_t bytes_in_flight;      // that a multiprocessor must have outstanding to reach the copy rate
  double copy_rate;             // read + written
  int max_cluster;              // blocks of a cluster; 1 = no clusters
  bool bulk_copies;             // cp.async.bulk with mbarriers: the ring

  /// Clusters of one block a multiprocessor that run at once. Groups of multiprocessors do not divide evenly: of clusters of 4, 8 and 16
  /// an H200 holds 30, 15 and 7.
  int64_t resident_clusters(int64_t cluster) const {
    return cluster <= 2 ? multiprocessors / cluster : multiprocessors * 10 / 11 / cluster;
  }
};

/// Defaults of an architecture: the newest row of the table that is not newer than `sm`.
Device device(int sm);

/// How to run a kernel on one kind of call.
/// Takes    facts of a call; of compile(): those of dense_binding.
/// Returns  a schedule; equal facts give equal schedules. A row is kept on chip where it fits. Which lane owns which element
///          depends on extents and types alone, so calls that differ in alignment or strides give the same bits.
Schedule schedule(const Kernel& kernel, const Facts& facts, const Device& device);

/// Scheduler::follow: programmatic dependent launch, where the architecture has it. The code waits for the kernel in front before it touches
/// memory; what it wins is the launch itself.
void follow(Schedule& schedule, const Device& device);

/// A schedule with room for the bytes a thread that compile() reported as spilled, which computes the same bits: fewer blocks a multiprocessor,
/// no fewer than that takes. nullopt: there is none.
std::optional<Schedule> relieve(const Schedule& schedule, int64_t spilled);

/// Grid, workspace and cache policy of one call. `facts` must choose `schedule`, or settle must have taken it for them.
Launch launch(const Kernel& kernel, const Schedule& schedule, const Facts& facts, const Device& device);

/// Scheduler::settle: "" or why the kernel cannot run like that on such a call.
std::string settle(const Kernel& kernel, const Facts& facts, const Device& device, Schedule& schedule);
/// Scheduler::fields.
std::string_view fields(const Schedule& schedule);
/// Blocks of a multiprocessor that registers, shared memory and threads leave room for.
Occupancy occupancy(const Artifact& artifact, const Launch& launch, const Device& device);
/// Scheduler::candidates.
std::vector<Candidate> candidates(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts);
/// All of it for a device that need not be there.
std::shared_ptr<const Scheduler> scheduler(const Device& device);

/// CUDA C++ of a kernel: prelude sections, structs, and one skeleton with the body in it. Deterministic; holds no name or
/// text of a user, numbers only as bits.
Code emit(const Kernel& kernel, const Schedule& schedule);

/// Cubin of a text for an architecture. Facts: registers, spill_bytes, stack_bytes, shared_bytes, compile_us.
/// Errors   environment: NVRTC is missing, too old for the architecture, or reports an error (its log is a note).
Result<Artifact> compile(const Code& code, int sm);

/// The same for a GPU that is there: where NVRTC does not know its architecture, PTX of the newest older one, which the driver compiles while it loads
/// it. Facts then: compile_us.
Result<Artifact> compile_for_gpu(const Code& code, int sm);

/// PTX of a text, for people and tests.
Result<std::string> ptx(const Code& code, int sm);

/// What identifies the compiler in a cache key: path, size and time of the NVRTC library; does not open it. "" when none is found.
std::string compiler_identity();

/// Seconds that opening NVRTC took; 0 as long as nobody needed it.
double compiler_opening();

}  // namespace fusec::cuda
