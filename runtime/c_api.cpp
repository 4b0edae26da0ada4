// The C face of fusec.h: no exception and no C++ type crosses it.

#include "fusec/fusec_c.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/fusec.h"

struct fusec_program {
  fusec::Program program;
};

namespace {

using namespace fusec;

void report(std::string_view message, char* error, size_t size) {
  if (!error || !size) return;
  const size_t length = std::min(size - 1, message.size());
  std::memcpy(error, message.data(), length);
  error[length] = 0;
}

int status_of(const Error& error) {
  switch (error.kind) {
    case Error::input: return FUSEC_INPUT;
    case Error::environment: return FUSEC_ENVIRONMENT;
    case Error::internal: break;
  }
  return FUSEC_INTERNAL;
}

std::optional<Numerics> numerics_of(std::string_view name) {
  if (name == "strict") return Numerics::strict;
  if (name == "fused") return Numerics::fused;
  if (name == "fast") return Numerics::fast;
  return std::nullopt;
}

std::vector<Buffer> buffers(const fusec_buffer* from, size_t count) {
  std::vector<Buffer> out;
  for (size_t k = 0; k < count; k++) {
    Buffer buffer{from[k].data, {from[k].extents, from[k].rank}, {}};
    if (from[k].strides) buffer.strides = {from[k].strides, from[k].rank};
    out.push_back(buffer);
  }
  return out;
}

}  // namespace

extern "C" {

fusec_program* fusec_compile(const char* text, size_t text_length, const char* device, const char* numerics, char* error,
                             size_t error_size) try {
  if (!text) return report("fusec_compile: no text", error, error_size), nullptr;
  const auto mode = numerics_of(numerics ? numerics : "strict");
  if (!mode) return report("fusec_compile: numerics is strict, fused or fast", error, error_size), nullptr;
  Result<Graph> graph = parse({text, text_length});
  if (!graph) return report(graph.error().text(), error, error_size), nullptr;
  CompileOptions options;
  options.device = device ? device : "auto";
  options.numerics = *mode;
  Result<Program> program = compile(*graph, options);
  if (!program) return report(program.error().text(), error, error_size), nullptr;
  return new fusec_program{*std::move(program)};
} catch (const std::exception& failure) {
  return report(failure.what(), error, error_size), nullptr;
}

int fusec_run(const fusec_program* program, const fusec_buffer* inputs, size_t input_count, const fusec_buffer* outputs,
              size_t output_count, void* stream, char* error, size_t error_size) try {
  RunOptions options;
  options.stream = stream;
  const std::vector<Buffer> in = buffers(inputs, input_count), out = buffers(outputs, output_count);
  Status done = program->program.run(in, out, options);
  if (done) return FUSEC_OK;
  report(done.error().text(), error, error_size);
  return status_of(done.error());
} catch (const std::exception& failure) {
  report(failure.what(), error, error_size);
  return FUSEC_INTERNAL;
}

const char* fusec_device(const fusec_program* program) { return program->program.device().c_str(); }

void fusec_release(fusec_program* program) { delete program; }

}  // extern "C"
