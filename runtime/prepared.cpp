// A call that is repeated with the same buffers: packed and patched once. A GPU records it as a graph.

#include "runtime/program.h"

#include "lib/support/caught.h"

namespace fusec {

class Prepared::Call {
 public:
  std::shared_ptr<Program::Impl> program;
  std::shared_ptr<const PackedCall> packed;    // null: the reference evaluator, by the buffers
  std::vector<uintptr_t> pointers;             // inputs, outputs, arena, counters, zero
  std::unique_ptr<Memory> workspace;
  std::shared_ptr<const Recorded> recorded;    // null: started step by step
  std::vector<std::vector<int64_t>> shapes;    // what the buffers point to
  std::vector<Buffer> inputs, outputs;
};

namespace {

void keep(std::span<const Buffer> from, std::vector<Buffer>& to, std::vector<std::vector<int64_t>>& shapes) {
  for (const Buffer& b : from) {
    Buffer& copy = to.emplace_back(b);
    for (auto* dims : {&copy.extents, &copy.strides}) {
      shapes.emplace_back(dims->begin(), dims->end());  // moving the outer vector moves no element of an inner one
      *dims = shapes.back();
    }
  }
}

Result<std::shared_ptr<const Prepared::Call>> make(std::shared_ptr<Program::Impl> program, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
  auto call = std::make_shared<Prepared::Call>();
  call->program = std::move(program);
  const Backend* device = call->program->backend();
  if (!device) {
    if (Result<size_t> fits = call->program->workspace_bytes(inputs, outputs); !fits) return fits.error();
    keep(inputs, call->inputs, call->shapes), keep(outputs, call->outputs, call->shapes);
    return std::shared_ptr<const Prepared::Call>(std::move(call));
  }
  Result<std::shared_ptr<const PackedCall>> packed = call->program->packed_call(inputs, outputs);
  if (!packed) return packed.error();
  call->packed = std::move(*packed);
  for (std::span<const Buffer> side : {inputs, outputs})
    for (const Buffer& b : side) call->pointers.push_back(reinterpret_cast<uintptr_t>(b.data));
  std::byte* memory = nullptr;
  if (call->packed->workspace() > 0) {
    Result<std::unique_ptr<Memory>> made = device->allocate(call->packed->workspace());
    if (!made) return made.error();
    call->workspace = std::move(*made);
    memory = static_cast<std::byte*>(call->workspace->data);
  }
  const std::byte* arena = memory ? memory + call->packed->counters() : nullptr;
  for (const void* p : {static_cast<const void*>(arena), static_cast<const void*>(memory), static_cast<const void*>(nullptr)})
    call->pointers.push_back(reinterpret_cast<uintptr_t>(p));
  Result<std::shared_ptr<const Recorded>> recorded =
      device->record([&](void* stream) { return call->program->start_at(*call->packed, call->pointers, stream); });
  if (!recorded) return recorded.error();
  call->recorded = std::move(*recorded);
  return std::shared_ptr<const Prepared::Call>(std::move(call));
}

}  // namespace

Status Prepared::replay(void* stream) const {
  return caught("the call stopped", [&]() -> Status {
    const Call& c = *call_;
    if (c.recorded) return c.program->backend()->replay(*c.recorded, stream);
    if (!c.packed) return c.program->run(c.inputs, c.outputs, {.stream = stream});
    return c.program->start_at(*c.packed, c.pointers, stream);
  });
}

Result<Prepared> Program::prepare(std::span<const Buffer> inputs, std::span<const Buffer> outputs) const {
  return caught("preparing stopped", [&]() -> Result<Prepared> {
    Result<std::shared_ptr<const Prepared::Call>> call = make(impl_, inputs, outputs);
    if (!call) return call.error();
    return Prepared(std::move(*call));
  });
}

}  // namespace fusec
