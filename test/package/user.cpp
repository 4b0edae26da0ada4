// What an embedder writes: build, compile, run, read the answer.

#include <fusec/fusec.h>

#include <cstdio>

int main(int, char** arguments) {
  fusec::Result<fusec::Graph> graph = fusec::parse("graph @g(%x: f32[N]) -> f32[N] {\n  %y: f32[N] = mul %x, 2.0\n  return %y\n}\n");
  if (!graph) return std::puts(graph.error().text().c_str()), 1;
  fusec::Result<fusec::Program> program = fusec::compile(*graph, {.device = arguments[1]});
  if (!program) return std::puts(program.error().text().c_str()), 1;
  float x[3] = {1, 2, 3}, y[3] = {};
  const int64_t extents[] = {3};
  if (fusec::Status done = program->run({{x, extents}}, {{y, extents}}); !done) return std::puts(done.error().text().c_str()), 1;
  return y[0] == 2 && y[1] == 4 && y[2] == 6 ? 0 : 1;
}
