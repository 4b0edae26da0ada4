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

constexpr auto kMostAxes = int32_t(fusec::kMaxRank);

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
      const size_t rank = size_t(from[i].rank);
      fusec::Buffer& buffer = to.emplace_back();
      buffer.data = from[i].data;
      if (from[i].extents) buffer.extents = {from[i].extents, rank};
      if (from[i].strides) buffer.strides = {from[i].strides, rank};
    }
  }
};

/// The buffers of a call, or what about them cannot even be read.
fusec::Result<const Buffers*> buffers(const char* function, const fusec::Program& program, const fusec_buffer* inputs, size_t input_count,
                                      const fusec_buffer* outputs, size_t output_count) {
  thread_local Buffers kept;
  const auto side = [&](std::vector<fusec::Buffer>& to, const char* what, const fusec_buffer* from, size_t count, size_t wanted) -> fusec::Status {
    if (count != wanted)
      return fusec::input_error("graph @" + program.graph().name() + " has " + std::to_string(wanted) + " " + what + ", the call " + std::to_string(count));
    if (count && !from) return fusec::input_error(std::string(function) + ": " + what + " must not be NULL");
    for (size_t i = 0; i < count; ++i)
      if (from[i].rank < 0 || from[i].rank > kMostAxes)
        return fusec::input_error(std::string(function) + ": " + what + "[" + std::to_string(i) + "] has rank " + std::to_string(from[i].rank) +
                                  ": 0 to " + std::to_string(kMostAxes) + " is expected");
    const auto& ports = &to == &kept.inputs ? program.graph().inputs() : program.graph().outputs();
    for (size_t i = 0; i < count; ++i)  // without extents nothing behind this sees the rank
      if (const size_t rank = program.graph().node(ports[i].node).type.shape.size(); !from[i].extents && (from[i].strides || from[i].rank) && size_t(from[i].rank) != rank)
        return fusec::input_error(std::string(function) + ": " + what + "[" + std::to_string(i) + "] has rank " + std::to_string(from[i].rank) +
                                  ", not " + std::to_string(rank));
    Buffers::fill(to, from, count);
    return fusec::Done{};
  };
  if (fusec::Status s = side(kept.inputs, "inputs", inputs, input_count, program.graph().inputs().size()); !s) return s.error();
  if (fusec::Status s = side(kept.outputs, "outputs", outputs, output_count, program.graph().outputs().size()); !s) return s.error();
  return &kept;
}

/// A function of C, which nothing may be thrown out of: what `f` gives.
template <class F> fusec_status told(F f) noexcept {
  try {
    return f();
  } catch (...) {  // a message or the list of buffers: all else tells its own
    last_error = "out of memory";  // short enough to need none
    return FUSEC_ENVIRONMENT;
  }
}

fusec_status is_null(const char* function, const char* what) {
  return fail(fusec::input_error(std::string(function) + ": " + what + " must not be NULL"));
}

}  // namespace

extern "C" {

fusec_status fusec_compile(const char* text, const char* device, fusec_numerics numerics, fusec_program** program) {
  return told([&]() -> fusec_status {
    if (!program) return is_null("fusec_compile", "program");
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
  });
}

fusec_status fusec_run(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                       size_t output_count, void* stream, void* workspace, size_t workspace_bytes) {
  return told([&]() -> fusec_status {
    if (!program) return is_null("fusec_run", "program");
    const fusec::Result<const Buffers*> b = buffers("fusec_run", program->program, inputs, input_count, outputs, output_count);
    if (!b) return fail(b.error());
    const fusec::Status done = program->program.run(std::span<const fusec::Buffer>((*b)->inputs), std::span<const fusec::Buffer>((*b)->outputs),
                                                    {stream, workspace, workspace_bytes});
    return done ? FUSEC_OK : fail(done.error());
  });
}

fusec_status fusec_workspace_bytes(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                                   size_t output_count, size_t* bytes) {
  return told([&]() -> fusec_status {
    if (!program || !bytes) return is_null("fusec_workspace_bytes", program ? "bytes" : "program");
    const fusec::Result<const Buffers*> b = buffers("fusec_workspace_bytes", program->program, inputs, input_count, outputs, output_count);
    if (!b) return fail(b.error());
    const fusec::Result<size_t> needed = program->program.workspace_bytes((*b)->inputs, (*b)->outputs);
    if (!needed) return fail(needed.error());
    *bytes = *needed;
    return FUSEC_OK;
  });
}

fusec_status fusec_prepare(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
                           size_t output_count, fusec_call** call) {
  return told([&]() -> fusec_status {
    if (!call) return is_null("fusec_prepare", "call");
    *call = nullptr;
    if (!program) return is_null("fusec_prepare", "program");
    const fusec::Result<const Buffers*> b = buffers("fusec_prepare", program->program, inputs, input_count, outputs, output_count);
    if (!b) return fail(b.error());
    fusec::Result<fusec::Prepared> made = program->program.prepare((*b)->inputs, (*b)->outputs);
    if (!made) return fail(made.error());
    *call = new (std::nothrow) fusec_call{std::move(*made)};
    return *call ? FUSEC_OK : fail(fusec::environment_error("out of memory"));
  });
}

fusec_status fusec_replay(const fusec_call* call, void* stream) {
  return told([&]() -> fusec_status {
    if (!call) return is_null("fusec_replay", "call");
    fusec::Status done = call->prepared.replay(stream);
    return done ? FUSEC_OK : fail(done.error());
  });
}

void fusec_release_call(fusec_call* call) { delete call; }

void fusec_release(fusec_program* program) { delete program; }

const char* fusec_error(void) { return last_error.c_str(); }

}  // extern "C"
