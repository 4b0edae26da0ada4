#include "tools/fusec/text_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>

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

}  // namespace fusec::cli
