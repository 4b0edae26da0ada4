#include "tools/fusec/suite.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "lib/support/files.h"
#include "tools/fusec/command.h"
#include "tools/fusec/execute.h"
#include "tools/fusec/slices.h"

namespace fusec::cli {
namespace {

namespace fs = std::filesystem;

/// "; key: value" at the beginning of a line: all values of that key.
std::vector<std::string> comments(const std::string& text, const std::string& key) {
  std::vector<std::string> out;
  const std::string start = "; " + key + ": ";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, start.size(), start) == 0) out.push_back(text.substr(at + start.size(), end - at - start.size()));
    at = end + 1;
  }
  return out;
}

Result<int64_t> extent_comment(const std::string& text, const std::string& key) {
  const std::vector<std::string> found = comments(text, key);
  if (found.empty()) return int64_t{0};
  int64_t value = 0;
  const auto [end, error] = std::from_chars(found[0].data(), found[0].data() + found[0].size(), value);
  if (error != std::errc() || end != found[0].data() + found[0].size() || value < 1) return input_error("'; " + key + ": " + found[0] + "': an extent is expected");
  return value;
}

Result<Workload> load(const fs::path& path) {
  Result<std::string> text = read_file(path.string());
  if (!text) return text.error();
  Workload out{path.stem().string(), {*text, {}, {}, 0}, 0};
  if (Status s = read_comments(*text, out); !s) return s.error().note("in " + path.string());
  Result<Graph> graph = parse(*text, path.filename().string());
  if (!graph) return graph.error();
  return out;
}

}  // namespace

Result<std::string> workloads_folder(const std::string& given) {
  std::error_code error;
  if (!given.empty()) return fs::is_directory(given, error) ? Result<std::string>(given) : Result<std::string>(input_error(given + " is no folder of workloads"));
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  std::string tried;
  for (const char* below : {"../share/fusec/workloads", "../tools/bench/workloads", "../../tools/bench/workloads"}) {
    const fs::path folder = (executable.parent_path() / below).lexically_normal();
    if (fs::is_directory(folder, error)) return folder.string();
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  return input_error("the workloads are not there: looked for " + tried + "; --suite FOLDER names them");
}

Status read_comments(const std::string& text, Workload& out) {
  Result<int64_t> rows = extent_comment(text, "rows"), shrinks = extent_comment(text, "shrinks");
  if (!rows) return rows.error();
  if (!shrinks) return shrinks.error();
  out.subject.rows = *rows, out.shrinks = *shrinks ? *shrinks : *rows;
  for (const std::string& input : comments(text, "positive")) out.subject.positive.push_back(input.substr(input.starts_with('%')));
  return Done{};
}

Result<std::vector<Workload>> workloads_of(const std::string& file, const std::vector<std::string>& dims) {
  Result<std::vector<Graph>> graphs = load_graphs(file);
  if (!graphs) return graphs.error();
  std::vector<Workload> out;
  for (const Graph& graph : *graphs) {
    Result<Sizes> sizes = parse_dims(dims_of(graph, dims));
    if (!sizes) return sizes.error();
    if (Result<double> moved = footprint(graph, *sizes); !moved) return moved.error().note("while reading " + file);
    out.push_back({"@" + printable(one_line(graph.name())), {print(graph), std::move(*sizes), {}, 0}, 0});
  }
  if (out.size() != 1 || !file.ends_with(".fus")) return out;
  Result<std::string> text = read_file(file);
  if (!text) return text.error();
  if (Status s = read_comments(*text, out.back()); !s) return s.error().note("in " + file);
  return out;
}

Result<std::vector<Workload>> load_workloads(const std::string& folder, const std::vector<std::string>& only) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".fus") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::string& name : only)
    if (std::none_of(files.begin(), files.end(), [&](const fs::path& f) { return f.stem() == name; })) return input_error("there is no workload " + name + " in " + folder);
  if (files.empty()) return input_error("there are no .fus files in " + folder);
  std::vector<Workload> out;
  for (const fs::path& file : files) {
    if (!only.empty() && std::find(only.begin(), only.end(), file.stem().string()) == only.end()) continue;
    Result<Workload> one = load(file);
    if (!one) return one.error();
    out.push_back(std::move(*one));
  }
  return out;
}

Result<double> footprint(const Graph& graph, const Sizes& sizes) {
  double sum = 0;
  for (std::span<const Port> ports : {std::span<const Port>(graph.inputs()), std::span<const Port>(graph.outputs())})
    for (const Port& port : ports) {
      const Type& type = graph.node(port.node).type;
      double size = double(bytes(type.dtype));
      for (const Dim& dim : type.shape) {
        const std::optional<int64_t> extent = dim.value(sizes);
        if (!extent || *extent < 0) return input_error("the dim " + dim.text() + " of graph @" + graph.name() + " has no size: give --dim");
        size *= double(*extent);
      }
      sum += size;
    }
  return sum;
}

Result<Workload> shrunk(const Workload& workload, double most) {
  Workload out = workload;
  // Another dim of the same extent would be taken for this one.
  auto taken = [&](int64_t extent) { return with_extent(workload.subject.text, extent, 0) != workload.subject.text; };
  for (int64_t extent = workload.shrinks;;) {
    Result<Graph> graph = parse(out.subject.text);
    if (!graph) return graph.error().note("while shrinking " + workload.name);
    Result<double> moved = footprint(*graph, out.subject.sizes);
    if (!moved) return moved.error();
    if (*moved <= most || extent <= 1) return out;
    do extent = std::max<int64_t>(1, extent / 2);
    while (extent > 1 && taken(extent));
    out.subject.text = with_extent(workload.subject.text, workload.shrinks, extent);
    if (workload.subject.rows == workload.shrinks) out.subject.rows = taken(extent) ? 0 : extent;
  }
}

}  // namespace fusec::cli
