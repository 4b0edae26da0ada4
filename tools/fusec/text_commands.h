#pragma once
// Subcommands whose output is a text about one graph: what `; run:` lines of tests may name.

#include "tools/fusec/command.h"

namespace fusec::cli {

/// Output of {"opt", "--passes=simplify"} for a graph.
Result<std::string> run_text_command(const std::vector<std::string>& words, const Graph& graph);

/// What such a subcommand does on the command line: prints the text of every graph of a file, or of the one named. Returns the exit
/// status; a name that no graph has is an input error.
int print_each(const std::string& file, const std::string& graph, const TextAction& text);

TextAction add_text_opt(CLI::App& app);
TextAction add_text_explain(CLI::App& app);
TextAction add_text_emit(CLI::App& app);

}  // namespace fusec::cli
