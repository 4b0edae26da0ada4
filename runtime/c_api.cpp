// fusec_c.h over fusec.h: nothing is decided here.

#include "fusec/fusec_c.h"

#include <new>

#include "fusec/fusec.h"

struct fusec_program {
  fusec::Program program;
};
struct fusec_call {
  fusec::Prepared prepared;
};

namespace {

thread_local std::string last_error;

fusec_status fail(const fusec::Error& error) {
  last_error = error.text();
  switch (error.kind) {
    case fusec::Error::input: return FUSEC_INPUT;
    case fusec::Error::environment: return FUSEC_ENVIRONMENT;
    case fusec::Error::internal: return FUSEC_INTERNAL;
  }
  return FUSEC_INTERNAL;
}

/// Kept by each thread, so that warm calls allocate nothing.
struct Buffers {
  std::vector<fusec::Buffer> inputs, outputs;

  static void fill(std::vector<fusec::Buffer>& to, const fusec_buffer* from, size_t count) {
    to.clear();
    for (size_t i = 0; i < count; ++i) {
      const size_t rank = from[i].rank > 0 ? size_t(from[i].rank) : 0;
      fusec::Buffer& buffer = to.emplace_back();
      buffer.data = from[i].data;
      if (from[i].extents) buffer.extents = {from[i].extents, rank};
      if (from[i].strides) buffer.strides = {from[i].strides, rank};
    }
  }
};

Buffers& buffers(const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs, size_t output_count) {
  thread_local Buffers kept;
  Buffers::fill(kept.inputs, inputs, input_count);
  Buffers::fill(kept.outputs, outputs, output_count);
  return kept;
}

}  // namespace

extern "C" {

fusec_status fusec_compile(const char* text, const char* device, fusec_numerics numerics, fusec_program** program) {
  *program = nullptr;
  if (!text || !device) return fail(fusec::input_error("fusec_compile: text and device must not be NULL"));
  if (numerics < FUSEC_STRICT || numerics > FUSEC_FAST) return fail(fusec::input_error("fusec_compile: unknown numerics mode"));
  fusec::Result<fusec::Graph> graph = fusec::parse(text);
  if (!graph) return fail(graph.error());
  fusec::Result<fusec::Program> compiled =
      fusec::compile(*graph, {.device = device, .numerics = static_cast<fusec::Numerics>(numerics)});
  if (!compiled) return fail(compiled.error());
  *program = new (std::nothrow) fusec_program{std::move(*compiled)};
  return *program ? FUSEC_OK : fail(fusec::environment_error("out of memory"));
}

fusec_status fusec_run(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                       size_t output_count, void* stream, void* workspace, size_t workspace_bytes) {
  const Buffers& b = buffers(inputs, input_count, outputs, output_count);
  const fusec::Status done = program->program.run(std::span<const fusec::Buffer>(b.inputs), std::span<const fusec::Buffer>(b.outputs),
                                                  {stream, workspace, workspace_bytes});
  return done ? FUSEC_OK : fail(done.error());
}

fusec_status fusec_workspace_bytes(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                                   size_t output_count, size_t* bytes) {
  const Buffers& b = buffers(inputs, input_count, outputs, output_count);
  const fusec::Result<size_t> needed = program->program.workspace_bytes(b.inputs, b.outputs);
  if (!needed) return fail(needed.error());
  *bytes = *needed;
  return FUSEC_OK;
}

fusec_status fusec_prepare(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                           size_t output_count, fusec_call** call) {
  *call = nullptr;
  const Buffers& b = buffers(inputs, input_count, outputs, output_count);
  fusec::Result<fusec::Prepared> made = program->program.prepare(b.inputs, b.outputs);
  if (!made) return fail(made.error());
  *call = new (std::nothrow) fusec_call{std::move(*made)};
  return *call ? FUSEC_OK : fail(fusec::environment_error("out of memory"));
}

fusec_status fusec_replay(const fusec_call* call, void* stream) {
  fusec::Status done = call->prepared.replay(stream);
  return done ? FUSEC_OK : fail(done.error());
}

void fusec_release_call(fusec_call* call) { delete call; }

void fusec_release(fusec_program* program) { delete program; }

const char* fusec_error(void) { return last_error.c_str(); }

}  // extern "C"
