#include "tools/fusec/text_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

namespace fusec::cli {
namespace {
struct Row {
  const char* name;
  TextAction (*add)(CLI::App&);
};
const Row kTextCommands[] = {{"opt", add_text_opt}, {"explain", add_text_explain}, {"emit", add_text_emit}};
}  // namespace

Result<std::string> run_text_command(const std::vector<std::string>& words, const Graph& graph) {
  for (const Row& row : kTextCommands) {
    if (words.empty() || words.front() != row.name) continue;
    CLI::App app;
    TextAction action = row.add(app);
    std::vector<std::string> arguments(words.rbegin(), words.rend() - 1);  // CLI11 takes them from the back
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& e) {
      return input_error("run: " + std::string(row.name) + ": " + e.what());
    }
    return action(graph);
  }
  return input_error("run: no test can run '" + (words.empty() ? "" : words.front()) + "'");
}

int print_each(const std::string& file, const std::string& graph, const TextAction& text) {
  std::vector<Graph> chosen;
  if (graph.empty()) {
    Result<std::vector<Graph>> all = load_graphs(file);
    if (!all) return fail(all.error());
    chosen = *std::move(all);
  } else {
    Result<Graph> one = load_graph(file, graph);
    if (!one) return fail(one.error());
    chosen.push_back(*std::move(one));
  }
  for (const Graph& each : chosen) {
    Result<std::string> out = text(each);
    if (!out) return fail(out.error());
    std::cout << *out;
  }
  return 0;
}

}  // namespace fusec::cli
