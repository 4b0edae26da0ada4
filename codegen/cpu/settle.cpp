// A CPU schedule that was changed by hand or by a tuner. The back end's own choice for the same call says which fields are free: the
// width of a vector, how many run side by side, what an item covers, and how memory is asked for.

#include <algorithm>

#include "codegen/cpu/cpu.h"

namespace fusec::cpu {
namespace {

bool pow2(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::string settle(const Kernel& kernel, const Facts& facts, const Device& device, Schedule& s) {
  const Schedule own = schedule(kernel, facts, device);
  if (s == own) return "";
  Schedule fixed = s;
  const size_t axis = own.vector_axis;
  fixed.steps = own.steps, fixed.lane[axis] = own.lane[axis], fixed.block[axis] = own.block[axis], fixed.access = own.access;
  if (!(fixed == own)) return "on a CPU only steps and access can be set, and lane and block along axis " + std::to_string(axis);
  if (s.access.size() != own.access.size()) return "access: " + std::to_string(own.access.size()) + " entries are expected";
  const bool second = std::count_if(std::begin(own.lane), std::end(own.lane), [](uint16_t n) { return n != 0; }) > 1;
  if (second && (s.steps != own.steps || s.lane[axis] != own.lane[axis] || s.block[axis] != own.block[axis]))
    return "steps, lane and block are fixed where two axes share the lanes";
  if (kernel.axes.empty()) return s.steps == own.steps ? "" : "steps: there is no axis";
  if (s.steps < 1 || s.steps > 32) return "steps=" + std::to_string(s.steps) + ": 1 to 32 are expected";
  const int64_t width = s.lane[axis];
  if (!pow2(width) || width < 2 || width > 64) return "lane=" + std::to_string(width) + ": a power of two from 2 to 64 is expected";
  const bool kept = !kernel.axes[axis].reduced;
  if (kept && kernel.has_reductions()) s.block[axis] = uint16_t(width * s.steps);
  if (!kept && s.block[axis] != own.block[axis]) return "block: along a reduced axis it is fixed";
  if (kept && (s.block[axis] < 1 || (!second && s.block[axis] % width))) return "block: whole vectors are expected";
  size_t n = 0;
  for (const Inst& inst : kernel.values) {
    if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
    const size_t size = bytes(kernel.operands[inst.operand].type);
    const Access& given = own.access[n];
    Access& access = s.access[n++];
    if (access.staged != given.staged || access.streamed || access.early) return "access: only p and b can be set on a CPU";
    if (access.bypass && (inst.kind != Kind::store || inst.map.guard != kNoVal)) return "access: b is for stores without a guard";
    const bool wide = given.bytes > size;
    access.bytes = wide ? uint8_t(std::min<size_t>(64, size * size_t(width))) : uint8_t(size);
  }
  return "";
}

/// Twice and half as many vectors side by side, wider and narrower vectors, shorter items, memory asked for in other ways.
std::vector<Candidate> candidates(const Scheduler& scheduler, const Kernel& kernel, const Facts& facts) {
  CandidateList list(scheduler, kernel, facts);
  const Schedule own = list.own();
  if (kernel.axes.empty()) return list.take();
  const int lane = std::max<int>(1, own.lane[own.vector_axis]), steps = std::max<int>(1, own.steps);
  auto each = [](const char* name, std::vector<int> numbers) {
    std::vector<std::string> out;
    for (int n : numbers) out.push_back(std::string(name) + "=" + std::to_string(n));
    return out;
  };
  std::vector<std::string> memory{""};
  for (const char* mark : {"p", "b"}) {  // all wide accesses with prefetching; all wide stores past the caches
    std::string edits;
    size_t n = 0;
    for (const Inst& inst : kernel.values) {
      if (inst.kind != Kind::load && inst.kind != Kind::store) continue;
      const Access& a = own.access[n];
      const bool wide = a.bytes > bytes(kernel.operands[inst.operand].type) && !a.staged;
      if (wide && (*mark == 'p' || (inst.kind == Kind::store && inst.map.guard == kNoVal)))
        edits += (edits.empty() ? "access." : " access.") + std::to_string(n) + "=" + std::to_string(a.bytes) + mark;
      ++n;
    }
    if (!edits.empty()) memory.push_back(edits);
  }
  list.combine({each("steps", {steps, std::max(1, steps / 2), steps * 2}), each("lane", {lane, std::max(2, lane / 2), lane * 2}), memory});
  return list.take();
}

class CpuScheduler final : public Scheduler {
 public:
  explicit CpuScheduler(const Device& device) : device_(device) {}
  Schedule schedule(const Kernel& kernel, const Facts& facts) const override { return cpu::schedule(kernel, facts, device_); }
  Launch launch(const Kernel& kernel, const Schedule& s, const Facts& facts) const override { return cpu::launch(kernel, s, facts); }
  std::string settle(const Kernel& kernel, const Facts& facts, Schedule& s) const override { return cpu::settle(kernel, facts, device_, s); }
  std::vector<Candidate> candidates(const Kernel& kernel, const Facts& facts) const override { return cpu::candidates(*this, kernel, facts); }
  std::string device_key() const override { return target_key(); }
  std::string target_key() const override { return "cpu: " + device_.cpu + ", " + std::to_string(device_.vector_bytes) + " bytes"; }

 private:
  Device device_;
};

}  // namespace

std::shared_ptr<const Scheduler> scheduler(const Device& device) { return std::make_shared<CpuScheduler>(device); }

}  // namespace fusec::cpu
