#include "fusec/graph.h"
#include "codegen/schedule.h"
#include "runtime/tuning.h"
#include "test/fuzz/targets.h"
#include "tools/fusec/fus_file.h"

namespace fusec::fuzz {

std::string hold_together(const Graph& graph) {
  if (Status good = verify(graph); !good) return "does not verify: " + good.error().text();
  const std::string text = print(graph);
  const Result<Graph> back = parse(text);
  if (!back) return "its text is not read: " + back.error().text();
  if (print(*back) != text) return "another text:\n" + text + print(*back);
  if (back->hash() != graph.hash()) return "another graph from the same text:\n" + text;
  return "";
}

std::string read_graph(std::string_view text) {
  const Result<std::vector<Graph>> graphs = parse_all(text, "fuzz.fus");
  if (!graphs) return graphs.error().kind == Error::input ? "" : "no input error: " + graphs.error().text();
  for (const Graph& graph : *graphs)
    if (std::string fault = hold_together(graph); !fault.empty()) return fault;
  return "";
}

std::string read_test_file(std::string_view text) {
  const Result<cli::FusFile> file = cli::parse_fus(text, "fuzz.fus");
  if (!file) return "";
  const std::vector<Type> types[] = {{{DType::f32, {3}}}, {{DType::boolean, {}}, {DType::i8, {Dim::symbol("N"), 2}}}, {{DType::bf16, {0, 3}}}};
  for (const cli::Eval& eval : file->evals)
    for (const std::vector<Type>& some : types)
      for (const std::string* values : {&eval.arguments, &eval.results}) {
        const Result<std::vector<Tensor>> read = cli::parse_values(*values, some);
        for (size_t i = 0; read && i < read->size(); ++i) {
          const Tensor& t = (*read)[i];
          if (size_t(t.elements()) * bytes(t.dtype) != t.data.size()) return "extents do not fit the data";
          if (!cli::difference(t, t, true, 0).empty()) return "a value differs from itself";
        }
      }
  for (const cli::Case& c : file->cases) (void)cli::expectation_lines(c.expect, c.expected);
  return "";
}

std::string read_tuning(std::string_view text) {
  const Result<Tuning> tuning = Tuning::parse(text, "fuzz.json");
  if (!tuning || !tuning->note().empty()) return "";
  const std::string written = tuning->text();
  const Result<Tuning> back = Tuning::parse(written);
  if (!back) return "what is written is not read: " + back.error().text();
  return back->text() == written ? "" : "another text:\n" + written + back->text();
}

std::string read_schedule(std::string_view text) {
  if (const std::optional<Schedule> stored = parse_schedule(text))
    if (bytes(*stored) != text) return "bytes that bytes() never wrote are taken: " + print(*stored);
  Schedule schedule;
  schedule.access.resize(3);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const Schedule before = schedule;
    if (!set(schedule, text.substr(at, end - at)) && !(schedule == before)) return "a refused edit changed it: " + print(schedule);
    at = end + 1;
  }
  const std::optional<Schedule> back = parse_schedule(bytes(schedule));
  return back && *back == schedule ? "" : "its bytes are not read: " + print(schedule);
}

}  // namespace fusec::fuzz
