// The text is print's, of a graph with other labels; comments go between its lines.
//
//   ; node 3 LayerNormalization "/encoder/norm": "/encoder/norm/out"
//   %out: f32[N,384] = layer_norm %x, %scale, %bias {axes=[1], eps=1e-05}

#include "lib/import/onnx_text.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lib/support/text.h"

namespace fusec {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

constexpr size_t kLong = 40;  // characters of a name: what is longer is cut to its last words

bool reads_well(std::string_view name) { return is_plain_name(name) && name.size() <= kLong; }

/// The last part of a path, or its last words, without the "_output_0" that exporters append, in plain characters.
std::string short_name(std::string_view name) {
  constexpr std::string_view kSuffix = "_output_0";
  while (!name.empty() && name.back() == '/') name.remove_suffix(1);
  name.remove_prefix(name.find_last_of("/:") + 1);  // npos + 1 is 0
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  std::string out;
  if (name.size() > kLong) {
    name.remove_prefix(name.size() - kLong);
    if (const size_t word = name.find('_'); word != name.npos && word + 1 < name.size()) name.remove_prefix(word + 1);
  }
  for (char c : name) out += is_word(c) ? c : '_';
  return out.empty() || !is_plain_name(out) ? "v" + out : out;
}

/// A label for each value that has one: its own where it is plain, a short one where not; none twice.
std::unordered_map<std::string, std::string> labels_of(const Graph& graph) {
  std::unordered_set<std::string> taken;
  for (const Port& p : graph.inputs()) taken.insert(p.name);
  for (NodeId id = 0; id < graph.size(); ++id)
    if (reads_well(graph.label(id))) taken.insert(graph.label(id));
  std::unordered_map<std::string, std::string> out;
  std::unordered_map<std::string, size_t> next;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string& label = graph.label(id);
    if (label.empty() || out.contains(label)) continue;
    std::string& name = out[label];
    if (reads_well(label)) {
      name = label;
      continue;
    }
    const std::string base = short_name(label);
    name = base;
    for (size_t& k = next[base]; !taken.insert(name).second;) name = base + "." + std::to_string(++k);
  }
  return out;
}

/// A comment is one line: control characters are written as in a quoted name.
std::string one_line(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' || c < 0; });
  return plain ? text : quoted(text);
}

}  // namespace

std::string import_text(const Imported& imported) {
  const Graph& graph = imported.graph;
  const std::unordered_map<std::string, std::string> labels = labels_of(graph);
  std::unordered_map<std::string, std::string> comment;  // by new label
  GraphBuilder b(graph.name());
  std::vector<Value> values(graph.size()), outputs;
  for (const Port& port : graph.inputs()) values[port.node] = b.input(port.name, graph.node(port.node).type);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == Op::input) continue;
    std::vector<Value> args;
    for (NodeId arg : node.args) args.push_back(values[arg]);
    values[id] = b.add(node.op, std::move(args), *node.attrs);
    const std::string& label = graph.label(id);
    if (label.empty() || graph.is_scalar_constant(id)) continue;  // written where it is used
    const std::string& name = labels.at(label);
    b.label(values[id], name);
    if (const auto source = imported.sources.find(label); source != imported.sources.end())
      comment[name] = source->second + (name == label ? "" : ": " + quoted(label));
  }
  std::vector<std::string> names;
  for (const Port& port : graph.outputs()) outputs.push_back(values[port.node]), names.push_back(port.name);
  const Result<Graph> renamed = std::move(b).finish(std::move(outputs), std::move(names));
  if (!renamed) return print(graph);

  // An operator's ops follow one another, and the last one has its label: the comment goes above the first.
  const std::string text = print(*renamed);
  std::string out = imported.header.empty() ? "" : "; " + one_line(imported.header) + "\n", run;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end - at + 1);
    at = end + 1;
    run += line;
    const bool value = line.starts_with("  %");
    const auto found = value ? comment.find(std::string(line.substr(3, line.find(':') - 3))) : comment.end();
    if (value && found == comment.end()) continue;
    if (value) out += "  ; " + one_line(found->second) + "\n";
    out += run;
    run.clear();
  }
  return out + run;
}

}  // namespace fusec
